"""Slips that no other test of whole commands would notice: one condition too many, or one too few."""

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from threading import Event
from typing import Any

import httpx
import pytest
from laws.sandbox_project import TransportConnection
from msgspec.structs import replace
from texts import text_of

from lmsconf.api.spec import ApiSpec
from lmsconf.apply.run_plan import execute
from lmsconf.errors import ExitCode, InvalidResponse
from lmsconf.model.calls import CallStatus
from lmsconf.model.guards import GuardLimits
from lmsconf.model.outcomes import ApplyReport
from lmsconf.model.plan import Plan
from lmsconf.project.settings import Settings, load_settings
from lmsconf.sandbox.service import Sandbox
from lmsconf.workspace.connection import fill_if_empty
from lmsconf.workspace.project_manifests import load_manifests
from lmsconf.workspace.reader import WaitClock, WorkspaceReader

from .served_project import ServedProject, staged

SEED = text_of(__file__, "edge_cases_seed.yaml")


@pytest.fixture
def stage(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[ServedProject]:
    with staged(tmp_path, SEED, monkeypatch) as stage:
        yield stage


@contextmanager
def project(root: Path, manifests: str) -> Iterator[tuple[Settings, Sandbox]]:
    """A project and its workspace, to be spoken to in ways of a test's own."""
    (root / "seed.yaml").write_text(SEED, encoding="utf-8")
    (root / "lmsconf.yaml").write_text("workspaces: {sandbox: {url: 'sandbox:'}}\n", encoding="utf-8")
    (root / "manifests").mkdir()
    (root / "manifests" / "all.yaml").write_text(manifests, encoding="utf-8")
    sandbox = fill_if_empty(Sandbox(), root / "seed.yaml")
    try:
        yield load_settings(root, None, {}), sandbox
    finally:
        sandbox.close_workspace()


@pytest.mark.parametrize(
    ("only", "manifests"),
    [
        ("group/*", "groups: [{name: A}]"),
        ("content_target/*", "content_targets: [{content: K, assign_to: [everyone]}]"),
        ("*", "groups: [{name: A}]\nsmart_groups: [{name: S}]\ncontent_targets: [{content: K, assign_to: [everyone]}]"),
    ],
)
def test_a_part_deletes_nothing_because_it_is_owned(stage: ServedProject, only: str, manifests: str) -> None:
    """However wide the pattern: `--only` leaves to whole plans what no manifest names."""
    stage.options("ownership: {groups: all, smart_groups: all, content_targets: all}\n")
    stage.write(manifests)
    assert stage("plan", "--only", only, "--format", "json").document["changes"] == []
    assert stage("plan", "--format", "json").document["changes"] != []


def test_what_is_not_protected_can_be_renamed_beside_what_is(stage: ServedProject) -> None:
    """A pattern under `protect` is about what fits it, by its old name or its new one, and about nothing else."""
    stage.options("guards: {protect: ['group/A', 'group/N']}\n")
    stage.write("groups: [{name: E, previously: [C]}]")
    ran = stage("apply", "--auto-approve")
    assert (ran.code, [call.operation for call in ran.writes]) == (0, ["manual-groups.rename"]), ran.err
    for refused in ("{name: F, previously: [A]}", "{name: N, previously: [B]}"):
        stage.write(f"groups: [{refused}]")
        assert stage("apply", "--auto-approve", code=4).writes == []


class AnsweringTransport(httpx.BaseTransport):
    """A workspace that answers some requests otherwise: `answer` gives None for those that the sandbox answers."""

    def __init__(self, sandbox: Sandbox, answer: Callable[[httpx.Request], httpx.Response | None]) -> None:
        self.sandbox, self.answer = sandbox, answer

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        return self.answer(request) or self.sandbox.handle_request(request)


def status_only(sandbox: Sandbox, answers: Mapping[str, int]) -> AnsweringTransport:
    """A workspace that answers some operations with a status and nothing else, and does not do them."""

    def answer(request: httpx.Request) -> httpx.Response | None:
        operation, _ = sandbox.spec.match_route(request.method, request.url.path) or (None, {})
        status = answers.get(operation.id) if operation else None
        return httpx.Response(status, json={}) if status else None

    return AnsweringTransport(sandbox, answer)


WANTED = "groups: [{name: E, previously: [C]}, {name: New}]"


def applied(root: Path, answers: Mapping[str, int]) -> ApplyReport:
    """The report of an apply of a rename and a creation, during which some operations are answered so."""
    with project(root, WANTED) as (settings, sandbox):
        workspace = WorkspaceReader(
            settings=settings, connection=TransportConnection(status_only(sandbox, answers), sandbox.spec)
        )
        return execute(workspace, workspace.plan(load_manifests(settings), settings.policy), meta={})


def test_a_refusal_is_the_outcome_of_its_call(tmp_path: Path) -> None:
    """With the service's status; everything else is done, and the run is partial."""
    report = applied(tmp_path, {"manual-groups.rename": 400})
    assert report.exit == ExitCode.PARTIAL
    [failed] = [outcome for outcome in report.outcomes if outcome.status is CallStatus.FAILED]
    assert failed.operation == "manual-groups.rename"
    assert "answered 400" in (failed.reason or "")
    assert report.count(CallStatus.DONE) == len(report.outcomes) - 1


@pytest.mark.parametrize("status", [400, 404, 409, 410, 422])
@pytest.mark.parametrize(("operation", "method"), [("manual-groups.delete", "DELETE"), ("manual-groups.rename", "PUT")])
def test_only_what_is_gone_already_counts_as_deleted(tmp_path: Path, operation: str, method: str, status: int) -> None:
    """A deletion that is answered with 404 or 410 is done; otherwise a refusal of it, or of a change, is a failure."""
    with project(tmp_path, "groups: [{name: E, previously: [C]}]\nabsent: {groups: [A]}") as (settings, sandbox):
        policy = replace(settings.policy, guards=GuardLimits().with_limits({"removals": None}))
        workspace = WorkspaceReader(
            settings=settings,
            connection=TransportConnection(status_only(sandbox, {operation: status}), sandbox.spec),
        )
        report = execute(workspace, workspace.plan(load_manifests(settings), policy), meta={})
    [outcome] = [one for one in report.outcomes if one.operation == operation]
    is_done = method == "DELETE" and status in (404, 410)
    assert outcome.status is (CallStatus.DONE if is_done else CallStatus.FAILED)


@pytest.mark.parametrize("status", [400, 404, 409, 422])
def test_a_removal_of_somebody_who_is_not_there_is_done(tmp_path: Path, status: int) -> None:
    """Whatever the status of the refusal: the list is read, and does not have the person."""
    with project(tmp_path, "groups: [{name: A, managers: []}]") as (settings, sandbox):

        def removed_before(request: httpx.Request) -> httpx.Response | None:
            if request.method != "DELETE" or "/managers/" not in request.url.path:
                return None
            sandbox.handle_request(request)
            return httpx.Response(status, json={"error": "nobody of that id is in the list"})

        connection = TransportConnection(AnsweringTransport(sandbox, removed_before), sandbox.spec)
        workspace = WorkspaceReader(settings=settings, connection=connection)
        policy = replace(settings.policy, guards=GuardLimits().with_limits({"removals": None}))
        report = execute(workspace, workspace.plan(load_manifests(settings), policy), meta={})
    assert [one.status for one in report.outcomes] == [CallStatus.DONE]


class NoIdTransport(httpx.BaseTransport):
    """A workspace that answers creations without an id, makes so many of each, and may ignore `skip`."""

    def __init__(self, sandbox: Sandbox, times: int, *, skips: bool = True) -> None:
        self.sandbox, self.times, self.skips = sandbox, times, skips

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        if request.method == "POST" and request.url.path == "/groups":
            for _ in range(self.times):
                self.sandbox.handle_request(request)
            return httpx.Response(201, json={})
        if request.method == "GET" and not self.skips:
            request.url = request.url.copy_remove_param("skip")
        return self.sandbox.handle_request(request)


def muted(root: Path, **kinds: Any) -> ApplyReport:
    """The report of an apply that makes one group on such a workspace, in a time that nobody waits for."""
    now = 0.0

    def sleep(seconds: float, stop_waiting: Event) -> None:
        nonlocal now
        now += seconds

    with project(root, "groups: [{name: New}]") as (settings, sandbox):
        plan = WorkspaceReader(settings=settings, connection=TransportConnection(sandbox, sandbox.spec)).plan(
            load_manifests(settings), settings.policy
        )
        link = TransportConnection(NoIdTransport(sandbox, **kinds), sandbox.spec)
        timing = WaitClock(now=lambda: now, sleep=sleep)
        return execute(WorkspaceReader(settings=settings, connection=link, timing=timing), plan, meta={})


@pytest.mark.parametrize(("times", "status"), [(1, CallStatus.DONE), (2, CallStatus.FAILED)])
def test_what_was_made_without_an_id_is_found_by_its_name(tmp_path: Path, times: int, status: CallStatus) -> None:
    """One of that name is the one that was made; of two nobody knows, and both are named."""
    [outcome] = muted(tmp_path, times=times).outcomes
    assert outcome.status is status
    assert ("live more than once" in (outcome.reason or "")) == (times > 1)


def test_a_listing_without_an_end_ends_the_lookup(tmp_path: Path) -> None:
    """A service that ignores `skip` is not asked for ever; whether the group was made is told to be unknown."""
    report = muted(tmp_path, times=1, skips=False)
    [outcome] = report.outcomes
    assert (outcome.status, outcome.unsure, report.exit) == (CallStatus.FAILED, True, ExitCode.PARTIAL)
    assert outcome.reason == "a page of groups returned only rows that were already read"


def test_calls_that_were_accepted_and_changed_nothing_are_told(tmp_path: Path) -> None:
    """Exit 6, with what is there instead and the dialect key to look at; what did change is not told."""
    report = applied(tmp_path, {"manual-groups.rename": 200})
    assert (report.exit, report.converged) == (ExitCode.NOT_CONVERGED, False)
    assert {outcome.status for outcome in report.outcomes} == {CallStatus.DONE}
    assert [str(change.address) for change in report.residue] == ["group/E"]
    [problem] = report.problems
    assert (problem.code, problem.address) == ("apply/no-effect", "group/E")
    said = 'group/E: the service accepted the calls, but it is still not as planned: name is "C", not "E"'
    assert problem.message == said
    assert "manual-groups.rename.name" in (problem.hint or "")


def test_they_are_told_beside_a_call_that_failed(tmp_path: Path) -> None:
    """Exit 5: what failed has its reason, and what was accepted without effect has its dialect key all the same."""
    report = applied(tmp_path, {"manual-groups.rename": 200, "manual-groups.create": 400})
    assert (report.exit, report.converged) == (ExitCode.PARTIAL, False)
    assert [(one.code, one.address) for one in report.problems] == [("apply/no-effect", "group/E")]


@pytest.mark.parametrize("ends", ["/members", "/managers"])
def test_a_list_that_an_answer_lacks_is_not_an_empty_one(tmp_path: Path, ends: str) -> None:
    """Nobody would be taken out, and everybody put in once more: the answer is refused, and there is no plan."""
    wanted = "groups: [{name: A, members: [anna@acme.example], managers: [bo@acme.example]}]"
    with project(tmp_path, wanted) as (settings, sandbox):

        def plan(ends: str) -> Plan:
            # Pages of one make it cheaper to ask the group than everybody.
            empty = AnsweringTransport(
                sandbox, lambda request: httpx.Response(200, json={}) if request.url.path.endswith(ends) else None
            )
            link = TransportConnection(empty, ApiSpec({"paging.limit": 1}))
            workspace = WorkspaceReader(settings=settings, connection=link)
            return workspace.plan(load_manifests(settings), settings.policy)

        assert plan("/nothing").changes == ()
        with pytest.raises(InvalidResponse, match="userIds"):
            plan(ends)


def test_choices_that_look_renamed_are_paired_with_the_likest_and_none_twice(stage: ServedProject) -> None:
    """Each new name is in one likely rename, though it looks like two old ones; one more is just new."""
    for before, after, lines in (
        ("Stockholm, Oslo", "Oslo 2, Stockholms, Bergen", [("Oslo 2", "Oslo"), ("Stockholms", "Stockholm")]),
        ("Oslo 1, Oslo 2", "Oslo 3, Bergen", [("Oslo 3", "Oslo 1"), ("Bergen", "Oslo 2")]),
    ):
        stage.write(f"custom_fields: [{{name: Place, type: CHOICE, choices: [{before}]}}]")
        assert stage("apply", "--auto-approve", "--allow", "recreates=2").code == 0
        stage.write(f"custom_fields: [{{name: Place, choices: [{after}]}}]")
        document: Any = stage("plan", "--format", "json").document
        [guard] = [one for one in document["guards"] if one["name"] == "recreates"]
        assert (guard["total"], guard["tripped"]) == (2, True)
        likely = {"guard": "recreates", "of": "custom_field/Place", "taken": 1, "size": 0}
        assert [one for one in document["measures"] if one["guard"] == "recreates"] == [likely, likely]
        [change] = document["changes"]
        said = [f'write - {{name: "{new}", previously: ["{old}"]}}' for new, old in lines]
        assert [line in one["hint"] for line, one in zip(said, change["problems"], strict=True)] == [True, True]
        stage.write("absent: {custom_fields: [Place]}")
        assert stage("apply", "--auto-approve").code == 0
