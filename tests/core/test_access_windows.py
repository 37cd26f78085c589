"""Who has a content, and when, before and after a plan, on sets of people in memory."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import pytest

from lmsconf.kinds.content_target.parse import audience_forms, audience_from, audience_from_text
from lmsconf.kinds.content_target.types import (
    TargetRow,
    assignment_address,
    audience_entry,
    contents_of,
    is_window_declarable,
    kind_from_target_type,
    may_be_for,
    parse_target_row,
    unresolved_audience_label,
)
from lmsconf.kinds.export import content_id_of_target
from lmsconf.kinds.shared.kind_names import EVERYONE, GROUP, SMART_GROUP, USER, split_address
from lmsconf.model.address import Address, RemoteId
from lmsconf.planner.audience.people_sets import (
    HORIZON,
    Audience,
    AudienceAssignment,
    Terms,
    Window,
    archived_within,
    compare_access,
    positions_of,
    to_bits,
)

NOW: Final = 1_000_000
END: Final = NOW + 30 * 24 * 3600
"""The last second for which a shortened window is counted."""
Side = tuple[tuple[int | None, int | None], ...]


@pytest.mark.parametrize("size", [1, 7, 8, 9, 64, 100, 255, 256, 2048, 2049])
def test_a_set_of_people_holds_the_positions_that_it_was_made_of(size: int) -> None:
    """In order, whatever its size, also where nobody is among many."""
    for positions in (range(size), range(0, size, 7), range(size - 1, size), ()):
        bits = to_bits(positions, size)
        assert bits == sum(1 << position for position in positions)
        assert list(positions_of(bits)) == list(positions)


def test_a_window_is_counted_for_thirty_days() -> None:
    """As the guide says."""
    assert NOW + HORIZON == END


def assignment(before: Terms | None, after: Terms | None, people: int = 1) -> AudienceAssignment:
    return AudienceAssignment(audience=Audience(before=people, after=people), before=before, after=after)


def said(*assignments: AudienceAssignment, ends: Mapping[int, int] | None = None) -> set[str]:
    """What is said of the first person: the words of the changes."""
    found = compare_access(assignments, NOW, ends or {})
    words = ("gain", "lose", "to_mandatory", "to_optional", "window", "shortened", "archived_soon", "keep")
    assert found.changed == found.gain | found.lose | found.to_mandatory | found.to_optional | found.window
    return {word for word in words if getattr(found, word) & 1}


@pytest.mark.parametrize(
    ("before", "after", "words"),
    [
        ((), ((None, None),), {"gain"}),
        (((None, None),), (), {"lose"}),
        (((None, None),), ((None, None),), {"keep"}),
        (((None, NOW - 1),), (), set()),
        (((None, NOW),), (), {"lose"}),
        (((None, NOW - 1), (None, None)), ((None, None),), {"keep"}),
        (((None, None),), ((NOW, None),), {"window"}),
        (((None, None),), ((NOW + 1, None),), {"window", "shortened"}),
        (((END, None),), ((END + 1, None),), {"window", "shortened"}),
        (((END + 1, None),), ((END + 2, None),), {"window"}),
        (((None, None),), ((None, END),), {"window"}),
        (((None, None),), ((None, END - 1),), {"window", "shortened"}),
        (((None, END - 1),), ((None, None),), {"window"}),
        (((None, 2 * END),), ((None, 3 * END),), {"window"}),
        (((None, None),), ((None, NOW + 9), (NOW + 10, None)), {"keep"}),
        (((None, None),), ((None, NOW + 9), (NOW + 11, None)), {"keep", "shortened"}),
        (((None, NOW + 9), (NOW + 11, None)), ((None, None),), {"keep"}),
        (((NOW + 5, NOW + 9),), ((NOW + 5, NOW + 8), (NOW + 3, NOW + 4)), {"window", "shortened"}),
        (((NOW + 5, NOW + 9),), ((NOW + 4, NOW + 10),), {"window"}),
        (((NOW + 9, NOW + 9),), ((NOW + 2, NOW + 3),), {"window", "shortened"}),
        (((NOW + 2, NOW + 3), (NOW + 5, NOW + 9)), ((NOW + 5, NOW + 9),), {"window", "shortened"}),
        (((NOW + 5, NOW + 9), (NOW + 2, NOW + 3)), ((NOW + 2, NOW + 3), (NOW + 5, NOW + 9)), {"keep"}),
    ],
)
def test_what_a_plan_changes_of_the_windows_of_a_person(before: Side, after: Side, words: set[str]) -> None:
    """Only seconds of the next thirty days that are not covered any more shorten a window; others change it."""
    sides = [[Terms(mandatory=False, window=Window(*one)) for one in side] for side in (before, after)]
    both = [*(assignment(one, None) for one in sides[0]), *(assignment(None, one) for one in sides[1])]
    assert said(*both, assignment(None, Terms(mandatory=True, window=Window(None, None)), 0b10)) == words


@pytest.mark.parametrize(
    ("before", "after", "words"),
    [
        ((False,), (True,), {"to_mandatory"}),
        ((True,), (False,), {"to_optional"}),
        ((True, False), (True,), {"keep"}),
        ((True, False), (False,), {"to_optional"}),
        ((), (True,), {"gain"}),
        ((True,), (), {"lose"}),
    ],
)
def test_content_is_mandatory_through_any_of_its_assignments(
    before: tuple[bool, ...], after: tuple[bool, ...], words: set[str]
) -> None:
    """It changes for people who have it on both sides; for others it is only gained or lost."""
    always = Window(None, None)
    old = (assignment(Terms(mandatory=one, window=always), None) for one in before)
    assert said(*old, *(assignment(None, Terms(mandatory=one, window=always)) for one in after)) == words


@pytest.mark.parametrize(
    ("window", "end", "is_cut"),
    [
        ((None, None), NOW, True),
        ((None, None), END, True),
        ((None, None), END + 1, False),
        ((None, NOW + 5), NOW + 5, True),
        ((None, NOW + 5), NOW + 6, False),
        ((NOW + 5, NOW + 9), NOW + 7, True),
        ((END, None), NOW + 7, True),
        ((END + 1, None), NOW + 7, False),
    ],
)
def test_an_account_that_ends_while_a_window_is_open(
    window: tuple[int | None, int | None], end: int, is_cut: bool
) -> None:
    """It is cut if the account ends by the end of the window, and within thirty days."""
    terms = Terms(mandatory=False, window=Window(*window))
    ends = {end: 0b01, NOW + 20 * (END - NOW): 0b01, end + 1: 0b10}
    assert ("archived_soon" in said(assignment(terms, terms), ends=ends)) is is_cut
    several = {NOW + 9: 0b100, NOW + 2: 0b010, NOW + 1: 0b001}
    assert archived_within(several, [(Window(None, NOW + 2), 0b111)], END) == 0b011
    assert "archived_soon" not in said(assignment(terms, None), ends=ends)


def test_a_resource_causes_what_happens_to_its_people() -> None:
    """A group whose members change, or an assignment that changes; none whose window is over on both sides."""
    group, target = Address.of("group", "A"), Address.of("content_target", "X -> group/A")
    always, over = (Terms(mandatory=False, window=Window(None, finish)) for finish in (None, NOW - 1))
    audience = Audience(before=0b011, after=0b110, causes=(group,))
    for before, after, cause, people in (
        (always, always, None, {group: 0b101}),
        (always, over, target, {group: 0b011, target: 0b011}),
        (over, always, target, {group: 0b110, target: 0b110}),
        (over, over, target, {}),
    ):
        one = AudienceAssignment(audience=audience, before=before, after=after, cause=cause)
        found = compare_access([one], NOW, {}).causes
        assert dict(found) == people
        assert list(found) == sorted(found)


# The words of assignments: what cells of sheets, types of live targets and addresses say of content and audience.


C, T = RemoteId("c-1"), RemoteId("t-1")
EARLY, LATE = "2026-01-01T00:00:00Z", "2026-02-01T00:00:00Z"


@pytest.mark.parametrize(
    ("text", "item"),
    [
        ("everyone", {"everyone": True}),
        ("Everyone", {"everyone": True}),
        ("group: Sales", {"group": "Sales"}),
        ("Group : Sales: North", {"group": "Sales: North"}),
        ("smart group: Nordics", {"smart_group": "Nordics"}),
        ("smart_group/Nordics", {"smart_group": "Nordics"}),
        ("group/R\\/D", {"group": "R/D"}),
        ("group: R\\/D", {"group": "R\\/D"}),
        ("user: ann@acme.example", {"user": "ann@acme.example"}),
        ("team: Sales", None),
        ("Sales", None),
        ("group:", None),
    ],
)
def test_a_cell_names_an_audience(text: str, item: dict[str, Any] | None) -> None:
    """By its kind and name with a colon or a slash; only after a slash is a backslash part of no name."""
    assert audience_from_text(text) == item


@pytest.mark.parametrize(
    ("text", "forms"),
    [
        ("Sales", ["group: Sales", "smart_group: Sales"]),
        ("ann@acme.example", ["user: ann@acme.example"]),
        ("team: Sales", ["group: NAME", "smart_group: NAME", "user: EMAIL", "everyone"]),
        ("team/Sales", ["group: NAME", "smart_group: NAME", "user: EMAIL", "everyone"]),
    ],
)
def test_a_cell_that_names_no_audience_gets_the_ways_to_write_one(text: str, forms: list[str]) -> None:
    """A name alone may be that of a group or a smart group, one with an at sign that of a person."""
    assert audience_forms(text) == forms


@pytest.mark.parametrize(
    ("audience", "item"),
    [
        (EVERYONE, {"everyone": True}),
        (Address.of(GROUP, "Sales"), {"group": "Sales"}),
        (Address.of(SMART_GROUP, "Nordics"), {"smart_group": "Nordics"}),
        (Address.of(USER, "ann@acme.example"), {"user": "ann@acme.example"}),
    ],
)
def test_an_audience_is_written_as_it_is_read(audience: Address, item: dict[str, Any]) -> None:
    """As an item of `assign_to`."""
    assert audience_entry(audience) == item
    assert audience_from(item) == audience


@pytest.mark.parametrize(
    ("type", "implied", "kinds"),
    [
        ("GROUP", GROUP, {GROUP, SMART_GROUP}),
        ("SMART_GROUP", SMART_GROUP, {GROUP, SMART_GROUP}),
        ("smartUsers", SMART_GROUP, {GROUP, SMART_GROUP}),
        ("User", USER, {USER}),
        ("USERS", USER, {GROUP, SMART_GROUP, USER}),
        ("TEAM", None, {GROUP, SMART_GROUP, USER}),
        ("", None, {GROUP, SMART_GROUP, USER}),
    ],
)
def test_words_in_a_type_tell_the_kind_of_an_audience(type: str, implied: str | None, kinds: set[str]) -> None:
    """One with `group` is never for a person, and `user` alone for nobody else."""
    assert kind_from_target_type(type) == implied
    assert {kind for kind in (GROUP, SMART_GROUP, USER) if may_be_for(kind, type)} == kinds


@pytest.mark.parametrize(("type", "label"), [("USER", "user id t-1"), ("TEAM", "TEAM id t-1"), ("", "audience id t-1")])
def test_an_unknown_audience_is_called_by_its_id(type: str, label: str) -> None:
    """With the kind that its type implies, or else the type."""
    assert unresolved_audience_label(TargetRow(C, T, type)) == label


@pytest.mark.parametrize(
    ("start", "finish", "declarable"),
    [
        (None, None, True),
        (EARLY, None, True),
        (None, LATE, True),
        (EARLY, LATE, True),
        (LATE, LATE, False),
        (LATE, EARLY, False),
        ("soon", LATE, False),
        (EARLY, "soon", False),
        ("soon", None, False),
    ],
)
def test_a_live_window_can_be_declared_if_it_ends_after_it_begins(
    start: str | None, finish: str | None, declarable: bool
) -> None:
    """And if its times can be read."""
    assert is_window_declarable(TargetRow(C, T, "GROUP", start=start, finish=finish)) is declarable


def test_a_live_target_has_what_its_response_says() -> None:
    """What the response lacks is the default: optional, without a window, a type and a label."""
    assert parse_target_row(C, {"targetId": "t-1"}) == TargetRow(C, T, "")
    row = parse_target_row(
        C,
        {
            "targetId": "t-1",
            "targetType": "GROUP",
            "mandatory": True,
            "startTime": EARLY,
            "finishTime": LATE,
            "name": "Sales",
        },
    )
    assert row == TargetRow(C, T, "GROUP", True, EARLY, LATE, "Sales")
    assert (row.id, row.name, content_id_of_target(row.id)) == ("c-1/GROUP/t-1", "Sales", "c-1")


@pytest.mark.parametrize(
    ("value", "contents"),
    [
        ("GDPR", [("GDPR", {})]),
        ({"name": "GDPR basics"}, [("GDPR basics", {})]),
        ({"name": "GDPR", "id": "c-1"}, [("GDPR", {"": "c-1"})]),
        (["GDPR", {"name": "Law", "id": {"prod": "c-2"}}], [("GDPR", {}), ("Law", {"prod": "c-2"})]),
    ],
)
def test_an_entry_names_one_content_or_several(value: Any, contents: list[tuple[str, dict[str, str]]]) -> None:
    """Each by its name, and by an id for one workspace or for all."""
    assert list(contents_of(value)) == contents


def test_only_the_address_of_an_assignment_has_a_content_and_an_audience() -> None:
    """An arrow within a name is escaped."""
    address = assignment_address("A -> B", Address.of(GROUP, "Sales -> North"))
    assert split_address(address) == ("A -> B", str(Address.of(GROUP, "Sales -> North")))
    assert split_address(Address("content_target", "GDPR")) is None
