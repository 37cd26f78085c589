"""What `validate` and `plan` find in groups, smart groups and fields: tests/golden/lints_….txt."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from flow.project import Project
from flow.shell import lmsconf

SEED = """\
custom_fields:
  - {name: Country, type: CHOICE, choices: [SE, FI, DE]}
  - {name: Skills, type: MULTI_SELECT, choices: [SQL, Go]}
  - {name: Motto, type: TEXT}
people:
  - {email: ann@x.se, answers: {Country: SE, Skills: [SQL]}}
  - {email: bea@x.se, answers: {Country: FI, Skills: [Go]}}
MORE
smart_groups:
  - {name: Odd, conditions: [{field: Country, choices: [DE], system_condition: IS_ODD}], managers: [ann@x.se]}
  - {name: Any, conditions: [{field: Country, choices: [SE], system_condition: IS_ANY}]}
  - {name: Bare, conditions: [{field: Country, choices: [DE]}]}
groups:
  - {name: Live, members: [ann@x.se, bea@x.se], managers: [old@x.se]}
  - {name: Led, managers: [ann@x.se]}
"""
MORE = "  - {email: cai@x.se, answers: {Country: SE}}\n  - {email: old@x.se, archived: true}"
MANIFEST = """\
custom_fields:
  - {name: Declared, type: CHOICE, choices: [A, B]}
  - {name: Country, choices: [SE, FI, DE]}
smart_groups:
  - {name: Both, conditions: [{field: Country, choices: [SE]}, {field: Country, choices: [FI]}]}
  - name: Three
    conditions:
      - {field: Country, choices: [SE, FI]}
      - {field: Country, choices: [FI, DE]}
      - {field: Country, choices: [SE]}
      - {field: Country, choices: [SE, DE]}
  - {name: Odd, conditions: [{field: Country, choices: [SE]}, {field: Country, choices: [FI]}]}
  - {name: Any, conditions: [{field: Country, choices: [DE]}, {field: Country, choices: [FI, SE]}]}
  - name: Said
    conditions:
      - {field: Country, choices: [SE], system_condition: IS_ANY}
      - {field: Country, choices: [FI], system_condition: IS_ANY}
  - name: None of them
    conditions:
      - {field: Country, choices: [SE], system_condition: IS_NONE}
      - {field: Country, choices: [FI]}
  - {name: Whoever, conditions: [{field: Country, system_condition: IS_ANY}, {field: Country, choices: [DE]}]}
  - {name: Skilled, conditions: [{field: Skills, choices: [SQL]}, {field: Skills, choices: [Go]}]}
  - {name: Half, conditions: [{field: Country, choices: [SE, FI]}, {field: Country, choices: [FI, DE]}]}
  - {name: New, conditions: [{field: Declared, choices: [A]}, {field: Declared, choices: [B]}]}
  - {name: All, conditions: [{field: Country, choices: [FI, SE]}]}
  - {name: Everybody, conditions: [{field: Country, choices: [SE, FI]}]}
  - {name: Managed, conditions: [{field: Country, choices: [SE]}], managers: []}
  - {name: Bare, managers: [ann@x.se]}
groups:
  - {name: Two, members: [ann@x.se, bea@x.se]}
  - {name: Same, members: [bea@x.se, ann@x.se], managers: [bea@x.se]}
  - {name: One, members: [ann@x.se]}
  - {name: Single, members: [ann@x.se]}
  - {name: Part, members: {include: [ann@x.se, bea@x.se]}}
  - {name: Live, managers: {include: [old@x.se]}}
  - {name: Led, managers: []}
"""
PEOPLE = {
    "many": SEED.replace("MORE", MORE),
    "two": SEED.replace("MORE", "  - {email: old@x.se, archived: true}"),
    "one": SEED.replace("MORE", "  - {email: old@x.se, archived: true}").replace(
        "a@x.se, ans", "a@x.se, archived: true, ans"
    ),
}


@pytest.mark.parametrize("people", PEOPLE)
def test_a_plan_tells_what_is_odd_about_groups(tmp_path: Path, people: str, golden: Callable[[str, str], None]) -> None:
    """Conditions that nobody or everybody meets, the audience of another group, and no active manager."""
    plan = Project(tmp_path, PEOPLE[people]).plan(MANIFEST)
    found = [one for one in plan.all_problems if one.code.startswith("lint/")]
    lines = [f"{one.source}: {one.severity}: {one.message} [{one.code}]\n    {one.hint}\n" for one in found]
    golden(f"lints_{people}.txt", "".join(lines))


def test_validate_tells_what_is_odd_about_groups(tmp_path: Path, golden: Callable[[str, str], None]) -> None:
    """What shows without a workspace: of a field whose type is not declared nothing is known."""
    it = Project(tmp_path, PEOPLE["many"])
    it.write(MANIFEST)
    golden("lints_validate.txt", lmsconf(it.root, "validate").err)
