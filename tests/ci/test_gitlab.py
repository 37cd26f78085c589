"""The pipeline for GitLab: the scripts of its jobs run as they are written, from a merge request to drift."""

import json
import shutil
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import junitparser
import pytest
import yaml
from flow.shell import lmsconf

from lmsconf.api.client import Client
from lmsconf.errors import ExitCode
from lmsconf.sandbox.serve import serve
from lmsconf.sandbox.service import Sandbox
from lmsconf.workspace.connection import fill_if_empty

from .actions import commit, git
from .engines import SCRIPT, shell

pytestmark = pytest.mark.skipif(not (shutil.which("git") and shutil.which("curl")), reason="the jobs need git and curl")


class Pipeline:
    """A project on GitLab, and the workspace behind it. `log`: what all jobs have printed."""

    def __init__(self, folder: Path, sandbox: Sandbox) -> None:
        self.folder, self.sandbox, self.log = folder, sandbox, ""
        self._jobs: dict[str, Any] = yaml.safe_load((folder / ".gitlab-ci.yml").read_text(encoding="utf-8"))

    def __call__(self, job: str, **variables: str) -> int:
        """Runs the script of a job, and gives its exit code. What it keeps stays in the folder."""
        given = {
            "CI_COMMIT_SHA": git(self.folder, "rev-parse", "HEAD"),
            "CI_MERGE_REQUEST_DIFF_BASE_SHA": git(self.folder, "rev-parse", "main"),
            "GITLAB_USER_LOGIN": "anna",
            **variables,
        }
        code, said = shell([*SCRIPT, "\n".join(self._jobs[job]["script"])], self.folder, given)
        self.log += said
        return code

    def kept(self, name: str) -> Any:
        """A JSON file that a job left."""
        return json.loads((self.folder / name).read_text(encoding="utf-8"))


@pytest.fixture
def pipeline(tmp_path: Path) -> Iterator[Pipeline]:
    """A project that `lmsconf init` began, with a branch that adds a group."""
    (tmp_path / "seed.yaml").write_text("people: [{email: bo.ek@acme.example}, {email: cy.dahl@acme.example}]\n")
    sandbox, folder = fill_if_empty(Sandbox(), tmp_path / "seed.yaml"), tmp_path / "lms"
    with ExitStack() as stack:
        stack.callback(sandbox.close_workspace)
        lmsconf(tmp_path, "init", "lms", "--url", stack.enter_context(serve(sandbox)).url, "--ci", "gitlab", code=0)
        git(folder, "init", "--quiet")
        commit(folder)
        git(folder, "checkout", "--quiet", "-b", "officers")
        group = "groups: [{name: Safety officers, members: [bo.ek@acme.example]}]\n"
        (folder / "manifests" / "officers.yaml").write_text(group, encoding="utf-8")
        commit(folder)
        yield Pipeline(folder, sandbox)


@pytest.mark.slow
def test_from_a_merge_request_to_drift(pipeline: Pipeline) -> None:
    """The merge request gets its counts, the signed plan of main is applied, and an edit by hand is a failed case."""
    keys = {"LMSCONF_TOKEN": "sandbox", "LMSCONF_PLAN_KEY": "long and random, as a key should be"}
    assert pipeline("plan", LMSCONF_TOKEN="sandbox") == ExitCode.OK
    assert pipeline.kept("plan-report.json") == {"create": 1, "update": 0, "delete": 0}
    assert [change["origin"] for change in pipeline.kept("plan.json")["changes"]] == ["from this change"]
    assert pipeline("apply", **keys) == ExitCode.STALE  # a plan that nobody signed

    assert pipeline("plan-main", **keys) == ExitCode.OK
    for allow in ("deletes=1; touch owned", "$(touch owned)", "deletes=1\ntouch owned"):
        assert pipeline("apply", **keys, ALLOW=allow) == ExitCode.USAGE
    assert not (pipeline.folder / "owned").exists()
    assert pipeline("apply", **keys, ALLOW="") == ExitCode.OK
    assert "<html" in (pipeline.folder / "report.html").read_text(encoding="utf-8")
    assert pipeline("drift", **keys) == ExitCode.OK

    with Client("http://sandbox", "sandbox", transport=pipeline.sandbox) as client:
        client.call("manual-groups.remove-member", path={"groupId": "g-1", "userId": "u-1"})
    assert pipeline("drift", **keys) == ExitCode.CHANGES
    assert junitparser.JUnitXml.fromfile(str(pipeline.folder / "drift.xml")).failures == 1
    assert '{"create": 1, "update": 0, "delete": 0}\n' in pipeline.log
    assert "Safety officers" in (pipeline.folder / "plan.html").read_text(encoding="utf-8")
    assert "bo.ek" not in pipeline.log
    assert "Safety officers" not in pipeline.log
    assert git(pipeline.folder, "status", "--porcelain") == ""


@pytest.mark.slow
def test_a_merge_request_with_errors_shows_them_at_their_lines(pipeline: Pipeline) -> None:
    """The job fails, the page holds the problems, and the report of code quality has each with its file and line."""
    broken = "groups: [{name: Safety officers, memebrs: [bo.ek@acme.example]}]\n"
    (pipeline.folder / "manifests" / "officers.yaml").write_text(broken, encoding="utf-8")
    assert pipeline("plan", LMSCONF_TOKEN="sandbox") == ExitCode.ERROR
    (finding,) = pipeline.kept("plan-quality.json")
    assert finding["location"] == {"path": "manifests/officers.yaml", "lines": {"begin": 1}}
    assert "Did you mean" in finding["description"]
    assert "memebrs" in (pipeline.folder / "plan.html").read_text(encoding="utf-8")
    assert git(pipeline.folder, "status", "--porcelain").split() == ["M", "manifests/officers.yaml"]


@pytest.mark.sampled(day=4, daily=False)
def test_a_merge_request_from_a_fork_is_planned_without_a_variable(pipeline: Pipeline, tmp_path: Path) -> None:
    """It fetches the snapshot that the last pipeline of main kept, and asks the workspace nothing."""
    assert pipeline("snapshot", LMSCONF_TOKEN="sandbox") == ExitCode.OK
    artifacts = tmp_path / "projects" / "7" / "jobs" / "artifacts" / "main" / "raw"
    artifacts.mkdir(parents=True)
    (pipeline.folder / "snapshot.json").rename(artifacts / "snapshot.json")
    requests = len(pipeline.sandbox.log)
    assert pipeline("plan-fork", CI_API_V4_URL=tmp_path.as_uri(), CI_MERGE_REQUEST_PROJECT_ID="7") == ExitCode.OK
    assert len(pipeline.sandbox.log) == requests
    assert "Safety officers" not in pipeline.log
    assert pipeline.kept("plan-report.json") == {"create": 1, "update": 0, "delete": 0}
