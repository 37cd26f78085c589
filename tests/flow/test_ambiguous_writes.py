"""Writes whose answers never came: looked up by what they make, and never repeated blindly."""

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from itertools import product
from pathlib import Path
from threading import Event

import httpx
import pytest
from integrity.served_project import LinkedProject, linked
from msgspec.structs import replace
from texts import text_of
from waiting import Interruptions, awaited

from lmsconf.errors import ExitCode, ProblemsFound
from lmsconf.model.calls import CallStatus
from lmsconf.model.outcomes import ApplyReport
from lmsconf.sandbox.service import Sandbox
from lmsconf.workspace.reader import WaitClock

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


class AmbiguousWrite:
    """A workspace, what is wanted of it, and one mishap on the way."""

    def __init__(self, project: LinkedProject, operation: str, mishap: str) -> None:
        self.project, self.way = project, FaultyTransport(project.sandbox, operation, mishap)
        timing = WaitClock(now=lambda: self.way.time, sleep=lambda seconds, _: self.way.sleep(seconds))
        self.workspace = project.reader(self.way, timing=timing)

    def apply(self) -> ApplyReport:
        return self.project.apply(self.workspace)

    def sent(self, operation: str) -> int:
        """How often the service carried that out."""
        return sum(one.operation == operation and one.status < 300 for one in self.way.sandbox.log)


Open = Callable[[str, str], AmbiguousWrite]


@pytest.fixture
def opened(tmp_path: Path) -> Iterator[Open]:
    """Opens a workspace with a mishap at the first call of an operation."""
    with ExitStack() as stack:
        yield lambda operation, mishap: AmbiguousWrite(
            stack.enter_context(linked(tmp_path / mishap, SEED, WANTED)), operation, mishap
        )


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
def test_a_lost_answer_is_settled(opened: Open, operation: str, mishap: str) -> None:
    """Done or not, at once or later: the run finds out, finishes, and nothing is there twice."""
    scene = opened(operation, mishap)
    usual = {"content-targets.create": 2, "manual-groups.add-members": 2}.get(operation, 1)
    report = scene.apply()
    assert (report.exit, report.converged) == (ExitCode.OK, True), report
    assert not scene.way.late
    assert scene.sent(operation) <= usual + (mishap != "none" and operation not in MAKING)


@pytest.mark.sampled(day=4)
@pytest.mark.parametrize("operation", MAKING)
def test_nothing_new_is_asked_for_again_before_the_time_is_over(opened: Open, operation: str) -> None:
    """A call that may still arrive is waited for; one that never does is sent again after that."""
    scene = opened(operation, "cut")
    assert scene.apply().exit == ExitCode.OK
    assert 30 <= scene.way.time < 40
    scene = opened(operation, "done")
    assert scene.apply().exit == ExitCode.OK
    assert scene.way.time == 0


@pytest.mark.parametrize("operation", ["manual-groups.create", "smart-groups.create"])
def test_what_was_done_twice_stops_the_run(opened: Open, operation: str) -> None:
    """Two of what should be one: both ids are named, what depends on it is not done, and neither is deleted."""
    scene = opened(operation, "twice")
    report = scene.apply()
    assert report.exit == ExitCode.PARTIAL
    failed = [one for one in report.outcomes if one.status is CallStatus.FAILED]
    assert ["live more than once, with the ids" in str(one.reason) for one in failed] == [True]
    assert scene.sent(operation) == 2


def test_a_twin_that_appears_later_is_a_named_stop(opened: Open) -> None:
    """What arrives after the settling time makes a second one: the next plan names both ids, and does nothing."""
    scene = opened("manual-groups.create", "late 30.1")
    scene.apply()
    scene.way.sleep(1)
    assert scene.sent("manual-groups.create") == 2
    with pytest.raises(ProblemsFound) as found:
        scene.apply()
    assert any("live more than once, with the ids" in one.message for one in found.value.problems)


def test_who_wants_to_go_does_not_wait_for_the_settling_time(opened: Open) -> None:
    """Ctrl-C while a lost answer is settled: what is doubtful is reported as such, and the next run finds out."""
    scene = opened("manual-groups.create", "cut")
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
