"""What a view prints as an address is what `--only` and its like take, whatever characters a name has."""

from __future__ import annotations

import shlex
from fnmatch import fnmatchcase
from typing import Final

import pytest
from hostile.payloads import UNSEEN
from hypothesis import example, given
from hypothesis import strategies as st
from laws.hypothesis_profile import tried

from lmsconf.kinds import all_kinds
from lmsconf.kinds.content_target.types import assignment_address
from lmsconf.kinds.shared.kind_names import resource_title, split_address
from lmsconf.model.address import Address
from lmsconf.model.names import matches_pattern, normalize_name
from lmsconf.planner.address_patterns import (
    ResolvedPattern,
    nearest_addresses,
    resolve_pattern,
    resolve_patterns,
    unresolved_problem,
)
from lmsconf.render.escape import escape_terminal

EVERYONE: Final = Address("everyone", "")
AUDIENCES = ("group", "smart_group", "user")
_PARTS = [
    "/",
    "\\",
    "*",
    "?",
    "[",
    "]",
    "!",
    " -> ",
    "->",
    " ->",
    " ",
    "  ",
    "'",
    '"',
    "`",
    "$",
    "|",
    "\n",
    "\t",
    "\x1b",
]
_MORE = [
    "\u202e",
    "\ud800",
    "é",
    "e\u0301",
    "人",
    "#[",
    "::",
    " to ",
    "group/",
    "x41",
    "n",
    "U0001",
    "everyone",
    "a",
    "B",
]
names = st.one_of(st.lists(st.sampled_from(_PARTS + _MORE), max_size=6).map("".join), st.text(max_size=8)).map(
    normalize_name
)


def address_of(kind: str, name: str, audience: str, other: str) -> Address:
    """An address of a kind; of an assignment to an audience, or to everyone if `audience` is none."""
    known = all_kinds()[kind]
    if not known.is_relation:
        return Address.of(kind, known.normalize_name(name))
    to = EVERYONE if audience not in AUDIENCES else Address.of(audience, all_kinds()[audience].normalize_name(other))
    return assignment_address(name, to)


addresses = st.builds(
    address_of, st.sampled_from(sorted(all_kinds())), names, st.sampled_from([*AUDIENCES, "everyone"]), names
)


@pytest.mark.sampled
@tried(300)
@given(st.sampled_from(sorted(name for name, kind in all_kinds().items() if not kind.is_relation)), names)
@example("group", "R/D")
def test_a_printed_address_is_parsed_to_itself(kind: str, name: str) -> None:
    """Also its name; a slash in it stays as it is."""
    address = Address.of(kind, name)
    assert Address.parse(str(address)) == address
    assert (address.name, str(address).count("/")) == (name, 1 + name.count("/"))


@tried(300)
@given(names, st.sampled_from([*AUDIENCES, "everyone"]), names)
@example("a ->", "group", "-> b/c")
@example("\\", "everyone", "")
def test_an_assignment_is_split_into_its_content_and_audience(content: str, kind: str, name: str) -> None:
    """Whatever arrows, slashes and backslashes either name has."""
    audience = EVERYONE if kind == "everyone" else Address.of(kind, name)
    address = assignment_address(content, audience)
    assert Address.parse(str(address)) == address
    assert split_address(address) == (content, str(audience))


@tried(300)
@given(addresses, st.lists(addresses, max_size=4))
@example(Address.of("group", "A*"), [Address.of("group", "AB")])
@example(assignment_address("A*", EVERYONE), [assignment_address("AB", EVERYONE)])
def test_a_pasted_address_means_that_resource_alone(address: Address, others: list[Address]) -> None:
    """As a terminal shows it, quoted for a shell, and among others that its wildcards would match."""
    shown = shlex.quote(escape_terminal(str(address)))
    (pasted,) = shlex.split(shown)
    resolved = resolve_pattern(pasted, all_kinds(), [*others, address])
    assert resolved.matches
    assert {one for one in (*others, address) if matches_pattern(str(one), resolved.pattern)} == {address}


@pytest.mark.parametrize("name", [*UNSEEN, "a\rb", "a\nb", "##[x]"])
def test_an_address_with_invisible_characters_can_be_pasted(name: str) -> None:
    r"""A view shows them as `\x1b`; a name with a backslash there is another one."""
    address, visible = (Address.of("group", one) for one in (normalize_name(name), escape_terminal(name)))
    assert visible != address
    for one in (address, visible):
        resolved = resolve_pattern(escape_terminal(str(one)), all_kinds(), [address, visible])
        assert [other for other in (address, visible) if matches_pattern(str(other), resolved.pattern)] == [one]


@tried(300)
@given(addresses)
def test_the_words_of_a_view_mean_their_resource(address: Address) -> None:
    """Its title in a plan, `assignment of GDPR basics to group/Sales`, on a terminal or in code."""
    title = resource_title(address)
    assert matches_pattern(str(address), resolve_pattern(title, all_kinds(), [address]).pattern)


