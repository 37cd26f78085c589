"""Writes whose answers never came: looked up by what they make, and never repeated blindly."""

from itertools import product
from pathlib import Path
from threading import Event

import httpx
import pytest
from msgspec.structs import replace
from texts import text_of
from waiting import Interruptions, awaited

from lmsconf.api.client import Client
from lmsconf.api.concurrent_requests import WorkerPool
from lmsconf.api.retry_and_rate_limit import RetryPolicy
from lmsconf.apply.run_plan import execute
from lmsconf.errors import ExitCode, ProblemsFound
from lmsconf.model.calls import CallStatus, Report
from lmsconf.model.outcomes import ApplyReport
from lmsconf.project.settings import load_settings
from lmsconf.sandbox.service import Sandbox
from lmsconf.workspace.connection import Connection, fill_if_empty
from lmsconf.workspace.project_manifests import load_manifests
from lmsconf.workspace.reader import WaitClock, WorkspaceReader

SEED = text_of(__file__, "ambiguous_writes_seed.yaml")
WANTED = text_of(__file__, "ambiguous_writes_wanted.yaml")


class FaultyTransport(httpx.BaseTransport):
    """A way to the sandbox on which something happens to the first call of an operation, in time that is made up."""

    def __init__(self, sandbox: Sandbox, operation: str, mishap: str) -> None:
        self.sandbox, self.operation, self.mishap = sandbox, operation, mishap
        self.time = 0.0
        self.late: list[tuple[float, httpx.Request]] = []

    def sleep(self, seconds: float) -> None:
        self.time += seconds
        for due, request in [one for one in self.late if one[0] <= self.time]:
            self.late.remove((due, request))
            self.sandbox.handle_request(request)

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        route = self.sandbox.spec.match_route(request.method, request.url.path)
        if self.mishap == "none" or route is None or route[0].id != self.operation:
            return self.sandbox.handle_request(request)
        mishap, self.mishap = self.mishap, "none"
        if mishap == "twice":
            self.sandbox.handle_request(request)
            self.sandbox.handle_request(request)
        elif mishap.startswith("late"):
            self.late.append((self.time + float(mishap.split()[1]), request))
        elif mishap == "done":
            self.sandbox.handle_request(request)
        elif mishap == "portal":
            return httpx.Response(200, content=b"<html>Please log in</html>")
        elif mishap == "no answer":
            self.sandbox.handle_request(request)
            return httpx.Response(200, content=b"")
        raise httpx.ReadError("cut")


class FaultyConnection(Connection):
    """A connection over such a way."""

    def __init__(self, way: FaultyTransport) -> None:
        self.name, self.url, self.spec, self.way = "sandbox", "sandbox:", way.sandbox.spec, way

    def worker_pool(self, parallelism: int, progress: Report | None = None) -> WorkerPool:
        retry = RetryPolicy(sleep=self.way.sleep)
        return WorkerPool(
            lambda: Client("http://sandbox", "sandbox", spec=self.spec, transport=self.way, retry=retry),
            parallelism=parallelism,
        )


class AmbiguousWrite:
    """A workspace, what is wanted of it, and one mishap on the way."""

    def __init__(self, root: Path, operation: str, mishap: str) -> None:
        (root / "manifests").mkdir()
        (root / "manifests" / "all.yaml").write_text(WANTED)
        (root / "seed.yaml").write_text(SEED)
        (root / "lmsconf.yaml").write_text('workspaces: {sandbox: {url: "sandbox:"}}\n')
        self.settings = load_settings(root, None, {})
        self.way = FaultyTransport(fill_if_empty(Sandbox(), root / "seed.yaml"), operation, mishap)
        self.workspace = WorkspaceReader(
            settings=self.settings,
            connection=FaultyConnection(self.way),
            timing=WaitClock(now=lambda: self.way.time, sleep=lambda seconds, _: self.way.sleep(seconds)),
        )

    def apply(self) -> ApplyReport:
        plan = self.workspace.plan(load_manifests(self.settings), self.settings.policy)
        return execute(self.workspace, plan, meta={})

    def sent(self, operation: str) -> int:
        """How often the service carried that out."""
        return sum(one.operation == operation and one.status < 300 for one in self.way.sandbox.log)


