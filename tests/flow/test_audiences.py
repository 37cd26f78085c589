"""What `audience` says of an audience itself, and `access` of an assignment to it that the plan changes."""

from __future__ import annotations

from pathlib import Path

import pytest

from .test_people_commands import access, audience, project

MANIFESTS = """
groups: [{name: Trainers, previously: [Coaches], members: [cy@acme.example]}, {name: Club, members: [ann@acme.example]}]
users: [{email: eve@acme.example, first_name: Eve, last_name: Ek, language: en}]
absent: {smart_groups: [Odd]}
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
