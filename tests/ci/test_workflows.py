"""The workflows in examples/ci, judged as files: by their schemas, by an auditor, and by rules of their own."""

import re
import sys
from collections.abc import Callable, Iterator
from fnmatch import fnmatch
from pathlib import Path
from typing import Any

import junitparser
import pytest
import yaml

from lmsconf.cli import app, run_command_line
from lmsconf.cli.command import Group
from lmsconf.errors import ExitCode
from lmsconf.project import settings
from lmsconf.project.credentials import DIRS

from .actions import git
from .engines import shell

REPOSITORY = Path(__file__).parent.parent.parent
CI = REPOSITORY / "examples" / "ci"
WORKFLOWS = sorted((CI / "github").glob("*.yml"))
TOOLS = Path(sys.executable).parent
PINNED = re.compile(r"[\w-]+/[\w/-]+@[0-9a-f]{40} # v\d+\.\d+\.\d+")
FILE = CI / "container" / "Dockerfile"
PIPELINES = sorted((CI / "gitlab").glob("*.yml"))
TEXTS = [
    *(*WORKFLOWS, *PIPELINES, CI / "lmsconf.sh", CI / "kubernetes" / "drift.yaml"),
    *(CI / "kubernetes" / "fleet.sh", CI / "kubernetes" / "fleet-collect.yaml"),
]


def judged(tool: str, *arguments: str | Path) -> None:
    """Runs a judge, which must find nothing; skips where it is not installed."""
    if not (TOOLS / tool).exists():
        pytest.skip(f"{tool} is not installed")
    code, said = shell([TOOLS / tool, *arguments], REPOSITORY, {})
    assert code == 0, said


def text_of(path: Path) -> str:
    return path.read_text(encoding="utf-8")


def recipe(name: str) -> Any:
    """A file of examples/ci."""
    return yaml.safe_load(text_of(CI / name))


def jobs(path: Path) -> Iterator[tuple[str, dict[str, Any]]]:
    yield from yaml.safe_load(text_of(path))["jobs"].items()


SCHEMA = ("check-jsonschema", "--builtin-schema")
GITLAB_SCHEMA = (*SCHEMA, "vendor.gitlab-ci", "--data-transform", "gitlab-ci")


@pytest.mark.slow
@pytest.mark.parametrize(
    "words",
    [
        pytest.param((*SCHEMA, "vendor.github-workflows", *WORKFLOWS), id="GitHub's schema"),
        pytest.param((*SCHEMA, "custom.github-workflows-require-timeout", *WORKFLOWS), id="every job ends"),
        pytest.param((*GITLAB_SCHEMA, *(CI / "gitlab").glob("*gitlab-ci.yml")), id="GitLab's schema"),
        pytest.param(("zizmor", "--offline", "--persona=auditor", *WORKFLOWS), id="an auditor"),
        pytest.param(("hadolint", FILE), id="a linter"),
    ],
)
def test_a_judge_finds_nothing(words: tuple[str | Path, ...]) -> None:
    """Not even what zizmor keeps for auditors, and hadolint of the lowest level."""
    judged(str(words[0]), *words[1:])


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.stem)
def test_actions_are_pinned(path: Path) -> None:
    """Each action is named by a whole commit, with its version beside it."""
    used = re.findall(r"^ +(?:- )?uses: (.+)", text_of(path), re.MULTILINE)
    assert used
    assert [one for one in used if not PINNED.fullmatch(one)] == []


@pytest.mark.parametrize("path", [*WORKFLOWS, *PIPELINES, FILE], ids=lambda path: path.stem)
def test_nothing_is_installed_without_its_hash(path: Path) -> None:
    """Each installation from the list of requirements wants the hash of all that it installs."""
    installed = re.findall(r"pip install .*requirements\.txt", text_of(path))
    assert installed
    assert [line for line in installed if "--require-hashes" not in line] == []


def test_a_mounted_secret_is_read(tmp_path: Path) -> None:
    """It is a link to a folder that is swapped as a whole."""
    secret = tmp_path / "secret"
    (secret / "..2026").mkdir(parents=True)
    (secret / "..2026" / "token").write_text("sandbox\n", encoding="utf-8")
    (secret / "..data").symlink_to("..2026")
    (secret / "token").symlink_to("..data/token")
    (tmp_path / "manifests").mkdir()
    workspace = f"{{url: 'https://lms.example/api', token: {{file: {secret}/token}}}}"
    (tmp_path / "lmsconf.yaml").write_text(f"workspaces: {{s: {workspace}}}\n", encoding="utf-8")
    token = settings.load_settings(tmp_path, None, {DIRS: str(secret)}).workspace.token
    assert token is not None
    assert token.secret().reveal() == "sandbox"


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.stem)
def test_jobs_have_what_they_need_and_no_more(path: Path) -> None:
    """Nothing is permitted by default, secrets come from an environment, and no checkout leaves a token behind."""
    assert yaml.safe_load(text_of(path))["permissions"] == {}
    for name, job in jobs(path):
        assert job["permissions"]["contents"] == "read", name
        assert ("secrets." in yaml.safe_dump(job)) is ("environment" in job), name
        assert job["steps"][0]["with"]["persist-credentials"] is False, name


