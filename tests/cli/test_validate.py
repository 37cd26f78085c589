"""`lmsconf validate` tells everything at once, and needs no workspace."""

import json
import re
from pathlib import Path

import pytest
import yaml
from flow.shell import Ran, lmsconf
from json_schemas import sarif_log
from texts import listed_cases, text_of
from views.document_samples import COMPLETE, EMPTY

from lmsconf.documents import plan_file, reports
from lmsconf.documents.json_documents import render_json
from lmsconf.errors import ExitCode
from lmsconf.render import APPLY_VIEWS
from lmsconf.render.text import plan_text

REMOTE = 'workspaces: {production: {url: "https://lms.invalid", token: {env: LMSCONF_NOT_SET}}}\n'
SANDBOX = "workspaces: {sandbox: {url: 'sandbox:'}}\n"


def run(root: Path, manifest: str, *arguments: str, project: str = SANDBOX, code: int | None = None) -> Ran:
    """Writes a project of one manifest, and runs a command in it. code: what it has to exit with."""
    (root / "manifests").mkdir(exist_ok=True)
    (root / "lmsconf.yaml").write_text(project, encoding="utf-8")
    (root / "manifests" / "a.yaml").write_text(manifest, encoding="utf-8")
    return lmsconf(root, *arguments, code=code)


def test_sound_manifests_and_others(tmp_path: Path) -> None:
    """Without a token and a network: exit 0 with a count, or exit 1 with each problem at its place on stderr."""
    ran = run(tmp_path, "groups: [{name: A}, {name: B, only_in: [production]}]\n", "validate", project=REMOTE)
    assert ran == (ExitCode.OK, "2 resources in 1 file: no errors.\n", "")
    ran = run(tmp_path, "groups: [{nam: A}, {name: B, members: bo}]\n", "validate", project=REMOTE)
    assert (ran.code, ran.out) == (ExitCode.ERROR, "")
    for place in ("manifests/a.yaml:1:10", "manifests/a.yaml:1:11", "manifests/a.yaml:1:39"):
        assert place in ran.err


# `lmsconf validate --expanded`: the manifests as a plain one would say them.


COUNTRIES = 'workspaces: {test: {url: "sandbox:", vars: {countries: [SE, NO]}}}\nvars: {countries: [DE]}\n'
FOR_EACH = text_of(__file__, "for_each.yaml")


def test_the_manifest_alone_is_on_stdout(tmp_path: Path) -> None:
    """One with the variables of the chosen workspace, and none if there are errors: half of one could pass for all."""
    ran = run(tmp_path, FOR_EACH, "validate", "--expanded", project=COUNTRIES, code=ExitCode.OK)
    assert ran.out == text_of(__file__, "for_each_expanded.yaml")
    assert 'nothing uses the people set "Unused"' in ran.err
    wrong = f"{FOR_EACH}smart_groups: [{{name: A, use: B}}]\n"
    assert run(tmp_path, wrong, "validate", "--expanded", project=COUNTRIES, code=ExitCode.ERROR).out == ""


def test_a_plan_names_the_value(tmp_path: Path) -> None:
    """Each resource of a plan stands at the line of its entry, with the value that it is for."""
    ran = run(tmp_path, FOR_EACH, "plan", "--out", "plan.json", project=COUNTRIES, code=ExitCode.OK)
    assert "manifests/a.yaml:2:10 (country=NO)" in ran.out
    assert "manifests/a.yaml:2:10 (country=SE)" in lmsconf(tmp_path, "show", "plan.json", code=ExitCode.OK).out


def test_an_assignment_that_a_later_folder_replaces_is_printed_once(tmp_path: Path) -> None:
    """As the later folder has it; what else the earlier entry declares stays."""
    (tmp_path / "more").mkdir()
    (tmp_path / "more" / "b.yaml").write_text(text_of(__file__, "replaced_later.yaml"))
    ran = run(
        tmp_path,
        text_of(__file__, "replaced_earlier.yaml"),
        "validate",
        "--expanded",
        project=f"{SANDBOX}manifests: [manifests, more]\n",
        code=ExitCode.OK,
    )
    assert yaml.safe_load(ran.out) == yaml.safe_load(text_of(__file__, "replaced_expanded.yaml"))


# Manifests with errors in a code review: `plan` and `validate` write the problems in the format that was asked for.


BROKEN = "groups:\n  - name: Safety officers\n    memebrs: []\n"
FORMATS = ("json", "markdown", "html", "github", "sarif", "codequality")


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
        assert "manifests/a.yaml:3:5" in text
        # `validate` makes no plan, and has the same page.
        assert format == "markdown" or "<h1>Errors</h1>" in text
    return "manifests/a.yaml", 3, text


