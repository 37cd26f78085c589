"""A service that shows late what was done, or does not do what it accepted."""

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from threading import Event

import httpx
import pytest
from laws.sandbox_project import TransportConnection
from texts import text_of
from wire.second_dialect import known_dialect

from lmsconf.api.spec import ApiSpec
from lmsconf.apply.run_plan import execute
from lmsconf.errors import ExitCode
from lmsconf.model.calls import Call, CallStatus
from lmsconf.model.outcomes import ApplyReport, VerifyMode
from lmsconf.project.settings import load_settings
from lmsconf.sandbox.service import Sandbox
from lmsconf.workspace.connection import fill_if_empty
from lmsconf.workspace.project_manifests import load_manifests
from lmsconf.workspace.reader import WaitClock, WorkspaceReader

SEED = text_of(__file__, "eventual_consistency_seed.yaml")


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
def sandbox(tmp_path: Path) -> Iterator[Sandbox]:
    (tmp_path / "seed.yaml").write_text(SEED, encoding="utf-8")
    (tmp_path / "lmsconf.yaml").write_text(
        "workspaces: {w: {url: 'https://lms.example', token: {env: LMSCONF_T}}}\nguards: off\n",
        encoding="utf-8",
    )
    sandbox = fill_if_empty(Sandbox(), tmp_path / "seed.yaml")
    yield sandbox
    sandbox.close_workspace()


def applied(
    root: Path,
    late: StaleReadTransport,
    manifests: str,
    keep: Callable[[Call], None] | None = None,
    verify: VerifyMode = VerifyMode.ALL,
) -> ApplyReport:
    """Plans and applies the manifests. keep: called before each call."""
    (root / "manifests").mkdir(exist_ok=True)
    (root / "manifests" / "all.yaml").write_text(manifests, encoding="utf-8")
    settings = load_settings(root, None, {"LMSCONF_T": "sandbox"})
    timing = WaitClock(now=lambda: late.now, sleep=late.sleep, tell=late.told.append)
    link = TransportConnection(late, ApiSpec(known_dialect()))
    workspace = WorkspaceReader(settings=settings, connection=link, parallelism=1, timing=timing)
    return execute(
        workspace, workspace.plan(load_manifests(settings), settings.policy), meta={}, before_call=keep, verify=verify
    )


def members(sandbox: Sandbox, list: str = "members") -> list[str]:
    request = httpx.Request("GET", f"http://sandbox/groups/g-1/{list}", headers={"authorization": "Bearer sandbox"})
    return sorted(json.loads(sandbox.handle_request(request).read())["userIds"])


@pytest.mark.sampled(day=3)
@pytest.mark.parametrize("lag", [0.0, 2.0, 20.0])
def test_what_shows_late_is_waited_for(tmp_path: Path, sandbox: Sandbox, lag: float) -> None:
    """The run looks until all of it shows, and has converged; the next one finds nothing to do."""
    late = StaleReadTransport(sandbox, lag)
    wanted = "groups: [{name: A, members: [bo@acme.example]}, {name: New, members: [cy@acme.example]}]"
    report = applied(tmp_path, late, wanted)
    assert report.exit == ExitCode.OK, report
    assert late.now >= lag
    assert late.told[:1] == ([30.0] if lag else [])
    assert members(sandbox) == ["u-2"]
    late.sent.clear()
    assert applied(tmp_path, late, wanted).converged
    assert late.sent == []


@pytest.mark.parametrize(("lag", "seen"), [(20.0, True), (60.0, False)])
def test_what_was_made_is_waited_for_although_more_of_it_failed(
    tmp_path: Path, sandbox: Sandbox, lag: float, seen: bool
) -> None:
    """A call of the same group was refused; the group itself shows late, and made again it would be there twice."""
    late = StaleReadTransport(sandbox, lag, refused="/members")
    report = applied(tmp_path, late, "groups: [{name: New, members: [cy@acme.example]}]")
    made, refused = report.outcomes
    assert (made.status, refused.status) == (CallStatus.DONE, CallStatus.FAILED)
    assert (report.everything_seen, late.now >= min(lag, 30.0)) == (seen, True)
    told = [problem.message for problem in report.problems]
    assert told == ([] if seen else ["group/New: the service accepted its creation, but it still cannot be read"])


def test_without_lag_nobody_waits(tmp_path: Path, sandbox: Sandbox) -> None:
    """What shows at once costs no second look."""
    late = StaleReadTransport(sandbox)
    assert applied(tmp_path, late, "groups: [{name: A, members: [bo@acme.example]}]").converged
    assert late.now == 0


def test_what_never_shows_ends_the_wait(tmp_path: Path, sandbox: Sandbox) -> None:
    """After the settling time the run says that it did not converge, and which dialect key to look at."""
    late = StaleReadTransport(sandbox, idle="/groups")
    report = applied(tmp_path, late, "groups: [{name: A}, {name: New}]")
    assert report.exit != ExitCode.OK
    assert late.now >= 30