def test_alerts_of_a_private_repository_can_be_uploaded() -> None:
    """Whichever job uploads alerts may read runs too: in a private repository the action asks about its own."""
    every = [job for path in WORKFLOWS for _, job in jobs(path)]
    uploading = [job for job in every if any("upload-sarif" in step.get("uses", "") for step in job["steps"])]
    assert uploading
    for job in uploading:
        assert {"actions": "read", "security-events": "write"}.items() <= job["permissions"].items()


def test_plans_on_gitlab_are_for_developers() -> None:
    """What a job with the token keeps is for developers, but for the snapshot without people, which forks fetch."""
    pipeline = recipe("gitlab/gitlab-ci.yml")
    keeping = {name for name, job in pipeline.items() if "environment" in job and ("artifacts" in job)}
    assert keeping == {"plan", "plan-main", "apply", "snapshot", "drift"}
    assert {name for name in keeping if pipeline[name]["artifacts"].get("access") != "developer"} == {"snapshot"}
    assert "--redact" in str(pipeline["snapshot"]["script"])


def test_a_fork_gets_no_secret_and_writes_nothing() -> None:
    """The job for pull requests from forks names no secret and no permission to write."""
    job = dict(jobs(CI / "github" / "lmsconf-plan.yml"))["plan-fork"]
    assert "secrets" not in yaml.safe_dump(job)
    assert set(job["permissions"].values()) == {"read"}


def test_nobody_cuts_an_apply_short() -> None:
    """Applies wait for each other and are never cancelled by a later one."""
    workflow = recipe("github/lmsconf-apply.yml")
    assert workflow["concurrency"] == {"group": "lmsconf-apply", "cancel-in-progress": False}
    pipeline = recipe("gitlab/gitlab-ci.yml")
    assert (pipeline["apply"]["interruptible"], pipeline["apply"]["resource_group"]) == (False, "lms-apply")


@pytest.mark.parametrize("path", TEXTS, ids=lambda path: path.name)
def test_every_command_is_one_that_there_is(path: Path) -> None:
    """Commands and options of lmsconf in the workflows are those that lmsconf has."""
    text = text_of(path).replace("\\\n", " ")
    if path.name == "drift.yaml":
        text = text.replace("[lmsconf, -C, /project, drift]", "lmsconf drift")
    lines = [line.strip() for line in text.splitlines() if not line.lstrip().startswith(("#", "-   #"))]
    found = [
        words for line in lines for words in re.findall(r"(?:^|- |: |\|\| |\$\(|exec )lmsconf ([a-z]+[^|>)]*)", line)
    ]
    assert found
    context = app.make_context("lmsconf", ["validate"])
    for words in map(str.split, found):
        command = app.get_command(context, words[0])
        if isinstance(command, Group) and words[1:]:
            command = command.get_command(context, words[1])
        assert command is not None, words
        options = {option for parameter in command.params for option in parameter.opts}
        assert {word for word in words if word.startswith("--")} <= options, words


def test_the_hook_for_pre_commit_runs_validate() -> None:
    """`.pre-commit-hooks.yaml` has one hook, which looks at the project as a whole."""
    (hook,) = yaml.safe_load((REPOSITORY / ".pre-commit-hooks.yaml").read_text(encoding="utf-8"))
    assert (hook["entry"], hook["language"], hook["pass_filenames"]) == ("lmsconf validate", "python", False)
    matched = [name for name in ("a/b.yaml", "b.yml", "hr/leaders.csv", "README.md") if re.search(hook["files"], name)]
    assert matched == ["a/b.yaml", "b.yml", "hr/leaders.csv"]


# The container file in examples/ci, judged by rules of its own.


def instructions() -> list[tuple[str, str]]:
    """Each instruction of the file, with its arguments in one line."""
    lines = text_of(FILE).replace("\\\n", " ").splitlines()
    words = (line.partition(" ") for line in lines if line and not line.startswith("#"))
    return [(name, " ".join(arguments.split())) for name, _, arguments in words]


