"""A fleet on GitHub: the shards, the comment, and the apply on main, from the workflow as it is written."""

import json
import shutil
from pathlib import Path

import pytest

from .actions import Actions, JobResult, git
from .test_fleet_engines import contents
from .test_workflows import CI, REPOSITORY

pytestmark = [
    pytest.mark.slow,
    pytest.mark.sampled(gate=2),
    pytest.mark.skipif(not (shutil.which("jq") and shutil.which("git")), reason="the stand-in for gh needs jq and git"),
]
WORKFLOW = "lmsconf-fleet.yml"
REQUIRED = f"lmsconf==0.1.0 --hash=sha256:{'0' * 64}\n"
UNKNOWN = 'buffalo,sandbox:,"ring=main, region=us",\n'
"""A workspace that cannot be planned: the manifests need a variable that its row does not have."""


class Repository:
    """The example with forty workspaces on GitHub."""

    def __init__(self, root: Path) -> None:
        self.clone, origin = root / "clone", root / "origin.git"
        shutil.copytree(REPOSITORY / "examples" / "fleet", self.clone)
        workflows = self.clone / ".github" / "workflows"
        workflows.mkdir(parents=True)
        shutil.copy(CI / "github" / WORKFLOW, workflows)
        (self.clone / "requirements.txt").write_text(REQUIRED, encoding="utf-8")
        git(root, "init", "--quiet", "--bare", str(origin))
        git(self.clone, "init", "--quiet")
        git(self.clone, "remote", "add", "origin", str(origin))
        self.push("main")
        self.actions = Actions(root, origin, {"LMSCONF_EU": "e", "LMSCONF_US": "u"}, {"LMSCONF_ALLOWED_HOSTS": ""})

    def push(self, branch: str) -> None:
        """Commit what is there, and push it."""
        git(self.clone, "add", ".")
        git(self.clone, "commit", "--quiet", "--message", "Change")
        git(self.clone, "push", "--quiet", "--force", "origin", f"HEAD:refs/heads/{branch}")

    def review(self, branch: str, *, fork: bool = False) -> dict[str, JobResult]:
        """Run what a pull request runs."""
        head = {"sha": git(self.clone, "rev-parse", "HEAD"), "repo": {"full_name": "x/lms" if fork else "acme/lms"}}
        event = {"pull_request": {"number": 7, "head": head}}
        return self.actions.run(WORKFLOW, f"refs/heads/{branch}", event, fork=fork)

    def add(self, name: str, text: str) -> None:
        """Add lines to a file."""
        with (self.clone / name).open("a", encoding="utf-8") as file:
            file.write(text)


@pytest.fixture
def repository(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Repository:
    monkeypatch.delenv("LMSCONF_ALLOWED_HOSTS", raising=False)
    return Repository(tmp_path)


def test_a_pull_request_has_one_comment_of_all_shards(repository: Repository, tmp_path: Path) -> None:
    """A workspace that cannot be planned is red, the others are planned, and the comment has them all, as one run."""
    repository.add("workspaces.csv", UNKNOWN)
    repository.push("pull")
    ran = repository.review("pull")
    plans = {name: one.success for name, one in ran.items() if name.startswith("plan")}
    assert sorted(plans) == ["plan (1/4)", "plan (2/4)", "plan (3/4)", "plan (4/4)"]
    assert list(plans.values()).count(False) == 1
    assert not ran["collect"].success
    assert "apply" not in ran
    (comment,) = repository.actions.state["comments"]
    assert comment["body"].startswith("<!-- lmsconf:fleet:plan -->\n")
    assert "**41 workspaces: 40 with changes, 0 without, 1 failed.**" in comment["body"]
    assert "41 workspaces: 40 with changes" in ran["collect"].summary
    whole = tmp_path / "whole"
    assert _lmsconf(ran["plan (1/4)"].folder, "fleet", "plan", "--out", str(whole)) == 1
    assert contents(ran["collect"].folder / "fleet") == contents(whole)
    assert repository.actions.unused["collect"] == set()


def test_main_is_applied(repository: Repository) -> None:
    """The collected plans of main are applied, also beside a workspace that failed, as far as max_failures allows."""
    repository.add("workspaces.csv", UNKNOWN)
    repository.add("lmsconf.yaml", "\nmax_failures: 1\n")
    repository.push("main")
    ran = repository.actions.run(WORKFLOW, "main", {})
    assert not ran["apply"].success
    assert "40 applied or without changes" in ran["apply"].summary
    applied = json.loads((ran["apply"].folder / "fleet" / "apply.json").read_text(encoding="utf-8"))
    assert [one["workspace"] for one in applied["workspaces"] if one["exit"]] == ["buffalo"]
    assert repository.actions.state["comments"] == []


def test_a_missing_shard_is_no_plan(repository: Repository) -> None:
    """Where no shard has left its plans, the comment says that there is no plan, and nothing is applied."""
    repository.add("lmsconf.yaml", "unknown: key\n")
    repository.push("main")
    for _ in range(2):
        ran = repository.review("main")
    assert not ran["collect"].success
    (comment,) = repository.actions.state["comments"]
    assert "### lmsconf fleet: no plan" in comment["body"]
    assert "apply" not in repository.actions.run(WORKFLOW, "main", {})


def test_a_fork_runs_nothing(repository: Repository) -> None:
    """A pull request from a fork has no token, so no job is begun."""
    assert repository.review("main", fork=True) == {}


def _lmsconf(folder: Path, *arguments: str) -> int:
    from .engines import Machine

    return Machine(folder.parent, folder).shell(["lmsconf", *arguments], folder, {})
