"""Which declaration speaks of which live thing, where the flows of whole plans do not look closely."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import pytest

from lmsconf.errors import Problem, Severity, SourceLocation
from lmsconf.model.address import RemoteId
from lmsconf.model.names import did_you_mean, quote_name, suspicion
from lmsconf.planner.claim_matching import Claim, ClaimMatches, match_claims


class Live(NamedTuple):
    id: RemoteId
    name: str


def live(*pairs: str) -> list[Live]:
    """`1 A` is a live thing with the id 1 that is called A."""
    return [Live(RemoteId(pair.partition(" ")[0]), pair.partition(" ")[2]) for pair in pairs]


def claim(name: str, *previously: str, pin: str | None = None) -> Claim:
    return Claim(
        name=name,
        pin=None if pin is None else RemoteId(pin),
        previously=previously,
        label=f"group/{name}",
        find_source=lambda: SourceLocation(f"{name}.yaml"),
        address=f"group/{name}",
    )


def taken(found: ClaimMatches[Live]) -> list[str | None]:
    """The id that each claim got."""
    return [None if one is None else one.id for one in found.live]


def codes(found: ClaimMatches[Live]) -> list[str]:
    return [problem.code for problem in found.problems]


def test_a_pin_wins_over_a_name_and_a_name_over_an_earlier_one() -> None:
    """Whatever the order of the claims; what is left over is nobody's."""
    claims = [claim("A"), claim("B", pin="1"), claim("C", "D"), claim("D")]
    found = match_claims(claims, live("1 A", "2 B", "3 D", "4 E"))
    assert taken(found) == [None, "1", None, "3"]
    assert [one.id for one in found.unclaimed] == ["2", "4"]
    assert codes(found) == []
    assert found.broken == set()


def test_a_pin_that_is_not_live_tells_who_has_the_name() -> None:
    """With the ids to choose from where there are any."""
    found = match_claims([claim("A", pin="9"), claim("B", pin="8")], live("1 A", "2 A"))
    assert [problem.message for problem in found.problems] == [
        'group/A: no resource with the id "9" is live',
        'group/B: no resource with the id "8" is live',
    ]
    assert [problem.hint for problem in found.problems] == [
        '"A" is live with the id 1, 2.',
        "Correct the id, or remove it.",
    ]
    assert taken(found) == [None, None]
    assert found.broken == {0, 1}


def test_one_id_is_pinned_once() -> None:
    """The second is told where the first stands."""
    found = match_claims([claim("A", pin="1"), claim("B", pin="1")], live("1 X"))
    assert taken(found) == ["1", None]
    [problem] = found.problems
    assert (problem.code, problem.address) == ("identity/pinned-twice", "group/B")
    assert problem.message == 'group/B: the id "1" is pinned by group/A already'
    assert "A.yaml" in (problem.hint or "")


def test_of_two_of_a_name_the_pinned_one_leaves_the_other_for_the_name() -> None:
    """What a pin has claimed is not live twice any more; without a pin it is."""
    assert codes(match_claims([claim("A")], live("1 A", "2 A"))) == ["identity/live-twice"]
    found = match_claims([claim("A"), claim("B", pin="1")], live("1 A", "2 A"))
    assert taken(found) == ["2", "1"]
    assert codes(found) == []


def test_a_chain_moves_up_by_one_name() -> None:
    """Each takes the name that the one after it leaves; where the last one stays, all of them do."""
    claims = [claim("A", "B"), claim("B", "C"), claim("C")]
    assert taken(match_claims(claims, live("1 B", "2 C"))) == [None, "1", "2"]
    claims = [claim("A", "B"), claim("B", "C"), claim("C", "D")]
    assert taken(match_claims(claims, live("1 B", "2 C", "3 D"))) == ["1", "2", "3"]
    assert codes(match_claims(claims, live("1 B", "2 C", "3 D"))) == []


def test_an_earlier_name_that_is_live_twice_is_an_error() -> None:
    """Which of them is meant cannot be told, and no other earlier name is tried."""
    found = match_claims([claim("A", "B", "C")], live("2 B", "1 B", "3 C"))
    assert taken(found) == [None]
    [problem] = found.problems
    assert problem.code == "identity/live-twice"
    assert problem.message == 'group/A: "B" is live more than once, with the ids 1, 2'


def test_two_cannot_become_of_one() -> None:
    """The second of two that were called the same is an error, unless it has another earlier name that is live."""
    found = match_claims([claim("A", "X"), claim("B", "X")], live("1 X"))
    assert taken(found) == ["1", None]
    assert codes(found) == ["identity/previously-twice"]
    assert found.problems[0].message == 'group/B: "X" becomes group/A already'


