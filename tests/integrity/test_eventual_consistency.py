"""A service that shows late what was done, or does not do what it accepted."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from threading import Event

import httpx
import pytest
from texts import listed_cases, text_of
from wire.second_dialect import known_dialect

from lmsconf.api.spec import ApiSpec
from lmsconf.errors import ExitCode
from lmsconf.model.calls import CallStatus
from lmsconf.model.outcomes import ApplyReport, VerifyMode
from lmsconf.sandbox.service import Sandbox
from lmsconf.workspace.reader import WaitClock

from .served_project import LinkedProject, linked


@dataclass
class StaleReadTransport(httpx.BaseTransport):
    """The way to a workspace in made-up time, whose answers to reads are so many seconds old; some writes do nothing.

    idle: the end of the path of writes that are answered and not done. refused: of those that are answered with 403.
    barred: the end of the path of reads that are refused with a status once something was written.
    """

    sandbox: Sandbox
    lag: float = 0.0
    idle: str = "nothing"
    refused: str = "nothing"
    barred: str = "nothing"
    status: int = 404
    now: float = 0.0
    sent: list[str] = field(default_factory=list)
    told: list[float] = field(default_factory=list)
    _states: list[float] = field(default_factory=list)

    def sleep(self, seconds: float, stop_waiting: Event) -> None:
        self.now += seconds

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        if request.method == "GET" or request.url.path == "/analyse/results":
            barred = self.sent and request.url.path.endswith(self.barred)
            return httpx.Response(self.status, json={"message": "gone"}) if barred else self._seen(request)
        path = request.url.path
        self.sent.append(f"{request.method} {path}")
        if path.endswith(self.refused):
            return httpx.Response(403, json={"message": "no"})
        if path.endswith(self.idle):
            return httpx.Response(200, json={})
        self.sandbox.store.checkpoint(str(len(self._states)))
        self._states.append(self.now)
        return self.sandbox.handle_request(request)

    def _seen(self, request: httpx.Request) -> httpx.Response:
        """The answer as of so many seconds ago: before the first write that is younger."""
        young = next((number for number, at in enumerate(self._states) if at > self.now - self.lag), None)
        if young is None:
            return self.sandbox.handle_request(request)
        self.sandbox.store.checkpoint("now")
        self.sandbox.store.restore(str(young))
        answer = self.sandbox.handle_request(request)
        answer.read()
        self.sandbox.store.restore("now")
        return answer


@pytest.fixture
def project(tmp_path: Path) -> Iterator[LinkedProject]:
    seed = text_of(__file__, "eventual_consistency_seed.yaml")
    options = "guards: {min_admins: 1}\nownership: {content_targets: declared_content}\n"
    with linked(tmp_path, seed, "", options, "https://lms.example") as project:
        yield project


def applied(project: LinkedProject, late: StaleReadTransport, manifests: str) -> ApplyReport:
    timing = WaitClock(now=lambda: late.now, sleep=late.sleep, tell=late.told.append)
    return project.apply(project.reader(late, ApiSpec(known_dialect()), parallelism=1, timing=timing), manifests)


def members(project: LinkedProject) -> list[str]:
    """Who is in group A."""
    with project.sandbox.store.read_transaction() as repository:
        return sorted(map(str, repository.column("SELECT person FROM members WHERE grp = 'g-1'")))


TWO = "groups: [{name: A, members: [bo@acme.example]}, {name: New, members: [cy@acme.example]}]"


@pytest.mark.sampled(day=3)
@pytest.mark.parametrize("lag", [0.0, 2.0, 20.0])
def test_what_shows_late_is_waited_for(project: LinkedProject, lag: float) -> None:
    """The run looks until all of it shows, and has converged; the next one finds nothing to do.

    What shows at once costs no second look.
    """
    late = StaleReadTransport(project.sandbox, lag)
    report = applied(project, late, TWO)
    assert report.exit == ExitCode.OK, report
    assert late.now >= lag
    assert late.told[:1] == ([30.0] if lag else [])
    assert lag or late.now == 0
    assert members(project) == ["u-2"]
    late.sent.clear()
    assert applied(project, late, TWO).converged
    assert late.sent == []


@pytest.mark.parametrize(("lag", "seen"), [(20.0, True), (60.0, False)])
def test_what_was_made_is_waited_for_although_more_of_it_failed(project: LinkedProject, lag: float, seen: bool) -> None:
    """A call of the same group was refused; the group itself shows late, and made again it would be there twice."""
    late = StaleReadTransport(project.sandbox, lag, refused="/members")
    report = applied(project, late, "groups: [{name: New, members: [cy@acme.example]}]")
    made, refused = report.outcomes
    assert (made.status, refused.status) == (CallStatus.DONE, CallStatus.FAILED)
    assert (report.everything_seen, late.now >= min(lag, 30.0)) == (seen, True)
    told = [problem.message for problem in report.problems]
    assert told == ([] if seen else ["group/New: the service accepted its creation, but it still cannot be read"])


def test_what_never_shows_ends_the_wait(project: LinkedProject) -> None:
    """After the settling time the run says that it did not converge."""
    late = StaleReadTransport(project.sandbox, idle="/groups")
    assert applied(project, late, "groups: [{name: A}, {name: New}]").exit == ExitCode.NOT_CONVERGED
    assert late.now >= 30


@listed_cases("before", "wanted", "first", "reason", "hint", "then")
def test_nothing_is_taken_before_what_replaces_it_is_there(
    project: LinkedProject,
    before: str,
    wanted: str,
    first: list[str],
    reason: str,
    hint: str,
    then: list[str] | None,
) -> None:
    """A grant that is accepted and has no effect stops what would be taken after it; one that shows late does not.

    The last of the `first` calls has no effect; `then` are all calls of a run on which what was done shows late.
    """
    applied(project, StaleReadTransport(project.sandbox), before)
    late = StaleReadTransport(project.sandbox, idle=first[-1].partition(" ")[2])
    report = applied(project, late, wanted)
    assert (late.sent, report.exit) == (first, ExitCode.PARTIAL)
    *done, grant = report.outcomes[: len(first)]
    assert {one.status for one in done} <= {CallStatus.DONE}
    assert (grant.status, grant.reason) == (CallStatus.FAILED, f"the service accepted it, and {reason}")
    assert hint in (grant.hint or "")
    assert {one.status for one in report.outcomes[len(first) :]} == {CallStatus.BLOCKED}
    if then is not None:
        late = StaleReadTransport(project.sandbox, lag=5.0)
        assert applied(project, late, wanted).exit == ExitCode.OK
        assert late.sent == then


@pytest.mark.sampled(day=2)
@pytest.mark.parametrize("audience", ["{user: cy@acme.example}", "everyone"])
def test_an_assignment_that_may_be_listed_under_another_id_is_not_waited_for(
    project: LinkedProject, audience: str
) -> None:
    """Without `replaces`, an assignment to a person or to everyone need not show before another one is deleted."""
    late = StaleReadTransport(project.sandbox, idle="/content/targets")
    wanted = (
        f"content_targets: [{{content: K, assign_to: [{audience}]}}]\n"
        "absent: {content_targets: [{content: K, assign_to: [{group: A}]}]}\n"
    )
    report = applied(project, late, wanted)
    assert late.sent == ["POST /content/targets", "DELETE /content/targets"]
    assert [one.status for one in report.outcomes] == [CallStatus.DONE] * 2


def test_a_right_that_is_lacking_stops_only_what_needs_it(project: LinkedProject) -> None:
    """A 403 on one write: everything that does not depend on it is done, and the run is partial."""
    late = StaleReadTransport(project.sandbox, refused="/groups")
    report = applied(project, late, TWO)
    assert report.exit == ExitCode.PARTIAL
    assert members(project) == ["u-2"]
    assert report.summary[CallStatus.NOT_ATTEMPTED] == 0
    assert applied(project, late, TWO).exit == ExitCode.UNAUTHORIZED


def test_a_run_that_cannot_be_read_back_says_why(project: LinkedProject) -> None:
    """The report has the error of the read, and does not claim that the workspace matches or differs."""
    late = StaleReadTransport(project.sandbox, barred="/groups", status=401)
    report = applied(project, late, "groups: [{name: A}, {name: New}]")
    assert [one.status for one in report.outcomes] == [CallStatus.DONE]
    assert (report.exit, report.converged, report.residue) == (ExitCode.NOT_CONVERGED, None, ())
    assert (report.verified.scope, report.verified.resources) == (VerifyMode.NONE, 0)
    [problem] = report.problems
    assert problem.code == "api/unauthorized"
    assert report.verified.reason == problem.message
    assert problem.message.startswith("GET /groups at sandbox answered 401")


def test_a_grant_that_nobody_could_look_at_is_not_called_undone(project: LinkedProject) -> None:
    """Where the list cannot be read after the call, nobody knows; something may have been done, and nobody goes."""
    late = StaleReadTransport(project.sandbox, barred="/members")
    report = applied(project, late, "groups: [{name: A, members: [cy@acme.example]}]")
    grant, revocation = report.outcomes
    assert (grant.status, grant.unsure, revocation.status) == (CallStatus.FAILED, True, CallStatus.BLOCKED)
    assert report.exit == ExitCode.PARTIAL
    assert members(project) == ["u-1", "u-3"]
