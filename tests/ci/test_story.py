"""A pull request, its comment, the merge, the apply, and drift: the workflows as they are written, in order."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from lmsconf.cli import app
from lmsconf.cli.frame import run
from lmsconf.client.client import Client
from lmsconf.core.values import Json
from lmsconf.errors import Exit
from lmsconf.sandbox.serve import serve
from lmsconf.sandbox.transport import Sandbox

from .actions import Actions, Ran, git

pytestmark = pytest.mark.skipif(
    not (shutil.which("jq") and shutil.which("git")), reason="the stand-in for gh needs jq, and the story needs git"
)
SEED = """
people:
  - {email: anna.berg@acme.example, admin: true}
  - {email: bo.ek@acme.example}
  - {email: cy.dahl@acme.example}
groups:
  - {name: Book club, members: [cy.dahl@acme.example]}
content:
  - {name: Fire safety}
"""
OFFICERS = """
groups:
  - name: Safety officers
    members: [bo.ek@acme.example]
"""


@dataclass
class Team:
    """A repository that `lmsconf init` began, GitHub, and a served workspace."""

    actions: Actions
    sandbox: Sandbox
    clone: Path
    origin: Path
    pull: int = 0

    def push(self, branch: str, name: str, text: str) -> None:
        """Commits a manifest to a branch."""
        if git(self.clone, "branch", "--list", branch):
            git(self.clone, "checkout", "--quiet", branch)
        else:
            git(self.clone, "checkout", "--quiet", "-b", branch, "main")
        (self.clone / "manifests" / name).write_text(text, encoding="utf-8")
        git(self.clone, "add", ".")
        git(self.clone, "commit", "--quiet", "--message", f"{name} on {branch}")
        git(self.clone, "push", "--quiet", "origin", branch)

    def review(self, branch: str, *, fork: bool = False) -> dict[str, Ran]:
        """Runs what a pull request runs: on the merge of the branch into main."""
        head = git(self.clone, "rev-parse", branch)
        git(self.clone, "checkout", "--quiet", "--detach", "main")
        git(self.clone, "merge", "--quiet", "--no-ff", "--message", f"Merge {branch}", branch)
        git(self.clone, "push", "--quiet", "--force", "origin", "HEAD:refs/pull/7/merge")
        request = {"number": 7, "head": {"sha": head, "repo": {"full_name": "mallory/lms" if fork else "acme/lms"}}}
        return self.actions.run("lmsconf-plan.yml", "refs/pull/7/merge", {"pull_request": request}, fork=fork)

    def merge(self, branch: str) -> Ran:
        """Merges a pull request, and runs what a push to main runs."""
        head = git(self.clone, "rev-parse", branch)
        git(self.clone, "checkout", "--quiet", "main")
        git(self.clone, "merge", "--quiet", "--no-ff", "--message", f"Merge {branch}", branch)
        git(self.clone, "push", "--quiet", "origin", "main")
        merged = {"merged_at": "2026-01-05T08:00:00Z", "head": {"sha": head}}
        commit = git(self.clone, "rev-parse", "main")
        self.actions.write(pulls={**self.actions.state["pulls"], commit: [merged]})
        return self.apply()

    def apply(self, **inputs: str) -> Ran:
        """Runs the apply on main."""
        return self.actions.run("lmsconf-apply.yml", "main", {"inputs": inputs} if inputs else {})["apply"]

    def drift(self) -> Ran:
        """Runs what every night runs."""
        return self.actions.run("lmsconf-drift.yml", "main", {})["drift"]

    def hand(self, operation: str, path: dict[str, str] | None = None, body: Json = None) -> Json:
        """One call as somebody makes it by hand."""
        with Client("http://sandbox", "sandbox", transport=self.sandbox) as client:
            return client.call(operation, path=path, body=body)

    @property
    def groups(self) -> dict[str, str]:
        """The live groups: name → id."""
        rows = self.hand("manual-groups.list")["groups"]
        return {row["name"]: row["groupId"] for row in rows}


@pytest.fixture
def team(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Team]:
    """What a team has on its first day."""
    for name in [name for name in os.environ if name.startswith("LMSCONF_")]:
        monkeypatch.delenv(name)
    (tmp_path / "seed.yaml").write_text(SEED, encoding="utf-8")
    sandbox = Sandbox(":memory:", seed=tmp_path / "seed.yaml")
    origin, clone = tmp_path / "origin.git", tmp_path / "clone"
    git(tmp_path, "init", "--quiet", "--bare", str(origin))
    git(tmp_path, "init", "--quiet", str(clone))
    try:
        with serve(sandbox) as server:
            assert run(app, ["-C", str(clone), "init", "--url", server.url, "--ci", "github"]) == Exit.OK
            git(clone, "add", ".")
            git(clone, "commit", "--quiet", "--message", "Begin")
            git(clone, "remote", "add", "origin", str(origin))
            git(clone, "push", "--quiet", "origin", "main")
            yield Team(Actions(tmp_path, origin, {"LMSCONF_TOKEN": "sandbox"}), sandbox, clone, origin)
    finally:
        sandbox.shut()


def test_from_a_pull_request_to_drift(team: Team) -> None:
    """One comment is kept up to date, what was reviewed is applied after the merge, and drift keeps one issue."""
    team.push("officers", "officers.yaml", OFFICERS)
    ran = team.review("officers")
    assert set(ran) == {"plan"}
    assert ran["plan"].success, ran["plan"].log
    (comment,) = team.actions.state["comments"]
    assert comment["body"].startswith("<!-- lmsconf:plan:production -->")
    assert "group/Safety officers" in comment["body"]
    assert "cy.dahl@acme.example" not in comment["body"]
    assert comment["body"].partition("\n")[2] in ran["plan"].summary.partition("\n")[2]

    team.push("officers", "officers.yaml", OFFICERS.replace("bo.ek", "cy.dahl"))
    reviewed = team.review("officers")["plan"]
    (comment,) = team.actions.state["comments"]
    assert "cy.dahl@acme.example" in comment["body"]

    merged = team.merge("officers")
    assert merged.success, merged.log
    assert "Safety officers" in team.groups
    assert "### lmsconf apply" in merged.summary
    assert json.loads((merged.folder / "report.json").read_text(encoding="utf-8"))["meta"]["actor"] == "anna"

    night = team.drift()
    assert night.success, night.log
    assert team.actions.state["issues"] == []

    team.hand("manual-groups.rename", {"groupId": team.groups["Safety officers"]}, {"name": "Officers"})
    team.drift()
    night = team.drift()
    assert night.success, night.log
    (issue,) = team.actions.state["issues"]
    assert (issue["state"], issue["labels"]) == ("open", ["lms-drift"])
    assert "group/Safety officers" in issue["body"]
    places = [one["locations"][0]["physicalLocation"]["artifactLocation"]["uri"] for one in team.actions.alerts]
    assert places == ["manifests/officers.yaml"]

    team.hand("manual-groups.rename", {"groupId": team.groups["Officers"]}, {"name": "Safety officers"})
    assert team.drift().success
    (issue,) = team.actions.state["issues"]
    assert issue["state"] == "closed"
    assert team.actions.unused == {"plan": set(), "apply": set(), "drift": set()}
    assert [git(ran.folder, "status", "--porcelain") for ran in (reviewed, merged, night)] == ["", "", ""]


def test_a_pull_request_from_a_fork_is_planned_without_a_secret(team: Team) -> None:
    """It is planned against the newest snapshot of main, and says so in its summary; nothing is written on GitHub."""
    team.push("fork", "officers.yaml", OFFICERS)
    before = team.review("fork", fork=True)["plan-fork"]
    assert not before.success
    assert "there is no snapshot yet" in before.log
    assert team.drift().success
    requests = len(team.sandbox.log)
    ran = team.review("fork", fork=True)
    assert set(ran) == {"plan-fork"}
    assert ran["plan-fork"].success, ran["plan-fork"].log
    assert "group/Safety officers" in ran["plan-fork"].summary
    assert "made from a snapshot" in ran["plan-fork"].summary
    assert "cy.dahl" not in (ran["plan-fork"].folder / "snapshot.json").read_text(encoding="utf-8")
    assert len(team.sandbox.log) == requests
    assert team.actions.state["comments"] == []
    assert team.actions.unused["plan-fork"] == set()


def test_a_snapshot_from_a_fork_is_not_taken(team: Team, tmp_path: Path) -> None:
    """A run of a fork's own main can leave an artefact of that name; plans are not made against it."""
    team.push("fork", "officers.yaml", OFFICERS)
    (tmp_path / "forged").mkdir()
    run = {"id": 99, "head_branch": "main", "repository_id": 1, "head_repository_id": 2}
    forged = {"name": "lms-snapshot", "expired": False, "folder": str(tmp_path / "forged"), "workflow_run": run}
    team.actions.write(artifacts=[forged])
    assert "there is no snapshot yet" in team.review("fork", fork=True)["plan-fork"].log