@pytest.mark.parametrize("command", ["plan", "plan --base", "validate"])
@pytest.mark.parametrize("format", FORMATS)
def test_the_result_is_the_problems(command: str, format: str, tmp_path: Path) -> None:
    """On stdout or in the file: file, line, what is wrong and the way out; the exit code stays 1."""
    (tmp_path / "base").mkdir()
    base = [str(tmp_path / "base")] if "--base" in command else []
    page = tmp_path / "result"
    for where in ([], ["--output", str(page)]):
        ran = run(tmp_path, BROKEN, *command.split(), *base, "--format", format, *where, code=ExitCode.ERROR)
        text = page.read_text(encoding="utf-8") if where else ran.out
        assert (ran.out == "") is bool(where)
        file, line, words = problem_of(format, text)
        assert (file, line) == ("manifests/a.yaml", 3)
        assert "memebrs" in words
        assert "Did you mean" in words


@pytest.mark.parametrize("format", FORMATS)
def test_a_project_file_with_an_error(format: str, tmp_path: Path) -> None:
    """It stands in the same place, with the line of the project file."""
    wrong = f"{SANDBOX}guard: {{}}\n"
    text = run(tmp_path, "groups: []\n", "plan", "--format", format, project=wrong, code=ExitCode.ERROR).out
    assert "lmsconf.yaml" in text
    assert "guards" in text


def test_other_errors_are_written_too(tmp_path: Path) -> None:
    """A plan that fails for another reason says so in the comment; a table of exit codes holds."""
    command = ("plan", "--only", "group/B", "--format", "markdown")
    text = run(tmp_path, "groups: [{name: A}]\n", *command, code=ExitCode.ERROR).out
    assert text.startswith("<!-- lmsconf:plan -->\n\n### lmsconf: no plan\n")
    assert "group/B" in text


def test_a_comment_holds_its_limit(tmp_path: Path) -> None:
    """A thousand errors are counted, and told as far as they fit."""
    many = "groups:\n" + "".join(f"  - {{name: {'x' * 100}{n}, memebrs: []}}\n" for n in range(300))
    for limit, size in (("github", 65_536), ("8000", 8_000)):
        text = run(tmp_path, many, "plan", "--format", "markdown", "--limit", limit, code=ExitCode.ERROR).out
        assert len(text.encode()) <= size
        assert "300 errors" in text.replace("\\", "")
        assert text.count("memebrs") > 20


def test_findings_of_gitlab_are_told_apart(tmp_path: Path) -> None:
    """GitLab drops a finding whose fingerprint another one has; a line above changes none of them."""
    prints = []
    for more in ("", "# more\n"):
        text = run(tmp_path, more + "groups:\n  - {nam: A}\n  - {nam: A}\n", "plan", "--format", "codequality").out
        prints.append([finding["fingerprint"] for finding in json.loads(text)])
    assert len(prints[0]) > 2
    assert len(set(prints[0])) == len(prints[0])
    assert prints[0] == prints[1]


@pytest.mark.parametrize("format", FORMATS)
def test_valid_manifests(format: str, tmp_path: Path) -> None:
    """`validate` has no problem to show; the problems of a plan that there is come in the same formats."""
    checked, planned = (
        run(tmp_path, "groups: [{name: A}]\n", command, "--format", format, code=ExitCode.OK).out
        for command in ("validate", "plan")
    )
    assert "no plan" not in planned
    if format == "markdown":
        assert "### lmsconf validate: no errors" in checked
    if format in ("github", "codequality"):
        assert planned.strip() in ("", "[]")


@pytest.mark.parametrize("format", ["github", "sarif", "codequality"])
def test_files_are_named_from_the_top_of_the_repository(tmp_path: Path, format: str) -> None:
    """Reviews look for them there; without a repository, they are named from the project's folder."""
    (tmp_path / "lms conf").mkdir()
    command = ("validate", "--format", format)
    from_the_top = re.compile(r"lms(%20| )conf/manifests/a\.yaml")
    text = run(tmp_path / "lms conf", "groups: [{nam: A}]\n", *command, code=ExitCode.ERROR).out
    assert "manifests/a.yaml" in text
    assert not from_the_top.search(text)
    (tmp_path / ".git").write_text("gitdir: elsewhere\n")
    assert from_the_top.search(lmsconf(tmp_path / "lms conf", *command).out)


# `lmsconf show` renders what was saved, and refuses what was changed.


@pytest.mark.parametrize(
    ("saved", "shown"),
    [(plan_file.dumps(EMPTY), plan_text(EMPTY)), (reports.apply_json(COMPLETE), APPLY_VIEWS["text"](COMPLETE))],
    ids=["plan", "apply"],
)
def test_shows_what_was_saved(saved: str, shown: str, tmp_path: Path) -> None:
    """A saved document reads as it did when it was made; as JSON it is the file itself."""
    (tmp_path / "document.json").write_bytes(saved.encode())
    assert lmsconf(tmp_path, "show", "document.json", code=ExitCode.OK).out == shown
    assert lmsconf(tmp_path, "show", "document.json", "--format", "json", code=ExitCode.OK).out == saved


