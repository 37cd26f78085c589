"""`plan --undo RUN` of a run that migrated a field, completed or cut short, in both dialects of a field in use."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from .project import Project
from .shell import lmsconf
from .test_undo import held
from .test_undo_cut_short import cut_short

SEED = """
custom_fields:
  - {name: Team, type: CHOICE, choices: [Sales, Tech, HR], description: Where, hidden: true}
  - {name: Level, type: TEXT}
people:
  - {email: a@x.se, id: u-a, answers: {Team: Sales, Level: "3"}}
  - {email: b@x.se, id: u-b, answers: {Team: Tech}}
  - {email: c@x.se, id: u-c, answers: {Level: "3"}}
  - {email: d@x.se, id: u-d, answers: {Team: HR}, archived: true}
smart_groups:
  - {name: Sellers, id: s-1, conditions: [{field: Team, choices: [Sales]}]}
  - {name: Others, id: s-2, conditions: [{field: Team, choices: [Tech, HR]}]}
content: [{name: Welcome}]
content_targets:
  - {content: Welcome, assign_to: [{smart_group: Sellers}, {smart_group: Others}]}
"""
MIGRATION = """
custom_fields:
  - name: Department
    type: CHOICE
    choices: [Sales and Marketing, Tech, People]
    migrate: {from: Team, choices: {Sales: Sales and Marketing, HR: People}, conditions: all}
smart_groups:
  - {name: Sellers, conditions: [{field: Department, choices: [Sales and Marketing]}]}
"""
OPTIONS = "guards: off\ndialect: {custom-fields.in-use: %s}\n"
CALLS = 7


def made(root: Path, in_use: str) -> Project:
    """A project in which the migration is declared, and what the workspace holds in `before.json`."""
    project = Project(root, SEED, OPTIONS % in_use)
    project.write(MIGRATION)
    assert lmsconf(project.root, "snapshot", "before.json").code == 0
    return project


def undo(project: Project) -> str:
    """Plans the way back from the latest run, applies it, and returns the plan as text."""
    planned = lmsconf(project.root, "plan", "--undo", "latest", "--out", "undo.json")
    assert planned.code == 0, planned.err
    if json.loads((project.root / "undo.json").read_text())["calls"]:
        applied = lmsconf(project.root, "apply", "undo.json")
        assert applied.code == 0, planned.out + applied.out + applied.err
    return planned.out


def differing(project: Project) -> list[str]:
    before, after = held(project, "before.json"), held(project)
    return [f"{before.get(key)}\n{after[key]}" for key in after if after[key] != before.get(key)]


@pytest.mark.sampled
@pytest.mark.parametrize("in_use", ["condition", "removed-choice"])
def test_a_migration_is_undone(tmp_path: Path, in_use: str) -> None:
    """The old field is there again with every answer and condition, and the new one is deleted."""
    project = made(tmp_path, in_use)
    applied = lmsconf(project.root, "apply", "--auto-approve")
    assert applied.code == 0, applied.out + applied.err
    assert "[undo/conflict]" not in undo(project)
    assert differing(project) == []


@pytest.mark.sampled
@pytest.mark.parametrize("in_use", ["condition", "removed-choice"])
@pytest.mark.parametrize("unsent", [False, True], ids=["sent", "unsent"])
@pytest.mark.parametrize("place", range(1, CALLS + 1))
def test_a_migration_that_was_cut_short_is_undone(tmp_path: Path, in_use: str, unsent: bool, place: int) -> None:
    """Whichever call the process died at."""
    project = made(tmp_path, in_use)
    assert cut_short(project, place, unsent=unsent) == CALLS
    assert "[undo/conflict]" not in undo(project)
    assert differing(project) == []
