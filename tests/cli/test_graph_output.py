"""`lmsconf graph`: what leans on what, for Mermaid and for Graphviz."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from lmsconf.cli import app
from lmsconf.cli.frame import run_command_line

MANIFEST = """\
custom_fields: [{name: Site, type: CHOICE, choices: [Oslo]}]
groups: [{name: Coaches, members: [anna@acme.example]}]
users: [{email: anna@acme.example, language: sv}]
smart_groups: [{name: Norway, conditions: [{field: Site, choices: [Oslo]}, {field: Country, choices: ["NO"]}]}]
content_targets:
- {content: GDPR, mandatory: true, assign_to: [{smart_group: Norway}, {group: Elsewhere, mandatory: false}, everyone]}
- {content: GDPR, assign_to: [{user: bo@acme.example}]}
"""
MERMAID = """\
flowchart LR
  n0[["GDPR (content)"]]
  n1[/"Country (custom field)"/]:::elsewhere
  n2[/"Site (custom field)"/]
  n3["everyone"]
  n4["Coaches (group)"]
  n5["Elsewhere (group)"]:::elsewhere
  n6(["Norway (smart group)"])
  n0 ==> n3
  n0 --> n5
  n0 ==> n6
  n6 --> n1
  n6 --> n2
  classDef elsewhere stroke-dasharray: 4 3
  %% 1 assignment to single people left out
"""


def graph(root: Path, manifest: str, *options: str) -> Result:
    (root / "manifests").mkdir(exist_ok=True)
    (root / "manifests" / "all.yaml").write_text(manifest, encoding="utf-8")
    (root / "lmsconf.yaml").write_text('workspaces: {sandbox: {url: "sandbox:"}}\n', encoding="utf-8")
    return CliRunner().invoke(app, ["-C", str(root), "graph", *options])


def test_the_picture(tmp_path: Path) -> None:
    """Content points to whom it is for, smart groups to their fields; what is declared elsewhere is dashed."""
    assert graph(tmp_path, MANIFEST).output == MERMAID
    dot = graph(tmp_path, MANIFEST, "--format", "dot").output
    assert '  n1 [label="Country (custom field)", shape=parallelogram, style=dashed];\n' in dot
    assert "  n0 -> n6 [penwidth=2];\n" in dot
    assert dot.count("->") == 5


def test_a_part_of_the_picture(tmp_path: Path) -> None:
    """--only takes what is named and what it needs; an address that fits nothing is an error."""
    part = graph(tmp_path, MANIFEST, "--only", "smart_group/Norway").output
    assert "GDPR" not in part
    assert "Site (custom field)" in part
    assert run_command_line(app, ["-C", str(tmp_path), "graph", "--only", "group/Nobody"]) == 1


@pytest.mark.parametrize("name", ['a"b', "x] --> y", "<b>bold</b>", "`code`", "a#35;b", "back\\\\slash"])
def test_names_do_nothing_in_a_picture(tmp_path: Path, name: str) -> None:
    """A name stays inside its quotes in both formats, and is no HTML."""
    manifest = f'groups: [{{name: "{name}"}}]\n' if '"' not in name else f"groups: [{{name: '{name}'}}]\n"
    mermaid = graph(tmp_path, manifest).output.splitlines()
    assert len(mermaid) == 3
    assert re.fullmatch(r'  n0\["[^"<>`\[\]]*"\]', mermaid[1])
    dot = graph(tmp_path, manifest, "--format", "dot").output.splitlines()
    assert len(dot) == 5
    assert re.fullmatch(r'  n0 \[label="(?:[^"\\]|\\["\\])*", shape=box\];', dot[3])


def test_manifests_with_errors_have_no_picture(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    """The errors are told instead."""
    graph(tmp_path, "groups: [{nam: x}]\n")
    assert run_command_line(app, ["-C", str(tmp_path), "graph"]) == 1
    assert "all.yaml:1:" in capfd.readouterr().err