OPERATIONS = [
    "custom-fields.create",
    "manual-groups.create",
    "manual-groups.add-members",
    "manual-groups.remove-member",
    "smart-groups.create",
    "content-targets.create",
]
MAKING = [one for one in OPERATIONS if one.endswith(".create")]


@pytest.mark.sampled
@pytest.mark.parametrize(
    ("operation", "mishap"),
    [
        *product(OPERATIONS, ["none", "done", "cut", "portal", "no answer"]),
        *product(MAKING, ["late 12"]),
    ],
)
def test_a_lost_answer_is_settled(tmp_path: Path, operation: str, mishap: str) -> None:
    """Done or not, at once or later: the run finds out, finishes, and nothing is there twice."""
    scene = AmbiguousWrite(tmp_path, operation, mishap)
    usual = {"content-targets.create": 2, "manual-groups.add-members": 2}.get(operation, 1)
    report = scene.apply()
    assert (report.exit, report.converged) == (ExitCode.OK, True), report
    assert not scene.way.late
    assert scene.sent(operation) <= usual + (mishap != "none" and operation not in MAKING)


@pytest.mark.sampled(day=4)
@pytest.mark.parametrize("operation", MAKING)
def test_nothing_new_is_asked_for_again_before_the_time_is_over(tmp_path: Path, operation: str) -> None:
    """A call that may still arrive is waited for; one that never does is sent again after that."""
    scene = AmbiguousWrite(tmp_path, operation, "cut")
    assert scene.apply().exit == ExitCode.OK
    assert 30 <= scene.way.time < 40
    other = tmp_path / "other"
    other.mkdir()
    scene = AmbiguousWrite(other, operation, "done")
    assert scene.apply().exit == ExitCode.OK
    assert scene.way.time == 0


@pytest.mark.parametrize("operation", ["manual-groups.create", "smart-groups.create"])
def test_what_was_done_twice_stops_the_run(tmp_path: Path, operation: str) -> None:
    """Two of what should be one: both ids are named, what depends on it is not done, and neither is deleted."""
    scene = AmbiguousWrite(tmp_path, operation, "twice")
    report = scene.apply()
    assert report.exit == ExitCode.PARTIAL
    failed = [one for one in report.outcomes if one.status is CallStatus.FAILED]
    assert ["live more than once, with the ids" in str(one.reason) for one in failed] == [True]
    assert scene.sent(operation) == 2


def test_a_twin_that_appears_later_is_a_named_stop(tmp_path: Path) -> None:
    """What arrives after the settling time makes a second one: the next plan names both ids, and does nothing."""
    scene = AmbiguousWrite(tmp_path, "manual-groups.create", "late 30.1")
    scene.apply()
    scene.way.sleep(1)
    assert scene.sent("manual-groups.create") == 2
    with pytest.raises(ProblemsFound) as found:
        scene.apply()
    assert any("live more than once, with the ids" in one.message for one in found.value.problems)


def test_who_wants_to_go_does_not_wait_for_the_settling_time(tmp_path: Path) -> None:
    """Ctrl-C while a lost answer is settled: what is doubtful is reported as such, and the next run finds out."""
    scene = AmbiguousWrite(tmp_path, "manual-groups.create", "cut")
    usual = scene.workspace

    def cut(seconds: float, stop_waiting: Event) -> None:
        ctrl_c.send()
        awaited(stop_waiting)

    scene.workspace = replace(usual, timing=WaitClock(now=lambda: scene.way.time, sleep=cut))
    with Interruptions() as ctrl_c:
        report = scene.apply()
    assert report.exit == ExitCode.INTERRUPTED
    assert scene.way.time == 0
    assert scene.sent("manual-groups.create") == 0
    scene.workspace = usual
    assert scene.apply().exit == ExitCode.OK
