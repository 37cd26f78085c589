"""Names that only a machine can tell apart are told of where one of them would be created."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import pytest

from lmsconf.errors import Problem, Severity, SourceLocation
from lmsconf.model.address import RemoteId
from lmsconf.model.names import did_you_mean, quote_name, suspicion
from lmsconf.planner.claim_matching import Claim, match_claims


class Live(NamedTuple):
    id: RemoteId
    name: str


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
