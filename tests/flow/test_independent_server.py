"""The whole tool on an independent server of the same API, which chooses otherwise wherever its text is silent."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest
from stranger.project import FIRST, Case, Open, opening
from stranger.server import IndependentServer
from stranger.state import Choices

pytestmark = pytest.mark.sampled  # some seconds in all

open_desk = pytest.fixture(opening)

SECOND = """
custom_fields:
  - {name: Office, choices: [Oslo, Malmö]}
  - name: Shirt
    choices: [S, {name: Medium, previously: [M]}, L, XL]
groups:
  - name: Mentors
    previously: [Coaches]
    members: [bo@acme.example, hal@acme.example]
    managers: [anna@acme.example]
  - {name: Welcome committee, managers: []}
  - {name: Leaders, members: {exclude: [ed@acme.example]}}
smart_groups:
  - name: Sales people
    conditions: [{field: Department, choices: [Sales, Engineering]}]
    managers: [ida@acme.example]
  - {name: Oslo folk, previously: [Oslo desks]}
  - {name: Big shirts, conditions: [{field: Shirt, choices: [XL]}]}
content_targets:
  - content: GDPR basics
    mandatory: true
    assign_to:
      - {group: Mentors, mandatory: false}
      - {smart_group: Oslo folk, visible_from: 2026-02-01T08:00, visible_until: 2026-11-30}
      - {everyone: true, mandatory: false}
      - {user: jon@acme.example}
  - {content: First aid, assign_to: [{group: Welcome committee, mandatory: true, visible_until: 2026-06-30}]}
absent:
  groups: [Summer interns]
  content_targets: [{content: Old intro, assign_to: [{user: ed@acme.example}]}]
"""

RENAMED_WORDS: Mapping[str, str] = {
    "manual-groups.rename.name": "newName",
    "manual-groups.add-members.userIds": "members",
    "manual-groups.add-managers.userIds": "managerIds",
    "content-targets.create.mandatory": "isMandatory",
    "content-targets.create.startTime": "visibleFrom",
    "content-targets.create.finishTime": "visibleTo",
}
OTHER_TYPES = {"group": "AUDIENCE", "smart": "DYNAMIC_AUDIENCE", "user": "PERSON", "everyone": "ALL"}


CASES: Mapping[str, Case] = {
    "as-expected": Case(Choices(), {}),
    "other-words": Case(
        Choices(names=RENAMED_WORDS, made=200, done=200, done_body=b"OK", errors="text", ids="number"), RENAMED_WORDS
    ),
    "uuids-pages-of-seven": Case(
        Choices(ids="uuid", page_cap=7, shuffle=4, time="epoch", takes="epoch", done=202, done_body=b'{"ok": true}'), {}
    ),
    "pages-of-one": Case(Choices(page_cap=1, totals="absent", shuffle=9, extended="active", time="+02:00"), {}),
    "shared-ids": Case(Choices(ids="shared", shuffle=2, time="ms+0000", empty="absent", false_="absent"), {}),
    "odd-ids": Case(Choices(ids="odd", totals="null", page_cap=3, empty="blank", keep_alive=False), {}),
    "id-only": Case(Choices(field_ids="id", wrap="inside", extra=True, made=200), {}),
    "custom-field-id-only": Case(Choices(field_ids="customFieldId", wrap="extra", extra=True, errors="html"), {}),
    "is-any-everywhere": Case(
        Choices(system="IS_ANY", backwards=True, shuffle=11, empty="absent", named_targets=False), {}
    ),
    "busy": Case(Choices(throttle=4, stutter=True, gone=404, errors="empty", page_cap=7), {}),
    "busy-and-gone": Case(Choices(throttle=7, stutter=True, gone=410, again=409, errors="problem", packed=True), {}),
    "says-nothing": Case(Choices(wrap="nothing", ids="uuid", shuffle=5, time="+02:00", done=200), {}),
    "merging": Case(Choices(existing="merge", users="active", extended="lacking", types=OTHER_TYPES), {}),
    "blank-clears": Case(
        Choices(existing="merge", clears="blank", everyone="ALL", types=OTHER_TYPES, takes="iso", false_="absent"),
        {"content-targets.clear-time": "empty", "content-targets.everyone": "ALL"},
    ),
    "absence-clears": Case(
        Choices(clears="absent", takes="epoch", time="z", ids="number", empty="blank", page_cap=5),
        {"content-targets.clear-time": "omit", "content-targets.time-format": "epoch-ms"},
    ),
    "shared-ids-other-types": Case(Choices(ids="shared", types=OTHER_TYPES, empty="absent"), {}),
    "conflict-recreated": Case(Choices(existing="conflict", ids="uuid"), {"content-targets.on-existing": "recreate"}),
    "doubling-recreated": Case(Choices(existing="double"), {"content-targets.on-existing": "recreate"}),
    "ignoring-recreated": Case(
        Choices(existing="ignore", time="epoch"), {"content-targets.on-existing": "recreate", "paging.limit": 2}
    ),
}


def undeclared(photo: Mapping[str, Any]) -> str:
    """What no manifest here speaks of, as text."""
    kinds = ("fields", "groups", "smart")
    left = {
        kind: {id: one for id, one in photo[kind].items() if one["name"].startswith("UI ") or one["name"] in _FOREIGN}
        for kind in kinds
    }
    foreign = {id for id, one in photo["groups"].items() if one["name"] == "UI Book club"}
    targets = [one for one in photo["targets"] if one["kind"] == "group" and one["to"] in foreign]
    rest = {"users": photo["users"], "contents": photo["contents"], "targets": targets}
    return json.dumps({**left, **rest}, sort_keys=True, default=str)


_FOREIGN = ("Department", "Hobby", "Badge")


@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
def test_a_stranger_is_configured(open_desk: Open, case: Case) -> None:
    """Plan, apply and an empty plan, then a change of everything, on a service that makes its own choices."""
    desk = open_desk(case, FIRST)
    before = undeclared(desk.stranger.held.photo())
    desk.plans(2)
    desk.applies()
    desk.write(SECOND, case.dialect)
    desk.plans(2)
    desk.applies()
    assert undeclared(desk.stranger.held.photo()) == before
    assert_second(desk.stranger)


RERUN = (
    FIRST.partition("  - content: GDPR basics")[0]
    + """
  - content: First aid
    mandatory: true
    assign_to: [{group: Coaches}, {smart_group: Oslo desks}, everyone, {user: jon@acme.example}]
    replaces: {content: GDPR basics, then: remove}
  - {content: First aid, assign_to: [{group: Welcome committee, visible_until: 2026-06-30}]}
