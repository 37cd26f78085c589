"""What a manifest cannot leave empty: names, ids, lists of conditions and choices."""

from __future__ import annotations

from pathlib import Path

import pytest
from flow.project import Project

from lmsconf.workspace.project_manifests import load_manifests

GROUP = "groups: [{name: A, MORE}]"
FIELD = "custom_fields: [{name: F, type: CHOICE, MORE}]"
SMART = "smart_groups: [{name: S, conditions: MORE}]"


@pytest.mark.parametrize(
    ("template", "value", "empty"),
    [
        ("groups: [{name: VALUE}]", "B", '""'),
        ("absent: {groups: [{name: VALUE}]}", "B", '""'),
        (GROUP.replace("MORE", "id: VALUE"), "g", '""'),
        (GROUP.replace("MORE", "id: {sandbox: VALUE}"), "g", '""'),
        (GROUP.replace("MORE", "id: VALUE"), "{sandbox: g}", "{}"),
        (GROUP.replace("MORE", "previously: [VALUE]"), "B", '""'),
        (GROUP.replace("MORE", "only_in: [VALUE]"), "sandbox", '""'),
        (GROUP.replace("MORE", "only_in: VALUE"), "[sandbox]", "[]"),
        (GROUP.replace("MORE", "members: VALUE"), "{include: [a@x.se]}", "{}"),
        (GROUP.replace("MORE", "members: {VALUE}"), "exclude: []", "others: []"),
        (GROUP.replace("MORE", "members: {file: p.csv, column: eVALUE}"), ", allow_empty: true", ", empty: true"),
        (FIELD.replace("MORE", "choices: VALUE"), "[A]", "[]"),
        (FIELD.replace("MORE", "choices: [VALUE]"), "A", '""'),
        (FIELD.replace("MORE", "choices: VALUE"), "{include: [A]}", "{}"),
        (FIELD.replace("MORE", "choices: {include: [A]VALUE}"), ", exclude: [B]", ", others: [B]"),
        (FIELD.replace("MORE", "choices: [A], migrate: {from: VALUE}"), "B", '""'),
        (FIELD.replace("MORE", "choices: [A], migrate: {from: B, choices: {C: VALUE}}"), "A", '""'),
        (SMART.replace("MORE", "VALUE"), "[{field: F, choices: [A]}]", "[]"),
        (SMART.replace("MORE", "[{field: F, choices: VALUE}]"), "[A]", "[]"),
        (SMART.replace("MORE", "[{field: F, choices: [VALUE]}]"), "A", '""'),
        (SMART.replace("MORE", "[{field: F, system_condition: VALUE}]"), "I", '""'),
        (SMART.replace("MORE", "[{field: FVALUE}]"), ", choices: [A]", ""),
    ],
)
def test_an_empty_value_is_an_error(tmp_path: Path, template: str, value: str, empty: str) -> None:
    """It would mean nothing, or all that there is; a value of one character is none."""
    (tmp_path / "manifests").mkdir()
    (tmp_path / "manifests" / "p.csv").write_text("e\na@x.se\n")
    it = Project(tmp_path)
    codes = []
    for one in (value, empty):
        it.write(template.replace("VALUE", one))
        codes.append([problem.code.partition("/")[0] for problem in load_manifests(it.settings).problems])
    assert codes == [[], ["manifest"]]
