"""`lmsconf apply` with its lock and journal, `lmsconf runs`, and one run at a time for each workspace of a project."""

import errno
import os
import platform
import re
import stat
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from flow.project import runs_of
from flow.shell import Ran
from integrity.served_project import ServedProject, staged
from journal.conftest import BEGAN, CALLS, MANIFEST
from json_schemas import schema_validator
from waiting import HANGS

from lmsconf.documents.journal.journal_folder import WorkspaceLocked, encode_line, hold_lock
from lmsconf.documents.journal.journal_reader import PendingWrites, find_pending_writes, wait_for_pending_writes
from lmsconf.errors import ExitCode, LmsconfError
from lmsconf.model.canonical_json import Json

pytestmark = pytest.mark.sampled(day=8, daily=False)


@pytest.fixture
def stage(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[ServedProject]:
    """A project for a workspace over HTTP and one that is embedded."""
    with staged(tmp_path, "people: []\n", monkeypatch) as made:
        made.write(MANIFEST)
        (tmp_path / "lmsconf.yaml").write_text(
            f"workspaces: {{web: {{url: '{made.url}', token: {{env: LMSCONF_TOKEN}}}}, box: {{url: 'sandbox:box.db'}}}}"
            "\ndefault_workspace: web\nsettle: 1s\n"
        )
        yield made


def test_an_apply_is_listed_and_shown(stage: ServedProject) -> None:
    """After an apply, `runs` lists it, `runs latest` shows its calls, and both are documents of their schema.

    A plan without calls is no run; nor is a plan that is only made. `--workspace` lists the runs on that one only.
    """
    stage("plan", code=ExitCode.OK)
    assert stage("runs", code=ExitCode.OK).out.endswith("No runs recorded.\n")
    assert "no run matches" in stage("runs", "20260101", code=ExitCode.ERROR).err
    stage("--workspace", "box", "apply", "--auto-approve", code=ExitCode.OK)
    for _ in range(2):
        stage("apply", "--auto-approve", "--meta", "commit=9f3c", code=ExitCode.OK)
    shown: list[Any] = []
    for arguments in (["runs"], ["runs", "latest"], ["--workspace", "box", "runs"]):
        document: Any = stage(*arguments, "--format", "json", code=ExitCode.OK).document
        schema_validator("runs").validate(document)
        shown.append(document["runs"])
    (listed, other), (one,), boxed = shown
    assert {**listed, "calls": one["calls"]} == one
    assert (one["summary"]["done"], len(one["calls"]), one["meta"]) == (CALLS, CALLS, {"commit": "9f3c"})
    assert ([other], other["workspace"]["name"]) == (boxed, "box")
    assert one["run"] in stage("runs", code=ExitCode.OK).out


@pytest.mark.parametrize(("workspace", "synced"), [("web", True), ("box", False)])
def test_calls_over_a_network_are_synced_to_the_disk(
    stage: ServedProject, monkeypatch: pytest.MonkeyPatch, workspace: str, synced: bool
) -> None:
    """Each is on the disk before it is sent; an embedded workspace does not flush its own commits either."""
    begun: set[int] = set()

    def sync(descriptor: int, real: Callable[[int], None] = os.fsync) -> None:
        file = Path(f"/proc/self/fd/{descriptor}").resolve()
        if file.suffix == ".jsonl":
            begun.add(file.read_text(encoding="utf-8").count('"event":"intent"'))
        real(descriptor)

    monkeypatch.setattr(os, "fsync", sync)
    stage("--workspace", workspace, "apply", "--auto-approve", "--parallelism", "1", code=ExitCode.OK)
    assert begun == (set(range(CALLS + 1)) if synced else set())


@pytest.mark.parametrize("format", ["text", "json"])
def test_a_held_lock_stops_apply(stage: ServedProject, format: str) -> None:
    """While another run is applying, apply sends nothing and exits 1; plan does not care."""
    with hold_lock(stage.root, "web"):
        ran = stage("apply", "--auto-approve", "--format", format, code=ExitCode.ERROR)
        assert stage.sandbox.log == []
        assert "another run is applying to the workspace web: process " in ran.err
        stage("plan", code=ExitCode.OK)
        stage("--workspace", "box", "apply", "--auto-approve", code=ExitCode.OK)
    stage("apply", "--auto-approve", code=ExitCode.OK)


def test_no_journal_stops_apply(stage: ServedProject, tmp_path: Path) -> None:
    """Where the run cannot be written down, nothing is sent; as JSON, the report lists every call as not attempted."""
    (tmp_path / ".lmsconf").mkdir()
    (tmp_path / ".lmsconf" / "runs").write_text("in the way", encoding="utf-8")
    shown = stage("apply", "--auto-approve", "--format", "json", code=ExitCode.ERROR)
    assert shown.writes == []
    assert "runs cannot be written" in shown.err
    summary: Any = shown.document["summary"]
    assert summary["not_attempted"] == CALLS


def test_a_rerun_waits_for_what_was_in_flight(stage: ServedProject, tmp_path: Path) -> None:
    """The first request goes out only when what was in flight a moment ago has settled; the next run need not wait.

    What another process was doing with the embedded workspace has ended with that process.
    """

    def apply_after_one_was_killed(url: str, *options: str) -> Ran:
        since = (datetime.now(UTC) - BEGAN).total_seconds()
        keep(tmp_path, [opening(since, url), intent(since, "c1")], url=url)
        return stage(*options, "apply", "--auto-approve", code=ExitCode.OK)

    assert "in flight" not in apply_after_one_was_killed("sandbox:box.db", "--workspace", "box").err
    began = datetime.now(UTC)
    ran = apply_after_one_was_killed(stage.url)
    assert (datetime.now(UTC) - began).total_seconds() >= 1
    assert "ended with 1 call in flight. Waiting 1 s" in ran.err
    assert "in flight" not in stage("apply", "--auto-approve", code=ExitCode.OK).err


# One run at a time, for each workspace of a project.


HOLD = "import sys; from pathlib import Path; from lmsconf.documents.journal.journal_folder import hold_lock\n" \
       "with hold_lock(Path(sys.argv[1]), 'production'): print('held', flush=True); sys.stdin.read()"  # fmt: skip


def refused(root: Path) -> LmsconfError:
    """The error of somebody who wants the lock and does not get it."""
    with pytest.raises(LmsconfError) as error, hold_lock(root, "production"):
        pytest.fail("it was taken")
    return error.value


def test_the_second_is_told_who_has_it(tmp_path: Path) -> None:
    """While one has it, another gets an error with exit 1 that names the process, its host and since when.

    Who took it may not have written who it is yet; then the error says only that it is held. A run that fails gives it
    back.
    """
    with hold_lock(tmp_path, "production", clock=lambda: BEGAN):
        held = refused(tmp_path)
        who = f"process {os.getpid()} on {platform.node()}, since 2026-06-01T08:00:00Z"
        assert (type(held), held.exit, bool(held.hint)) == (WorkspaceLocked, ExitCode.ERROR, True)
        assert held.message == f"another run is applying to the workspace production: {who}"
        (tmp_path / ".lmsconf" / "production.lock").write_text(": process 1", encoding="utf-8")
        assert refused(tmp_path).message == "another run is applying to the workspace production"
    with suppress(LmsconfError), hold_lock(tmp_path, "production"):
        raise LmsconfError("in between")
    with hold_lock(tmp_path, "production"):
        pass


def test_it_holds_between_processes_and_goes_with_them(tmp_path: Path) -> None:
    """A lock of another process holds; when that process is killed, nothing is left to be cleaned up."""
    words = [sys.executable, "-c", HOLD, str(tmp_path)]
    with subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "held\n"
        assert f"process {process.pid} " in refused(tmp_path).message
        process.kill()
        process.wait(HANGS)
        with hold_lock(tmp_path, "production"):
            pass


@pytest.mark.parametrize("other", ["staging", "../production", "production/x", "x" * 500, "..", "Åre"])
def test_each_workspace_has_its_own(tmp_path: Path, other: str) -> None:
    """Whatever a workspace is called, it has a lock of its own, which is a file in the private folder."""
    with hold_lock(tmp_path, "production"), hold_lock(tmp_path, other):
        found = [path for path in (tmp_path / ".lmsconf").iterdir() if path.suffix == ".lock"]
        assert [stat.S_IMODE(path.stat().st_mode) for path in found] == [0o600] * 2
        assert [path.name for path in tmp_path.iterdir()] == [".lmsconf"]


def test_a_lock_that_cannot_be_written_is_an_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """On a full disk a run ends before anything is sent: with exit 1, and the file and the reason in the message.

    A lock file that leads elsewhere is refused, and nothing is written there.
    """

    def full(*_: object) -> int:
        raise OSError(errno.ENOSPC, "No space left on device")

    with monkeypatch.context() as patched:
        patched.setattr(os, "pwrite", full)
        error = refused(tmp_path)
    assert re.search(r"production\.lock.*No space left", error.message)
    assert error.exit == ExitCode.ERROR
    elsewhere, lock = tmp_path / "elsewhere", tmp_path / ".lmsconf" / "production.lock"
    elsewhere.write_text("as it was", encoding="utf-8")
    lock.unlink(missing_ok=True)
    lock.symlink_to(elsewhere)
    assert "production.lock" in refused(tmp_path).message
    assert elsewhere.read_text(encoding="utf-8") == "as it was"


# After a crash, the next run waits until what was in flight has arrived or never will.


URL = "https://lms.example/api"
STAGING = "https://staging.example/api"
SETTLE = 30.0


def at(seconds: float) -> datetime:
    return BEGAN + timedelta(seconds=seconds)


def event(name: str, seconds: float, **more: Json) -> bytes:
    return encode_line({"event": name, "at": at(seconds).isoformat(), **more})


def opening(seconds: float, url: str = URL) -> bytes:
    said: dict[str, Json] = {"digest": "ab", "workspace": "w", "url": url, "tool": "1", "calls": 2, "meta": {}}
    return event("run", seconds, format="lmsconf.journal/1", **said)


def intent(seconds: float, call: str) -> bytes:
    return event("intent", seconds, call=call, address=f"group/{call}", operation="manual-groups.create", people=[])


def outcome(seconds: float, call: str, status: str, operation: str = "manual-groups.create", **more: Json) -> bytes:
    more = {"status": status, "reason": None, "id": None, **more}
    return event("outcome", seconds, call=call, address=f"group/{call}", operation=operation, people=[], **more)


CRASHED = [opening(0), intent(1, "c1"), intent(4, "c2"), intent(6, "c3"), outcome(7, "c3", "done", "groups.rename")]
MADE = [opening(0), intent(1, "c1"), outcome(2, "c1", "done"), intent(2, "c2"), outcome(5, "c2", "failed")]
OTHERWISE = [*MADE[:2], outcome(2, "c1", "failed", carried_out=True)]
SEEN = event("end", 8, exit=5, verified="all", converged=False, seen=True)
UNSEEN = event("end", 8, exit=6, verified="all", converged=False, seen=False)


def keep(root: Path, lines: list[bytes], name: str = "20260601T080000Z-ab", url: str = URL) -> None:
    folder = runs_of(root, url)
    folder.mkdir(parents=True, exist_ok=True)
    (folder / f"{name}.jsonl").write_bytes(b"".join(lines))


@pytest.mark.parametrize(
    ("lines", "now", "pending"),
    [
        pytest.param(CRASHED, 4, (2, 30), id="at once"),
        pytest.param(CRASHED, 10, (2, 24), id="soon"),
        pytest.param(CRASHED, 33.75, (2, 0.25), id="almost"),
        pytest.param(CRASHED, 34, None, id="just over"),
        pytest.param(CRASHED, 3600, None, id="long ago"),
        pytest.param(CRASHED, -3600, (2, 30), id="a clock that was set back"),
        pytest.param([*MADE, SEEN], 10, None, id="it saw all that it made"),
        pytest.param(
            [*CRASHED, outcome(8, "c1", "failed"), outcome(9, "c2", "done", "groups.rename")], 10, None,
            id="it made nothing",
        ),
        pytest.param([opening(0)], 10, None, id="nothing was sent"),
        pytest.param([b""], 10, None, id="an empty file"),
        pytest.param([opening(0), intent(1, "c1"), outcome(3, "c1", "in_flight"), SEEN], 10, (1, 21), id="no answer"),
        pytest.param([CRASHED[0][:20], b"\n", *CRASHED[1:]], 10, (2, 24), id="of a workspace that cannot be told"),
    ],
)  # fmt: skip
def test_the_wait_ends_when_the_youngest_is_too_old(
    tmp_path: Path, lines: list[bytes], now: float, pending: tuple[int, float] | None
) -> None:
    """What is left of the settling time of the call that was sent last; never longer than the settling time.

    A run that saw what it made, or that had nothing in flight, is not waited for. A call whose answer never came is in
    flight, also where the run has ended, as after a SIGTERM in the middle of looking for it. Where the first line is
    lost, the workspace may be this one.
    """
    keep(tmp_path, lines)
    found = find_pending_writes(tmp_path, URL, now=at(now), settle_seconds=SETTLE)
    assert (found and (found.calls, found.seconds)) == pending


@pytest.mark.sampled(day=1)
@pytest.mark.parametrize(
    "lines",
    [MADE, [*MADE, UNSEEN], OTHERWISE, [*OTHERWISE, UNSEEN]],
    ids=["cut short", "ended", "made with other values, cut short", "made with other values, ended"],
)
def test_what_was_made_and_not_seen_may_not_show_yet(tmp_path: Path, lines: list[bytes]) -> None:
    """A service may list new things late: planned too early, they would be made once more."""
    keep(tmp_path, lines)
    found = find_pending_writes(tmp_path, URL, now=at(10), settle_seconds=SETTLE)
    assert found is not None
    assert found.seconds == 22
    assert str(found) == (
        "The run 20260601T080000Z-ab made 1 thing that it could not read back afterwards. Waiting 22 s before "
        "looking at the workspace, because what was created may not be readable yet."
    )


def test_other_workspaces_do_not_hide_it(tmp_path: Path) -> None:
    """The last run on this workspace counts, however many on others came after; one that came after on this counts."""
    keep(tmp_path, CRASHED)
    keep(tmp_path, [opening(8, STAGING)], "20260601T080008Z-cd", STAGING)
    assert find_pending_writes(tmp_path, STAGING, now=at(10), settle_seconds=SETTLE) is None
    assert find_pending_writes(tmp_path, URL, now=at(10), settle_seconds=SETTLE) is not None
    # It waited itself before it began, so what was before it has settled.
    keep(tmp_path, [opening(9), SEEN], "20260601T080009Z-ef")
    assert find_pending_writes(tmp_path, URL, now=at(10), settle_seconds=SETTLE) is None


def test_it_says_how_long_and_why(tmp_path: Path) -> None:
    """Before it waits, it tells the run, the calls and the seconds; without a reason it neither tells nor waits."""
    keep(tmp_path, CRASHED)
    told: list[PendingWrites] = []
    slept: list[float] = []
    wait_for_pending_writes(tmp_path, URL, SETTLE, notify=told.append, clock=lambda: at(10.5), sleep=slept.append)
    wait_for_pending_writes(tmp_path, URL, SETTLE, notify=told.append, clock=lambda: at(60), sleep=slept.append)
    assert slept == [23.5]
    assert list(map(str, told)) == [
        "The run 20260601T080000Z-ab ended with 2 calls in flight. Waiting 24 s before looking at the "
        "workspace, because what was sent may still arrive."
    ]
