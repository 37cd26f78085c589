"""What a plan does to people where the service tells odd things of them: every row, group and reason."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Final

import pytest
from flow.altered_service import Edit, connected, plan_altered
from flow.project import Project
from manifest.cases import Case, cases
from msgspec.structs import replace

from lmsconf.workspace.project_manifests import load_manifests
from lmsconf.workspace.reader import WorkspaceReader

SEED = """
people:
  - {email: ann@x.example, answers: {Country: SE, Level: High}}
  - {email: bo@x.example, answers: {Country: FI, Level: High}}
  - {email: cy@x.example, answers: {Country: SE, Level: Low}}
  - {email: dan@x.example, answers: {Country: DE}}
  - {email: old@x.example, answers: {Country: SE}, archived: true}
custom_fields:
  - {name: Country, type: CHOICE, choices: [SE, FI, DE]}
  - {name: Level, type: MULTI_SELECT, choices: [High, Low]}
  - {name: Badge, type: TEXT}
groups:
  - {name: Team, members: [ann@x.example, bo@x.example, old@x.example]}
  - {name: Crew, members: [cy@x.example]}
  - {name: Club, members: [bo@x.example]}
smart_groups:
  - {name: Nordics, conditions: [{field: Country, choices: [SE, FI]}]}
  - {name: High Swedes, conditions: [{field: Country, choices: [SE]}, {field: Level, choices: [High]}]}
  - {name: Odd, conditions: [{field: Country, choices: [SE], system_condition: IS_ODD}]}
content: [{name: A}, {name: B}, {name: C}, {name: D}, {name: E}, {name: F}, {name: G}]
content_targets:
  - {content: A, assign_to: [{group: Team}]}
  - {content: B, mandatory: true, assign_to: [{smart_group: Nordics}]}
  - {content: C, assign_to: [{smart_group: High Swedes}, {user: dan@x.example}]}
  - {content: D, assign_to: [everyone]}
  - {content: E, assign_to: [{smart_group: Odd}]}
  - {content: F, assign_to: [{group: Crew}]}
"""
LIMITED = """
  - content: G
    visible_from: "2920-01-01T00:00:00Z"
    visible_until: "2930-01-01T23:59:59Z"
    assign_to: [{group: Team}]