def test_a_circle_of_earlier_names_prints_who_would_become_whom() -> None:
    """Each member gets the error with all ids to paste; who only leads into the circle gets none."""
    claims = [claim("A", "B"), claim("B", "C"), claim("C", "A"), claim("D", "A")]
    found = match_claims(claims, live("1 A", "2 B", "3 C", "4 D"))
    circle = [problem for problem in found.problems if problem.code == "identity/circle"]
    assert [problem.address for problem in circle] == ["group/A", "group/B", "group/C"]
    for problem in circle:
        assert 'group/A `id: "2"`' in (problem.hint or "") or "group/A `id: 2`" in (problem.hint or "")
        assert 'group/C `id: "1"`' in (problem.hint or "") or "group/C `id: 1`" in (problem.hint or "")
    assert taken(found) == [None, None, None, "4"]


def test_earlier_names_that_lead_nowhere_are_no_circle() -> None:
    """Not where the other one is pinned, is not live, or is the claim itself."""
    for claims in ([claim("A", "B"), claim("B", "A", pin="2")], [claim("A", "A")], [claim("A", "B"), claim("B")]):
        found = match_claims(claims, live("1 A", "2 B"))
        assert "identity/circle" not in codes(found)
        assert taken(found)[0] == "1"


def test_done_earlier_names_are_noted() -> None:
    """A note, and no error: the claim keeps its live thing."""
    found = match_claims([claim("A", "B")], live("1 A"))
    [note] = found.problems
    assert (note.code, note.severity) == ("identity/previously-done", Severity.NOTE)
    assert taken(found) == ["1"]
    assert found.broken == set()


@pytest.mark.parametrize("incomplete", ["page 2 failed", ""])
def test_nothing_is_made_or_renamed_from_a_listing_that_is_not_whole(incomplete: str) -> None:
    """What was seen is still matched; what was not might be on the part that is missing."""
    found = match_claims([claim("A"), claim("B", "C"), claim("D")], live("1 A", "2 C"), incomplete=incomplete)
    assert taken(found) == ["1", None, None]
    assert codes(found) == ["read/incomplete", "read/incomplete"]


def test_a_creation_that_looks_like_another_names_it() -> None:
    """Like a live one that nobody claims, or like another declared one; not like one that is renamed away."""
    assert codes(match_claims([claim("Sales")], live("1 sales "))) == ["name/look-alike"]
    assert codes(match_claims([claim("Sales"), claim("SALES")], [])) == ["name/look-alike", "name/look-alike"]
    assert codes(match_claims([claim("Sales"), claim("Other", "sales")], live("1 sales"))) == []
    found = match_claims([claim("Sales")], live("1 SALES", "2 sales"))
    assert found.problems[0].message == 'group/Sales: would be created, but looks like "SALES"'
    assert taken(found) == [None]


def test_the_first_earlier_name_that_is_declared_leads_on() -> None:
    """Of several that others go by, the first decides whether there is a circle; those that are not live do not."""
    claims = [claim("A", "gone", "B", "C"), claim("B", "A"), claim("C")]
    found = match_claims(claims, live("1 A", "2 B", "3 C"))
    assert codes(found) == ["identity/circle", "identity/circle"]
    assert [problem.address for problem in found.problems] == ["group/A", "group/B"]
    assert taken(found) == [None, None, "3"]


def test_earlier_names_that_are_not_live_are_passed_over() -> None:
    """A list of them serves workspaces at different stages."""
    found = match_claims([claim("A", "older", "old", "oldest")], live("1 old", "2 oldest"))
    assert taken(found) == ["1"]
    assert [one.id for one in found.unclaimed] == ["2"]


@pytest.mark.parametrize(
    ("names", "code", "shown"),
    [
        (("1 SALES", "2 sales", "3 Other"), "name/look-alike", 'looks like "SALES"'),
        (("1 S\u0430les", "2 S\u0430l\u0435s"), "name/confusable", 'it looks the same as "S\u0430les"'),
    ],
)
def test_of_several_names_that_look_alike_the_first_is_shown(names: tuple[str, ...], code: str, shown: str) -> None:
    """In the order of the listing, so that the same workspace always gives the same plan."""
    [problem] = match_claims([claim("Sales")], live(*names)).problems
    assert problem.code == code
    assert shown in problem.message


# Names that only a machine can tell apart are told of where one of them would be created.


