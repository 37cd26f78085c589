"""What `audience` says of an audience itself, and `access` of an assignment to it that the plan changes."""

from __future__ import annotations

from pathlib import Path

import pytest
from manifest.cases import Case, cases

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
