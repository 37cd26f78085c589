"""Problems as GitHub shows them at the lines of files, and as a comment where there is no plan."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from lmsconf.cli import app
from lmsconf.cli.frame import run_command_line
from lmsconf.documents import reports
from lmsconf.errors import ExitCode, Problem, Severity, SourceLocation
from lmsconf.render import PROBLEMS_VIEWS, problems_json
from lmsconf.render.markdown import problems_markdown
from lmsconf.render.problems import problems_github
from lmsconf.render.size_limit import parse_size_limit

HOSTILE = Problem(
    code="manifest/x",
    message="50% of\r\n::error::z <b> @all",
    hint="a\nb",
    source=SourceLocation("a,b:c%\n.yaml", 3, 7),
    severity=Severity.WARNING,
)
PLAIN = Problem(code="manifest/y", message="unknown key", source=SourceLocation("a.yaml", 1, 2))


def test_an_annotation_is_one_command_at_its_place() -> None:
    """Errors come first; nothing in a message or a file's name ends the command or begins another."""
    first, second = problems_github([HOSTILE, PLAIN]).splitlines()
    assert first == "::error file=a.yaml,line=1,col=2,title=manifest/y::unknown key"
    assert second == (
        "::warning file=a%2Cb%3Ac%25\\n.yaml,line=3,col=7,title=manifest/x::50%25 of\\r\\n::error::z <b> @all%0Aa\\nb"
    )


def test_a_problem_without_a_place_is_told_too() -> None:
    """Of what stands in no file, the code and the words are left."""
    assert problems_github([Problem(code="api/down", message="no answer")]) == "::error title=api/down::no answer\n"


def test_the_comment_is_that_of_the_plan() -> None:
    """Its first line is the mark by which the plan's own comment is found; it holds no HTML, and fits its place."""
    many = [
        Problem(code="x", message=f"{number} <b>" + "x" * 500, source=SourceLocation("a.yaml", number))
        for number in range(500)
    ]
    text = problems_markdown(many, limit=parse_size_limit("github"))
    assert text.startswith("<!-- lmsconf:plan -->\n")
    assert len(text.encode()) <= 65_536
    assert "500 errors" in text
    assert not re.search(r"<b>", text)


@pytest.mark.parametrize("format", PROBLEMS_VIEWS)
def test_show_renders_saved_problems(format: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """What `--format json` wrote in the place of a plan can be shown; JSON is the file itself."""
    path = tmp_path / "problems.json"
    path.write_text(problems_json([HOSTILE, PLAIN]), encoding="utf-8")
    assert run_command_line(app, ["show", str(path), "--format", format]) == ExitCode.OK
    shown = capsys.readouterr().out
    assert "unknown key" in shown
    assert (shown == path.read_text(encoding="utf-8")) is (format == "json")
    assert reports.load_problems(path.read_text(encoding="utf-8")) == (HOSTILE, PLAIN)


def test_a_format_of_another_document_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Problems have no digest, and a message says which formats there are."""
    path = tmp_path / "problems.json"
    path.write_text(problems_json([PLAIN]), encoding="utf-8")
    assert run_command_line(app, ["show", str(path), "--format", "digest"]) == ExitCode.USAGE
    assert "Choose one of text, json, markdown, html, github, sarif, codequality." in capsys.readouterr().err
