"""A pull request, its comment, the merge, the apply, and drift: the workflows as they are written, in order."""

import json
import os
import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from texts import text_of

from lmsconf.api.client import Client
from lmsconf.cli import app, run_command_line
from lmsconf.errors import ExitCode
from lmsconf.model.canonical_json import Json
from lmsconf.sandbox.serve import serve
from lmsconf.sandbox.service import Sandbox
from lmsconf.workspace.connection import fill_if_empty

from .actions import Actions, JobResult, git

_LACKS = not (shutil.which("jq") and shutil.which("git"))
pytestmark = [
    pytest.mark.slow,
    pytest.mark.sampled(gate=2),
    pytest.mark.skipif(_LACKS, reason="the stand-in for gh needs jq, and the story needs git"),
]
SEED = text_of(__file__, "pull_request_workflow_seed.yaml")
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

    def review(self, branch: str, *, fork: bool = False) -> dict[str, JobResult]:
        """Runs what a pull request runs: on the merge of the branch into main."""
        head = git(self.clone, "rev-parse", branch)
        git(self.clone, "checkout", "--quiet", "--detach", "main")
        git(self.clone, "merge", "--quiet", "--no-ff", "--message", f"Merge {branch}", branch)
        git(self.clone, "push", "--quiet", "--force", "origin", "HEAD:refs/pull/7/merge")
        request = {"number": 7, "head": {"sha": head, "repo": {"full_name": "mallory/lms" if fork else "acme/lms"}}}
        return self.actions.run("lmsconf-plan.yml", "refs/pull/7/merge", {"pull_request": request}, fork=fork)

    def merge(self, branch: str) -> JobResult:
        """Merges a pull request, and runs what a push to main runs."""
        head = git(self.clone, "rev-parse", branch)
        git(self.clone, "checkout", "--quiet", "main")
        git(self.clone, "merge", "--quiet", "--no-ff", "--message", f"Merge {branch}", branch)
        git(self.clone, "push", "--quiet", "origin", "main")
        merged = {"merged_at": "2026-01-05T08:00:00Z", "head": {"sha": head}}
        commit = git(self.clone, "rev-parse", "main")
        self.actions.write(pulls={**self.actions.state["pulls"], commit: [merged]})
        return self.apply()

    def apply(self, **inputs: str) -> JobResult:
        """Runs the apply on main."""
        return self.actions.run("lmsconf-apply.yml", "main", {"inputs": inputs} if inputs else {})["apply"]

    def drift(self) -> JobResult:
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
    sandbox = fill_if_empty(Sandbox(), tmp_path / "seed.yaml")
    origin, clone = tmp_path / "origin.git", tmp_path / "clone"
    git(tmp_path, "init", "--quiet", "--bare", str(origin))
    git(tmp_path, "init", "--quiet", str(clone))
    try:
        with serve(sandbox) as server:
            assert (
                run_command_line(app, ["-C", str(clone), "init", "--url", server.url, "--ci", "github"]) == ExitCode.OK
            )
            pinned = (clone / "requirements.txt").read_text(encoding="utf-8")
            (clone / "requirements.txt").write_text(pinned.rstrip() + f" --hash=sha256:{'0' * 64}\n", encoding="utf-8")
            git(clone, "add", ".")
            git(clone, "commit", "--quiet", "--message", "Begin")
            git(clone, "remote", "add", "origin", str(origin))
            git(clone, "push", "--quiet", "origin", "main")
            yield Team(Actions(tmp_path, origin, {"LMSCONF_TOKEN": "sandbox"}), sandbox, clone, origin)
    finally:
        sandbox.close_workspace()


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
    """The comment tells what is wrong and where, as do annotations at the lines; there is no digest to apply."""
    team.push("broken", "officers.yaml", OFFICERS)
    team.review("broken")
    team.push("broken", "officers.yaml", OFFICERS.replace("members", "memebrs"))
    ran = team.review("broken")["plan"]
    assert not ran.success
    said = ran.log
    (comment,) = team.actions.state["comments"]
    assert "### lmsconf: no plan" in comment["body"]
    assert 'unknown key "memebrs"' in comment["body"]
    assert "`manifests/officers.yaml:4:5`" in comment["body"]
    assert "Did you mean" in comment["body"]
    assert "](" not in comment["body"]
    error = "::error file=manifests/officers.yaml,line=4,col=5,title=manifest/unknown-key::group/Safety officers: "
    assert [line for line in said.splitlines() if line.startswith(error)]
    assert git(team.clone, "rev-parse", "broken") not in team.actions.state["statuses"]