"""
)


@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
def test_a_course_is_repeated_on_a_stranger(open_desk: Open, case: Case) -> None:
    """Whatever the audience, the new assignments are seen before the old ones go; it has no results, which is said."""
    desk = open_desk(case, FIRST)
    desk.applies()
    desk.write(RERUN, case.dialect, "guards: off\n")
    assert "how many are in progress is not known" in desk.plans(2)
    desk.applies()
    held = desk.stranger.held
    names = [held.contents[target["content"]]["name"] for target in held.targets]
    assert (names.count("GDPR basics"), names.count("First aid")) == (0, 5)


def assert_second(stranger: IndependentServer) -> None:
    """The workspace is what the second manifest says, with ids kept where things were renamed."""
    held = stranger.held
    fresh = IndependentServer(stranger.choices).held
    coaches, mentors = fresh.named(fresh.groups, "Coaches"), held.named(held.groups, "Mentors")
    assert coaches == mentors
    di, bo, hal = (held.named(held.users, f"{one}@acme.example") for one in ("di", "bo", "hal"))
    assert set(held.groups[mentors]["members"]) == {di, bo, hal}
    old = {one["choiceId"]: one["name"] for one in fresh.fields[fresh.named(fresh.fields, "Shirt")]["choices"]}
    new = {one["choiceId"]: one["name"] for one in held.fields[held.named(held.fields, "Shirt")]["choices"]}
    assert {id: new[id] for id in old} == {id: "Medium" if name == "M" else name for id, name in old.items()}
    (target,) = [one for one in held.targets if one["to"] == mentors and one["kind"] == "group"]
    assert (target["mandatory"], target["start"], target["finish"]) == (False, None, None)
    assert "Summer interns" not in [one["name"] for one in held.groups.values()]
    gone = fresh.named(fresh.groups, "Summer interns")
    assert gone not in [one["to"] for one in held.targets if one["kind"] == "group"]


@pytest.mark.parametrize("existing", ["conflict", "double", "ignore"])
def test_an_assignment_that_cannot_be_updated_names_the_dialect_key(open_desk: Open, existing: str) -> None:
    """Where POST does not update an assignment, apply says which dialect key to look at; with that key it works."""
    case = Case(Choices(existing=existing), {})
    desk = open_desk(case, FIRST)
    desk.applies()
    desk.write(SECOND, {})
    code, out = desk.run("apply", "--auto-approve")
    assert code in (5, 6)
    assert "content-targets.on-existing" in out + desk.err
    if existing != "double":
        desk.write(SECOND, {"content-targets.on-existing": "recreate"})
        desk.plans(2)
        desk.applies()
        assert_second(desk.stranger)


WRONG_WORDS = {
    "a group's new name": ("manual-groups.rename.name", {"manual-groups.rename.name": "newName"}),
    "the list of members": (
        "manual-groups.add-members.userIds",
        {"manual-groups.add-members.userIds": "ids"},
    ),
    "the mandatory flag": ("content-targets.create.mandatory", {"content-targets.create.mandatory": "required"}),
}


@pytest.mark.parametrize(("key", "names"), WRONG_WORDS.values(), ids=WRONG_WORDS)
def test_a_word_that_the_service_does_not_know_is_named(open_desk: Open, key: str, names: Mapping[str, str]) -> None:
    """A call that the service refuses or ignores for its words ends with 5 or 6 and the dialect key; then it works."""
    desk = open_desk(Case(Choices(names=names), {}), FIRST)
    first, out = desk.run("apply", "--auto-approve")
    said = out + desk.err
    desk.write(SECOND, {})
    second, out = desk.run("apply", "--auto-approve")
    assert {first, second} & {5, 6}
    assert {first, second} <= {0, 1, 5, 6}
    assert key in said + out + desk.err
    desk.write(SECOND, names)
    desk.applies()


def test_times_that_the_service_does_not_take_name_the_key(open_desk: Open) -> None:
    """A service that wants epoch milliseconds and shows ISO times refuses ours, and the key to set is named."""
    case = CASES["absence-clears"]
    desk = open_desk(replace(case, dialect={}), FIRST)
    code, out = desk.run("apply", "--auto-approve")
    assert code == 5
    assert "content-targets.time-format" in out + desk.err
    desk.write(FIRST, case.dialect)
    desk.applies()


def test_an_assignment_that_could_be_two_is_left_alone(open_desk: Open) -> None:
    """Where the ids of groups and people overlap and nothing tells them apart, it is said and nothing is sent."""
    desk = open_desk(Case(Choices(ids="shared", types=OTHER_TYPES, named_targets=False), {}), FIRST)
    code, _ = desk.run("apply", "--auto-approve")
    assert code == 1
    assert "group/Coaches and user/anna@acme.example" in desk.err
    assert not desk.stranger.writes()


def test_groups_of_two_kinds_may_share_an_id(open_desk: Open) -> None:
    """Where a smart group has the id of a manual one, its members are not taken for those of the other."""
    manifest = """
groups:
  - {name: Coaches, members: [bo@acme.example, cy@acme.example, ed@acme.example]}
  - {name: Leaders, members: []}
"""
    desk = open_desk(Case(Choices(ids="clashing"), {}), manifest)
    desk.applies()
    written = [(one.method, one.path, one.body) for one in desk.stranger.writes()]
    whole = {"userIds": ["2", "3", "4", "5"]}
    assert written == [("POST", "/groups/1/members", whole), ("DELETE", "/groups/2/members/5", None)]


def test_a_target_type_is_learnt_from_its_like(open_desk: Open) -> None:
    """An assignment whose id is also that of a group is a person's where others of its type are people's."""
    people = "{user: jon@acme.example}, {user: bo@acme.example}"
    manifest = f"content_targets: [{{content: GDPR basics, assign_to: [{people}]}}]"
    desk = open_desk(Case(Choices(ids="shared", types=OTHER_TYPES, named_targets=False), {}), manifest)
    desk.applies()
    assert len(desk.stranger.writes()) == 2


# A rehearsal of what is planned on an independent server, which chooses otherwise wherever the text is silent.
