"""`lmsconf validate` tells everything at once, and needs no workspace."""

import json
import re
from collections.abc import Callable
from pathlib import Path

import pytest
import yaml
from click.testing import CliRunner, Result
from hostile.active_content import JUDGES
from json_schemas import sarif_log
from texts import text_of
from views.document_samples import COMPLETE, EMPTY

from lmsconf.cli import app, run_command_line
from lmsconf.documents import plan_file, reports
from lmsconf.documents.json_documents import render_json
from lmsconf.errors import ExitCode
from lmsconf.render import APPLY_VIEWS
from lmsconf.render.text import plan_text

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
        sarif_log(text)
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


# `lmsconf show` renders what was saved, and refuses what was changed.


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


MANY_PROJECT = "workspaces: {sandbox: {url: 'sandbox:workspace.db'}}\ndefault_workspace: sandbox\n"
MANIFEST = "groups:\n" + "".join(f"  - name: Team {n:03}\n" for n in range(120))


@pytest.fixture
def many_groups(tmp_path: Path) -> Path:
    """A project that wants 120 groups."""
    (tmp_path / "lmsconf.yaml").write_text(MANY_PROJECT)
    (tmp_path / "manifests").mkdir()
    (tmp_path / "manifests" / "groups.yaml").write_text(MANIFEST)
    return tmp_path


def test_plan_show_and_apply_in_people_s_formats(many_groups: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Plan, saved plan and report come as a comment or a page; to a file, stdout stays empty."""
    at = ["-C", str(many_groups)]
    saved, page = many_groups / "plan.json", many_groups / "plan.html"
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
    assert run_command_line(app, [*at, "snapshot", str(many_groups / "snapshot.json")]) == ExitCode.OK
    capsys.readouterr()
    for format_ in ("markdown", "html"):
        assert (
            run_command_line(app, [*at, "show", str(many_groups / "snapshot.json"), "--format", format_]) == ExitCode.OK
        )
        assert "120 groups" in capsys.readouterr().out


def test_limit_shortens(many_groups: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A comment is as long as its place allows: GitHub's limit unless another is named."""
    sizes = []
    for limit in ([], ["--limit", "github"], ["--limit", "bitbucket"], ["--limit", "9000"], ["--limit", "none"]):
        assert run_command_line(app, ["-C", str(many_groups), "plan", "--format", "markdown", *limit]) == ExitCode.OK
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
    arguments: list[str], said: str, many_groups: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A place that is not known, or a limit where nothing is shortened, is a wrong command line."""
    assert run_command_line(app, ["-C", str(many_groups), "plan", *arguments]) == ExitCode.USAGE
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


@pytest.mark.parametrize("format", ["github", "sarif", "codequality"])
def test_files_are_named_from_the_top_of_the_repository(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], format: str
) -> None:
    """Reviews look for them there; without a repository, they are named from the project's folder."""
    (tmp_path / "lms conf").mkdir()
    words = [*project(tmp_path / "lms conf", "groups: [{nam: A}]\n"), "--format", format]
    told = []
    for _ in range(2):
        assert run_command_line(app, words) == ExitCode.ERROR
        told.append("manifests/a.yaml" in (text := capsys.readouterr().out) and re.search(r"lms(%20| )conf/mani", text))
        (tmp_path / ".git").write_text("gitdir: elsewhere\n")
    assert [bool(one) for one in told] == [False, True]
