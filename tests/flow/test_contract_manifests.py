"""What manifests promise, word for word: times, dates, people from CSV files, and what validate finds by itself."""

from __future__ import annotations

from datetime import datetime
from pathlib import Path

import pytest

from lmsconf.errors import Problem
from lmsconf.project.settings import load_settings
from lmsconf.workspace.project_manifests import validate_offline

from .project import TODAY, Project

SEED = """
people:
  - {email: anna.berg@acme.example}
  - {email: bo.ek@acme.example}
  - {email: cy.dahl@acme.example}
custom_fields:
  - {name: Department, type: CHOICE, choices: [Sales, Engineering, HR]}
  - {name: Country, type: CHOICE, choices: [SE, "NO", FI]}
groups:
  - {name: Coaches, members: [cy.dahl@acme.example]}
  - {name: Summer interns 2024}
content: [{name: GDPR basics}, {name: Old intro}]
"""
EVERYTHING = """
x-owners: &owners [anna.berg@acme.example]
custom_fields:
  - name: Department
    type: CHOICE
    choices: [Sales, Engineering, {name: People and Culture, previously: [HR]}]
    description: Where the person works
    hidden: false
    about: {owner: hr-systems, ticket: LD-412}
groups:
  - name: Onboarding coaches
    previously: [Coaches]
    managers: *owners
    members: {include: [bo.ek@acme.example], exclude: [cy.dahl@acme.example]}
  - name: Leadership SE
    only_in: [production]
    members: {file: hr/leaders.csv, column: email, where: {Group: Leadership SE}}
smart_groups:
  - name: Sales Nordics
    conditions:
      - {field: Department, choices: [Sales]}
      - {field: Country, choices: [SE, NO, FI]}
    managers: *owners
content_targets:
  - content: GDPR basics
    mandatory: true
    visible_from: 2026-01-05
    assign_to:
      - {smart_group: Sales Nordics, visible_until: 2026-12-31}
      - {group: Onboarding coaches, mandatory: false}
      - {user: bo.ek@acme.example}
      - everyone
absent:
  groups: [Summer interns 2024, {name: Summer interns 2025, until: 2027-03-31}]
  content_targets: [{content: Old intro, assign_to: [everyone]}]
"""


def project(root: Path, manifests: str, options: str = "timezone: Europe/Stockholm\n") -> Project:
    made = Project(root, SEED, options)
    made.write(manifests)
    return made


def told(it: Project) -> list[Problem]:
    """What `lmsconf validate` finds."""
    return list(validate_offline(it.settings).problems)


def window(root: Path, key: str, time: str, options: str = "timezone: Europe/Stockholm\n") -> Project:
    line = f"content_targets: [{{content: GDPR basics, {key}: {time}, assign_to: [everyone]}}]"
    return project(root, line, options)


def test_every_key_at_once(tmp_path: Path) -> None:
    """A manifest with a key of every sort plans, applies, and then wants nothing more."""
    it = project(tmp_path, EVERYTHING)
    (tmp_path / "manifests" / "hr").mkdir()
    (tmp_path / "manifests" / "hr" / "leaders.csv").write_bytes(
        b"\xef\xbb\xbfemail;Group\r\n anna.berg@acme.example ;Leadership SE\r\nbo.ek@acme.example;Other\r\n"
    )
    # Everyone must take the content: `mandatory: false` and a shorter window for smaller audiences change nothing.
    overruled = ["lint/contradicting-assignments"] * 2
    assert [problem.code for problem in told(it)] == ["reference/unknown-workspace", *overruled]
    plan = it.plan()
    assert {(change.action.value, str(change.address)) for change in plan.changes} == {
        ("update", "custom_field/Department"),
        ("update", "group/Onboarding coaches"),
        ("delete", "group/Summer interns 2024"),
        ("create", "smart_group/Sales Nordics"),
        ("create", "content_target/GDPR basics -> smart_group/Sales Nordics"),
        ("create", "content_target/GDPR basics -> group/Onboarding coaches"),
        ("create", "content_target/GDPR basics -> user/bo.ek@acme.example"),
        ("create", "content_target/GDPR basics -> everyone"),
    }
    assert plan.manifests_files == ("manifests/all.yaml", "manifests/hr/leaders.csv")
    assert it.apply(plan=plan).converged
    assert it.plan().changes == ()


