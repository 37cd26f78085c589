"""What `plan` prints of fields whose answers move to another one: tests/golden/migration_….txt."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import pytest
from flow.shell import lmsconf

PROJECT = """\
workspaces: {sandbox: {url: "sandbox:", seed: workspace.yaml}}
leave_alone: [user/gus@x.se]
"""
SEED = """\
custom_fields:
  - {name: Team, type: CHOICE, choices: [Sales, Tech, HR]}
  - {name: Skills, type: MULTI_SELECT, choices: [Go, SQL]}
  - {name: Motto, type: TEXT}
  - {name: Unit, type: CHOICE, choices: [Sellers, Tech, People]}
  - {name: Known, type: MULTI_SELECT, choices: [Go, SQL, R]}
  - {name: Words, type: TEXT}
  - {name: Site, type: CHOICE, choices: [Oslo, Bergen]}
people:
  - {email: ann@x.se, answers: {Team: Sales, Skills: [Go], Motto: Go}}
  - {email: bea@x.se, answers: {Team: Tech, Unit: Tech, Skills: [Go, SQL], Known: [Go], Motto: go, Words: Go}}
  - {email: cai@x.se, answers: {Team: HR, Unit: Sellers, Skills: [SQL], Known: [SQL], Words: Be}}
  - {email: dan@x.se, archived: true, answers: {Team: HR, Unit: Sellers, Skills: [SQL], Known: [SQL, R], Motto: C}}
  - {email: eva@x.se, answers: {Team: HR, Unit: Sellers, Motto: SQL, Words: SQL}}
  - {email: fia@x.se, answers: {Team: HR, Unit: Tech, Motto: Words}}
  - {email: gus@x.se, answers: {Skills: [Go]}}
smart_groups:
  - {name: Sellers, conditions: [{field: Team, choices: [Sales]}]}
  - {name: Others, conditions: [{field: Team, choices: [Tech, HR]}, {field: Site, choices: [Oslo]}]}
  - {name: Staff, conditions: [{field: Team, choices: [HR]}]}
  - {name: Coders, conditions: [{field: Skills, choices: [Go]}]}
"""
PLANS: dict[str, tuple[str, str]] = {
    "misspelt": ("", "{name: Dept, type: TEXT, migrate: {from: Tem}}"),
    "done": ("", "{name: Unit, migrate: {from: Tem}}"),
    "unlike": ("", "{name: Dept, type: TEXT, migrate: {from: Zone}}"),
    "absent": ("", "{name: Dept, type: TEXT, migrate: {from: Team}}]\nabsent: {custom_fields: [Team]}\ngroups: ["),
    "untyped": ("", "{name: Dept, migrate: {from: Motto}}"),
    "old_left_out": ("--except custom_field/Team", "{name: Dept, type: TEXT, migrate: {from: Team}}"),
    "both_left_out": (
        "--except custom_field/Team --except custom_field/Dept",
        "{name: Dept, type: TEXT, migrate: {from: Team}}, {name: Words, hidden: true}",
    ),
    "unmapped": (
        "",
        "{name: Unit, choices: {include: [Sellers]},"
        " migrate: {from: Team, choices: {Sales: Selers, Tehc: null, HR: null}}}"
        ", {name: Known, choices: {include: [Go]}, migrate: {from: Motto, choices: {Go: Goo, go: null}}}"
        ", {name: New, type: CHOICE, choices: [C], migrate: {from: Skills, choices: {Go: C}}}",
    ),
    "kept": (
        "",
        "{name: Unit, migrate: {from: Team, choices: {Sales: Sellers, HR: People}}}]\n"
        "smart_groups: [{name: Staff, conditions: [{field: Team, choices: [Tech]}]}",
    ),
    "deleted": (
        "",
        "{name: Unit, migrate: {from: Team, choices: {Sales: Sellers, HR: null}, not_copied: delete, conditions: all}}"
        "]\nabsent: {smart_groups: [Others]}\ngroups: [",
    ),
    "two_fields": (
        "",
        "{name: Unit, migrate: {from: Team, choices: {Sales: Sellers, HR: Tech}, not_copied: delete, conditions: all}}"
        ", {name: Place, type: CHOICE, choices: [Oslo, Bergen], migrate: {from: Site, conditions: all}}]\n"
        "smart_groups: [{name: Sales team, id: sg-1}",
    ),
    "one_of_several": ("", "{name: Area, type: CHOICE, choices: [Go, SQL], migrate: {from: Skills, conditions: all}}"),
    "more_than_before": ("", "{name: Known, migrate: {from: Skills}}"),
    "text_to_choices": ("", "{name: Known, migrate: {from: Motto}}"),
    "text_to_text": ("", "{name: Words, migrate: {from: Motto, not_copied: delete}}"),
    "choices_to_text": ("", "{name: Words, migrate: {from: Skills, choices: {Go: Golang}, conditions: all}}"),
    "renamed": ("", "{name: Dept, previously: [Unit], migrate: {from: Team, choices: {Sales: Sellers, HR: null}}}"),
    "conditions_left": (
        "--only custom_field/Unit",
        "{name: Unit, migrate: {from: Team, choices: {Sales: Sellers, HR: People}, not_copied: delete}}]\n"
        "smart_groups: [{name: Sellers, conditions: [{field: Unit, choices: [Sellers]}]}, {name: Coders}",
    ),
    "conditions_undeclared": (
        "--only custom_field/Known",
        "{name: Known, migrate: {from: Team, choices: {Sales: R, Tech: R, HR: null}, not_copied: delete}}",
    ),
    "one_field": ("--only custom_field/Known", "{name: Known, migrate: {from: Skills}}, {name: Words, hidden: true}"),
}


@pytest.mark.parametrize("name", PLANS)
def test_a_plan_says_which_answers_move(tmp_path: Path, name: str, golden: Callable[[str, str], None]) -> None:
    """It names what is not copied and why, what is deleted, and what to change in the manifest."""
    options, fields = PLANS[name]
    (tmp_path / "manifests").mkdir()
    (tmp_path / "lmsconf.yaml").write_text(PROJECT)
    (tmp_path / "workspace.yaml").write_text(SEED)
    (tmp_path / "manifests" / "all.yaml").write_text(f"custom_fields: [{fields}]\n")
    ran = lmsconf(tmp_path, "plan", *options.split())
    text = re.sub(r"Digest: .*", "Digest: …", ran.out + ran.err)
    golden(f"migration_{name}.txt", f"{text}[exit {ran.code}]\n")
