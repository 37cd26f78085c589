"""A journal says what is about to be done before it is done, or nothing is done."""

import errno
import json
import os
import stat
from collections import defaultdict
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path

import pytest
from journal.conftest import CALLS, KEEP_ALL, JournalProject
from msgspec.structs import replace

from lmsconf.apply.run_plan import execute
from lmsconf.apply.scheduler import ApplyEvents
from lmsconf.documents.journal.journal_reader import parse_journal
from lmsconf.documents.journal.journal_writer import Journal
from lmsconf.documents.plan_file import plan_digest
from lmsconf.errors import ExitCode, LmsconfError
from lmsconf.model.calls import Call, CallStatus, Report, RunProgress
from lmsconf.model.outcomes import CallOutcome, CallState
from lmsconf.support.secrets import register_secret


def test_a_call_is_on_the_disk_before_it_is_sent(scene: JournalProject) -> None:
    """Whenever a write arrives, what a power cut would leave of the journal says that it was begun, and not ended."""
    plan, lasting, seen = scene.plan(), 0, []

    def sync(descriptor: int) -> None:
        nonlocal lasting
        os.fsync(descriptor)
        lasting = os.fstat(descriptor).st_size

    with scene.begin(plan, sync=sync) as journal:

        def arrives(operation: str) -> None:
            left = parse_journal("left", journal.path.read_bytes()[:lasting])
            assert operation in [call.operation for call in left.in_flight]
            seen.append(operation)

        scene.sandbox.arrives = arrives
        report = execute(scene.workspace, plan, meta={}, journal=journal)
    assert report.exit == ExitCode.OK, report.outcomes
    assert len(seen) == len(plan.calls) == CALLS


def test_a_call_that_may_not_be_sent_is_not_written_down_as_begun(scene: JournalProject) -> None:
    """The lock is looked at first: a call that it forbids was never about to be sent, and nobody has to look for it."""
    plan = scene.plan()

    def lost(call: Call) -> None:
        raise LmsconfError("the lock is another's by now")

    with scene.begin(plan) as journal:
        report = execute(scene.workspace, plan, meta={}, journal=journal, before_call=lost)
    assert {outcome.status for outcome in report.outcomes} == {CallStatus.NOT_ATTEMPTED}
    run = parse_journal(journal.path.stem, journal.path.read_bytes())
    assert [call for call in run.calls if call.begun] == []
    assert (run.in_flight, scene.writes) == ((), [])


def test_the_whole_run_is_written_down(scene: JournalProject) -> None:
    """Afterwards the journal says what the report does: the plan, each outcome with its id, and the end."""
    plan, report, path = scene.applied()
    run = parse_journal(path.stem, path.read_bytes())
    assert run.opening is not None
    assert run.ending is not None
    assert (run.opening.digest, run.opening.workspace, run.opening.url) == (plan_digest(plan), "sandbox", "sandbox:")
    assert (run.opening.calls, run.opening.meta) == (CALLS, {"commit": "9f3c"})
    assert {(call.call, call.address, call.operation, call.state.value, call.id) for call in run.calls} == {
        (one.call, str(one.address), one.operation, one.status.value, one.id) for one in report.outcomes
    }
    assert all(call.begun and call.ended and call.begun < call.ended for call in run.calls)
    assert (run.ending.exit, run.ending.converged, run.damaged) == (0, True, 0)


def test_whoever_listens_hears_each_outcome_too(scene: JournalProject) -> None:
    """What is written down is counted as well, each outcome once, beside what is verified afterwards."""
    plan = scene.plan()
    heard: defaultdict[str, list[RunProgress]] = defaultdict(list)

    def phase(label: str) -> AbstractContextManager[Report]:
        return nullcontext(heard[label].append)

    with scene.begin(plan) as journal:
        execute(scene.workspace, plan, meta={}, progress=ApplyEvents(phase), journal=journal)
    assert [now.done for now in heard["Applying"]] == list(range(1, len(plan.calls) + 1))
    assert {(now.total, now.is_final) for now in heard["Applying"]} == {(len(plan.calls), True)}
    assert [*heard] == ["Applying", "Verifying"]


def test_only_the_owner_may_read_it_and_git_passes_over_it(scene: JournalProject) -> None:
    """Files have the mode 0600, folders 0700, and the folder tells Git to ignore all of it."""
    _, _, path = scene.applied()
    folder = scene.root / ".lmsconf"
    modes = {found.name: stat.S_IMODE(found.stat().st_mode) for found in (folder, *folder.rglob("*"))}
    assert modes == {
        ".lmsconf": 0o700,
        "runs": 0o700,
        path.parent.name: 0o700,
        ".gitignore": 0o600,
        **{f"{path.stem}{suffix}": 0o600 for suffix in (".jsonl", ".plan.json", ".report.json")},
    }
    assert (folder / ".gitignore").read_text(encoding="utf-8") == "*\n"


def test_no_body_is_written_down(scene: JournalProject) -> None:
    """Of a call there are its id, address, operation and people; of its outcome also the status, reason and id."""
    _, _, path = scene.applied()
    lines = [json.loads(line) for line in path.read_bytes().splitlines()]
    keys = {event: {key for line in lines if line["event"] == event for key in line} for event in ("intent", "outcome")}
    common = {"event", "at", "sum", "call", "address", "operation", "people"}
    assert keys == {"intent": common, "outcome": common | {"status", "reason", "id"}}


