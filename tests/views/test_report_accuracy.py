"""What reports of real runs on the embedded workspace say where it is easy to say too much."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest
from document_samples import COMPLETE, DIVERGED, DOUBLED, LOST, PARTIAL, STOPPED, UNREAD
from integrity.served_project import ServedProject, staged
from laws.sandbox_project import TransportConnection, VirtualClock
from msgspec.structs import replace

from lmsconf.apply.run import execute
from lmsconf.errors import ExitCode
from lmsconf.model.outcomes import ApplyReport
from lmsconf.project.settings import load_settings
from lmsconf.render import APPLY_VIEWS, apply_text
from lmsconf.sandbox.service import Sandbox
from lmsconf.workspace.project_manifests import load_manifests
from lmsconf.workspace.reader import WorkspaceReader

SEED = """\
people:
- {email: anna@acme.example, admin: true, answers: {Country: SE}}
- {email: bo@acme.example}
custom_fields: [{name: Country, type: CHOICE, choices: [SE, NO]}]
content: [{name: GDPR}]
groups: [{name: Old}]
"""
PEOPLES = ("text", "markdown", "html")


class FaultyTransport(httpx.BaseTransport):
    """A way to the workspace on which one operation goes wrong each time: `ignored`, `doubled` or `cut`."""

    def __init__(self, sandbox: Sandbox, operation: str, how: str) -> None:
        self.sandbox, self.operation, self.how = sandbox, operation, how

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        operation, _ = self.sandbox.spec.match_route(request.method, request.url.path) or (None, {})
        if operation is not None and operation.id == self.operation:
            if self.how == "cut":
                raise httpx.ReadError("cut")
            if self.how == "ignored":
                return httpx.Response(200, json={})
            self.sandbox.handle_request(request)
        return self.sandbox.handle_request(request)


def applied(root: Path, manifests: str, operation: str, how: str) -> ApplyReport:
    """The report of an apply during which that operation goes wrong so."""
    (root / "seed.yaml").write_text(SEED, encoding="utf-8")
    (root / "lmsconf.yaml").write_text("workspaces: {sandbox: {url: 'sandbox:'}}\n", encoding="utf-8")
    (root / "manifests").mkdir()
    (root / "manifests" / "all.yaml").write_text(manifests, encoding="utf-8")
    sandbox = Sandbox(":memory:", seed=root / "seed.yaml")
    try:
        settings, link = (
            load_settings(root, None, {}),
            TransportConnection(FaultyTransport(sandbox, operation, how), sandbox.spec),
        )
        workspace = WorkspaceReader(settings=settings, connection=link, timing=VirtualClock().timing())
        return execute(workspace, workspace.plan(load_manifests(settings), settings.policy), meta={})
    finally:
        sandbox.close_workspace()


@pytest.mark.parametrize("view", PEOPLES)
def test_what_was_accepted_without_effect_is_not_complete(tmp_path: Path, view: str) -> None:
    """Every call was accepted and one did nothing: no format says complete, and each says how much differs."""
    report = applied(tmp_path, "groups: [{name: New, previously: [Old]}]", "manual-groups.rename", "ignored")
    assert report.exit == ExitCode.NOT_CONVERGED
    said = APPLY_VIEWS[view](report)
    assert "Apply ended, but the workspace is not as planned: 1 resource differs (1 API call done)." in said
    assert "complete" not in said


@pytest.mark.parametrize("view", PEOPLES)
def test_what_came_twice_is_counted_as_an_error(tmp_path: Path, view: str) -> None:
    """Nothing differs that a plan could mend, so the errors are counted, and not the resources."""
    report = applied(tmp_path, "groups: [{name: New}]", "manual-groups.create", "doubled")
    assert (report.exit, report.residue) == (ExitCode.NOT_CONVERGED, ())
    said = APPLY_VIEWS[view](report)
    assert "Read back: the workspace does not match the manifests; a new plan finds 1 error." in said
    assert "not as planned: a new plan finds 1 error (1 API call done)." in said
    assert "0 resources" not in said


@pytest.mark.parametrize("view", PEOPLES)
def test_a_lost_answer_may_have_done_something(tmp_path: Path, view: str) -> None:
    """Where the only call's answer never came, no format claims that nothing was done."""
    report = applied(tmp_path, "groups: [{name: New}]", "manual-groups.create", "cut")
    assert report.exit == ExitCode.PARTIAL
    said = APPLY_VIEWS[view](report)
    assert "Apply stopped. It is not known whether anything was done: none of 1 API call is confirmed." in said
    assert "before anything" not in said


@pytest.mark.parametrize(
    ("report", "said"),
    [
        (COMPLETE, "Apply complete! 2 resources changed (3 API calls)."),
        (DIVERGED, "Apply ended, but the workspace is not as planned: 1 resource differs (3 API calls done)."),
        (DOUBLED, "Apply ended, but the workspace is not as planned: a new plan finds 1 error (1 API call done)."),
        (UNREAD, "Apply ended, but it is not known whether the workspace is as planned (3 API calls done)."),
        (PARTIAL, "Apply incomplete. 1 of 5 API calls done."),
        (STOPPED, "Apply stopped before any change. 0 of 2 API calls done."),
        (
            replace(STOPPED, exit=130, outcomes=PARTIAL.outcomes[4:]),
            "Apply stopped before any change. 0 of 1 API call done.",
        ),
        (
            replace(LOST, exit=130),
            "Apply stopped. It is not known whether anything was done: none of 2 API calls is confirmed.",
        ),
        (LOST, "Apply stopped. It is not known whether anything was done: none of 2 API calls is confirmed."),
    ],
)
def test_the_last_line_says_what_holds(report: ApplyReport, said: str) -> None:
    """A run is complete where its result was seen; of any other the last line says what is known, and no more."""
    assert apply_text(report).splitlines()[-1] == said


@pytest.fixture
def stage(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[ServedProject]:
    with staged(tmp_path, SEED, monkeypatch) as stage:
        yield stage


@pytest.mark.parametrize("view", PEOPLES)
def test_a_snapshot_shows_no_name_of_ours(stage: ServedProject, view: str) -> None:
    """What a snapshot keeps beside the resources is told in an administrator's words."""
    saved = stage.root / "snapshot.json"
    assert stage("snapshot", str(saved)).code == 0
    ran = stage("show", str(saved), "--format", view)
    assert ran.code == 0, ran.err
    assert "1 choice that somebody holds" in ran.out
    assert "1 person with administrator rights" in ran.out
    assert "holders" not in ran.out
