"""`lmsconf init`: what it begins validates and plans at once, and nothing is ever overwritten."""

import json
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from urllib.parse import unquote

import pytest
import yaml
from cli.served import TOKEN, served
from flow.project import Project
from flow.shell import lmsconf, run
from on_terminal import at_terminal
from texts import listed_cases

from lmsconf import __version__
from lmsconf.errors import ExitCode

JOBS = ("plan", "apply", "drift")
SCHEMAS = ("schemas/manifest.schema.json", "schemas/project.schema.json")
EXAMPLES = Path(__file__).parent.parent.parent / "examples" / "ci"


BOOK_CLUB = "groups: [{name: Book club}]\n"


def files(folder: Path) -> dict[str, str]:
    """All files below a folder, with their texts."""
    return {str(path.relative_to(folder)): path.read_text() for path in folder.rglob("*") if path.is_file()}


def test_a_sandbox_plans_applies_and_is_then_empty(tmp_path: Path) -> None:
    """Without a word, the project has an embedded workspace, and the three commands that it prints go through."""
    shown = run("init", str(tmp_path / "lms"), code=ExitCode.OK)
    assert shown.out == ""
    project = str(tmp_path / "lms")
    commands = "".join(f"  lmsconf -C {project} {command}\n" for command in ("plan", "apply", "drift"))
    assert f"\nNext:\n{commands}" in shown.err
    assert "--probe" not in shown.err
    run("-C", project, "validate", code=ExitCode.OK)
    run("-C", project, "plan", "--detailed-exitcode", code=ExitCode.CHANGES)
    run("-C", project, "apply", "--auto-approve", code=ExitCode.OK)
    run("-C", project, "drift", code=ExitCode.OK)


def test_a_real_workspace_plans_empty(tmp_path: Path) -> None:
    """The first manifest of a workspace that exists wants nothing, and export adds to it."""
    (tmp_path / "workspace.yaml").write_text(BOOK_CLUB)
    project = str(tmp_path / "lms")
    with served(tmp_path) as (sandbox, env):
        url = env["LMSCONF_URL"]
        options = ["--url", url, "--workspace-name", "no", "--token-env", "LMSCONF_K", "--timezone", "UTC"]
        told = run("init", project, *options, code=ExitCode.OK).err
        assert "export --into" in told
        assert f"\nBefore the first apply, once:\n  lmsconf -C {project} doctor --probe --user EMAIL" in told
        assert "lmsconf-probe-" in told.splitlines()[-1]
        for command in (["plan", "--detailed-exitcode"], ["export", "--into"], ["plan", "--detailed-exitcode"]):
            run("-C", project, *command, env={"LMSCONF_K": TOKEN}, code=ExitCode.OK)
    assert not any(call.writes for call in sandbox.log)
    assert "Book club" in files(tmp_path / "lms")["manifests/exported-groups.yaml"]
    assert yaml.safe_load((tmp_path / "lms" / "lmsconf.yaml").read_text()) == {
        "workspaces": {"no": {"url": url, "token": {"env": "LMSCONF_K"}}},
        "default_workspace": "no",
        "timezone": "UTC",
    }


@pytest.mark.parametrize(
    ("ci", "written"),
    [
        ("github", {f".github/workflows/lmsconf-{job}.yml": f"github/lmsconf-{job}.yml" for job in JOBS}),
        ("gitlab", {".gitlab-ci.yml": "gitlab/gitlab-ci.yml"}),
        ("none", {}),
    ],
)
def test_workflows_are_those_of_the_examples(tmp_path: Path, ci: str, written: dict[str, str]) -> None:
    """`--ci` writes the same texts that examples/ci has, and pins this version of lmsconf for them."""
    run("init", str(tmp_path), "--ci", ci, code=ExitCode.OK)
    found = files(tmp_path)
    usual = {"lmsconf.yaml", "workspace.yaml", "manifests/first.yaml", ".gitignore", *SCHEMAS}
    assert set(found) == usual | set(written) | ({"requirements.txt"} if written else set())
    assert {path: found[path] for path in written} == {
        path: (EXAMPLES / name).read_text(encoding="utf-8") for path, name in written.items()
    }
    pinned = [line for line in found.get("requirements.txt", "").splitlines() if not line.startswith("#")]
    assert pinned == ([f"lmsconf=={__version__}"] if written else [])


def schema_of(path: Path) -> dict[str, object]:
    """The schema that the first line of a YAML file names, as an editor finds it: relative to the file."""
    key, _, schema = path.read_text().splitlines()[0].partition("$schema=")
    assert key == "# yaml-language-server: "
    found: dict[str, object] = yaml.safe_load((path.parent / unquote(schema)).read_text())
    return found