def problems(declared: Sequence[str], live: Sequence[str], previously: Sequence[str] = ()) -> list[Problem]:
    """What is said of declarations of these names, the last of which had another one before."""
    claims = [
        Claim(
            name=name,
            pin=None,
            previously=tuple(previously) if name == declared[-1] else (),
            label=f"group/{name}",
            find_source=lambda: SourceLocation("all.yaml"),
            address=f"group/{name}",
        )
        for name in declared
    ]
    found = match_claims(claims, [Live(RemoteId(f"g-{name}"), name) for name in live])
    assert found.broken == set()
    return found.problems


@pytest.mark.parametrize(
    ("other", "by"),
    [
        ("S\u0430les North", "U+0430 CYRILLIC SMALL LETTER A, U+0061 LATIN SMALL LETTER A"),
        ("Sales N\u03bfrth", "U+03BF GREEK SMALL LETTER OMICRON, U+006F LATIN SMALL LETTER O"),
        ("Sales\u200b North", "U+200B ZERO WIDTH SPACE"),
        ("Sales\u00ad North", "U+00AD SOFT HYPHEN"),
        ("Sales\ufe0f North", "U+FE0F VARIATION SELECTOR-16"),
        ("Sales\u00a0North", "U+00A0 NO-BREAK SPACE, U+0020 SPACE"),
        ("\uff33ales North", "U+FF33 FULLWIDTH LATIN CAPITAL LETTER S, U+0053 LATIN CAPITAL LETTER S"),
        ("Sales  North", "blanks"),
    ],
)
def test_a_creation_that_people_cannot_tell_from_another_is_warned_of(other: str, by: str) -> None:
    """It is created all the same, and the warning says by which characters the two differ; the other way round too."""
    for name, beside in (("Sales North", other), (other, "Sales North")):
        [warning] = problems([name], [beside])
        assert (warning.code, warning.severity) == ("name/confusable", Severity.WARNING)
        assert f'"{beside}"' in warning.message
    assert f"differ by {by}." in (problems(["Sales North"], [other])[0].hint or "")
    assert [one.code for one in problems(["Sales North", other], [])] == ["name/confusable"] * 2


@pytest.mark.parametrize(
    ("name", "hint"),
    [
        ("Sales  North", "They look the same, and differ by blanks."),
        (
            "S\u0430les North",
            "They look the same, and differ by U+0061 LATIN SMALL LETTER A, U+0430 CYRILLIC SMALL LETTER A.",
        ),
        (
            "S\u0430l\u0435s North",
            "They look the same, and differ by U+0061 LATIN SMALL LETTER A, U+0065 LATIN SMALL LETTER E, U+0430 "
            "CYRILLIC SMALL LETTER A.",
        ),
        ("SALES NORTH", ""),
        ("Sale North", ""),
    ],
)
def test_a_suggestion_that_looks_the_same_says_what_differs(name: str, hint: str) -> None:
    """The hint about an unknown name tells the characters only where a person cannot see the difference."""
    assert did_you_mean(name, ["Sales North"]) == f'Did you mean "Sales North"? {hint}'.strip()


def test_who_is_live_already_is_not_warned_of() -> None:
    """Nor what is renamed away, nor names that only share a few letters across scripts."""
    other = "S\u0430les"
    assert problems(["Sales"], ["Sales", other]) == []
    assert problems(["Sales", "Other"], [other], previously=[other]) == []
    assert problems(["\u041e\u0442\u0434\u0435\u043b"], ["Otden"]) == []


@pytest.mark.parametrize("char", ["\u2122", "\u2605", "\U0001f4da", "\U0001f9ea"])
def test_a_symbol_tells_two_names_apart(char: str) -> None:
    """A creation whose name differs from another only by a sign or an emoji is not warned of."""
    assert problems([f"Sales {char}"], ["Sales"]) == []
    assert problems(["Sales"], [f"Sales {char}"]) == []


@pytest.mark.parametrize(
    ("name", "is_suspicious"),
    [
        ("Coaches\u201d", True),
        ("\u201eCoaches", True),
        ("\u201cCoaches\u201d", True),
        ("\u201cA\u201d and \u201cB\u201d", False),
        ("\u201cA\u201c and B\u201d", False),
        ("The \u201d team", False),
        ("\u201cA\u201d B\u201d", False),
        ('""', True),
        ('"', False),
        ('"Coaches', False),
        ('Coaches"', False),
        ('""Coaches"', False),
        ('"Coaches""', False),
    ],
)
def test_a_quotation_mark_that_is_left_over_is_suspicious(name: str, is_suspicious: bool) -> None:
    """One curly quotation mark at an end of a name, or a pair around all of it, was probably pasted with the name."""
    expected = f"includes quotation marks: {quote_name(name)}" if is_suspicious else None
    assert suspicion(name) == expected
