"""The calls that create, change and delete custom fields, with what they wait for: tests/golden/fields_….txt."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from flow.project import Project

SEED = """
custom_fields:
  - {name: Team, type: CHOICE, choices: [Sales, Tech], description: Where, hidden: true}
  - {name: Site, type: CHOICE, choices: [Oslo, Bergen]}
  - {name: Motto, type: TEXT}
smart_groups:
  - {name: Sellers, conditions: [{field: Team, choices: [Sales]}]}
  - {name: Coders, conditions: [{field: Team, choices: [Tech]}]}
"""
GROUP = "smart_groups: [{{name: {}, conditions: [{{field: {}, choices: [{}]}}]}}]"
LEFT = "smart_groups: [{{name: {}, conditions: [{{field: Site, choices: [Oslo]}}]}}]"
IN_USE = "dialect: {{custom-fields.in-use: {}}}\n"
FIELDS = {
    "create": (
        "custom_fields:\n  - {name: New, type: TEXT}\n"
        "  - {name: Next, type: MULTI_SELECT, choices: [A, B], description: D, locked: true, optional: false}",
        "",
    ),
    "change": (
        "custom_fields:\n  - {name: Team, choices: {include: [HR]}, description: null, hidden: false}\n"
        "  - {name: Motto, optional: true, description: M}",
        "",
    ),
    "exchange": (
        "custom_fields: [{name: Team, choices: [Sales, HR]}]\n" + GROUP.format("Coders", "Team", "HR"),
        "",
    ),
    "leave": (
        "custom_fields: [{name: Team, choices: [Sales, HR]}]\n" + GROUP.format("Coders", "Team", "Sales"),
        "",
    ),
    "enter": (
        "custom_fields: [{name: Team, choices: [Sales, HR]}, {name: Site, choices: {include: [Lund]}}]\n"
        + GROUP.format("Coders", "Site", "Lund"),
        "",
    ),
    "swap": (
        "custom_fields: [{name: Team, id: f-2}, {name: Site, id: f-1, choices: [Sales, Tech, HR]}]",
        "",
    ),
    "circle": ("custom_fields: [{name: Team, id: f-2}, {name: Site, id: f-3}, {name: Motto, id: f-1}]", ""),
    "chain": ("custom_fields: [{name: Site, previously: [Team]}, {name: Place, previously: [Site]}]", ""),
    "not_in_use": (
        "custom_fields: [{name: Team, hidden: false}]\nsmart_groups:\n"
        "  - {name: Coders, conditions: [{field: Site, choices: [Oslo]}]}\n"
        "  - {name: Sellers, conditions: [{field: Site, choices: [Oslo]}]}",
        "",
    ),
    "removed": (
        "custom_fields: [{name: Team, choices: [Tech]}, {name: Site, choices: [Oslo]}]",
        IN_USE.format("removed-choice"),
    ),
    "never": (
        "custom_fields: [{name: Site, choices: [Oslo]}]\nabsent: {custom_fields: [Team]}\n" + LEFT.format("Sellers"),
        IN_USE.format("never"),
    ),
    "delete": ("absent: {custom_fields: [Team, Motto]}\n" + LEFT.format("Sellers"), ""),
}
MANY = "".join(f"  - {{name: K{n}, type: TEXT}}\n" for n in range(7))
NEW = "{{name: {}, type: CHOICE, choices: [Sales, Tech, Oslo, Bergen]{}}}"
TO_NEW = NEW.format("New", ", migrate: {from: Team, conditions: all}")
TO_NEXT = NEW.format("Next", ", migrate: {from: Site}")
SLOTS = {
    "full": (7, "custom_fields: [{name: Y, type: TEXT}, {name: Z, type: TEXT}]\nabsent: {custom_fields: [K1]}", {}),
    "full_additive": (7, "custom_fields: [{name: Z, type: TEXT}]\nabsent: {custom_fields: [K1]}", {"additive": True}),
    "full_declared": (7, f"custom_fields:\n{MANY}  - {{name: Motto, hidden: true}}", {}),
    "full_left_out": (
        7,
        "custom_fields: [{name: Z, type: TEXT}, {name: Motto, hidden: true}]\nabsent: {custom_fields: [K1]}",
        {"excluded": ("custom_field/Z",)},
    ),
    "full_kept": (
        7,
        "custom_fields: [{name: Z, type: TEXT}]\nabsent: {custom_fields: [K1]}",
        {"excluded": ("custom_field/K1",)},
    ),
    "freed": (6, "custom_fields: [{name: Y, type: TEXT}, {name: Z, type: TEXT}]\nabsent: {custom_fields: [K1]}", {}),
    "moved": (7, f"custom_fields: [{TO_NEW}]", {}),
    "moved_two": (7, f"custom_fields: [{TO_NEW}, {TO_NEXT}]", {}),
    "moved_one_by_one": (6, f"custom_fields: [{TO_NEW}, {TO_NEXT}]", {}),
    "moved_beside": (6, f"custom_fields: [{TO_NEW}, {{name: A, type: TEXT}}]", {}),
    "moved_and_freed": (7, f"custom_fields: [{TO_NEW}]\nabsent: {{custom_fields: [K1]}}", {}),
}


def shown(it: Project, manifests: str, more: dict[str, object]) -> str:
    """Each call of the plan, and after which others it is sent; then what may stop it."""
    plan = it.plan(manifests, **more)
    lines = []
    for call in plan.calls:
        after = f" after {', '.join(call.needs)}" if call.needs else ""
        tried = ", may be refused" if call.may_be_refused else ""
        lines.append(f"{call.id}{after}{tried}: {call.method} {call.path} ({call.address})")
        if call.body is not None:
            lines.append(f"    {json.dumps(call.body, default=str)}")
    for problem in (one for one in plan.all_problems if not one.code.startswith("lint/")):
        lines.append(f"{problem.source or '-'}: {problem.message} [{problem.code}]\n    {problem.hint}")
    return "\n".join([*lines, ""])


@pytest.mark.parametrize("name", FIELDS)
def test_the_calls_of_fields(tmp_path: Path, name: str, golden: Callable[[str, str], None]) -> None:
    """A field is replaced as a whole, by as few calls as its smart groups and names allow."""
    manifests, options = FIELDS[name]
    golden(f"fields_{name}.txt", shown(Project(tmp_path, SEED, options), manifests, {}))


@pytest.mark.parametrize("name", SLOTS)
def test_the_calls_of_ten_fields(tmp_path: Path, name: str, golden: Callable[[str, str], None]) -> None:
    """A workspace has at most ten: a new one waits for a deletion, or is refused."""
    number, manifests, more = SLOTS[name]
    fields = "".join(MANY.splitlines(keepends=True)[:number])
    it = Project(tmp_path, SEED.replace("smart_groups:", f"{fields}smart_groups:"), "guards: off\n")
    golden(f"fields_{name}.txt", shown(it, manifests, more))
