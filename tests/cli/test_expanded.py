"""`lmsconf validate --expanded`: the manifests as a plain one would say them."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import yaml
from json_schemas import schema_validator

from lmsconf.cli import app
from lmsconf.cli.frame import run_command_line
from lmsconf.errors import ExitCode


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for name in ("LMSCONF_URL", "LMSCONF_TOKEN", "LMSCONF_WORKSPACE"):
        monkeypatch.delenv(name, raising=False)
    (tmp_path / "manifests").mkdir()
    (tmp_path / "lmsconf.yaml").write_text(
        'workspaces: {test: {url: "sandbox:", vars: {countries: [SE, NO]}}}\nvars: {countries: [DE]}\n'
    )
    (tmp_path / "manifests" / "a.yaml").write_text(
        "people_sets: {Unused: []}\n"
        "groups: [{name: Coaches $(country), for_each: {country: $(countries)}, about: {why: $$(x)}}]\n"
        "absent: {groups: [Old]}\n"
    )
    return tmp_path


def test_the_manifest_alone_is_on_stdout(project: Path, capfd: pytest.CaptureFixture[str]) -> None:
    """stdout holds one manifest, with the variables of the chosen workspace; notes are on stderr."""
    assert run_command_line(app, ["-C", str(project), "validate", "--expanded"]) == ExitCode.OK
    told = capfd.readouterr()
    assert told.out == (
        "groups:\n"
        "  - name: Coaches SE\n"
        "    about: {why: $$(x)}\n"
        "  - name: Coaches NO\n"
        "    about: {why: $$(x)}\n"
        "absent:\n"
        "  groups:\n"
        "    - name: Old\n"
    )
    assert 'nothing uses the people set "Unused"' in told.err


def test_errors_print_no_manifest(project: Path, capfd: pytest.CaptureFixture[str]) -> None:
    """With an error there is nothing on stdout: half a manifest could be taken for all."""
    with (project / "manifests" / "a.yaml").open("a") as file:
        file.write("smart_groups: [{name: A, use: B}]\n")
    assert run_command_line(app, ["-C", str(project), "validate", "--expanded"]) == ExitCode.ERROR
    assert capfd.readouterr().out == ""


def test_it_is_yaml_only(project: Path, capfd: pytest.CaptureFixture[str]) -> None:
    """Asked for JSON, it says that it prints YAML."""
    assert run_command_line(app, ["-C", str(project), "validate", "--expanded", "--format", "json"]) == ExitCode.USAGE
    assert "YAML" in capfd.readouterr().err


def test_a_plan_names_the_value(project: Path, capfd: pytest.CaptureFixture[str]) -> None:
    """Each resource of a plan stands at the line of its entry, with the value that it is for."""
    assert run_command_line(app, ["-C", str(project), "plan"]) == ExitCode.OK
    assert "manifests/a.yaml:2:10 (country=NO)" in capfd.readouterr().out
    assert run_command_line(app, ["-C", str(project), "plan", "--out", str(project / "plan.json")]) == ExitCode.OK
    assert run_command_line(app, ["-C", str(project), "show", str(project / "plan.json")]) == ExitCode.OK
    assert "manifests/a.yaml:2:10 (country=SE)" in capfd.readouterr().out


def test_documents_name_the_value(project: Path, capfd: pytest.CaptureFixture[str]) -> None:
    """JSON documents say it beside file, line and column, as their schemas allow; others have no such key."""
    assert run_command_line(app, ["-C", str(project), "plan", "--format", "json"]) == ExitCode.OK
    plan = json.loads(capfd.readouterr().out)
    schema_validator("plan").validate(plan)
    place = {"file": "manifests/a.yaml", "line": 2, "column": 10}
    assert [change["source"] for change in plan["changes"]] == [place | {"each": f"country={c}"} for c in ("NO", "SE")]
    assert all("each" not in problem["source"] for problem in plan["problems"])
    assert plan["problems"]


def test_an_assignment_that_a_later_folder_replaces_is_printed_once(
    project: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    """As the later folder has it; what else the earlier entry declares stays."""
    (project / "lmsconf.yaml").write_text('workspaces: {test: {url: "sandbox:"}}\nmanifests: [manifests, more]\n')
    (project / "manifests" / "a.yaml").write_text(
        "content_targets:\n"
        "  - {content: [Fire, {name: First aid, id: c-1}], assign_to: [everyone, {group: Sales}]}\n"
        "  - {content: Data, assign_to: [everyone]}\n"
    )
    (project / "more").mkdir()
    (project / "more" / "b.yaml").write_text(
        "content_targets:\n"
        "  - {content: {name: First aid, id: c-1}, mandatory: true, assign_to: [{group: Sales}]}\n"
        "  - {content: Data, mandatory: true, assign_to: [everyone]}\n"
    )
    assert run_command_line(app, ["-C", str(project), "validate", "--expanded"]) == ExitCode.OK
    assert yaml.safe_load(capfd.readouterr().out) == {
        "content_targets": [
            {"content": "Fire", "assign_to": ["everyone", {"group": "Sales"}]},
            {"content": {"name": "First aid", "id": "c-1"}, "assign_to": ["everyone"]},
            {"content": {"name": "First aid", "id": "c-1"}, "mandatory": True, "assign_to": [{"group": "Sales"}]},
            {"content": "Data", "mandatory": True, "assign_to": ["everyone"]},
        ]
    }