@pytest.mark.parametrize(
    ("key", "said", "sent"),
    [
        ("visible_from", "2026-01-05", "2026-01-04T23:00:00Z"),
        ("visible_until", "2026-12-31", "2026-12-31T22:59:59Z"),
        ("visible_from", "2026-07-01T08:00", "2026-07-01T06:00:00Z"),
        ("visible_from", "2026-07-01T08:00:30.9-02:30", "2026-07-01T10:30:30Z"),
        ("visible_from", "2026-10-25T02:30+02:00", "2026-10-25T00:30:00Z"),
        ("visible_until", "'9999-12-31T23:59:59Z'", "9999-12-31T23:59:59Z"),
    ],
)
def test_times(key: str, said: str, sent: str, tmp_path: Path) -> None:
    """A bare date is midnight or the last second, in the project's zone unless an offset stands there."""
    it = window(tmp_path, key, said)
    (call,) = it.plan().calls
    moment = datetime.fromisoformat(sent)
    value = f"{moment.timestamp():.0f}000" if it.spec.behaviour("content-targets.time-format") == "epoch-ms" else sent
    name = {"visible_from": "startTime", "visible_until": "finishTime"}[key]
    assert it.spec.body_to_wire("content-targets.create", **{name: value}).items() <= call.body.items()
    assert it.apply().converged
    assert it.plan().changes == ()


@pytest.mark.parametrize(
    ("said", "zone", "reason", "hint"),
    [
        ("2026-03-29T02:30", "Europe/Stockholm", "the clocks skip it", "2026-03-29T03:30:00+02:00"),
        ("2026-10-25T02:30", "Europe/Stockholm", "occurs twice", "2026-10-25T02:30:00+01:00"),
        ("2026-01-05T08:00", None, "has no offset", "timezone: Europe/Stockholm"),
        ("2026-01-05", None, "has no offset", "timezone: Europe/Stockholm"),
        ("2026-02-30", "Europe/Stockholm", "is not on the calendar: day is out of range", "2026-01-05T08:00+01:00"),
        ("9999-12-31", "America/New_York", "outside the years", "no limit"),
        ("'0001-01-01T00:00+01:00'", None, "outside the years", "no limit"),
        ("'2026-01-05T08:00+99:00'", None, "an offset of a day or more", "2026-01-05T08:00+01:00"),
    ],
)
def test_times_that_are_none(said: str, zone: str | None, reason: str, hint: str, tmp_path: Path) -> None:
    """A moment that a clock change skips or repeats, that has no zone, or no year, is an error with its way out."""
    it = window(tmp_path, "visible_until", said, f"timezone: {zone}\n" if zone else "")
    (problem,) = told(it)
    assert (problem.code, str(problem.source)) == ("manifest/time", "manifests/all.yaml:1:57")
    assert reason in problem.message
    assert hint in str(problem.hint)


def test_validate_knows_the_day(tmp_path: Path) -> None:
    """An entry under `absent` that is past its date is an error without looking at the workspace."""
    it = project(tmp_path, "absent: {groups: [{name: A, until: 2026-05-31}, {name: B, until: 2026-06-01}]}")
    (problem,) = told(it)
    assert (problem.code, problem.address, str(problem.source)) == (
        "absent/expired",
        "group/A",
        "manifests/all.yaml:1:19",
    )


def test_validate_knows_the_dialect(tmp_path: Path) -> None:
    """A key or value that the dialect does not have is told at its line, beside what is wrong in the manifests."""
    options = "dialect:\n  custom-fields.in-use: sometimes\n  nothing.of-that-name: x\n"
    it = project(tmp_path, "grups: []", options)
    assert [(problem.code, str(problem.source)) for problem in told(it)] == [
        ("dialect/value", "lmsconf.yaml:4:3"),
        ("dialect/unknown-key", "lmsconf.yaml:5:3"),
        ("manifest/unknown-key", "manifests/all.yaml:1:1"),
    ]


def test_a_workspace_has_its_own_dialect(tmp_path: Path) -> None:
    """What one workspace overrides is looked at, and placed, where that workspace says it."""
    project(tmp_path, "groups: [{name: A}]")
    text = (tmp_path / "lmsconf.yaml").read_text().replace("seed:", "dialect: {paging.limit: none}, seed:")
    (tmp_path / "lmsconf.yaml").write_text(text)
    (problem,) = validate_offline(load_settings(tmp_path, None, {}, today=TODAY)).problems
    assert (problem.code, str(problem.source)) == ("dialect/value", "lmsconf.yaml:2:52")
