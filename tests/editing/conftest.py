"""The workspace that manifests are edited for."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest
from integrity.served_project import ServedProject, staged

SEED: Final = """
people:
  - {email: anna@x.se, id: u-anna, first_name: Anna, language: sv, answers: {Dept: Sales}, metadata: {floor: "2"}}
  - {email: bo@x.se, id: u-bo}
  - {email: cy@x.se, id: u-cy}
  - {email: dag@x.se, id: u-dag}
custom_fields:
  - {name: Dept, type: CHOICE, choices: [Sales, Tech, "NO", "a: b"], description: "Where it's at: 1", hidden: true}
  - {name: Skills, type: MULTI_SELECT, choices: [Go, Rust]}
groups:
  - {name: Team, id: g-1, members: [anna@x.se, bo@x.se], managers: [cy@x.se]}
  - {name: Crew, id: g-2}
  - {name: 'Kör "A" $(x) 😀', id: g-3, managers: [cy@x.se]}
smart_groups:
  - {name: Nordics, id: s-1, conditions: [{field: Dept, choices: [Sales, Tech]}], managers: [anna@x.se]}
content: [{name: Basics, id: c-1}, {name: Intro, id: c-2}]
content_targets:
  - {content: Basics, mandatory: true, visible_until: "2030-12-31T22:59:59Z", assign_to: [{group: Team}]}
  - {content: Basics, visible_from: "2026-01-05T07:30:00Z", assign_to: [everyone]}
  - {content: Intro, assign_to: [{user: bo@x.se}]}
"""
OPTIONS: Final = "timezone: Europe/Stockholm\nvars: {boss: dag@x.se, teams: [Team, Crew]}\n"


@pytest.fixture
def stage(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[ServedProject]:
    """A workspace, and a project that says something else."""
    with staged(tmp_path, SEED, monkeypatch, OPTIONS) as stage:
        yield stage
