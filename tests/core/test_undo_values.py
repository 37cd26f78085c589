"""What an undo compares: values of three times, the calls of a run, and references in entries."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from lmsconf.kinds import all_kinds
from lmsconf.model.address import Address
from lmsconf.model.calls import Call
from lmsconf.model.canonical_json import Json
from lmsconf.model.plan import Action, Change, Plan
from lmsconf.model.recorded_run import CallState, RecordedRun
from lmsconf.model.snapshot import Snapshot
from lmsconf.planner.undo.names import map_references
from lmsconf.planner.undo.run import RunToUndo
from lmsconf.planner.undo.times import alike, differing_keys, restored_items

FIRST: Json = {"field": "F", "choices": ["C", "D"]}
SECOND: Json = {"field": "G", "choices": []}


@pytest.mark.parametrize(
    ("wanted", "live", "same"),
    [
        ("a", "a", True),
        ("a", "b", False),
        ("a", None, False),
        (None, "a", False),
        ("", None, True),
        (None, [], True),
        (False, None, True),
        (["a", "b"], ["b", "a"], True),
        (["a"], ["a", "b"], False),
        (["a", "a"], ["a"], False),
        (["a"], [], False),
        ([FIRST, SECOND], [SECOND, FIRST], True),
        ([FIRST], [FIRST, SECOND], False),
        ([FIRST, SECOND], [FIRST], False),
        ([FIRST, FIRST], [FIRST, SECOND], False),
        (["a", FIRST], ["a", "b"], False),
        ([FIRST], [{"choices": ["D", "C"], "field": "F"}], True),
        (["GDPR"], [{"name": "GDPR", "id": "c-1"}], True),
        ({"include": ["a"], "exclude": ["b"]}, ["a", "c"], True),
        ({"include": ["a"], "exclude": ["b"]}, ["c"], False),
        ({"include": ["a"], "exclude": ["b"]}, ["a", "b"], False),
        ({"include": ["a"], "exclude": None}, ["a", "b"], True),
        ({"include": None, "exclude": ["b"]}, ["a"], True),
        ({"include": None, "exclude": ["b"]}, ["b"], False),
        ({"include": ["a"]}, ["a"], False),
        ({"name": "GDPR", "id": "c-1"}, "GDPR", True),
        ({"name": "GDPR", "id": "c-1"}, "First aid", False),
        ("GDPR", {"name": "GDPR", "id": "c-1"}, True),
        ("First aid", {"name": "GDPR", "id": "c-1"}, False),
        ({"cost": "1"}, {"cost": "1", "unit": "A"}, True),
        ({"cost": "1", "unit": "A"}, {"cost": "1"}, False),
        ({"cost": {"a": "1"}}, {"cost": {"a": "2"}}, False),
        ({}, None, True),
    ],
)
def test_a_live_value_is_what_a_run_made(wanted: Json, live: Json, same: bool) -> None:
    """Lists have no order, content may have its id beside its name, and what an entry leaves out is not compared."""
    assert alike(wanted, live) is same


def test_items_come_back_beside_those_that_others_have_added() -> None:
    """What the run added goes, what it removed comes back once, and what it left alone stays."""
    assert restored_items(["a", "b", "c"], ["a", "d"], ["a", "b", "d", "e"]) == ["a", "b", "e", "c"]


def test_keys_that_a_run_changed_are_found_both_ways() -> None:
    """A key that one side lacks differs, unless it has no value on the other."""
    before: dict[str, Json] = {"same": 1, "gone": 2, "empty": None, "more": {"x": "1", "y": "1"}, "less": {"x": "1"}}
    after: dict[str, Json] = {"same": 1, "more": {"x": "1"}, "less": {"x": "1", "y": "1"}, "new": 3}
    assert differing_keys(before, after) == ["gone", "more", "less", "new"]


def call(id: str, name: str, operation: str, body: object = None, *people: str, method: str = "POST") -> Call:
    at = Address.of("group", name)
    return Call(id=id, address=at, operation=operation, method=method, path="/", query={}, body=body, people=people)


def change(name: str, goes_with: str | None = None) -> Change:
    return Change(
        address=Address.of("group", name),
        action=Action.UPDATE,
        id=None,
        about=None,
        source=None,
        before=None,
        after=None,
        fields=(),
        goes_with=None if goes_with is None else Address.of("group", goes_with),
    )


CALLS = (
    (call("c1", "A", "manual-groups.create", {"name": "A", "order": 1}), CallState.DONE, "g-1"),
    (call("c2", "A", "manual-groups.add-members", {"userIds": ["u-1"]}, "ann@x.example"), CallState.DONE, None),
    (call("c3", "A", "manual-groups.add-members", {"note": "third"}, "bo@x.example"), CallState.IN_FLIGHT, None),
    (call("c4", "A", "manual-groups.add-managers", {"note": "fourth", "n": 4}, "cy@x.example"), None, None),
    (call("c5", "A", "manual-groups.rename", {"name": "fifth"}), CallState.FAILED, None),
    (call("c6", "B", "manual-groups.rename", {"name": "B", "other": "A"}), CallState.DONE, None),
    (call("c7", "B", "manual-groups.add-members", ["dee"], "dee@x.example"), CallState.DONE, None),
    (call("c8", "C", "manual-groups.add-members", {"note": "eighth"}), CallState.BLOCKED, None),
)


@pytest.mark.parametrize(
    ("of", "said"),
    [
        (
            change("A"),
            {
                "calls": ["c1", "c2", "c3"],
                "done": True,
                "whole": False,
                "created": "g-1",
                "members": {"ann@x.example", "bo@x.example"},
                "managers": set(),
                "unsure": [{"bo@x.example"}, {"cy@x.example"}],
                "texts": {"third", "fourth", "fifth"},
                "sent": ["A", "third"],
            },
        ),
        (
            change("B"),
            {
                "calls": ["c6", "c7"],
                "done": True,
                "whole": True,
                "created": None,
                "members": {"dee@x.example"},
                "managers": None,
                "unsure": [set(), set()],
                "texts": set(),
                "sent": ["A", "B"],
            },
        ),
        (
            change("C"),
            {
                "calls": [],
                "done": False,
                "whole": False,
                "created": None,
                "members": None,
                "managers": None,
                "unsure": [set(), set()],
                "texts": {"eighth"},
                "sent": [],
            },
        ),
    ],
    ids=["cut short", "done", "not begun"],
)
def test_what_a_run_did_to_one_of_its_resources(of: Change, said: dict[str, Any]) -> None:
    """Only by the calls of that resource, and apart from those that were not, or may not have been, carried out."""
    past = run()
    assert said == {
        "calls": [one.id for one in past.calls(of)],
        "done": past.is_done(of),
        "whole": past.is_whole(of),
        "created": past.created_id(of),
        "members": past.people_of(of, "members"),
        "managers": past.people_of(of, "managers"),
        "unsure": [past.unsure_people(of, key) for key in ("members", "managers")],
        "texts": past.unsure_texts(of),
        "sent": [one for one in ("A", "B", "third", "fourth", "fifth", "dee") if past.has_sent(of, one)],
    }


def test_what_goes_with_a_change_is_done_with_it() -> None:
    """An update without a call of its own: the service makes it as a result of another change."""
    past = run(change("A"), change("B"), change("C"))
    assert [past.is_done(change("D", goes_with)) for goes_with in "ABC"] == [True, True, False]


def run(*changes: Change) -> RunToUndo:
    recorded = [SimpleNamespace(call=one.id, state=state, id=id) for one, state, id in CALLS if state is not None]
    opening = SimpleNamespace(digest="ab")
    past = cast("RecordedRun", SimpleNamespace(name="1", opening=opening, calls=recorded, path=Path()))
    plan = cast("Plan", SimpleNamespace(calls=tuple(one for one, _, _ in CALLS), changes=changes))
    made = RunToUndo(past, plan, cast("Snapshot", None))
    assert (made.digest, made.recreated) == ("ab", {})
    return made


@pytest.mark.parametrize(
    ("kind", "entry", "renamed"),
    [
        (
            "user",
            {"email": "a@x.example", "answers": {"F": "C", "G": ["D", "E"]}},
            {
                "email": "a@x.example",
                "answers": {
                    "custom_field:F": "custom_field:F:C",
                    "custom_field:G": ["custom_field:G:D", "custom_field:G:E"],
                },
            },
        ),
        (
            "group",
            {"name": "A", "members": {"include": ["a"], "exclude": ["b"]}, "managers": ["c"]},
            {"name": "A", "members": {"include": ["user:a"], "exclude": ["user:b"]}, "managers": ["user:c"]},
        ),
        (
            "content_target",
            {"content": "A", "assign_to": [{"group": "A"}, {"smart_group": "A"}, {"user": "a"}, "everyone"]},
            {
                "content": "A",
                "assign_to": [{"group": "group:A"}, {"smart_group": "smart_group:A"}, {"user": "user:a"}, "everyone"],
            },
        ),
    ],
)
def test_every_reference_of_an_entry_is_replaced(kind: str, entry: dict[str, Json], renamed: dict[str, Json]) -> None:
    """In lists given whole or in part, in answers with their choices, and in audiences; nothing else is touched."""

    def rename_part(of: str, name: str, part: str) -> str:
        return f"{of}:{name}:{part}"

    assert map_references(all_kinds()[kind], entry, lambda of, name: f"{of}:{name}", rename_part) == renamed
