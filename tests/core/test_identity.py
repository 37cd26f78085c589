"""Which declaration speaks of which live thing, where the flows of whole plans do not look closely."""

import shlex
from collections.abc import Sequence
from typing import Final, NamedTuple

import pytest
from hostile.active_content import UNSEEN
from hypothesis import example, given
from hypothesis import strategies as st
from laws.sandbox_project import tried
from texts import listed_cases

from lmsconf.errors import Problem, Severity, SourceLocation
from lmsconf.kinds.assignment.types import assignment_address
from lmsconf.kinds.kind_table import KINDS
from lmsconf.kinds.shared.kind_names import resource_title
from lmsconf.kinds.shared.match_by_name import Claim, ClaimMatches
from lmsconf.model.address import Address, RemoteId
from lmsconf.model.names import did_you_mean, matches_pattern, normalize_name, quote_name, suspicion
from lmsconf.planner.selection import resolve_pattern
from lmsconf.render.escape import escape_terminal


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


def test_a_pin_that_is_not_live_tells_who_has_the_name() -> None:
    """With the ids to choose from where there are any."""
    found = ClaimMatches([claim("A", pin="9"), claim("B", pin="8")], live("1 A", "2 A"))
    assert [(problem.message, problem.hint) for problem in found.problems] == [
        ('group/A: no resource with the id "9" is live', '"A" is live with the id 1, 2.'),
        ('group/B: no resource with the id "8" is live', "Correct the id, or remove it."),
    ]
    assert taken(found) == [None, None]
    assert found.broken == {0, 1}


def test_a_creation_that_looks_like_another_names_it() -> None:
    """Like a live one that nobody claims, or like another declared one; not like one that is renamed away."""
    assert codes(ClaimMatches([claim("Sales")], live("1 sales "))) == ["name/look-alike"]
    assert codes(ClaimMatches([claim("Sales"), claim("SALES")], [])) == ["name/look-alike", "name/look-alike"]
    assert codes(ClaimMatches([claim("Sales"), claim("Other", "sales")], live("1 sales"))) == []
    found = ClaimMatches([claim("Sales")], live("1 SALES", "2 sales"))
    assert found.problems[0].message == 'group/Sales: would be created, but looks like "SALES"'
    assert taken(found) == [None]


# Names that only a machine can tell apart are told of where one of them would be created.


def problems(declared: Sequence[str], live: Sequence[str]) -> list[Problem]:
    """What is said of declarations of these names, none of which is broken."""
    found = ClaimMatches([claim(name) for name in declared], [Live(RemoteId(f"g-{name}"), name) for name in live])
    assert found.broken == set()
    return found.problems


@listed_cases("other", "by")
def test_a_creation_that_people_cannot_tell_from_another_is_warned_of(other: str, by: str) -> None:
    """It is created all the same, and the warning says by which characters the two differ; the other way round too."""
    for name, beside in (("Sales North", other), (other, "Sales North")):
        [warning] = problems([name], [beside])
        assert (warning.code, warning.severity) == ("name/confusable", Severity.WARNING)
        assert f'"{beside}"' in warning.message
    assert f"differ by {by}." in (problems(["Sales North"], [other])[0].hint or "")
    assert [one.code for one in problems(["Sales North", other], [])] == ["name/confusable"] * 2


@listed_cases("name", "hint")
def test_a_suggestion_that_looks_the_same_says_what_differs(name: str, hint: str) -> None:
    """The hint about an unknown name tells the characters only where a person cannot see the difference."""
    assert did_you_mean(name, ["Sales North"]) == f'Did you mean "Sales North"? {hint}'.strip()


@listed_cases("name", "is_suspicious")
def test_a_quotation_mark_that_is_left_over_is_suspicious(name: str, is_suspicious: bool) -> None:
    """One curly quotation mark at an end of a name, or a pair around all of it, was probably pasted with the name."""
    assert suspicion(name) == (f"includes quotation marks: {quote_name(name)}" if is_suspicious else None)


# What a view prints as an address is what `--only` and its like take, whatever characters a name has.


EVERYONE: Final = Address("everyone", "")
AUDIENCES = ("group", "smart_group", "user")
_PARTS = [
    *("/", "\\", *"*?[]! '\"`$|\n\t\x1b\u202e\ud800é人naB", " -> ", "->", " ->", "  ", "e\u0301", "#[", "::", " to "),
    *("group/", "x41", "U0001", "everyone"),
]
names = st.one_of(st.lists(st.sampled_from(_PARTS), max_size=6).map("".join), st.text(max_size=8)).map(normalize_name)


def address_of(kind: str, name: str, audience: str, other: str) -> Address:
    """An address of a kind; of an assignment to an audience, or to everyone if `audience` is none."""
    known = KINDS[kind]
    if not known.is_relation:
        return Address.of(kind, known.normalize_name(name))
    to = EVERYONE if audience not in AUDIENCES else Address.of(audience, KINDS[audience].normalize_name(other))
    return assignment_address(name, to)


addresses = st.builds(
    address_of, st.sampled_from(sorted(KINDS)), names, st.sampled_from([*AUDIENCES, "everyone"]), names
)


@tried(300)
@given(addresses, st.lists(addresses, max_size=4))
@example(Address.of("group", "A*"), [Address.of("group", "AB")])
@example(assignment_address("A*", EVERYONE), [assignment_address("AB", EVERYONE)])
def test_a_pasted_address_means_that_resource_alone(address: Address, others: list[Address]) -> None:
    """As a terminal shows it, quoted for a shell, and among others that its wildcards would match."""
    (pasted,) = shlex.split(shlex.quote(escape_terminal(str(address))))
    resolved = resolve_pattern(pasted, [*others, address])
    assert resolved.matches
    assert {one for one in (*others, address) if matches_pattern(str(one), resolved.pattern)} == {address}


@pytest.mark.parametrize("name", [*UNSEEN, "a\rb", "a\nb", "##[x]"])
def test_an_address_with_invisible_characters_can_be_pasted(name: str) -> None:
    r"""A view shows them as `\x1b`; a name with a backslash there is another one."""
    address, visible = (Address.of("group", one) for one in (normalize_name(name), escape_terminal(name)))
    assert visible != address
    for one in (address, visible):
        resolved = resolve_pattern(escape_terminal(str(one)), [address, visible])
        assert [other for other in (address, visible) if matches_pattern(str(other), resolved.pattern)] == [one]


@tried(300)
@given(addresses)
def test_the_words_of_a_view_mean_their_resource(address: Address) -> None:
    """Its title in a plan, `assignment of GDPR basics to group/Sales`, on a terminal or in code."""
    assert matches_pattern(str(address), resolve_pattern(resource_title(address), [address]).pattern)


@listed_cases("typed", "pattern")
def test_spellings_of_an_address(typed: str, pattern: str) -> None:
    """Section names, case of e-mails, slashes as earlier versions printed them, and a star that is no wildcard."""
    assert resolve_pattern(typed, []).pattern == pattern


def test_what_a_comment_makes_of_an_address_is_understood() -> None:
    """A code span has no `|`, a browser copies no-break spaces, and a mention is broken by a zero-width space."""
    resolved = resolve_pattern("group/a \u00a0b \u00a6 @\u200bc", [Address.of("group", "a  b | @c")])
    assert (resolved.matches, resolved.pattern) == (True, "group/a  b | @c")


def test_many_unclosed_brackets_take_little_time() -> None:
    """A pattern of a manifest may have 100,000 characters: looking for the end of each bracket takes ten minutes."""
    assert not matches_pattern("a", "[" * 100_000)
