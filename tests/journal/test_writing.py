"""A journal says what is about to be done before it is done, or nothing is done."""

import errno
import json
import os
import stat
from collections import defaultdict
from collections.abc import Callable
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import pytest
from journal.conftest import CALLS, KEEP_ALL, JournalProject
from msgspec.structs import replace

from lmsconf.apply.run_plan import execute
from lmsconf.apply.scheduler import ApplyEvents
from lmsconf.documents.journal.journal_reader import delete_run, parse_journal
from lmsconf.documents.journal.journal_writer import Journal
from lmsconf.documents.plan_file import plan_digest
from lmsconf.errors import ExitCode, LmsconfError
from lmsconf.model.calls import Call, CallStatus, RunProgress
from lmsconf.model.outcomes import CallOutcome, CallState
from lmsconf.support.secrets import register_secret


def test_a_call_is_on_the_disk_before_it_is_sent(scene: JournalProject) -> None:
    """Whenever a write arrives, what a power cut would leave of the journal says that it was begun, and not ended."""
    lasting, seen = b"", []

    def sync(descriptor: int) -> None:
        nonlocal lasting
        os.fsync(descriptor)
        lasting = Path(f"/proc/self/fd/{descriptor}").read_bytes()

    def arrives(operation: str) -> None:
        assert operation in [call.operation for call in parse_journal("left", lasting).in_flight]
        seen.append(operation)

    scene.sandbox.arrives = arrives
    plan = scene.plan()
    report, _ = scene.applied(plan, sync=sync)
    assert report.exit == ExitCode.OK, report.outcomes
    assert len(seen) == len(plan.calls) == CALLS


def test_a_call_that_may_not_be_sent_is_not_written_down_as_begun(scene: JournalProject) -> None:
    """The lock is looked at first: a call that it forbids was never about to be sent, and nobody has to look for it."""

    def lost(call: Call) -> None:
        raise LmsconfError("the lock is another's by now")

    report, path = scene.applied(scene.plan(), {"before_call": lost})
    assert {outcome.status for outcome in report.outcomes} == {CallStatus.NOT_ATTEMPTED}
    run = parse_journal(path.stem, path.read_bytes())
    assert [call for call in run.calls if call.begun] == []
    assert (run.in_flight, scene.writes) == ((), [])


def test_the_whole_run_is_written_down(scene: JournalProject) -> None:
    """Afterwards the journal says what the report does: the plan, each outcome with its id, and the end.

    Whoever listens hears each outcome too, once, beside what is verified afterwards.
    """
    plan = scene.plan()
    heard: defaultdict[str, list[RunProgress]] = defaultdict(list)
    report, path = scene.applied(plan, {"progress": ApplyEvents(lambda label: nullcontext(heard[label].append))})
    run = parse_journal(path.stem, path.read_bytes())
    assert run.opening is not None
    assert run.ending is not None
    assert (run.opening.digest, run.opening.workspace, run.opening.url) == (plan_digest(plan), "sandbox", "sandbox:")
    assert (run.opening.calls, run.opening.meta) == (CALLS, {"commit": "9f3c"})
    assert {(call.call, call.address, call.operation, call.status.value, call.id) for call in run.calls} == {
        (one.call, str(one.address), one.operation, one.status.value, one.id) for one in report.outcomes
    }
    assert all(call.begun and call.ended and call.begun < call.ended for call in run.calls)
    assert (run.ending.exit, run.ending.converged, run.damaged) == (0, True, 0)
    assert [now.done for now in heard["Applying"]] == list(range(1, CALLS + 1))
    assert {(now.total, now.is_final) for now in heard["Applying"]} == {(CALLS, True)}
    assert [*heard] == ["Applying", "Verifying"]


def test_only_the_owner_may_read_it_and_git_passes_over_it(scene: JournalProject) -> None:
    """Files have the mode 0600, folders 0700, and the folder tells Git to ignore all of it."""
    _, path = scene.applied(scene.plan())
    folder = scene.root / ".lmsconf"
    modes = {found.name: stat.S_IMODE(found.stat().st_mode) for found in (folder, *folder.rglob("*"))}
    folders, files = (".lmsconf", "runs", path.parent.name), (".gitignore", path.name)
    kept = (f"{path.stem}.plan.json", f"{path.stem}.report.json")
    assert modes == {**dict.fromkeys(folders, 0o700), **dict.fromkeys((*files, *kept), 0o600)}
    assert (folder / ".gitignore").read_text(encoding="utf-8") == "*\n"


