"""Values that errors repeat are cut: what is wrong is told without handing on a text that may be somebody's secret."""

from __future__ import annotations

from pathlib import Path

import pytest

from lmsconf.cli import app
from lmsconf.cli.frame import run_command_line
from lmsconf.errors import SHOWN

LONG = "k" * SHOWN + "S3cret" * 10
PROJECT = "workspaces: {p: {url: 'sandbox:'}}\n"
MANIFESTS = {
    "a type": f"groups: {LONG}",
    "a list": f"groups: [{{name: A, members: {LONG}}}]",
    "a boolean": f"custom_fields: [{{name: A, type: TEXT, hidden: {LONG}}}]",
    "a value of few": f"custom_fields: [{{name: A, type: {LONG}}}]",
    "a key": f"{LONG}: []",
    "a key twice": f"x-{LONG}: 1\nx-{LONG}: 2",
    "a key that is a number": f"groups: [{{1{LONG[SHOWN:].replace('S3cret', '3')}{'7' * 99}: a}}]",
    "a tag": f"groups: !{LONG} []",
    "a time": f"content_targets: [{{content: A, visible_from: {LONG}, assign_to: [everyone]}}]",
    "a colon": f"groups:\n  - name: A: {LONG}",
    "an open quote": f'groups:\n  - name: "{LONG}',
    "a sign": f"groups:\n  - name: @{LONG}",
    "a missing blank": f"groups:\n  - name:{LONG}",
    "a file": f"groups: [{{name: A, members: {{file: ../../{LONG}, column: email}}}}]",
    "an address": "groups: [{name: A, members: {file: a.csv, column: email}}]",
    "a column": f"groups: [{{name: A, members: {{file: b.csv, column: {LONG}}}}}]",
    "a day": f"absent: {{groups: [{{name: A, until: {LONG}}}]}}",
    "a workspace": f"groups: [{{name: A, only_in: [{LONG}]}}]",
    "a choice": "custom_fields: [{name: F, type: CHOICE, choices: [A]}]\n"
    f"smart_groups: [{{name: G, conditions: [{{field: F, choices: [{LONG}]}}]}}]",
}
PROJECTS = {
    "a url": f"workspaces: {{p: {{url: 'ftp://{LONG}'}}}}\n",
    "a zone": PROJECT + f"timezone: {LONG}\n",
    "a pattern": PROJECT + f"leave_alone: ['{LONG}']\n",
    "a default": PROJECT + f"default_workspace: {LONG}\n",
    "a date": PROJECT + f"allow: [{{removals: 1, until: {LONG}}}]\n",
    "a text": LONG,
    "a unit": PROJECT + f"settle: {LONG}\n",
    "a file": f"workspaces: {{p: {{url: 'sandbox:../{LONG}'}}}}\n",
}
CASES = [(PROJECT, text) for text in MANIFESTS.values()] + [(text, "") for text in PROJECTS.values()]


@pytest.mark.parametrize(("project", "manifest"), CASES, ids=[*MANIFESTS, *PROJECTS])
def test_a_long_value_is_cut(project: str, manifest: str, tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    """Of any value, 60 characters stand in message and hint at most."""
    (tmp_path / "manifests").mkdir()
    (tmp_path / "lmsconf.yaml").write_text(project)
    (tmp_path / "manifests" / "all.yaml").write_text(manifest or "groups: []\n")
    (tmp_path / "manifests" / "a.csv").write_text(f"email\n{LONG}\n")
    (tmp_path / "manifests" / "b.csv").write_text("email\na@x.example\n")
    assert run_command_line(app, ["-C", str(tmp_path), "validate"]) == (
        0 if "only_in" in manifest else 1
    )  # a workspace that is not there is a warning
    told = capfd.readouterr()
    assert "S3cretS3cret" not in told.out + told.err
    assert told.err
