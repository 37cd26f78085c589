"""`--format markdown` and `--format html`, from the command line to the file."""

from __future__ import annotations

from pathlib import Path

import pytest

from lmsconf.cli import app
from lmsconf.cli.frame import run_command_line
from lmsconf.errors import ExitCode

PROJECT = "workspaces: {sandbox: {url: 'sandbox:workspace.db'}}\ndefault_workspace: sandbox\n"
MANIFEST = "groups:\n" + "".join(f"  - name: Team {n:03}\n" for n in range(120))


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A project that wants 120 groups."""
    (tmp_path / "lmsconf.yaml").write_text(PROJECT)
    (tmp_path / "manifests").mkdir()
    (tmp_path / "manifests" / "groups.yaml").write_text(MANIFEST)
    return tmp_path


def test_plan_show_and_apply_in_people_s_formats(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Plan, saved plan and report come as a comment or a page; to a file, stdout stays empty."""
    at = ["-C", str(project)]
    saved, page = project / "plan.json", project / "plan.html"
    assert (
        run_command_line(app, [*at, "plan", "--out", str(saved), "--format", "html", "--output", str(page)])
        == ExitCode.OK
    )
    assert capsys.readouterr().out == ""
    assert page.read_text().startswith("<!doctype html>")
    assert run_command_line(app, [*at, "show", str(saved), "--format", "markdown", "--limit", "none"]) == ExitCode.OK
    comment = capsys.readouterr().out
    assert comment.startswith("<!-- lmsconf:plan:sandbox -->\n")
    assert comment.count("Will be created") == 120
    assert run_command_line(app, [*at, "apply", str(saved), "--format", "markdown"]) == ExitCode.OK
    assert "**Apply complete! 120 resources changed (120 API calls).**" in capsys.readouterr().out
    assert run_command_line(app, [*at, "snapshot", str(project / "snapshot.json")]) == ExitCode.OK
    capsys.readouterr()
    for format_ in ("markdown", "html"):
        assert run_command_line(app, [*at, "show", str(project / "snapshot.json"), "--format", format_]) == ExitCode.OK
        assert "120 groups" in capsys.readouterr().out


def test_a_stopped_apply_is_a_report_too(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Where a run stops before its first call, the comment says so; the reason is on stderr as well."""
    arguments = ["-C", str(project), "apply", "--auto-approve", "--expect-digest", "0" * 64, "--format", "markdown"]
    assert run_command_line(app, arguments) == ExitCode.STALE
    told = capsys.readouterr()
    assert "**Apply stopped before any change. 0 of 120 API calls done.**" in told.out
    assert "digest" in told.err


def test_limit_shortens(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A comment is as long as its place allows: GitHub's limit unless another is named."""
    sizes = []
    for limit in ([], ["--limit", "github"], ["--limit", "bitbucket"], ["--limit", "9000"], ["--limit", "none"]):
        assert run_command_line(app, ["-C", str(project), "plan", "--format", "markdown", *limit]) == ExitCode.OK
        sizes.append(len(capsys.readouterr().out.encode()))
    assert sizes[0] == sizes[1] == sizes[4]
    assert sizes[2] <= 32_767
    assert sizes[3] <= 9_000 < sizes[2]


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--format", "markdown", "--limit", "nowhere"], "'nowhere' is neither a number of bytes nor one of github"),
        (["--format", "markdown", "--limit", "100"], "too few"),
        (["--limit", "github"], "--limit is for --format markdown"),
        (["--format", "html", "--limit", "github"], "--limit is for --format markdown"),
    ],
)
def test_limits_that_make_no_sense(
    arguments: list[str], said: str, project: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A place that is not known, or a limit where nothing is shortened, is a wrong command line."""
    assert run_command_line(app, ["-C", str(project), "plan", *arguments]) == ExitCode.USAGE
    assert said in capsys.readouterr().err