@pytest.mark.sampled(daily=False)
def test_editors_find_the_schemas(tmp_path: Path) -> None:
    """Each YAML file that init and export write is in order, and its first line names a schema in the project."""
    project = tmp_path / "a project"
    run("init", str(project), code=ExitCode.OK)
    run("-C", str(project), "validate", code=ExitCode.OK)
    for folder in (project / "manifests" / "deep", tmp_path / "elsewhere"):
        run("-C", str(project), "export", str(folder), "--into", code=ExitCode.OK)
    written = [*(project / "manifests").rglob("*.yaml"), *(tmp_path / "elsewhere").iterdir()]
    assert len(written) > 4
    assert {str(schema_of(path)["title"]) for path in written} == {"A manifest of lmsconf"}
    run("-C", str(project), "fmt", "--check", code=ExitCode.OK)
    assert "project" in str(schema_of(project / "lmsconf.yaml")["title"])


def test_schemas_are_updated_and_can_be_left_out(tmp_path: Path) -> None:
    """`init --schemas` writes those of this version into an existing project, and nothing else; export writes them
    only where they are missing."""
    run("init", str(tmp_path), "--no-schemas", code=ExitCode.OK)
    before = files(tmp_path)
    assert "schemas/manifest.schema.json" not in before
    assert not before["lmsconf.yaml"].startswith("#")
    run("init", str(tmp_path), "--schemas", code=ExitCode.OK)
    assert {name: text for name, text in files(tmp_path).items() if name not in SCHEMAS} == before
    old = tmp_path / SCHEMAS[0]
    whole = old.read_text()
    old.write_text("{}")
    run("-C", str(tmp_path), "export", "--into", code=ExitCode.OK)
    assert old.read_text() == "{}"
    assert run("init", str(tmp_path), "--schemas", code=ExitCode.OK).err == f"Wrote {old}\n"
    assert old.read_text() == whole


def test_nothing_is_overwritten(tmp_path: Path) -> None:
    """What is there stays byte for byte, and is told; manifests that are there get no first one beside them."""
    (tmp_path / "manifests").mkdir()
    mine = {".gitignore": "*.db\n", "requirements.txt": "x\n", "manifests/mine.yml": "groups: []\n"}
    for name, text in mine.items():
        (tmp_path / name).write_text(text)
    (tmp_path / "workspace.yaml").symlink_to("elsewhere.yaml")
    shown = run("init", str(tmp_path), "--ci", "gitlab", code=ExitCode.OK).err
    assert f"{tmp_path / 'workspace.yaml'} already exists and is not changed.\n" in shown
    assert f"Add to it: lmsconf=={__version__}\n" in shown
    assert "Add to it: .lmsconf/ *.db-shm" in shown
    found = files(tmp_path)
    assert {name: found[name] for name in mine} == mine
    assert set(found) - set(mine) == {"lmsconf.yaml", ".gitlab-ci.yml", *SCHEMAS}
    assert not (tmp_path / "elsewhere.yaml").exists()


@listed_cases("options", "reason")
def test_wrong_answers_are_refused(tmp_path: Path, options: Sequence[str], reason: str) -> None:
    """What could not be a project is said at once, and nothing is written. What may be a token is not repeated."""
    shown = run("init", str(tmp_path), *options, code=ExitCode.USAGE).err
    assert reason in shown
    assert "eyJ" not in shown
    assert files(tmp_path) == {}


def answered(folder: Path, code: ExitCode, *answers: str, **env: str) -> str:
    """Begins a project on a terminal, where somebody types these answers; gives all that is shown."""
    typed = "".join(f"{answer}\n" for answer in answers)
    return at_terminal(folder, "init", "lms", typed=typed, env=env, code=code)[1]


def test_on_a_terminal_it_asks(tmp_path: Path) -> None:
    """What the options leave open is asked; a wrong answer is explained and asked for again; nobody has to export."""
    answers = ("http://x.example", "https://lms.example/api", "live", "", "Mars/Olympus", "Europe/Oslo", "", "n")
    shown = answered(tmp_path, ExitCode.OK, *answers)
    assert "would send the token unencrypted" in shown
    assert "there is no time zone Mars/Olympus" in shown
    assert "export --into" not in shown
    assert yaml.safe_load((tmp_path / "lms" / "lmsconf.yaml").read_text()) == {
        "workspaces": {"live": {"url": "https://lms.example/api", "token": {"env": "LMSCONF_TOKEN"}}},
        "default_workspace": "live",
        "timezone": "Europe/Oslo",
    }


LIVE = ["https://lms.example/api", "live", "LMSCONF_K", "UTC", "none"]


