"""What `audience` says of an audience itself, and `access` of an assignment to it that the plan changes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from manifest.cases import Case, cases

from lmsconf.planner.audience.access_reports import person_access
from lmsconf.planner.audience.query import AccessQuery
from lmsconf.render.people_reports import access_text
from lmsconf.workspace.project_manifests import load_manifests
from lmsconf.workspace.reader import WorkspaceReader, read_people_view

from .altered_service import connected
from .project import Project
from .shell import lmsconf
from .test_people_commands import SEED, access, audience, project

MANIFESTS = """
groups: [{name: Trainers, previously: [Coaches], members: [cy@acme.example]}, {name: Club, members: [ann@acme.example]}]
users: [{email: eve@acme.example, first_name: Eve, last_name: Ek, language: en}]
absent: {smart_groups: [Odd]}
"""

CASES = cases(Path(__file__).with_name("access.txt"))
EVERYTHING = """
custom_fields: [{name: Level, type: CHOICE, choices: [High, Low]}, {name: Land, previously: [Country]}]
users:
  - {email: eve@acme.example, first_name: Eve, last_name: Ek, language: en, answers: {Land: SE, Level: High}}
  - {email: ann@acme.example, answers: {Level: Low}}
groups: [{name: Trainers, previously: [Coaches]}, {name: Club, members: [ann@acme.example, eve@acme.example]}]
smart_groups: [{name: High, conditions: [{field: Level, choices: [High]}, {field: Land, choices: [SE]}]}]
content_targets:
  - content: GDPR
    mandatory: true
    visible_until: 2999-12-31
    assign_to: [{group: Club}, {user: ann@acme.example}, {smart_group: High}]
absent: {smart_groups: [Odd], groups: [Guests]}
"""


@pytest.mark.parametrize(
    ("address", "is_live", "stays", "before", "after"),
    [
        ("everyone", True, True, 3, 4),
        ("group/Club", False, True, 0, 1),
        ("group/Trainers", True, True, 1, 1),
        ("group/Coaches", True, True, 1, 1),
        ("smart_group/Nordics", True, True, 2, 2),
        ("smart_group/Odd", True, False, 1, 0),
        ("user/cy@acme.example", True, True, 1, 1),
        ("user/eve@acme.example", False, True, 0, 1),
    ],
)
def test_an_audience_that_the_plan_makes_renames_or_deletes(
    tmp_path: Path, address: str, is_live: bool, stays: bool, before: int, after: int
) -> None:
    """A new one has no one yet; a renamed one is found by both names; a deleted one by its own."""
    found = audience(project(tmp_path, MANIFESTS, options="people: {create: true}\n"), address)
    assert [found[key] for key in ("is_live", "stays", "before", "after")] == [is_live, stays, before, after]


ODD = """
people: [{email: ann@acme.example, answers: {Country: SE}}, {email: bo@acme.example, answers: {Country: SE}}]
custom_fields: [{name: Country, type: CHOICE, choices: [SE, FI]}]
smart_groups:
  - name: Nordics
    conditions: [{field: Country, choices: [SE]}, {field: Country, choices: [SE], system_condition: IS_ANY}]
content: [{name: GDPR}]
content_targets: [{content: GDPR, assign_to: [{smart_group: Nordics}, everyone, {user: bo@acme.example}]}]
"""
NOT_KNOWN = """\
Workspace sandbox (sandbox:workspace.db), 2 people.

ann@acme.example and GDPR:

    GDPR: now not known, after the plan not known
      assignment of GDPR to TEAM id t-9
        now and after the plan: in the audience or not is not known; its window cannot be read
      assignment of GDPR to everyone
        now and after the plan: in the audience or not is not known; its window cannot be read
      assignment of GDPR to group id x-9
        now and after the plan: not in the audience; optional
      assignment of GDPR to smart_group id x-9
        now and after the plan: not in the audience; optional
      assignment of GDPR to smart_group/Nordics
        now and after the plan: in the audience; optional
          met: Country is SE (answer: SE)
          met: Country IS_ANY SE (answer: SE)
          not known: field id cf-9 is choice id ch-9 (answer: not known)
      assignment of GDPR to user id x-9
        now and after the plan: not in the audience; optional
      assignment of GDPR to user/bo@acme.example
        now and after the plan: not in the audience; optional

Access through programs or purchases is not counted.

