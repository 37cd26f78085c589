"""The words of assignments: what cells of sheets, types of live targets and addresses say of content and audience."""

from __future__ import annotations

from typing import Any

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