def test_what_nobody_reviewed_is_not_applied(team: Team) -> None:
    """A push without a pull request changes nothing; started by hand with the digest of its plan, it is applied."""
    team.push("main", "officers.yaml", OFFICERS)
    pushed = team.apply()
    assert not pushed.success
    assert "there was no pull request" in pushed.log
    assert "group/Safety officers" in pushed.summary
    assert "Safety officers" not in team.groups
    digest = json.loads((pushed.folder / "plan.json").read_text(encoding="utf-8"))["digest"]
    assert digest in pushed.summary
    started = team.apply(digest=digest)
    assert started.success, started.log
    assert "Safety officers" in team.groups
    assert team.apply().success  # nothing to do any more, so nothing to review


def test_a_plan_that_became_another_is_not_applied(team: Team) -> None:
    """When the workspace changed between review and merge in what the plan touches, nothing is done."""
    team.push("club", "club.yaml", "groups: [{name: Book club, members: [bo.ek@acme.example]}]")
    assert team.review("club")["plan"].success
    team.hand("manual-groups.rename", {"groupId": team.groups["Book club"]}, {"name": "Reading circle"})
    merged = team.merge("club")
    assert not merged.success
    assert "plan/stale" in merged.log
    assert set(team.groups) == {"Reading circle"}


def test_manifests_that_cannot_be_planned_say_so_in_the_comment(team: Team) -> None:
    """The comment does not go on showing the plan of an earlier commit, and there is no digest to apply."""
    team.push("broken", "officers.yaml", OFFICERS)
    team.review("broken")
    team.push("broken", "officers.yaml", OFFICERS.replace("members", "memebrs"))
    assert not team.review("broken")["plan"].success
    (comment,) = team.actions.state["comments"]
    assert "### No plan" in comment["body"]
    assert git(team.clone, "rev-parse", "broken") not in team.actions.state["statuses"]