Not everything is known:
  smart_group/Nordics: answers of people have an unknown format
  a window of an assignment cannot be read: "soon" cannot be read as a time
  an assignment is for TEAM id t-9, which is in no list
Workspace sandbox (sandbox:workspace.db), 2 people.

bo@acme.example and GDPR:

    GDPR: now not known, after the plan not known
      assignment of GDPR to TEAM id t-9
        now and after the plan: in the audience or not is not known; its window cannot be read
      assignment of GDPR to everyone
        now and after the plan: in the audience or not is not known; its window cannot be read
      assignment of GDPR to group id x-9
        now and after the plan: not in the audience; optional
      assignment of GDPR to smart_group id x-9
        now and after the plan: not in the audience; optional
      assignment of GDPR to smart_group/Nordics
        now and after the plan: in the audience; optional
          not known: Country is SE (answer: not known)
          not known: Country IS_ANY SE (answer: not known)
          not known: field id cf-9 is choice id ch-9 (answer: not known)
      assignment of GDPR to user id x-9
        now and after the plan: not in the audience; optional
      assignment of GDPR to user/bo@acme.example
        now and after the plan: in the audience; optional

Access through programs or purchases is not counted.

Not everything is known:
  smart_group/Nordics: answers of people have an unknown format
  a window of an assignment cannot be read: "soon" cannot be read as a time
  an assignment is for TEAM id t-9, which is in no list
"""


def _odd_people(said: dict[str, Any]) -> None:
    for person in said["users"][1:]:
        person["customFields"] = {"Country": 7}


def _odd_group(said: dict[str, Any]) -> None:
    said["conditions"].append({"customFieldId": "cf-9", "choiceIds": ["ch-9"]})


def _odd_targets(said: dict[str, Any]) -> None:
    targets = said["targets"]
    targets[1]["startTime"] = "soon"
    targets.append({**targets[1], "targetId": "t-9", "targetType": "TEAM"})
    for kind in ("USER", "GROUP", "SMART_GROUP"):
        targets.append({**targets[0], "targetId": "x-9", "targetType": kind})


def test_what_is_not_known_of_an_assignment(tmp_path: Path) -> None:
    """An answer, a field, a choice, an audience or a time that no listing explains is shown as far as it is known."""
    it = Project(tmp_path, ODD)
    it.write("groups: []")
    edits = {"/users": _odd_people, "/smart-groups/sg-1": _odd_group, "/content/targets": _odd_targets}
    with connected(it, edits) as connection:
        query = AccessQuery(audiences=frozenset(), contents=frozenset({"GDPR"}), fields=frozenset())
        reader = WorkspaceReader(settings=it.settings, connection=connection)
        view = read_people_view(reader, load_manifests(it.settings), query)
    people = ("ann@acme.example", "bo@acme.example")
    shown = "".join(access_text(person_access(view.state, view.header, email, "GDPR")) for email in people)
    assert shown == NOT_KNOWN


def test_an_assignment_that_the_plan_changes_is_shown_once(tmp_path: Path) -> None:
    """It is one assignment with a state before and after the plan, and not a live and a new one."""
    manifests = "content_targets: [{content: Coaching, mandatory: true, assign_to: [{group: Coaches}]}]"
    (content,) = access(project(tmp_path, manifests), "ann@acme.example", "Coaching")["contents"]
    (assignment,) = content["assignments"]
    assert (assignment["before"]["mandatory"], assignment["after"]["mandatory"]) == (False, True)


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.title)
def test_what_people_have_and_who_is_in_an_audience(tmp_path: Path, case: Case) -> None:
    """With a plan that makes, renames and deletes, and without one: where `live` stands before the command."""
    words = case.title.split()
    more = "content_targets:\n  - {content: GDPR, assign_to: [everyone, {user: cy@acme.example}, {group: Coaches}]}"
    seed = SEED.replace("content_targets:", more).replace(
        "groups:", "groups:\n  - {name: Guests}\n  - {name: Guild}", 1
    )
    options = "people: {create: true}\ntimezone: Europe/Stockholm\n"
    project(tmp_path, "groups: []" if words[0] == "live" else EVERYTHING, seed, options)
    ran = lmsconf(tmp_path, *(word for word in words if word != "live"))
    assert ran.out.partition(" people.\n\n")[2] + ran.err == case.told


# `lmsconf audience --by`: how many people of an audience picked a choice that the plan adds or deletes.
