"""Slips that no other test of whole commands would notice: one condition too many, or one too few."""

from collections.abc import Iterator, Mapping
from pathlib import Path
from threading import Event
from typing import Any

import httpx
import pytest
from texts import text_of
from waiting import nobody_waits

from lmsconf.api.spec import ApiSpec
from lmsconf.errors import ExitCode, InvalidResponse
from lmsconf.model.calls import CallStatus
from lmsconf.model.outcomes import ApplyReport
from lmsconf.sandbox.faults import Fault, FaultScript
from lmsconf.workspace.reader import WaitClock

from .served_project import OtherAnswers, ServedProject, linked, staged

SEED = text_of(__file__, "edge_cases_seed.yaml")


@pytest.fixture
def stage(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[ServedProject]:
    with staged(tmp_path, SEED, monkeypatch) as stage:
        yield stage


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


WANTED = "groups: [{name: E, previously: [C]}, {name: New}]"


def applied(root: Path, answers: Mapping[str, int], manifests: str = WANTED) -> ApplyReport:
    """The report of an apply during which some operations are not done, and answered with a status and nothing else."""
    with linked(root, SEED, manifests, "guards: off\n") as project:

        def answer(request: httpx.Request) -> httpx.Response | None:
            operation, _ = project.sandbox.spec.match_route(request.method, request.url.path) or (None, {})
            status = answers.get(operation.id) if operation else None
            return httpx.Response(status, json={}) if status else None

        return project.apply(OtherAnswers(project.sandbox, answer))


def test_a_refusal_is_the_outcome_of_its_call(tmp_path: Path) -> None:
    """With the service's status; everything else is done, and the run is partial."""
    report = applied(tmp_path, {"manual-groups.rename": 400})
    assert report.exit == ExitCode.PARTIAL
    [failed] = [outcome for outcome in report.outcomes if outcome.status is CallStatus.FAILED]
    assert failed.operation == "manual-groups.rename"
    assert "answered 400" in (failed.reason or "")
    assert report.summary[CallStatus.DONE] == len(report.outcomes) - 1


@pytest.mark.parametrize("status", [400, 404, 409, 410, 422])
@pytest.mark.parametrize("operation", ["manual-groups.delete", "manual-groups.rename"])
def test_only_what_is_gone_already_counts_as_deleted(tmp_path: Path, operation: str, status: int) -> None:
    """A deletion that is answered with 404 or 410 is done; otherwise a refusal of it, or of a change, is a failure."""
    report = applied(tmp_path, {operation: status}, "groups: [{name: E, previously: [C]}]\nabsent: {groups: [A]}")
    [outcome] = [one for one in report.outcomes if one.operation == operation]
    is_done = operation == "manual-groups.delete" and status in (404, 410)
    assert outcome.status is (CallStatus.DONE if is_done else CallStatus.FAILED)


@pytest.mark.parametrize("status", [400, 404, 409, 422])
def test_a_removal_of_somebody_who_is_not_there_is_done(tmp_path: Path, status: int) -> None:
    """Whatever the status of the refusal: the list is read, and does not have the person."""
    with linked(tmp_path, SEED, "groups: [{name: A, managers: []}]", "guards: off\n") as project:

        def removed_before(request: httpx.Request) -> httpx.Response | None:
            if request.method != "DELETE" or "/managers/" not in request.url.path:
                return None
            project.sandbox.handle_request(request)
            return httpx.Response(status, json={"error": "nobody of that id is in the list"})

        report = project.apply(OtherAnswers(project.sandbox, removed_before))
    assert [one.status for one in report.outcomes] == [CallStatus.DONE]


def muted(root: Path, times: int, *, skips: bool = True) -> ApplyReport:
    """The report of an apply that makes two groups, one after the other, in a time that nobody waits for.

    The workspace answers creations without an id, makes so many of each, and may ignore `skip` once one was made.
    """
    now, made = 0.0, False

    def sleep(seconds: float, stop_waiting: Event) -> None:
        nonlocal now
        now += seconds

    def answer(request: httpx.Request) -> httpx.Response | None:
        nonlocal made
        if request.method == "POST" and request.url.path == "/groups":
            made = True
            for _ in range(times):
                project.sandbox.handle_request(request)
            return httpx.Response(201, json={})
        if made and not skips:
            request.url = request.url.copy_remove_param("skip")
        return None

    with linked(root, SEED, "groups: [{name: New}, {name: Next}]") as project:
        timing = WaitClock(now=lambda: now, sleep=sleep)
        return project.apply(project.reader(OtherAnswers(project.sandbox, answer), timing=timing, parallelism=1))


@pytest.mark.parametrize(
    ("times", "skips", "statuses", "reason"),
    [
        (1, True, [CallStatus.DONE, CallStatus.DONE], None),
        (2, True, [CallStatus.FAILED, CallStatus.NOT_ATTEMPTED], "live more than once"),
        (
            1,
            False,
            [CallStatus.FAILED, CallStatus.FAILED],
            "a page of groups returned only rows that were already read",
        ),
    ],
)
def test_what_was_made_without_an_id_is_found_by_its_name(
    tmp_path: Path, times: int, skips: bool, statuses: list[CallStatus], reason: str | None
) -> None:
    """One of that name is the one that was made; of two nobody knows: both are named, and nothing else is sent.

    A service that ignores `skip` is not asked for ever; whether the group was made is told to be unknown.
    """
    report = muted(tmp_path, times, skips=skips)
    assert [one.status for one in report.outcomes] == statuses
    outcome = report.outcomes[0]
    assert outcome.reason is None if reason is None else reason in str(outcome.reason)
    assert skips or (outcome.unsure, outcome.reason, report.exit) == (True, reason, ExitCode.PARTIAL)


def test_a_call_that_may_have_been_done_can_be_undone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its answer is lost, and the look that follows is refused: nothing is confirmed, and the way back is told."""
    nobody_waits(monkeypatch)
    lost = Fault(operation="manual-groups.create", lose_answer=True)
    refused = Fault(operation="manual-groups.list", after=4, times="always", status=403)  # the plan's reads go before
    with staged(tmp_path, SEED, monkeypatch, faults=FaultScript(lost, refused)) as stage:
        stage.write("groups: [{name: New}]")
        ran = stage("apply", "--auto-approve", code=ExitCode.PARTIAL)
    assert "none of 1 API call is confirmed.\nUndo: lmsconf " in ran.told


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
    small_pages = ApiSpec({"paging.limit": 1})  # which make it cheaper to ask the group than everybody
    with linked(tmp_path, SEED, wanted) as project:
        assert project.plan(project.reader(spec=small_pages)).changes == ()
        empty = OtherAnswers(
            project.sandbox, lambda one: httpx.Response(200, json={}) if one.url.path.endswith(ends) else None
        )
        with pytest.raises(InvalidResponse, match="userIds"):
            project.plan(project.reader(empty, small_pages))


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
