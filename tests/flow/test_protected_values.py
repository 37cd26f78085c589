"""`guards.protect`: nothing is taken out of what is protected, whichever key of whichever kind it is."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

import pytest

from lmsconf.kinds import all_kinds

from .project import Project

SEED = """
custom_fields: [{name: Country, type: CHOICE, choices: [SE, NO]}, {name: Note, type: TEXT}]
people:
  - {email: root@acme.example, admin: true}
  - {email: vera@acme.example, admin: true}
  - {email: bo@acme.example, first_name: Bo, manager: true, applications: [learn, create], metadata: {cost: "1"},
     answers: {Country: SE, Note: old}}
groups: [{name: Team, members: [bo@acme.example], managers: [bo@acme.example]}]
smart_groups: [{name: Sweden, conditions: [{field: Country, choices: [SE]}], managers: [bo@acme.example]}]
content: [{name: Welcome}]
content_targets:
  - {content: Welcome, mandatory: true, visible_from: "2026-03-01T00:00:00Z", visible_until: "2027-03-01T00:00:00Z",
     assign_to: [everyone]}
"""


class Case(NamedTuple):
    """What is declared, beside the name, to take something out, and to add something or leave it."""

    taken: tuple[str, ...]
    kept: tuple[str, ...]


NOTHING_IN_IT = Case((), ())
CASES: dict[tuple[str, str], Case] = {
    ("custom_fields", "choices"): Case(("choices: [SE]",), ("choices: [SE, NO, FI]",)),
    ("custom_fields", "description"): Case((), ("description: Where",)),
    ("custom_fields", "hidden"): Case((), ("hidden: true",)),
    ("custom_fields", "locked"): Case((), ("locked: true",)),
    ("custom_fields", "optional"): Case((), ("optional: true",)),
    ("groups", "members"): Case(("members: []",), ("members: [bo@acme.example, vera@acme.example]",)),
    ("groups", "managers"): Case(("managers: []",), ("managers: {include: [vera@acme.example]}",)),
    ("smart_groups", "conditions"): Case(("conditions: [{field: Country, choices: [NO]}]",), ()),
    ("smart_groups", "managers"): Case(("managers: []",), ("managers: {include: [vera@acme.example]}",)),
    ("users", "admin"): Case((), ("admin: true",)),
    ("users", "manager"): Case(("manager: false",), ("manager: true",)),
    ("users", "applications"): Case(("applications: [learn]",), ("applications: [learn, create, analyse]",)),
    ("users", "metadata"): Case(
        ("metadata: {cost: null}", "metadata: {cost: '2'}"), ("metadata: {unit: A}", "metadata: {cost: '1'}")
    ),
    ("users", "answers"): Case(
        ("answers: {Country: null}", "answers: {Country: 'NO'}", "answers: {Note: null}"), ("answers: {Country: SE}",)
    ),
    ("users", "archived"): Case(("manager: false, archived: true",), ("archived: false",)),
    ("users", "custom_archive_date"): Case(("manager: false, custom_archive_date: 2027-01-01",), ()),
    ("users", "first_name"): Case((), ("first_name: Bob",)),
    ("users", "last_name"): Case((), ("last_name: Ek",)),
    ("users", "language"): Case((), ("language: sv",)),
    ("content_targets", "mandatory"): Case(("mandatory: false",), ("mandatory: true",)),
    ("content_targets", "visible_from"): Case(
        ("mandatory: true, visible_from: 2026-04-01",), ("mandatory: true, visible_from: 2026-02-01",)
    ),
    ("content_targets", "visible_until"): Case(
        ("mandatory: true, visible_until: 2026-11-01",),
        ("mandatory: true, visible_until: null", "mandatory: true, visible_until: 2028-01-01"),
    ),
}
"""Section and key → manifests that take something out of a protected resource, and that do not."""
NAMES = {
    "custom_fields": ("name: Country", "custom_field/Country"),
    "groups": ("name: Team", "group/Team"),
    "smart_groups": ("name: Sweden", "smart_group/Sweden"),
    "users": ("email: bo@acme.example", "user/bo@acme.example"),
    "content_targets": ("content: Welcome, assign_to: [everyone]", "content_target/Welcome -> everyone"),
}
NOT_VALUES = {
    *("name", "email", "id", "previously", "only_in", "about", "for_each", "content", "assign_to", "type"),
    *("migrate", "keep", "window", "replaces"),
}
"""Keys that say which resource it is and where it is declared, or that have tests of their own."""


def refused(tmp_path: Path, section: str, declared: str) -> bool:
    """Whether the plan of one resource with these keys is refused, since it is protected."""
    name, address = NAMES[section]
    it = Project(
        tmp_path,
        SEED,
        f"guards: {{protect: ['{address}']}}\ntimezone: UTC\ndialect: {{content-targets.on-existing: update}}\n",
    )
    plan = it.plan(f"{section}: [{{{name}, {declared}}}]")
    return "refusal/protected" in [problem.code for problem in plan.all_problems if problem.is_error]


@pytest.mark.parametrize(
    ("section", "key", "declared"), [(*at, one) for at, case in CASES.items() for one in case.taken]
)
def test_nothing_is_taken_out(tmp_path: Path, section: str, key: str, declared: str) -> None:
    """A shorter window, a right, an answer, a member or a choice less: the plan is refused."""
    assert refused(tmp_path, section, declared)


@pytest.mark.parametrize(
    ("section", "key", "declared"), [(*at, one) for at, case in CASES.items() for one in case.kept]
)
def test_what_is_protected_may_grow(tmp_path: Path, section: str, key: str, declared: str) -> None:
    """More of anything, and what has no content, is planned as ever."""
    assert not refused(tmp_path, section, declared)


def test_every_key_of_every_kind_has_its_case() -> None:
    """A new key of a manifest says here what taking something out of it means."""
    keys = {
        (kind.section, key)
        for kind in all_kinds().values()
        for key in dict(kind.schema["properties"])  # type: ignore[call-overload]  # a JSON Schema
        if key not in NOT_VALUES
    }
    assert keys == CASES.keys()
