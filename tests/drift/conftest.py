"""The stage of every drift test: a project that is as declared, and a workspace to edit by hand."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final

import pytest
from integrity.served_project import CommandResult, ServedProject, staged

SEED: Final = """
people:
  - {email: anna@acme.example, id: u-anna, first_name: Anna, language: sv, answers: {Dept: A}}
  - {email: bo@acme.example, id: u-bo}
  - {email: cy@acme.example, id: u-cy}
custom_fields:
  - {name: Dept, type: CHOICE, choices: [A, B]}
  - {name: Extra, type: CHOICE, choices: [X]}
groups:
  - {name: Team, id: g-1, members: [anna@acme.example, bo@acme.example], managers: [cy@acme.example]}
  - {name: LMS a, id: g-2}
  - {name: Book club, id: g-3}
  - {name: UI lab, id: g-4}
smart_groups:
  - {name: All A, id: s-1, conditions: [{field: Dept, choices: [A]}]}
  - {name: All B, id: s-2, conditions: [{field: Dept, choices: [B]}]}
content: [{name: Basics, id: c-1}, {name: Intro, id: c-2}]
content_targets:
  - {content: Basics, mandatory: true, assign_to: [{group: Team}, everyone]}
  - {content: Intro, assign_to: [{user: bo@acme.example}]}
"""
MANIFESTS: Final = """custom_fields:
  - {name: Dept, type: CHOICE, choices: [A, B]}
groups:
  - name: Team
    members: [anna@acme.example, bo@acme.example]
    managers: [cy@acme.example]
  - name: LMS a
smart_groups:
  - {name: All A, conditions: [{field: Dept, choices: [A]}]}
content_targets:
  - content: Basics
    mandatory: true
    assign_to:
      - {group: Team}
      - everyone
users:
  - {email: anna@acme.example, first_name: Anna, language: sv}
"""
OWNED: Final = 'ownership: {groups: ["LMS *"], content_targets: declared_content}\nleave_alone: ["group/UI *"]\n'


def drift(stage: ServedProject, *arguments: str, code: int | None = None) -> dict[str, Any]:
    """The report as a document."""
    ran: CommandResult = stage("drift", "--format", "json", *arguments)
    assert ran.writes == []
    assert code is None or ran.code == code, ran.err
    return ran.document


def states(report: Mapping[str, Any], key: str = "findings") -> dict[str, str]:
    """Address → state."""
    return {finding["address"]: finding["state"] for finding in report[key]}


def only(report: Mapping[str, Any]) -> dict[str, Any]:
    """The only finding."""
    (finding,) = report["findings"]
    found: dict[str, Any] = finding
    return found


def codes(report: Mapping[str, Any]) -> list[str]:
    """The codes of the problems."""
    return [problem["code"] for problem in report["problems"]]


@pytest.fixture
def stage(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[ServedProject]:
    """A workspace that is as its manifests say."""
    with staged(tmp_path, SEED, monkeypatch, OWNED) as stage:
        stage.write(MANIFESTS)
        yield stage
