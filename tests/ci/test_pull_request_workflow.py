"""A pull request, its comment, the merge, the apply, and drift: the workflows as they are written, in order."""

import json
import shutil
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest
from flow.shell import lmsconf
from texts import text_of

from lmsconf.api.client import Client
from lmsconf.model.canonical_json import Json
from lmsconf.sandbox.serve import serve
from lmsconf.sandbox.service import Sandbox
from lmsconf.workspace.connection import fill_if_empty

from .actions import Actions, JobResult, git

pytestmark = [
    pytest.mark.slow,
    pytest.mark.sampled(gate=2),
    pytest.mark.skipif(not (shutil.which("jq") and shutil.which("git")), reason="the stand-in for gh needs jq and git"),
]
OFFICERS = """
groups:
  - name: Safety officers
    members: [bo.ek@acme.example]
"""


class Team(Actions):
    """A repository that `lmsconf init` began, and a served workspace."""

    def __init__(self, root: Path, sandbox: Sandbox) -> None:
        super().__init__(root, {"LMSCONF_TOKEN": "sandbox"})
        self.sandbox = sandbox

    def push(self, branch: str, name: str, text: str) -> None:
        """Commits a file to a branch, and pushes it."""
        there = git(self.clone, "branch", "--list", branch)
        git(self.clone, "checkout", "--quiet", *([branch] if there else ["-b", branch, "main"]))
        (self.clone / name).write_text(text, encoding="utf-8")
        self.push_all(branch)

    def join(self, branch: str, *where: str) -> str:
        """Merges a branch into main, or into a commit that stands there detached; returns the branch's commit."""
        git(self.clone, "checkout", "--quiet", *where, "main")
        git(self.clone, "merge", "--quiet", "--no-ff", "--message", f"Merge {branch}", branch)
        return git(self.clone, "rev-parse", branch)

    def review(self, branch: str, *, fork: bool = False) -> dict[str, JobResult]:
        """Runs what a pull request runs: on the merge of the branch into main."""
        head = self.join(branch, "--detach")
        git(self.clone, "push", "--quiet", "--force", "origin", "HEAD:refs/pull/7/merge")
        return self.requested("lmsconf-plan.yml", "refs/pull/7/merge", head, fork=fork)

    def merge(self, branch: str) -> JobResult:
        """Merges a pull request, and runs what a push to main runs."""
        merged = {"merged_at": "2026-01-05T08:00:00Z", "head": {"sha": self.join(branch)}}
        git(self.clone, "push", "--quiet", "origin", "main")
        self.write(pulls={**self.state["pulls"], git(self.clone, "rev-parse", "main"): [merged]})
        return self.apply()

    def apply(self, **inputs: str) -> JobResult:
        """Runs the apply on main."""
        return self.run("lmsconf-apply.yml", "main", {"inputs": inputs} if inputs else {})["apply"]

    def drift(self) -> JobResult:
        """Runs what every night runs."""
        return self.run("lmsconf-drift.yml", "main", {})["drift"]

    def rename(self, group: str, name: str) -> None:
        """Renames a group by hand."""
        self.hand("manual-groups.rename", {"groupId": self.groups[group]}, {"name": name})

    def hand(self, operation: str, path: dict[str, str] | None = None, body: Json = None) -> Json:
        """One call as somebody makes it by hand."""
        with Client("http://sandbox", "sandbox", transport=self.sandbox) as client:
            return client.call(operation, path=path, body=body)

    @property
    def groups(self) -> dict[str, str]:
        """The live groups: name → id."""
        return {row["name"]: row["groupId"] for row in self.hand("manual-groups.list")["groups"]}

    @property
    def comment(self) -> str:
        """The only comment of the pull request."""
        (comment,) = self.state["comments"]
        return str(comment["body"])


@pytest.fixture
def team(tmp_path: Path) -> Iterator[Team]:
    """What a team has on its first day."""
    (tmp_path / "seed.yaml").write_text(text_of(__file__, "pull_request_workflow_seed.yaml"), encoding="utf-8")
    (tmp_path / "clone").mkdir()
    with ExitStack() as stack:
        sandbox = fill_if_empty(Sandbox(), tmp_path / "seed.yaml")
        stack.callback(sandbox.close_workspace)
        server = stack.enter_context(serve(sandbox))
        lmsconf(tmp_path / "clone", "init", "--url", server.url, "--ci", "github", code=0)
        pins = tmp_path / "clone" / "requirements.txt"
        pins.write_text(pins.read_text(encoding="utf-8").rstrip() + f" --hash=sha256:{'0' * 64}\n", encoding="utf-8")
        yield Team(tmp_path, sandbox)