@pytest.mark.sampled
@pytest.mark.parametrize("number", range(len(LIVE) + 1))
def test_an_end_of_input_is_a_no(tmp_path: Path, number: int) -> None:
    """Whoever goes away at any of the questions has begun nothing, and is told so."""
    assert "nothing was written" in " ".join(answered(tmp_path, ExitCode.ERROR, *LIVE[:number], "\x04").split())
    assert list(tmp_path.iterdir()) == []


@pytest.mark.sampled(daily=False)
def test_a_yes_makes_manifests_of_what_is_live(tmp_path: Path) -> None:
    """With a token, a yes exports at once from the workspace that was named, so that the first plan is empty."""
    (tmp_path / "workspace.yaml").write_text(BOOK_CLUB)
    with served(tmp_path) as (_, env):
        answers = (env["LMSCONF_URL"], *LIVE[1:], "y")
        shown = answered(tmp_path, ExitCode.OK, *answers, LMSCONF_K=TOKEN, LMSCONF_WORKSPACE="other")
        lmsconf(tmp_path / "lms", "plan", "--detailed-exitcode", env={"LMSCONF_K": TOKEN}, code=ExitCode.OK)
    assert "Book club" in files(tmp_path / "lms")["manifests/exported-groups.yaml"]
    assert "export --into" not in shown
    assert "Put the token" not in shown


@pytest.mark.sampled
@pytest.mark.parametrize(
    ("key", "code", "reason"),
    [("", ExitCode.ERROR, "LMSCONF_K"), ("wrong", ExitCode.UNAUTHORIZED, "401")],
    ids=["none", "wrong"],
)
def test_an_export_that_fails_leaves_a_project(tmp_path: Path, key: str, code: ExitCode, reason: str) -> None:
    """Without a token, or with a wrong one, the project is there, and the error stands with the command for later."""
    with served(tmp_path) as (_, env):
        shown = answered(tmp_path, code, env["LMSCONF_URL"], *LIVE[1:], "", LMSCONF_K=key)
    assert reason in shown
    assert "lmsconf -C lms export --into" in shown
    assert set(files(tmp_path / "lms")) == {"lmsconf.yaml", "manifests/first.yaml", ".gitignore", *SCHEMAS}


def test_a_file_that_cannot_be_written_leaves_none(tmp_path: Path) -> None:
    """Where one file cannot be written, those that were are taken away again; what was there before stays."""
    (tmp_path / ".github").write_text("mine", encoding="utf-8")
    assert "Nothing was written" in run("init", str(tmp_path), "--ci", "github", code=ExitCode.ERROR).err
    assert files(tmp_path) == {".github": "mine"}


@pytest.mark.parametrize("name", ["manifests", ".github", "schemas"])
def test_no_file_is_written_through_a_link_out_of_the_folder(name: str, tmp_path: Path) -> None:
    """A repository may bring a folder that is a symbolic link: it is an error, and nothing is written."""
    project, outside = tmp_path / "lms", tmp_path / "outside"
    project.mkdir()
    outside.mkdir()
    (project / name).symlink_to("../outside")
    ran = run("init", str(project), "--no-input", "--ci", "github", code=ExitCode.ERROR)
    assert "its folder is a symbolic link out of the project" in ran.err
    assert files(tmp_path) == {}


# Questions are asked only where somebody sees them and can answer; only yes is taken for yes.