@pytest.mark.parametrize("key", ["members", "managers"])
def test_nobody_is_taken_out_before_whoever_comes_is_in(tmp_path: Path, sandbox: Sandbox, key: str) -> None:
    """A grant that is accepted and has no effect stops what would be taken away after it."""
    before = members(sandbox, key)
    late = StaleReadTransport(sandbox, idle=f"/{key}")
    report = applied(tmp_path, late, f"groups: [{{name: A, {key}: [cy@acme.example]}}]")
    assert members(sandbox, key) == before
    assert [one.split()[0] for one in late.sent] == ["POST"]
    grant, revocation = report.outcomes
    assert (grant.status, revocation.status) == (CallStatus.FAILED, CallStatus.BLOCKED)
    assert report.exit == ExitCode.PARTIAL
    assert grant.reason == "the service accepted it, and 1 of 1 are not in the list; nobody is removed"
    assert grant.hint is not None
    assert f"manual-groups.add-{key}.userIds" in grant.hint


def test_no_group_is_deleted_before_its_members_are_in_another(tmp_path: Path, sandbox: Sandbox) -> None:
    """Members who are to move keep their group, and what is assigned to it, while the additions have no effect."""
    before = members(sandbox)
    late = StaleReadTransport(sandbox, idle="/members")
    report = applied(tmp_path, late, "groups: [{name: B, members: [anna@acme.example]}]\nabsent: {groups: [A]}\n")
    assert members(sandbox) == before
    assert [one.split()[0] for one in late.sent] == ["POST", "POST"]
    assert [one.status for one in report.outcomes] == [
        CallStatus.DONE,
        CallStatus.FAILED,
        CallStatus.BLOCKED,
        CallStatus.BLOCKED,
    ]
    assert report.outcomes[1].reason == "the service accepted it, and 1 of 1 are not in the list; nobody is removed"


@pytest.mark.parametrize("lag", [0.0, 5.0])
def test_no_field_is_deleted_before_its_answers_are_in_another(tmp_path: Path, sandbox: Sandbox, lag: float) -> None:
    """A copy without effect keeps the old field, a late one does not."""
    fields = "custom_fields: [{name: New, type: TEXT, migrate: {from: Old}}]"
    answers = "users: [{email: anna@acme.example, answers: {Old: Red}}, {email: bo@acme.example, answers: {Old: Red}}]"
    applied(tmp_path, StaleReadTransport(sandbox), f"custom_fields: [{{name: Old, type: TEXT}}]\n{answers}")
    late = StaleReadTransport(sandbox, idle="/update-custom-field-choice")
    report = applied(tmp_path, late, fields)
    assert [one.status for one in report.outcomes] == [
        CallStatus.DONE,
        CallStatus.FAILED,
        CallStatus.FAILED,
        CallStatus.BLOCKED,
    ]
    assert report.outcomes[1].reason == (
        "the service accepted it, and 1 of 1 are not among the person's answers; "
        "what they were copied from is not deleted"
    )
    late = StaleReadTransport(sandbox, lag)
    assert applied(tmp_path, late, fields).exit == ExitCode.OK
    assert [one.split()[0] for one in late.sent] == ["POST", "POST", "DELETE"]


def test_nobody_loses_rights_before_whoever_gets_them_has_them(tmp_path: Path, sandbox: Sandbox) -> None:
    """Where the new administrator is none, the only one stays one, also one who would be archived."""
    options = (tmp_path / "lmsconf.yaml").read_text(encoding="utf-8")
    (tmp_path / "lmsconf.yaml").write_text(options.replace("guards: off", "guards: {min_admins: 1}"), encoding="utf-8")
    for loss in ("admin: false", "archived: true"):
        late = StaleReadTransport(sandbox, idle="/make-admin/true")
        report = applied(
            tmp_path, late, f"users: [{{email: cy@acme.example, admin: true}}, {{email: bo@acme.example, {loss}}}]"
        )
        assert [one.split()[1].rpartition("/users/")[2] for one in late.sent] == ["u-3/make-admin/true"]
        grant, *revocations = report.outcomes
        assert (grant.status, {one.status for one in revocations}) == (CallStatus.FAILED, {CallStatus.BLOCKED})
        reason = "the service accepted it, and the person is not an administrator; nobody is removed"
        assert grant.reason == reason


