"""Manifests with errors in a code review: `plan` and `validate` write the problems in the format that was asked for."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path

import pytest
from hostile.active_content import JUDGES
from jsonschema import Draft4Validator
from sarif_pydantic import Sarif

from lmsconf.cli import app
from lmsconf.cli.frame import run_command_line
from lmsconf.errors import ExitCode

PROJECT = "workspaces: {sandbox: {url: 'sandbox:'}}\ndefault_workspace: sandbox\n"
BROKEN = "groups:\n  - name: Safety officers\n    memebrs: []\n"
PLACE = "manifests/a.yaml:3:5"
FORMATS = ("json", "markdown", "html", "github", "sarif", "codequality")

Run = Callable[..., tuple[int, str]]


@pytest.fixture
def run(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Run:
    """Writes a project, runs a command in it, and gives exit code and stdout."""

    def ran(manifest: str, *arguments: str, project: str = PROJECT) -> tuple[int, str]:
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
    code, text = run("groups: []\n", "plan", "--format", format, project=f"{PROJECT}guard: {{}}\n")
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


@pytest.mark.skipif("LMSCONF_SARIF_SCHEMA" not in os.environ, reason="LMSCONF_SARIF_SCHEMA names no schema file")
def test_the_sarif_schema_takes_it(run: Run) -> None:
    """The log of problems is what the JSON Schema of SARIF 2.1.0 says."""
    rules = json.loads(Path(os.environ["LMSCONF_SARIF_SCHEMA"]).read_text(encoding="utf-8"))
    for manifest in (BROKEN, "groups: [{name: A}]", "groups: [{name: 'x](y)', nam: 1}, 7]", "a: : b"):
        log = json.loads(run(manifest, "plan", "--format", "sarif")[1])
        assert [error.message for error in Draft4Validator(rules).iter_errors(log)] == []


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