"""
OPTIONS = "timezone: UTC\nguards: off\npeople: {create: true}\n"
CASES = cases(Path(__file__).with_name("whole_effects.txt"))


def _person(position: int, **more: object) -> Edit:
    return lambda said: said["users"][position].update(more)


def _targets(**more: object) -> Edit:
    """Of the assignments to the group Team."""
    return lambda said: [one.update(more) for one in said["targets"] if one["targetId"] == "g-1"]


ODD: dict[str, dict[str, Edit]] = {
    "a member more than the conditions give": {
        "/smart-groups/sg-1": lambda said: said.get("members", []).append("u-4")
    },
    "an answer of another shape": {"/users": _person(0, customFields={"Country": 7, "Level": ["High"]})},
    "an archived account with the e-mail of an active one": {"/users": _person(4, email="Ann@x.example")},
    "a smart group without its members": {"/smart-groups/sg-3": lambda said: said.pop("members")},
    "another smart group without its members": {"/smart-groups/sg-1": lambda said: said.pop("members", None)},
    "a condition on a text": {"/smart-groups/sg-1": lambda said: said["conditions"][0].update(customFieldId="f-3")},
    "members that no reading explains": {
        "/smart-groups/sg-3": lambda said: said.update({"members": ["u-2"]} if "members" in said else {})
    },
    "a condition with a long name": {
        "/smart-groups/sg-3": lambda said: said["conditions"][0].update(systemCondition="IS_" + "X" * 60)
    },
    "a smart group without its members or conditions": {
        "/smart-groups/sg-1": lambda said: (said.pop("members", None), said.update(conditions=[])),
    },
    "answers by id": {"/users": _person(0, customFields={"Country": "ch-1", "Level": ["ch-4"]})},
    "one member of a group who is unknown": {"/groups/g-1/members": lambda said: said["userIds"].append("u-98")},
    "two members of a group who are unknown": {
        "/groups/g-1/members": lambda said: said["userIds"].extend(["u-98", "u-99"])
    },
    "members of an archived person": {"/users/u-2": lambda said: said.pop("memberOfGroups")},
    "a content without a name": {"/content/all": lambda said: said["courses"][0].pop("name")},
    "a target without a kind": {"/content/targets": _targets(targetId="t-9", targetType="TEAM")},
    "a window that cannot be read": {"/content/targets": _targets(finishTime="soon")},
    "an answer that is no choice": {"/users": _person(0, customFields={"Country": "XX", "Level": ["High"]})},
    "a condition without choices": {"/smart-groups/sg-1": lambda said: said["conditions"][0].pop("choiceIds")},
}


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.title)
def test_each_effect_of_a_plan(tmp_path: Path, case: Case) -> None:
    """Who gains and loses what, which groups change, and why something is not known.

    The first line of a case may name an oddity of the workspace.
    """
    it = Project(tmp_path, SEED, OPTIONS)
    it.write(case.text)
    settings = it.settings
    with connected(it, ODD.get(case.text.partition("\n")[0].removeprefix("# "), {})) as connection:
        made = WorkspaceReader(settings=settings, connection=connection)
        effects = made.plan(load_manifests(settings), replace(settings.policy, people=True)).effects
    lines = [
        f"{one.email} {one.content}: {one.before} -> {one.after}{' for a shorter time' * one.shortened}"
        f" by {' and '.join(one.causes)}"
        for one in effects.rows or ()
    ]
    lines += [f"{one.content}: {one.before} -> {one.after} {one.basis.value}" for one in effects.contents]
    lines += [
        f"{one.address}: {one.before} -> {one.after}, +{one.join} -{one.leave} {one.basis.value}"
        for one in effects.groups
    ]
    calibration = f"{effects.calibration.exact} of {effects.calibration.groups} smart groups are as predicted"
    assert "".join(f"{line}\n" for line in (*lines, calibration, *effects.reasons)) == case.told


MORE: Final = "[ann@x.example, bo@x.example, old@x.example, dan@x.example]"
FEWER: Final = "[ann@x.example, old@x.example]"
NEW_GROUP: Final = "groups: [{name: New, members: [dan@x.example]}]\n"
NEW_SMART_GROUP: Final = "smart_groups: [{name: New, conditions: [{field: Level, choices: [Low]}]}]\n"
NEW_PERSON: Final = "{email: eve@x.example, first_name: Eve, last_name: Ek, language: en}"
ARCHIVED: Final = "{email: bo@x.example, archived: true}"


def _window(more: str) -> str:
    return f"content_targets: [{{content: G, {more}, assign_to: [{{group: Team}}]}}]"


@pytest.mark.sampled
@pytest.mark.parametrize(
    ("change", "takes", "requires"),
    [
        (f"groups: [{{name: Team, members: {MORE}}}]", False, True),
        (f"groups: [{{name: Team, members: {FEWER}}}]", True, False),
        (f"groups: [{{name: Crew, members: []}}, {{name: Team, members: {MORE}}}]", True, True),
        (
            f"groups: [{{name: Crew, members: [cy@x.example, dan@x.example]}}, {{name: Team, members: {FEWER}}}]",
            True,
            True,
        ),
        (NEW_GROUP, False, False),
        ("absent: {groups: [Crew]}", True, False),
        ("smart_groups: [{name: Nordics, conditions: [{field: Country, choices: [SE]}]}]", True, True),
        (NEW_SMART_GROUP, False, False),
        ("absent: {smart_groups: [Nordics]}", True, False),
        (f"groups: [{{name: Team, members: {FEWER}}}]\n{NEW_SMART_GROUP}", True, False),
        (f"groups: [{{name: Team, members: {MORE}}}]\n{NEW_SMART_GROUP}", False, True),
        (f"users: [{NEW_PERSON}]", False, True),
        (f"users: [{ARCHIVED}]", True, False),
        (f"users: [{ARCHIVED}, {NEW_PERSON}]", True, True),
        ("users: [{email: bo@x.example, answers: {Country: DE}}]", True, True),
        (f"users: [{{email: bo@x.example, answers: {{Country: DE}}}}, {ARCHIVED.replace('bo', 'cy')}]", True, True),
        ("users: [{email: bo@x.example, custom_archive_date: SOON}]", True, False),
        (f"users: [{{email: bo@x.example, custom_archive_date: LATER}}]\n{NEW_GROUP}", True, False),
        ("users: [{email: bo@x.example, custom_archive_date: 2020-01-01}]", True, False),
        (f"users: [{{email: bo@x.example, first_name: Bo}}]\n{NEW_GROUP}", False, False),
        ("custom_fields: [{name: Country, choices: [SE, FI]}]", True, False),
        ("absent: {content_targets: [{content: D, assign_to: [everyone]}]}", True, False),
        ("content_targets: [{content: A, assign_to: [everyone]}]", False, False),
        ("content_targets: [{content: A, mandatory: true, assign_to: [everyone]}]", False, True),
        (
            "content_targets: [{content: A, mandatory: true, assign_to: [everyone]},"
            " {content: F, assign_to: [everyone]}]",
            False,
            True,
        ),
        (
            "content_targets: [{content: A, visible_until: 2930-01-01, assign_to: [{group: Team}]},"
            " {content: F, assign_to: [everyone]}]",
            True,
            False,
        ),
        ("content_targets: [{content: A, visible_from: 2020-01-01, assign_to: [{group: Team}]}]", True, False),
        (_window("visible_from: 2920-01-01, visible_until: 2930-01-01, mandatory: true"), False, True),
        (_window("visible_from: 2919-01-01, visible_until: 2930-01-01"), False, False),
        (_window("visible_from: 2921-01-01, visible_until: 2930-01-01"), True, False),
        (_window("visible_from: 2920-01-01, visible_until: 2931-01-01"), False, False),
        (_window("visible_from: 2920-01-01, visible_until: 2929-01-01"), True, False),
        ("content_targets: [{content: G, assign_to: [{group: Team}]}]", False, False),
    ],
)
def test_what_a_plan_cannot_do_is_known_where_not_everything_was_read(
    tmp_path: Path, change: str, takes: bool, requires: bool
) -> None:
    """A plan that only adds takes nothing, and one that adds nobody requires nothing."""
    for word, days in (("SOON", 9), ("LATER", 90)):
        change = change.replace(word, str(datetime.now(UTC).date() + timedelta(days=days)))
    unread = "/content/all" if change.startswith(("users", "custom_fields")) else "/users"
    counted = "total" if unread == "/content/all" else "matchCount"
    options = "timezone: UTC\nguards: {mandatory: {count: 900}, people: {count: 900}}\npeople: {create: true}\n"
    it = Project(tmp_path, SEED + LIMITED, options)
    made = plan_altered(it, change, {unread: lambda said: said.update({counted: said[counted] + 1})})
    totals = {guard.name: guard.total for guard in made.guards}
    assert (made.effects.people.lose, made.effects.people.gain) == (None if takes else 0, None)
    assert (totals["people"], totals["mandatory"]) == (None if takes else 0, None if requires else 0)