def digest_of(ran: JobResult) -> str:
    """The digest of the plan that a run has made."""
    return str(json.loads((ran.folder / "plan.json").read_text(encoding="utf-8"))["digest"])


def test_from_a_pull_request_to_drift(team: Team) -> None:
    """One comment is kept up to date, what was reviewed is applied after the merge, and drift keeps one issue."""
    team.push("officers", "manifests/officers.yaml", OFFICERS)
    ran = team.review("officers")
    assert set(ran) == {"plan"}
    assert ran["plan"].success, ran["plan"].log
    assert team.comment.startswith("<!-- lmsconf:plan:production -->")
    assert "group/Safety officers" in team.comment
    assert "cy.dahl@acme.example" not in team.comment
    assert team.comment.partition("\n")[2] in ran["plan"].summary.partition("\n")[2]

    team.push("officers", "manifests/officers.yaml", OFFICERS.replace("bo.ek", "cy.dahl"))
    reviewed = team.review("officers")["plan"]
    assert "cy.dahl@acme.example" in team.comment

    merged = team.merge("officers")
    assert merged.success, merged.log
    assert "Safety officers" in team.groups
    assert "### lmsconf apply" in merged.summary
    assert json.loads((merged.folder / "report.json").read_text(encoding="utf-8"))["meta"]["actor"] == "anna"

    night = team.drift()
    assert night.success, night.log
    assert team.state["issues"] == []

    team.rename("Safety officers", "Officers")
    team.drift()
    night = team.drift()
    assert night.success, night.log
    (issue,) = team.state["issues"]
    assert (issue["state"], issue["labels"]) == ("open", ["lms-drift"])
    assert "group/Safety officers" in issue["body"]
    places = [one["locations"][0]["physicalLocation"]["artifactLocation"]["uri"] for one in team.alerts]
    assert places == ["manifests/officers.yaml"]

    team.rename("Officers", "Safety officers")
    assert team.drift().success
    (issue,) = team.state["issues"]
    assert issue["state"] == "closed"
    assert team.unused == {"plan": set(), "apply": set(), "drift": set()}
    assert [git(ran.folder, "status", "--porcelain") for ran in (reviewed, merged, night)] == ["", "", ""]


def test_a_pull_request_from_a_fork_is_planned_without_a_secret(team: Team, tmp_path: Path) -> None:
    """It is planned against the newest snapshot of main, and says so in its summary; nothing is written on GitHub."""
    team.push("fork", "manifests/officers.yaml", OFFICERS)
    (tmp_path / "forged").mkdir()  # which a run of a fork's own main may leave
    run = {"id": 99, "head_branch": "main", "repository_id": 1, "head_repository_id": 2}
    forged = {"name": "lms-snapshot", "expired": False, "folder": str(tmp_path / "forged"), "workflow_run": run}
    for artifacts in ([], [forged]):
        team.write(artifacts=artifacts)
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
    assert team.state["comments"] == []
    assert team.unused["plan-fork"] == set()


def test_what_nobody_reviewed_is_not_applied(team: Team) -> None:
    """A push without a pull request changes nothing; started by hand with the digest of its plan, it is applied."""
    team.push("main", "manifests/officers.yaml", OFFICERS)
    pushed = team.apply()
    assert not pushed.success
    assert "there was no pull request" in pushed.log
    assert "group/Safety officers" in pushed.summary
    assert "Safety officers" not in team.groups
    digest = digest_of(pushed)
    assert digest in pushed.summary
    started = team.apply(digest=digest)
    assert started.success, started.log
    assert "Safety officers" in team.groups
    assert team.apply().success  # nothing to do any more, so nothing to review


def test_a_plan_that_became_another_is_not_applied(team: Team) -> None:
    """When the workspace changed between review and merge in what the plan touches, nothing is done."""
    team.push("club", "manifests/club.yaml", "groups: [{name: Book club, members: [bo.ek@acme.example]}]")
    assert team.review("club")["plan"].success
    team.rename("Book club", "Reading circle")
    merged = team.merge("club")
    assert not merged.success
    assert "plan/stale" in merged.log
    assert set(team.groups) == {"Reading circle"}


