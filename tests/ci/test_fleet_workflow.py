"""A fleet on GitHub: the shards, the comment, and the apply on main, from the workflow as it is written."""

import json
import shutil
from pathlib import Path

import pytest

from .actions import Actions, JobResult, git
from .engines import contents, shell
from .test_workflows import CI, REPOSITORY

pytestmark = [
    pytest.mark.slow,
    pytest.mark.sampled(gate=2),
    pytest.mark.skipif(not (shutil.which("jq") and shutil.which("git")), reason="the stand-in for gh needs jq and git"),
]
WORKFLOW = "lmsconf-fleet.yml"
UNKNOWN = 'buffalo,sandbox:,"ring=main, region=us",\n'
"""A workspace that cannot be planned: the manifests need a variable that its row does not have."""


class Repository(Actions):
    """The example with forty workspaces on GitHub."""

    def __init__(self, root: Path) -> None:
        shutil.copytree(REPOSITORY / "examples" / "fleet", root / "clone")
        workflows = root / "clone" / ".github" / "workflows"
        workflows.mkdir(parents=True)
        shutil.copy(CI / "github" / WORKFLOW, workflows)
        (root / "clone" / "requirements.txt").write_text(f"lmsconf==0.1.0 --hash=sha256:{'0' * 64}\n")
        super().__init__(root, {"LMSCONF_EU": "e", "LMSCONF_US": "u"}, {"LMSCONF_ALLOWED_HOSTS": ""})

    def review(self, branch: str, *, fork: bool = False) -> dict[str, JobResult]:
        """Run what a pull request runs."""
        return self.requested(WORKFLOW, f"refs/heads/{branch}", git(self.clone, "rev-parse", "HEAD"), fork=fork)

    def add(self, name: str, text: str) -> None:
        """Add lines to a file."""
        with (self.clone / name).open("a", encoding="utf-8") as file:
            file.write(text)


@pytest.fixture
def repository(tmp_path: Path) -> Repository:
    return Repository(tmp_path)


def test_a_pull_request_has_one_comment_of_all_shards(repository: Repository, tmp_path: Path) -> None:
    """A workspace that cannot be planned is red, the others are planned, and the comment has them all, as one run.

    A pull request from a fork has no token, so no job is begun.
    """
    assert repository.review("main", fork=True) == {}
    repository.add("workspaces.csv", UNKNOWN)
    repository.push_all("pull")
    ran = repository.review("pull")
    plans = {name: one.success for name, one in ran.items() if name.startswith("plan")}
    assert sorted(plans) == ["plan (1/4)", "plan (2/4)", "plan (3/4)", "plan (4/4)"]
    assert list(plans.values()).count(False) == 1
    assert not ran["collect"].success
    assert "apply" not in ran
    (comment,) = repository.state["comments"]
    assert comment["body"].startswith("<!-- lmsconf:fleet:plan -->\n")
    assert "**41 workspaces: 40 with changes, 0 without, 1 failed.**" in comment["body"]
    assert "41 workspaces: 40 with changes" in ran["collect"].summary
    whole = tmp_path / "whole"
    assert shell(["lmsconf", "fleet", "plan", "--out", whole], ran["plan (1/4)"].folder, {})[0] == 1
    assert contents(ran["collect"].folder / "fleet") == contents(whole)
    assert repository.unused["collect"] == set()


def test_main_is_applied(repository: Repository) -> None:
    """The collected plans of main are applied, also beside a workspace that failed, as far as max_failures allows."""
    repository.add("workspaces.csv", UNKNOWN)
    repository.add("lmsconf.yaml", "\nmax_failures: 1\n")
    repository.push_all("main")
    ran = repository.run(WORKFLOW, "main", {})
    assert not ran["apply"].success
    assert "40 applied or without changes" in ran["apply"].summary
    applied = json.loads((ran["apply"].folder / "fleet" / "apply.json").read_text(encoding="utf-8"))
    assert [one["workspace"] for one in applied["workspaces"] if one["exit"]] == ["buffalo"]
    assert repository.state["comments"] == []


def test_a_missing_shard_is_no_plan(repository: Repository) -> None:
    """Where no shard has left its plans, the comment says that there is no plan, and nothing is applied."""
    repository.add("lmsconf.yaml", "unknown: key\n")
    repository.push_all("main")
    for _ in range(2):
        ran = repository.review("main")
    assert not ran["collect"].success
    (comment,) = repository.state["comments"]
    assert "### lmsconf fleet: no plan" in comment["body"]
    assert "apply" not in repository.run(WORKFLOW, "main", {})