def test_an_assignment_stays_until_what_replaces_it_is_there(tmp_path: Path, sandbox: Sandbox) -> None:
    """Content goes from one group to another; where the new one does not get it, the old one keeps it."""
    (tmp_path / "lmsconf.yaml").write_text(
        (tmp_path / "lmsconf.yaml").read_text(encoding="utf-8") + "ownership: {content_targets: declared_content}\n",
        encoding="utf-8",
    )
    wanted = "groups: [{name: B}]\ncontent_targets: [{content: K, assign_to: [{group: B}]}]"
    late = StaleReadTransport(sandbox, idle="/content/targets")
    report = applied(tmp_path, late, wanted)
    assert [one.split()[0] for one in late.sent] == ["POST", "POST"]
    assert [one.status for one in report.outcomes] == [CallStatus.DONE, CallStatus.FAILED, CallStatus.BLOCKED]
    assert "the content is not assigned; nobody is removed" in (report.outcomes[1].reason or "")
    late = StaleReadTransport(sandbox, lag=5.0)
    assert applied(tmp_path, late, wanted).exit == ExitCode.OK
    assert [one.split()[0] for one in late.sent] == ["POST", "DELETE"]


@pytest.mark.sampled(day=2)
@pytest.mark.parametrize("audience", ["{user: cy@acme.example}", "everyone"])
def test_an_assignment_that_may_be_listed_under_another_id_is_not_waited_for(
    tmp_path: Path, sandbox: Sandbox, audience: str
) -> None:
    """Without `replaces`, an assignment to a person or to everyone need not show before another one is deleted."""
    late = StaleReadTransport(sandbox, idle="/content/targets")
    report = applied(
        tmp_path,
        late,
        f"content_targets: [{{content: K, assign_to: [{audience}]}}]\n"
        "absent: {content_targets: [{content: K, assign_to: [{group: A}]}]}\n",
    )
    assert [one.split()[0] for one in late.sent] == ["POST", "DELETE"]
    assert [one.status for one in report.outcomes] == [CallStatus.DONE, CallStatus.DONE]


@pytest.mark.sampled
@pytest.mark.parametrize("audience", ["{group: A}", "{user: cy@acme.example}", "everyone"])
def test_a_content_stays_until_the_one_that_replaces_it_is_there(
    tmp_path: Path, sandbox: Sandbox, audience: str
) -> None:
    """With `replaces`, the new content is read back for every audience; without effect, the old one is not removed."""
    applied(tmp_path, StaleReadTransport(sandbox), f"content_targets: [{{content: K, assign_to: [{audience}]}}]")
    wanted = f"content_targets: [{{content: L, assign_to: [{audience}], replaces: {{content: K, then: remove}}}}]"
    late = StaleReadTransport(sandbox, idle="/content/targets")
    report = applied(tmp_path, late, wanted)
    assert [one.status for one in report.outcomes] == [CallStatus.FAILED, CallStatus.BLOCKED]
    assert "the content is not assigned" in (report.outcomes[0].reason or "")
    assert [one.split()[0] for one in late.sent] == ["POST"]
    late = StaleReadTransport(sandbox, lag=5.0)
    assert applied(tmp_path, late, wanted).exit == ExitCode.OK
    assert [one.split()[0] for one in late.sent] == ["POST", "DELETE"]


def test_a_right_that_is_lacking_stops_only_what_needs_it(tmp_path: Path, sandbox: Sandbox) -> None:
    """A 403 on one write: everything that does not depend on it is done, and the run is partial."""
    late = StaleReadTransport(sandbox, refused="/groups")
    wanted = "groups: [{name: A, members: [bo@acme.example]}, {name: New, members: [cy@acme.example]}]"
    report = applied(tmp_path, late, wanted)
    assert report.exit == ExitCode.PARTIAL
    assert members(sandbox) == ["u-2"]
    assert report.count(CallStatus.NOT_ATTEMPTED) == 0
    again = applied(tmp_path, late, wanted)
    assert again.exit == ExitCode.UNAUTHORIZED


def test_a_run_that_cannot_be_read_back_says_why(tmp_path: Path, sandbox: Sandbox) -> None:
    """The report has the error of the read, and does not claim that the workspace matches or differs."""
    late = StaleReadTransport(sandbox, barred="/groups", status=401)
    report = applied(tmp_path, late, "groups: [{name: A}, {name: New}]")
    assert [one.status for one in report.outcomes] == [CallStatus.DONE]
    assert (report.exit, report.converged, report.residue) == (ExitCode.NOT_CONVERGED, None, ())
    assert (report.verified.scope, report.verified.resources) == (VerifyMode.NONE, 0)
    [problem] = report.problems
    assert problem.code == "api/unauthorized"
    assert report.verified.reason == problem.message
    assert problem.message.startswith("GET /groups at sandbox answered 401")


def test_a_grant_that_nobody_could_look_at_is_not_called_undone(tmp_path: Path, sandbox: Sandbox) -> None:
    """Where the list cannot be read after the call, nobody knows; something may have been done, and nobody goes."""
    late = StaleReadTransport(sandbox, barred="/members")
    report = applied(tmp_path, late, "groups: [{name: A, members: [cy@acme.example]}]")
    grant, revocation = report.outcomes
    assert (grant.status, grant.unsure, revocation.status) == (CallStatus.FAILED, True, CallStatus.BLOCKED)
    assert report.exit == ExitCode.PARTIAL
    assert members(sandbox) == ["u-1", "u-3"]