def test_manifests_that_cannot_be_planned_say_so_in_the_comment(team: Team) -> None:
    """The comment tells what is wrong and where, as do annotations at the lines; there is no digest to apply."""
    team.push("broken", "manifests/officers.yaml", OFFICERS)
    team.review("broken")
    team.push("broken", "manifests/officers.yaml", OFFICERS.replace("members", "memebrs"))
    ran = team.review("broken")["plan"]
    assert not ran.success
    for words in ("### lmsconf: no plan", 'unknown key "memebrs"', "`manifests/officers.yaml:4:5`", "Did you mean"):
        assert words in team.comment
    assert "](" not in team.comment
    error = "::error file=manifests/officers.yaml,line=4,col=5,title=manifest/unknown-key::group/Safety officers: "
    assert [line for line in ran.log.splitlines() if line.startswith(error)]
    assert git(team.clone, "rev-parse", "broken") not in team.state["statuses"]


def test_nothing_is_installed_that_has_no_hash(team: Team) -> None:
    """The file that `init` writes names a version alone: every job ends before it has done anything."""
    team.push("bare", "manifests/officers.yaml", OFFICERS)
    team.push("bare", "requirements.txt", "lmsconf==0.1.0\n")
    ran = team.review("bare")["plan"]
    assert not ran.success
    assert "Hashes are required" in ran.log
    assert "### lmsconf: no plan" in team.comment
    assert team.sandbox.log == []


@pytest.mark.parametrize("forged", ["by a person", "by another workflow", "by the workflow for another commit"])
def test_a_digest_that_the_workflow_did_not_write_is_not_taken(team: Team, forged: str) -> None:
    """A status is taken from GitHub's own account alone, and from a run of the workflow that plans, of that commit."""
    team.push("officers", "manifests/officers.yaml", OFFICERS)
    assert team.review("officers")["plan"].success
    head = git(team.clone, "rev-parse", "officers")
    (real,) = team.state["statuses"][head]
    runs = team.state["runs"]
    own = json.loads(json.dumps(runs["1"]))
    if forged == "by a person":
        fake = {**real, "creator": {"login": "mallory"}}
    else:
        other = {"path": ".github/workflows/other.yml"} if "another workflow" in forged else {"head_sha": "0" * 40}
        team.write(runs={**runs, "99": {**own, **other}})
        fake = {**real, "target_url": "https://github.example/acme/lms/actions/runs/99"}
    team.write(statuses={head: [fake]})
    merged = team.merge("officers")
    assert not merged.success
    assert ("had no plan to review" if forged == "by a person" else "is not from the workflow") in merged.log
    assert "Safety officers" not in team.groups


def test_a_guard_is_allowed_by_its_number(team: Team) -> None:
    """Started by hand with the digest and the exact number, the plan that a guard stops is applied; by nothing else."""
    team.push("main", "manifests/club.yaml", "absent: {groups: [Book club]}\nx-why: guarded\n")
    text = (team.clone / "lmsconf.yaml").read_text(encoding="utf-8")
    team.push("main", "lmsconf.yaml", text + "guards: {deletes: {count: 0}}\n")
    digest = digest_of(team.apply())
    injected = ("deletes=1; touch owned", "$(touch owned)", "deletes=1 --auto-approve", "deletes=1\ntouch owned", "*")
    for wrong in ("", "deletes=2", *injected):
        ran = team.apply(digest=digest, allow=wrong)
        assert not ran.success
        assert ("allow is written as removals=214 people=3" in ran.log) is (wrong in injected)
        assert not (ran.folder / "owned").exists()
        assert "Book club" in team.groups
    started = team.apply(digest=digest, allow="deletes=1")
    assert started.success, started.log
    assert "Book club" not in team.groups


def test_an_issue_that_somebody_else_wrote_is_left_alone(team: Team) -> None:
    """Its label makes nobody's issue the workflow's: one of its own is opened, updated and closed."""
    mine = {"number": 1, "state": "open", "labels": ["lms-drift"], "user": {"login": "anna"}, "title": "x", "body": "y"}
    bots = {**mine, "number": 2, "user": {"login": "github-actions[bot]"}, "body": "from another workflow"}
    team.write(issues=[mine, bots])
    team.push("main", "manifests/officers.yaml", OFFICERS)
    for _ in range(2):
        assert team.drift().success
    first, second, own = team.state["issues"]
    assert (first, second) == (mine, bots)
    assert own["state"] == "open"
    assert "group/Safety officers" in own["body"]