def test_nothing_is_installed_that_has_no_hash(team: Team) -> None:
    """The file that `init` writes names a version alone: every job ends before it has done anything."""
    team.push("bare", "officers.yaml", OFFICERS)
    (team.clone / "requirements.txt").write_text("lmsconf==0.1.0\n", encoding="utf-8")
    git(team.clone, "commit", "--quiet", "--all", "--message", "Bare")
    git(team.clone, "push", "--quiet", "origin", "bare")
    ran = team.review("bare")["plan"]
    assert not ran.success
    assert "Hashes are required" in ran.log
    (comment,) = team.actions.state["comments"]
    assert "### lmsconf: no plan" in comment["body"]
    assert team.sandbox.log == []


@pytest.mark.parametrize("forged", ["by a person", "by another workflow", "by the workflow for another commit"])
def test_a_digest_that_the_workflow_did_not_write_is_not_taken(team: Team, forged: str) -> None:
    """A status is taken from GitHub's own account alone, and from a run of the workflow that plans, of that commit."""
    team.push("officers", "officers.yaml", OFFICERS)
    assert team.review("officers")["plan"].success
    head = git(team.clone, "rev-parse", "officers")
    (real,) = team.actions.state["statuses"][head]
    runs = team.actions.state["runs"]
    own = json.loads(json.dumps(runs["1"]))
    if forged == "by a person":
        fake = {**real, "creator": {"login": "mallory"}}
    else:
        other = {"path": ".github/workflows/other.yml"} if "another workflow" in forged else {"head_sha": "0" * 40}
        team.actions.write(runs={**runs, "99": {**own, **other}})
        fake = {**real, "target_url": "https://github.example/acme/lms/actions/runs/99"}
    team.actions.write(statuses={head: [fake]})
    merged = team.merge("officers")
    assert not merged.success
    assert ("had no plan to review" if forged == "by a person" else "is not from the workflow") in merged.log
    assert "Safety officers" not in team.groups


def test_a_guard_is_allowed_by_its_number(team: Team) -> None:
    """Started by hand with the digest and the exact number, the plan that a guard stops is applied."""
    team.push("main", "club.yaml", "absent: {groups: [Book club]}\nx-why: guarded\n")
    text = (team.clone / "lmsconf.yaml").read_text(encoding="utf-8")
    (team.clone / "lmsconf.yaml").write_text(text + "guards: {deletes: {count: 0}}\n", encoding="utf-8")
    git(team.clone, "commit", "--quiet", "--all", "--message", "Guard")
    git(team.clone, "push", "--quiet", "origin", "main")
    stopped = team.apply()
    digest = json.loads((stopped.folder / "plan.json").read_text(encoding="utf-8"))["digest"]
    for wrong in ("", "deletes=2"):
        assert not team.apply(digest=digest, allow=wrong).success
        assert "Book club" in team.groups
    started = team.apply(digest=digest, allow="deletes=1")
    assert started.success, started.log
    assert "Book club" not in team.groups


@pytest.mark.parametrize(
    "allow", ["deletes=1; touch owned", "$(touch owned)", "deletes=1 --auto-approve", "deletes=1\ntouch owned", "*"]
)
def test_what_is_allowed_is_nothing_but_guards(team: Team, allow: str) -> None:
    """An input that is no list of guards with their numbers ends the run before anything is applied."""
    team.push("main", "officers.yaml", OFFICERS)
    digest = json.loads((team.apply().folder / "plan.json").read_text(encoding="utf-8"))["digest"]
    started = team.apply(digest=digest, allow=allow)
    assert not started.success
    assert "allow is written as removals=214 people=3" in started.log
    assert not (started.folder / "owned").exists()
    assert "Safety officers" not in team.groups


def test_an_issue_that_somebody_else_wrote_is_left_alone(team: Team) -> None:
    """Its label makes nobody's issue the workflow's: one of its own is opened, updated and closed."""
    mine = {"number": 1, "state": "open", "labels": ["lms-drift"], "user": {"login": "anna"}, "title": "x", "body": "y"}
    bots = {**mine, "number": 2, "user": {"login": "github-actions[bot]"}, "body": "from another workflow"}
    team.actions.write(issues=[mine, bots])
    team.push("main", "officers.yaml", OFFICERS)
    for _ in range(2):
        assert team.drift().success
    first, second, own = team.actions.state["issues"]
    assert (first, second) == (mine, bots)
    assert own["state"] == "open"
    assert "group/Safety officers" in own["body"]
