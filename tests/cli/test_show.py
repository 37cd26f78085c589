"""`lmsconf show` renders what was saved, and refuses what was changed."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from click.testing import CliRunner, Result
from texts import text_of
from views.document_samples import COMPLETE, EMPTY

from lmsconf.cli import app, run_command_line
from lmsconf.documents import plan_file, reports
from lmsconf.documents.document import render_json
from lmsconf.errors import ExitCode
from lmsconf.render import APPLY_VIEWS
from lmsconf.render.text import plan_text


@pytest.mark.parametrize(
    ("saved", "shown"),
    [(plan_file.dumps(EMPTY), plan_text(EMPTY)), (reports.apply_json(COMPLETE), APPLY_VIEWS["text"](COMPLETE))],
    ids=["plan", "apply"],
)
def test_shows_what_was_saved(saved: str, shown: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A saved document reads as it did when it was made; as JSON it is the file itself."""
    path = tmp_path / "document.json"
    path.write_bytes(saved.encode())
    assert run_command_line(app, ["show", str(path)]) == ExitCode.OK
    assert capsys.readouterr().out == shown
    assert run_command_line(app, ["show", str(path), "--format", "json"]) == ExitCode.OK
    assert capsys.readouterr().out == saved


@pytest.mark.parametrize("format", ["text", "json"])
def test_refuses_what_was_changed(format: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A plan that was edited is stale in every format: exit 3."""
    path = tmp_path / "plan.json"
    path.write_bytes(render_json({**json.loads(plan_file.dumps(EMPTY)), "people": 4}).encode())
    assert run_command_line(app, ["show", str(path), "--format", format]) == ExitCode.STALE
    assert "was changed after lmsconf wrote it" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("name", "text", "code", "message"),
    [
        ("plan.yaml", plan_file.dumps(EMPTY), ExitCode.OK, ""),
        ("plan.yaml", "groups: []\n", ExitCode.USAGE, "plan.yaml is a manifest; show takes"),
        ("lmsconf.yaml", "workspaces: {}\n", ExitCode.USAGE, "lmsconf.yaml is the project file; show takes"),
        ("plan.json", "groups: []\n", ExitCode.STALE, "plan.json is not a JSON document of lmsconf; show takes"),
        ("plan.json", " \n", ExitCode.STALE, "plan.json is empty; show takes"),
    ],
)
def test_says_what_a_file_holds_instead(
    name: str, text: str, code: ExitCode, message: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A file is a manifest by its name and its text: a document is shown whatever its file is called."""
    path = tmp_path / name
    path.write_text(text)
    assert run_command_line(app, ["show", str(path)]) == code
    assert message in capsys.readouterr().err


# `--format markdown` and `--format html`, from the command line to the file.


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


# `lmsconf graph`: what leans on what, for Mermaid and for Graphviz.


GRAPH_MANIFEST = text_of(__file__, "show_graph_manifest.yaml")
MERMAID = text_of(__file__, "show_mermaid.txt")


def graph(root: Path, manifest: str, *options: str) -> Result:
    (root / "manifests").mkdir(exist_ok=True)
    (root / "manifests" / "all.yaml").write_text(manifest, encoding="utf-8")
    (root / "lmsconf.yaml").write_text('workspaces: {sandbox: {url: "sandbox:"}}\n', encoding="utf-8")
    return CliRunner().invoke(app, ["-C", str(root), "graph", *options])


def test_the_picture(tmp_path: Path) -> None:
    """Content points to its audiences, smart groups to their fields; what is declared elsewhere is dashed."""
    assert graph(tmp_path, GRAPH_MANIFEST).output == MERMAID
    dot = graph(tmp_path, GRAPH_MANIFEST, "--format", "dot").output
    assert '  n1 [label="Country (custom field)", shape=parallelogram, style=dashed];\n' in dot
    assert "  n0 -> n6 [penwidth=2];\n" in dot
    assert dot.count("->") == 5


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