def test_what_it_is_built_from_is_pinned() -> None:
    """Images by a digest, which is for the user to fill in; pip wants hashes, and nothing else is downloaded."""
    images = [arguments.partition(" ")[0] for name, arguments in instructions() if name == "FROM"]
    assert len(images) == 2
    assert [image for image in images if not re.fullmatch(r"python:3\.\d+-slim@sha256:[0-9a-f]{64}", image)] == []
    runs = " ".join(arguments for name, arguments in instructions() if name == "RUN")
    assert runs.count("pip install") == runs.count("--require-hashes") == 1
    assert not re.search(r"\b(curl|wget|apt|apt-get|git)\b|https?://", runs)
    assert "ADD" not in [name for name, _ in instructions()]


def test_it_runs_as_somebody_who_owns_nothing_in_it() -> None:
    """A number, so that Kubernetes can check it; it is set before the command, and no file is given to that user.

    The page runs it with a read-only file system, and a volume for the journals of apply alone.
    """
    (user,) = [arguments for name, arguments in instructions() if name == "USER"]
    assert re.fullmatch(r"[1-9]\d{3,}:[1-9]\d{3,}", user)
    assert [name for name, _ in instructions()][-2:] == ["USER", "CMD"]
    assert "--chown" not in text_of(FILE)
    (line,) = re.findall(r"^docker run .+$", text_of(CI / "README.md").replace("\\\n", " "), re.MULTILINE)
    assert {"--read-only", "--tmpfs", "/tmp", "--cap-drop"} <= set(line.split())  # noqa: S108  of the container
    assert "/project/.lmsconf" in line


def test_it_has_no_secret_and_no_state() -> None:
    """No token comes from a build argument or the environment; git, journals and databases stay outside."""
    assert not re.search(r"token|secret|password", text_of(FILE), re.IGNORECASE)
    lines = text_of(CI / "container" / "Dockerfile.dockerignore").splitlines()
    patterns = [line for line in lines if not line.startswith("#")]
    for path in (".git", ".lmsconf", "workspace.db", ".env", "plan.json"):
        assert any(fnmatch(path, pattern) for pattern in patterns), path


# examples/ci/lmsconf.sh, the commands for any other CI system: run as they are, in order.


BEGUN = {
    *(".gitignore", "lmsconf.yaml", "manifests/first.yaml", "workspace.yaml"),
    *("schemas/manifest.schema.json", "schemas/project.schema.json"),
}
Script = Callable[..., tuple[int, str]]


@pytest.fixture
def script(tmp_path: Path) -> Script:
    """Runs the script in a project that `lmsconf init` began, and gives exit code and output."""
    assert run_command_line(app, ["init", str(tmp_path)]) == ExitCode.OK

    def ran(*arguments: str) -> tuple[int, str]:
        return shell([CI / "lmsconf.sh", *arguments], tmp_path, {"HOME": str(tmp_path)})

    return ran


@pytest.mark.slow
def test_plan_then_apply_then_drift(script: Script, tmp_path: Path) -> None:
    """The plan's digest is the last line; apply does that plan and no other; then there is no drift."""
    code, text = script("plan")
    assert code == 0
    digest = text.splitlines()[-1]
    assert {"plan.json", "plan.html", "plan.md"} <= {path.name for path in tmp_path.iterdir()}
    (tmp_path / "manifests" / "b.yaml").write_text("grups: []\n", encoding="utf-8")
    assert script("plan")[0] == ExitCode.ERROR
    assert "manifests/b.yaml:1:1" in (tmp_path / "plan.md").read_text(encoding="utf-8")
    (tmp_path / "manifests" / "b.yaml").unlink()
    assert script("drift")[0] == ExitCode.CHANGES
    assert script("apply", "0" * 64)[0] == ExitCode.STALE
    assert script("apply", digest)[0] == ExitCode.OK
    assert script("drift")[0] == ExitCode.OK
    assert len(junitparser.JUnitXml.fromfile(str(tmp_path / "drift.xml"))) > 0
    git(tmp_path, "init", "--quiet")
    git(tmp_path, "add", ".")
    assert set(git(tmp_path, "ls-files").splitlines()) == BEGUN  # git passes over all that was written since


@pytest.mark.parametrize("arguments", [(), ("deploy",), ("apply",), ("plan", "now")])
def test_wrong_words_do_nothing(script: Script, arguments: tuple[str, ...], tmp_path: Path) -> None:
    """Without a word that the script knows, or a digest to apply, nothing is run."""
    before = {path.name for path in tmp_path.iterdir()}
    code, said = script(*arguments)
    assert (code, said.partition(" ")[0], said.count("\n")) == (ExitCode.USAGE, "usage:", 1)
    assert {path.name for path in tmp_path.iterdir()} == before