@pytest.mark.parametrize(
    ("typed", "pattern"),
    [
        ("groups/Sales", "group/Sales"),
        ("smart_groups/S*", "smart_group/S*"),
        ("custom_fields/A/B", "custom_field/A/B"),
        ("users/Bo.Ek@Acme.example", "user/bo.ek@acme.example"),
        ("people/Bo.Ek@Acme.example", "user/bo.ek@acme.example"),
        ("content_targets/X -> groups/R/D", "content_target/X -> group/R/D"),
        ("content_targets/* -> user/Bo@X.example", "content_target/* -> user/bo@x.example"),
        ("content/GDPR basics", "content_target/GDPR basics -> *"),
        ("group/R\\/D", "group/R/D"),
        ("group/All \\*", "group/All [*]"),
        ("*group/Sales", "*group/Sales"),
        ("group/e\u0301", "group/é"),
        ("group/A\\U0010ffff", "group/A\U0010ffff"),
        ("group/A\\U00110000", "group/A\\U00110000"),
    ],
)
def test_spellings_of_an_address(typed: str, pattern: str) -> None:
    """Section names, case of e-mails, slashes as earlier versions printed them, and a star that is no wildcard.

    The number of a character is read as that character; one that no character has stays as it was typed.
    """
    assert resolve_pattern(typed, all_kinds(), []).pattern == pattern


@pytest.mark.parametrize("words", ["GDPR", "GDPR (content)", "GDPR to everyone", "assignment GDPR to everyone"])
def test_other_words_of_an_assignment(words: str) -> None:
    """The label of a graph, and the name beside its kind in a page; a content with several is ambiguous."""
    one, other = assignment_address("GDPR", EVERYONE), assignment_address("GDPR", Address.of("group", "A"))
    assert resolve_pattern(words, all_kinds(), [one]).pattern == str(one)
    both = resolve_pattern(words, all_kinds(), [one, other])
    assert both.matches if "everyone" in words else both.meant == (one, other)


def test_what_a_comment_makes_of_an_address_is_understood() -> None:
    """A code span has no `|`, a browser copies no-break spaces, and a mention is broken by a zero-width space."""
    address = Address.of("group", "a  b | @c")
    resolved = resolve_pattern("group/a \u00a0b \u00a6 @\u200bc", all_kinds(), [address])
    assert (resolved.matches, resolved.pattern) == (True, "group/a  b | @c")


def test_many_addresses_are_resolved_in_one_pass() -> None:
    """A selection may name each of thousands of resources: the known addresses are spelled once, not for each."""
    known = [CountedAddress.of("group", f"G{number}") for number in range(200)]
    CountedAddress.spelled = 0
    assert all(
        one.matches for one in resolve_patterns([f"group/G{number}" for number in range(200)], all_kinds(), known)
    )
    assert CountedAddress.spelled <= len(known)


class CountedAddress(Address):
    """An address that counts how often any is spelled."""

    spelled = 0

    def __str__(self) -> str:
        CountedAddress.spelled += 1
        return super().__str__()


@pytest.mark.parametrize(
    ("pattern", "name"),
    [("a[*", "a[b"), ("[]*", "[]b"), ("[!]", "[!]"), ("[a][b[?", "ab"), ("[ab][", "a["), ("[[]b", "[b")],
)
def test_an_unclosed_bracket_is_a_character(pattern: str, name: str) -> None:
    """A shell pattern matches what it matches in a shell."""
    assert matches_pattern(name, pattern) == fnmatchcase(name, pattern)


def test_many_unclosed_brackets_take_little_time() -> None:
    """A pattern of a manifest may have 100,000 characters: looking for the end of each bracket takes ten minutes."""
    assert not matches_pattern("a", "[" * 100_000)


@pytest.mark.parametrize(
    ("number", "listed"),
    [(2, "--only group/1; --only group/2."), (5, "group/5."), (6, "--only group/4; --only group/5; …")],
)
def test_five_of_those_that_words_may_mean_are_listed(number: int, listed: str) -> None:
    """With a sign that there are more."""
    meant = tuple(Address.of("group", str(one + 1)) for one in range(number))
    pattern = ResolvedPattern("A", "A", matches=False, meant=meant)
    problem = unresolved_problem("--only", pattern, all_kinds(), meant)
    assert problem.message == f"--only A: {number} resources match"
    assert (problem.hint or "").endswith(listed)


@pytest.mark.parametrize("typed", ["group/Sale", "grup/Sale", "Sale", "Sale?"])
def test_three_of_the_nearest_addresses_are_told(typed: str) -> None:
    """Whether the kind is known, misspelt or missing, or a pattern fits the names of another kind."""
    near, far = [Address.of("group", f"Sale{letter}") for letter in "wxyz"], Address.of("group", "Coaches")
    found = nearest_addresses(ResolvedPattern(typed, typed, matches=False), all_kinds(), [far, *near])
    assert len(found) == 3
    assert set(found) < set(near)


def test_names_that_a_pattern_fits_are_told_before_similar_ones() -> None:
    """In whatever kind they are."""
    near, far = Address.of("smart_group", "Sales Nordics"), Address.of("group", "Sale*s")
    typed = ResolvedPattern("group/*s", "group/*s", matches=False)
    assert nearest_addresses(typed, all_kinds(), [far, near, Address.of("group", "Team")]) == [far, near]