def test_no_body_is_written_down(scene: JournalProject) -> None:
    """Of a call there are its id, address, operation and people; of its outcome also the status, reason and id."""
    _, path = scene.applied(scene.plan())
    lines = [json.loads(line) for line in path.read_bytes().splitlines()]
    keys = {event: {key for line in lines if line["event"] == event for key in line} for event in ("intent", "outcome")}
    common = {"event", "at", "sum", "call", "address", "operation", "people"}
    assert keys == {"intent": common, "outcome": common | {"status", "reason", "id"}}


def failed(call: Call, **more: Any) -> CallOutcome:
    return CallOutcome(call=call.id, address=call.address, operation=call.operation, status=CallStatus.FAILED, **more)


def test_no_token_is_written_down(scene: JournalProject) -> None:
    """What a reason or `--meta` quotes of a token of this run is left out, and of `--meta` also what looks like one.

    So it is in what is kept beside the journal.
    """
    canary = "canary-0123456789"
    register_secret(canary)
    plan = scene.plan()
    meta = {"link": f"https://ci.example/?token={canary}", "why": "password=Unregistered-1"}
    with Journal.begin(scene.root, plan, meta=meta, **KEEP_ALL) as journal:
        journal.record_outcome(failed(plan.calls[0], reason=f"401: {canary} is not valid"))
        execute(scene.workspace, plan, meta=meta, journal=journal)
    kept = [path.read_bytes() for path in journal.path.parent.iterdir()]
    for secret in (canary, "Unregistered-1"):
        assert not any(secret.encode() in content for content in kept), secret
    assert [b"password" in content for content in kept].count(True) == 2
    assert b"is not valid" in journal.path.read_bytes()


def test_a_call_of_unknown_fate_stays_in_flight(scene: JournalProject) -> None:
    """Of a call whose answer was lost nobody knows what became: the next run waits for it as for one cut short."""
    plan = scene.plan()
    with scene.begin(plan) as journal:
        for unsure, call in zip((True, False), plan.calls, strict=False):
            journal.record_intent(call)
            journal.record_outcome(failed(call, unsure=unsure))
    run = parse_journal("left", journal.path.read_bytes())
    assert [call.status for call in run.calls] == [CallState.IN_FLIGHT, CallState.FAILED]
    assert [call.call for call in run.in_flight] == [plan.calls[0].id]


def test_two_runs_of_one_second_have_two_journals(scene: JournalProject) -> None:
    """A journal is never written over: further runs of the same plan in a second are numbered from 2.

    The others stay, with their plans, where one is no longer kept.
    """
    plan = scene.plan()
    with scene.begin(plan) as one, scene.begin(plan) as second, scene.begin(plan) as third:
        name = one.path.stem
        assert [second.path.stem, third.path.stem] == [f"{name}-2", f"{name}-3"]
        delete_run(one.path)
        left = [f"{name}-{number}.{part}" for number in (2, 3) for part in ("jsonl", "plan.json")]
        assert sorted(path.name for path in one.path.parent.iterdir()) == left


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


def full_after(syncs: int) -> Callable[[int], None]:
    """A disk that takes so many syncs and no more."""
    left = [None] * syncs

    def sync(descriptor: int) -> None:
        if not left:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        left.pop()

    return sync


def test_a_disk_that_is_full_at_once_refuses_the_run(scene: JournalProject) -> None:
    """When even the first line cannot be made to last, there is an error, no request, and no journal left behind.

    Nor is a descriptor left open: a service that plans again and again would run out of them.
    """
    plan = scene.plan()
    before = {one.name for one in Path("/dev/fd").iterdir()}
    with pytest.raises(LmsconfError, match="No space left"):
        scene.begin(plan, sync=full_after(0))
    assert {one.name for one in Path("/dev/fd").iterdir()} <= before
    assert scene.writes == []
    assert list((scene.root / ".lmsconf" / "runs").glob("*/*")) == []


@pytest.mark.parametrize("calls", range(CALLS + 1))
def test_a_call_that_cannot_be_written_down_is_not_sent(scene: JournalProject, calls: int) -> None:
    """When the disk is full after some calls, those are done and reported, and no other is sent.

    After the last call, the run is what it is, and a warning of the report says what is missing.
    """
    report, path = scene.applied(scene.plan(), sync=full_after(1 + calls))
    assert len(scene.writes) == calls == report.summary[CallStatus.DONE]
    left = [one.reason for one in report.outcomes if one.status is CallStatus.NOT_ATTEMPTED]
    assert len(left) == CALLS - calls
    assert all("No space left" in str(reason) for reason in left[:1])
    assert report.exit == (ExitCode.OK if calls == CALLS else ExitCode.PARTIAL if calls else ExitCode.ERROR)
    assert [(problem.code, problem.is_error) for problem in report.problems] == [("journal/failed", False)]
    assert (parse_journal("left", path.read_bytes()).ending is None) is (calls < CALLS)


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