@pytest.mark.parametrize("format", ["text", "json"])
def test_refuses_what_was_changed(format: str, tmp_path: Path) -> None:
    """A plan that was edited is stale in every format: exit 3."""
    (tmp_path / "plan.json").write_bytes(render_json({**json.loads(plan_file.dumps(EMPTY)), "people": 4}).encode())
    ran = lmsconf(tmp_path, "show", "plan.json", "--format", format, code=ExitCode.STALE)
    assert "was changed after lmsconf wrote it" in ran.err


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
def test_says_what_a_file_holds_instead(name: str, text: str, code: ExitCode, message: str, tmp_path: Path) -> None:
    """A file is a manifest by its name and its text: a document is shown whatever its file is called."""
    (tmp_path / name).write_text(text)
    assert message in lmsconf(tmp_path, "show", name, code=code).err


# `--format markdown` and `--format html`, from the command line to the file.


MANY = "groups:\n" + "".join(f"  - name: Team {n:03}\n" for n in range(120))
KEPT = "workspaces: {sandbox: {url: 'sandbox:workspace.db'}}\n"


def test_plan_show_and_apply_in_people_s_formats(tmp_path: Path) -> None:
    """Plan, saved plan and report come as a comment or a page; to a file, stdout stays empty."""
    to_file = ("plan", "--out", "plan.json", "--format", "html", "--output", "plan.html")
    assert run(tmp_path, MANY, *to_file, project=KEPT, code=ExitCode.OK).out == ""
    assert (tmp_path / "plan.html").read_text().startswith("<!doctype html>")
    comment = lmsconf(tmp_path, "show", "plan.json", "--format", "markdown", "--limit", "none", code=ExitCode.OK).out
    assert comment.startswith("<!-- lmsconf:plan:sandbox -->\n")
    assert comment.count("Will be created") == 120
    report = lmsconf(tmp_path, "apply", "plan.json", "--format", "markdown", code=ExitCode.OK).out
    assert "**Apply complete! 120 resources changed (120 API calls).**" in report
    lmsconf(tmp_path, "snapshot", "snapshot.json", code=ExitCode.OK)
    for format in ("markdown", "html"):
        assert "120 groups" in lmsconf(tmp_path, "show", "snapshot.json", "--format", format, code=ExitCode.OK).out


def test_limit_shortens(tmp_path: Path) -> None:
    """A comment is as long as its place allows: GitHub's limit unless another is named."""
    sizes = []
    for limit in ([], ["--limit", "github"], ["--limit", "bitbucket"], ["--limit", "9000"], ["--limit", "none"]):
        sizes.append(len(run(tmp_path, MANY, "plan", "--format", "markdown", *limit, code=ExitCode.OK).out.encode()))
    assert sizes[0] == sizes[1] == sizes[4]
    assert sizes[2] <= 32_767
    assert sizes[3] <= 9_000 < sizes[2]


@listed_cases("arguments", "said")
def test_limits_that_make_no_sense(arguments: str, said: str, tmp_path: Path) -> None:
    """A place that is not known, or a limit where nothing is shortened, is a wrong command line."""
    assert said in run(tmp_path, MANY, "plan", *arguments.split(), code=ExitCode.USAGE).err


# `lmsconf graph`: what leans on what, for Mermaid and for Graphviz.


def test_the_picture(tmp_path: Path) -> None:
    """Content points to its audiences, smart groups to their fields; what is declared elsewhere is dashed."""
    manifest = text_of(__file__, "show_graph_manifest.yaml")
    assert run(tmp_path, manifest, "graph").out == text_of(__file__, "show_mermaid.txt")
    dot = lmsconf(tmp_path, "graph", "--format", "dot").out
    assert '  n1 [label="Country (custom field)", shape=parallelogram, style=dashed];\n' in dot
    assert "  n0 -> n6 [penwidth=2];\n" in dot
    assert dot.count("->") == 5


@pytest.mark.parametrize("name", ['a"b', "x] --> y", "<b>bold</b>", "`code`", "a#35;b", "back\\\\slash"])
def test_names_do_nothing_in_a_picture(tmp_path: Path, name: str) -> None:
    """A name stays inside its quotes in both formats, and is no HTML."""
    manifest = f'groups: [{{name: "{name}"}}]\n' if '"' not in name else f"groups: [{{name: '{name}'}}]\n"
    mermaid = run(tmp_path, manifest, "graph").out.splitlines()
    assert len(mermaid) == 3
    assert re.fullmatch(r'  n0\["[^"<>`\[\]]*"\]', mermaid[1])
    dot = lmsconf(tmp_path, "graph", "--format", "dot").out.splitlines()
    assert len(dot) == 5
    assert re.fullmatch(r'  n0 \[label="(?:[^"\\]|\\["\\])*", shape=box\];', dot[3])