QUESTION = "Only 'yes' will be accepted: "
NO_TERMINAL = "there is no terminal to ask for approval"
BLIND = [
    pytest.param(("stdin", "stdout"), id="stderr-elsewhere"),
    pytest.param(("stdout", "stderr"), id="stdin-elsewhere"),
    pytest.param((), id="no-terminal"),
]
"""Terminals on which a question would not be seen, or not be answered."""


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A project that would create a group, and has a workspace where nobody listens, whose token a command gives."""
    Project(tmp_path).write("groups: [{name: Mentors}]\n")
    command = json.dumps([sys.executable, "-c", "print('t' * 20)"])
    (tmp_path / "lmsconf.yaml").write_text(
        "workspaces:\n  sandbox: {url: 'sandbox:workspace.db'}\n"
        f"  live: {{url: 'http://127.0.0.1:1', token: {{command: {command}}}}}\ndefault_workspace: sandbox\n"
    )
    return tmp_path


@pytest.mark.parametrize("answer", ["yes\n", " yes \n", "y\n", "YES\n", "\n", "no\n", "\x04"])
def test_only_yes_applies(project: Path, answer: str) -> None:
    """Any other answer, Enter and the end of input among them, exits with 1 and changes nothing."""
    agreed = answer == "yes\n"
    _, shown = at_terminal(project, "apply", typed=answer, code=ExitCode.OK if agreed else ExitCode.ERROR)
    assert shown.count("\nWorkspace sandbox (sandbox:workspace.db), 0 people.\nApply this plan? " + QUESTION) == 1
    assert shown.index("group/Mentors") < shown.index(QUESTION)
    # Above the plan, and above the question; the report stands below both.
    assert shown.count("Workspace sandbox (sandbox:workspace.db)") == 2
    assert ("declined: nothing was changed" in shown) is not agreed
    lmsconf(project, "plan", "--detailed-exitcode", code=ExitCode.OK if agreed else ExitCode.CHANGES)


@pytest.mark.parametrize("streams", BLIND)
@pytest.mark.parametrize(
    ("words", "code", "told"),
    [
        ("apply", ExitCode.USAGE, (NO_TERMINAL, "Pass --auto-approve")),
        ("doctor --probe", ExitCode.USAGE, (NO_TERMINAL, "Pass --yes")),
        ("sandbox reset", ExitCode.USAGE, (NO_TERMINAL, "Pass --yes")),
        ("plan --workspace live", ExitCode.ERROR, ("LMSCONF_TOKEN_COMMANDS",)),
        ("init lms", ExitCode.OK, ("Wrote ",)),
    ],
    ids=["apply", "doctor", "reset", "token-command", "init"],
)
def test_a_question_that_nobody_sees_is_not_asked(
    project: Path, words: str, code: ExitCode, told: Sequence[str], streams: tuple[str, ...]
) -> None:
    """Where stdin or stderr is no terminal, the command ends, and names the option or the variable that answers.

    Only `init` takes its defaults: a block of a page whose stderr is discarded does not hang.
    """
    env = {"XDG_STATE_HOME": str(project / "state")}
    ran, shown = at_terminal(project, *words.split(), typed="yes\n\x04", streams=streams, env=env, code=code)
    assert [one for one in told if one not in ran.err + shown] == []
    assert QUESTION not in ran.err + ran.out + shown


@pytest.mark.parametrize(("answer", "code"), [("yes\n", ExitCode.OK), ("\n", ExitCode.ERROR)])
def test_a_sandbox_is_reset_after_a_yes(project: Path, answer: str, code: ExitCode) -> None:
    """The question names the file; anything but yes leaves it."""
    lmsconf(project, "apply", "--auto-approve")
    _, shown = at_terminal(project, "sandbox", "reset", typed=answer, code=code)
    assert f"Delete all data in workspace.db and reset it? {QUESTION}" in shown
    groups = json.loads(lmsconf(project, "api", "GET", "/groups").out)
    assert bool(json.dumps(groups).count("Mentors")) is (code != ExitCode.OK)


def test_a_token_command_is_asked_about_on_a_terminal(project: Path) -> None:
    """The command is shown with the question; a no ends the command."""
    env = {"XDG_STATE_HOME": str(project / "state")}
    _, shown = at_terminal(project, "plan", "--workspace", "live", typed="no\n", env=env, code=ExitCode.ERROR)
    asked = f"Run it, now and from now on? {QUESTION}"
    assert asked in shown
    assert "Reading" not in shown.partition(asked)[0].rpartition("\x1b[1A\x1b[2K")[2], "a progress bar draws over it"


@pytest.mark.parametrize("repository", [True, False])
@pytest.mark.parametrize("folder", [".", "my lms"])
def test_the_next_commands_commit_the_project(tmp_path: Path, folder: str, repository: bool) -> None:
    """The last lines of `init` can be pasted: they plan, and stage all that was written and nothing else."""
    git = ("git", "-c", "user.name=A", "-c", "user.email=a@acme.example")
    if repository:
        subprocess.run([*git, "init", "-q"], cwd=tmp_path, check=True)
    (tmp_path / "mine.txt").write_text("not of the project")
    *_, block = lmsconf(tmp_path, "init", folder, "--schemas", "--ci", "github").err.partition("\nNext:\n")
    lines = [line.strip() for line in block.splitlines()]
    assert [line.split()[0] for line in lines] == ["lmsconf"] * 3 + ["git"] * (2 if repository else 3)
    assert lines[-1].endswith("commit -m 'Create the lmsconf project'")
    staging = "\n".join(line for line in lines if line.startswith("git") and "commit" not in line)
    subprocess.run(["sh", "-ec", staging], cwd=tmp_path, check=True, capture_output=True)
    command = ["git", "ls-files", "--others", "--exclude-standard", "."]
    left = subprocess.run(command, cwd=tmp_path / folder, check=True, capture_output=True, text=True).stdout.split()
    assert left == (["mine.txt"] if folder == "." else [])
