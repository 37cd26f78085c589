"""`lmsconf validate` tells everything at once, and needs no workspace."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest
import yaml
from hostile.active_content import JUDGES
from sarif_pydantic import Sarif

from lmsconf.cli import app, run_command_line
from lmsconf.errors import ExitCode

PROJECT = 'workspaces: {production: {url: "https://lms.invalid", token: {env: LMSCONF_NOT_SET}}}\n'


def project(root: Path, manifest: str) -> list[str]:
    (root / "manifests").mkdir()
    (root / "lmsconf.yaml").write_text(PROJECT)
    (root / "manifests" / "a.yaml").write_text(manifest)
    return ["-C", str(root), "validate"]


def test_valid(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Sound manifests exit 0 with a count, without a token and without a network."""
    assert (
        run_command_line(app, project(tmp_path, "groups: [{name: A}, {name: B, only_in: [production]}]\n"))
        == ExitCode.OK
    )
    out, err = capsys.readouterr()
    assert (out, err) == ("2 resources in 1 file: no errors.\n", "")


def test_problems(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Problems exit 1 and are told on stderr, each at its place."""
    assert run_command_line(app, project(tmp_path, "groups: [{nam: A}, {name: B, members: bo}]\n")) == ExitCode.ERROR
    out, err = capsys.readouterr()
    assert out == ""
    for place in ("manifests/a.yaml:1:10", "manifests/a.yaml:1:11", "manifests/a.yaml:1:39"):
        assert place in err


# `lmsconf validate --expanded`: the manifests as a plain one would say them.


@pytest.fixture
def expanded_project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
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


def test_the_manifest_alone_is_on_stdout(expanded_project: Path, capfd: pytest.CaptureFixture[str]) -> None:
    """stdout holds one manifest, with the variables of the chosen workspace; notes are on stderr."""
    assert run_command_line(app, ["-C", str(expanded_project), "validate", "--expanded"]) == ExitCode.OK
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


def test_errors_print_no_manifest(expanded_project: Path, capfd: pytest.CaptureFixture[str]) -> None:
    """With an error there is nothing on stdout: half a manifest could be taken for all."""
    with (expanded_project / "manifests" / "a.yaml").open("a") as file:
        file.write("smart_groups: [{name: A, use: B}]\n")
    assert run_command_line(app, ["-C", str(expanded_project), "validate", "--expanded"]) == ExitCode.ERROR
    assert capfd.readouterr().out == ""


def test_a_plan_names_the_value(expanded_project: Path, capfd: pytest.CaptureFixture[str]) -> None:
    """Each resource of a plan stands at the line of its entry, with the value that it is for."""
    assert run_command_line(app, ["-C", str(expanded_project), "plan"]) == ExitCode.OK
    assert "manifests/a.yaml:2:10 (country=NO)" in capfd.readouterr().out
    assert (
        run_command_line(app, ["-C", str(expanded_project), "plan", "--out", str(expanded_project / "plan.json")])
        == ExitCode.OK
    )
    assert (
        run_command_line(app, ["-C", str(expanded_project), "show", str(expanded_project / "plan.json")]) == ExitCode.OK
    )
    assert "manifests/a.yaml:2:10 (country=SE)" in capfd.readouterr().out


def test_an_assignment_that_a_later_folder_replaces_is_printed_once(
    expanded_project: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    """As the later folder has it; what else the earlier entry declares stays."""
    (expanded_project / "lmsconf.yaml").write_text(
        'workspaces: {test: {url: "sandbox:"}}\nmanifests: [manifests, more]\n'
    )
    (expanded_project / "manifests" / "a.yaml").write_text(
        "content_targets:\n"
        "  - {content: [Fire, {name: First aid, id: c-1}], assign_to: [everyone, {group: Sales}]}\n"
        "  - {content: Data, assign_to: [everyone]}\n"
    )
    (expanded_project / "more").mkdir()
    (expanded_project / "more" / "b.yaml").write_text(
        "content_targets:\n"
        "  - {content: {name: First aid, id: c-1}, mandatory: true, assign_to: [{group: Sales}]}\n"
        "  - {content: Data, mandatory: true, assign_to: [everyone]}\n"
    )
    assert run_command_line(app, ["-C", str(expanded_project), "validate", "--expanded"]) == ExitCode.OK
    assert yaml.safe_load(capfd.readouterr().out) == {
        "content_targets": [
            {"content": "Fire", "assign_to": ["everyone", {"group": "Sales"}]},
            {"content": {"name": "First aid", "id": "c-1"}, "assign_to": ["everyone"]},
            {"content": {"name": "First aid", "id": "c-1"}, "mandatory": True, "assign_to": [{"group": "Sales"}]},
            {"content": "Data", "mandatory": True, "assign_to": ["everyone"]},
        ]
    }


# Manifests with errors in a code review: `plan` and `validate` write the problems in the format that was asked for.


PROBLEMS_PROJECT = "workspaces: {sandbox: {url: 'sandbox:'}}\ndefault_workspace: sandbox\n"
BROKEN = "groups:\n  - name: Safety officers\n    memebrs: []\n"
PLACE = "manifests/a.yaml:3:5"
FORMATS = ("json", "markdown", "html", "github", "sarif", "codequality")

Run = Callable[..., tuple[int, str]]


@pytest.fixture
def run(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Run:
    """Writes a project, runs a command in it, and gives exit code and stdout."""

    def ran(manifest: str, *arguments: str, project: str = PROBLEMS_PROJECT) -> tuple[int, str]:
        (tmp_path / "manifests").mkdir(exist_ok=True)
        (tmp_path / "lmsconf.yaml").write_text(project, encoding="utf-8")
        (tmp_path / "manifests" / "a.yaml").write_text(manifest, encoding="utf-8")
        code = run_command_line(app, ["-C", str(tmp_path), *arguments])
        return code, capsys.readouterr().out

    return ran


def problem_of(format: str, text: str) -> tuple[str, int, str]:
    """File, line and words of the only problem in a document of the format; markdown and html have all in a text."""
    if format == "json":
        (problem,) = json.loads(text)["problems"]
        return problem["source"]["file"], problem["source"]["line"], f"{problem['message']} {problem['hint']}"
    if format == "sarif":
        Sarif.model_validate_json(text)
        (result,) = json.loads(text)["runs"][0]["results"]
        place = result["locations"][0]["physicalLocation"]
        return place["artifactLocation"]["uri"], place["region"]["startLine"], result["message"]["text"]
    if format == "codequality":
        (finding,) = json.loads(text)
        assert finding["severity"] == "blocker"
        assert len(finding["fingerprint"]) == 64
        return finding["location"]["path"], finding["location"]["lines"]["begin"], finding["description"]
    if format == "github":
        assert text.startswith("::error file=manifests/a.yaml,line=3,col=5,title=manifest/unknown-key::")
    else:
        assert text.startswith(
            "<!-- lmsconf:plan -->\n\n### lmsconf: no plan\n" if format == "markdown" else "<!doctype"
        )
        assert PLACE in text
        # `validate` makes no plan, and has the same page.
        assert format == "markdown" or "<h1>Errors</h1>" in text
    return "manifests/a.yaml", 3, text


@pytest.mark.parametrize("command", ["plan", "plan --base", "validate"])
@pytest.mark.parametrize("format", FORMATS)
def test_the_result_is_the_problems(command: str, format: str, run: Run, tmp_path: Path) -> None:
    """On stdout or in the file: file, line, what is wrong and the way out; the exit code stays 1."""
    (tmp_path / "base").mkdir()
    base = [str(tmp_path / "base")] if "--base" in command else []
    page = tmp_path / "result"
    for where in ([], ["--output", str(page)]):
        code, out = run(BROKEN, *command.split(), *base, "--format", format, *where)
        assert code == ExitCode.ERROR
        text = page.read_text(encoding="utf-8") if where else out
        assert (out == "") is bool(where)
        file, line, words = problem_of(format, text)
        assert (file, line) == ("manifests/a.yaml", 3)
        assert "memebrs" in words
        assert "Did you mean" in words


@pytest.mark.parametrize("format", FORMATS)
def test_a_project_file_with_an_error(format: str, run: Run) -> None:
    """It stands in the same place, with the line of the project file."""
    code, text = run("groups: []\n", "plan", "--format", format, project=f"{PROBLEMS_PROJECT}guard: {{}}\n")
    assert code == ExitCode.ERROR
    assert "lmsconf.yaml" in text
    assert "guards" in text


def test_other_errors_are_written_too(run: Run) -> None:
    """A plan that fails for another reason says so in the comment; a table of exit codes holds."""
    code, text = run("groups: [{name: A}]\n", "plan", "--only", "group/B", "--format", "markdown")
    assert code == ExitCode.ERROR
    assert text.startswith("<!-- lmsconf:plan -->\n\n### lmsconf: no plan\n")
    assert "group/B" in text


@pytest.mark.parametrize("format", FORMATS[1:])
def test_hostile_manifests_stay_text(format: str, run: Run) -> None:
    """A name, a key and a file of a manifest with errors act in no format: as with plain ones."""
    evil = "x](http://evil) <script>alert(1)</script> @all ::error::y `z` | ##[group] %0A::error::"
    texts = [
        run(f"groups:\n  - {{name: '{name}', '{name}!': 1}}\n", "plan", "--format", format)[1] for name in (evil, "x")
    ]
    judge = JUDGES[format]
    assert judge(texts[0]) == judge(texts[1])


def test_a_comment_holds_its_limit(run: Run) -> None:
    """A thousand errors are counted, and told as far as they fit."""
    many = "groups:\n" + "".join(f"  - {{name: {'x' * 100}{n}, memebrs: []}}\n" for n in range(300))
    for limit, size in (("github", 65_536), ("8000", 8_000)):
        code, text = run(many, "plan", "--format", "markdown", "--limit", limit)
        assert code == ExitCode.ERROR
        assert len(text.encode()) <= size
        assert "300 errors" in text.replace("\\", "")
        assert text.count("memebrs") > 20


def test_findings_of_gitlab_are_told_apart(run: Run) -> None:
    """GitLab drops a finding whose fingerprint another one has; a line above changes none of them."""
    text = "groups:\n  - {nam: A}\n  - {nam: A}\n"
    first, second = (json.loads(run(more + text, "plan", "--format", "codequality")[1]) for more in ("", "# more\n"))
    prints = [finding["fingerprint"] for finding in first]
    assert len(prints) > 2
    assert len(set(prints)) == len(prints)
    assert prints == [finding["fingerprint"] for finding in second]


@pytest.mark.parametrize("format", FORMATS)
def test_valid_manifests(format: str, run: Run) -> None:
    """`validate` has no problem to show; the problems of a plan that there is come in the same formats."""
    assert run("groups: [{name: A}]\n", "validate", "--format", format)[0] == ExitCode.OK
    code, text = run("groups: [{name: A}]\n", "plan", "--format", format)
    assert code == ExitCode.OK
    assert "no plan" not in text
    if format == "markdown":
        assert "### lmsconf validate: no errors" in run("groups: [{name: A}]\n", "validate", "--format", format)[1]
    if format in ("github", "codequality"):
        assert text.strip() in ("", "[]")