def test_no_token_is_written_down(scene: JournalProject) -> None:
    """What a reason or `--meta` quotes of a token of this run is left out."""
    canary = "canary-0123456789"
    register_secret(canary)
    plan = scene.plan()
    (call,) = plan.calls[:1]
    with Journal.begin(scene.root, plan, meta={"link": f"https://ci.example/?token={canary}"}, **KEEP_ALL) as journal:
        reason = f"401: {canary} is not valid"
        journal.record_outcome(
            CallOutcome(
                call=call.id, address=call.address, operation=call.operation, status=CallStatus.FAILED, reason=reason
            )
        )
    content = journal.path.read_bytes()
    assert canary.encode() not in content
    assert b"is not valid" in content


def test_a_call_of_unknown_fate_stays_in_flight(scene: JournalProject) -> None:
    """Of a call whose answer was lost nobody knows what became: the next run waits for it as for one cut short."""
    plan = scene.plan()
    with scene.begin(plan) as journal:
        for unsure, call in zip((True, False), plan.calls, strict=False):
            journal.record_intent(call)
            journal.record_outcome(
                CallOutcome(
                    call=call.id,
                    address=call.address,
                    operation=call.operation,
                    status=CallStatus.FAILED,
                    unsure=unsure,
                )
            )
    run = parse_journal("left", journal.path.read_bytes())
    assert [call.state for call in run.calls] == [CallState.IN_FLIGHT, CallState.FAILED]
    assert [call.call for call in run.in_flight] == [plan.calls[0].id]


def test_two_runs_of_one_second_have_two_journals(scene: JournalProject) -> None:
    """A journal is never written over: further runs of the same plan in a second are numbered from 2."""
    plan = scene.plan()
    with scene.begin(plan) as one, scene.begin(plan) as second, scene.begin(plan) as third:
        name = one.path.stem
        assert [second.path.stem, third.path.stem] == [f"{name}-2", f"{name}-3"]
        assert all(journal.path.exists() for journal in (one, second, third))


@pytest.mark.parametrize(
    ("place", "obstacle"),
    [
        *((place, "link") for place in (".lmsconf", ".lmsconf/runs", ".lmsconf/.gitignore")),
        *((place, "file") for place in (".lmsconf", ".lmsconf/runs")),
    ],
)
def test_without_a_journal_there_is_no_run(scene: JournalProject, place: str, obstacle: str, tmp_path: Path) -> None:
    """Where the folder cannot be made or leads elsewhere, the error names it before anything was sent."""
    path, elsewhere = scene.root / place, tmp_path / "elsewhere"
    path.parent.mkdir(exist_ok=True)
    if obstacle == "file":
        path.write_text("in the way", encoding="utf-8")
    else:
        path.symlink_to(elsewhere)
        if not place.endswith(".gitignore"):
            elsewhere.mkdir()
    with pytest.raises(LmsconfError, match=r"\.lmsconf") as refused:
        scene.begin(scene.plan())
    assert refused.value.hint
    assert scene.writes == []
    assert not elsewhere.exists() or list(elsewhere.iterdir()) == []


class FullAt:
    """A disk that takes so many syncs and no more."""

    def __init__(self, syncs: int) -> None:
        self.left = syncs

    def __call__(self, descriptor: int) -> None:
        if not self.left:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        self.left -= 1


def test_a_disk_that_is_full_at_once_refuses_the_run(scene: JournalProject) -> None:
    """When even the first line cannot be made to last, there is an error, no request, and no journal left behind."""
    with pytest.raises(LmsconfError, match="No space left"):
        scene.begin(scene.plan(), sync=FullAt(0))
    assert scene.writes == []
    assert list((scene.root / ".lmsconf" / "runs").glob("*/*")) == []


@pytest.mark.parametrize("calls", range(CALLS))
def test_a_call_that_cannot_be_written_down_is_not_sent(scene: JournalProject, calls: int) -> None:
    """When the disk is full after some calls, those are done and reported, and no other is sent."""
    plan = scene.plan()
    with scene.begin(plan, sync=FullAt(1 + calls)) as journal:
        report = execute(scene.workspace, plan, meta={}, journal=journal)
    assert len(scene.writes) == calls == report.count(CallStatus.DONE)
    assert report.count(CallStatus.NOT_ATTEMPTED) == CALLS - calls
    assert "No space left" in str(next(one.reason for one in report.outcomes if one.status is CallStatus.NOT_ATTEMPTED))
    assert report.exit == (ExitCode.PARTIAL if calls else ExitCode.ERROR)
    assert [problem.code for problem in report.problems] == ["journal/failed"]
    assert parse_journal("left", journal.path.read_bytes()).ending is None


def test_a_journal_that_only_lacks_its_end_is_a_warning(scene: JournalProject) -> None:
    """When the disk is full after the last call, the run is what it is, and the report says what is missing."""
    plan = scene.plan()
    with scene.begin(plan, sync=FullAt(1 + CALLS)) as journal:
        report = execute(scene.workspace, plan, meta={}, journal=journal)
    assert report.exit == ExitCode.OK
    assert [(problem.code, problem.is_error) for problem in report.problems] == [("journal/failed", False)]


def test_a_run_that_dies_leaves_its_calls_in_flight(scene: JournalProject) -> None:
    """What was sent when the process was ended has no outcome, and the run has no end."""

    class Killed(BaseException):
        pass

    def arrives(operation: str) -> None:
        if operation == "smart-groups.create":
            raise Killed

    scene.sandbox.arrives = arrives
    plan = scene.plan()
    # One after the other: otherwise others could be on their way too.
    workspace = replace(scene.workspace, parallelism=1)
    with pytest.raises(Killed), scene.begin(plan) as journal:
        execute(workspace, plan, meta={}, journal=journal)
    run = parse_journal("left", journal.path.read_bytes())
    assert [call.operation for call in run.in_flight] == ["smart-groups.create"]
    assert (run.ending, run.summary[CallState.DONE]) == (None, CALLS - 1)
