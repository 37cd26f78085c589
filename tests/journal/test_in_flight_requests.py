"""After a crash, the next run waits until what was in flight has arrived or never will."""

from __future__ import annotations

from datetime import datetime, timedelta
from pathlib import Path

import pytest
from journals import runs_of

from journal.journal_project import BEGAN
from lmsconf.journal.journal_folder import encode_line
from lmsconf.journal.journal_reader import PendingWrites, find_pending_writes, wait_for_pending_writes
from lmsconf.model.canonical_json import Json

URL = "https://lms.example/api"
STAGING = "https://staging.example/api"
SETTLE = 30.0


def at(seconds: float) -> datetime:
    return BEGAN + timedelta(seconds=seconds)


def event(name: str, seconds: float, **more: Json) -> bytes:
    return encode_line({"event": name, "at": at(seconds).isoformat(), **more})


def opening(seconds: float, url: str = URL) -> bytes:
    return event(
        "run", seconds, format="lmsconf.journal/1", digest="ab", workspace="w", url=url, tool="1", calls=2, meta={}
    )


def intent(seconds: float, call: str) -> bytes:
    return event("intent", seconds, call=call, address=f"group/{call}", operation="manual-groups.create", people=[])


def outcome(seconds: float, call: str, status: str, operation: str = "manual-groups.create") -> bytes:
    more: dict[str, Json] = {"status": status, "reason": None, "id": None}
    return event("outcome", seconds, call=call, address=f"group/{call}", operation=operation, people=[], **more)


CRASHED = [opening(0), intent(1, "c1"), intent(4, "c2"), intent(6, "c3"), outcome(7, "c3", "done", "groups.rename")]
MADE = [opening(0), intent(1, "c1"), outcome(2, "c1", "done"), intent(2, "c2"), outcome(5, "c2", "failed")]
SEEN = event("end", 8, exit=5, verified="all", converged=False, seen=True)
UNSEEN = event("end", 8, exit=6, verified="all", converged=False, seen=False)


def keep(root: Path, lines: list[bytes], name: str = "20260601T080000Z-ab", url: str = URL) -> None:
    folder = runs_of(root, url)
    folder.mkdir(parents=True, exist_ok=True)
    (folder / f"{name}.jsonl").write_bytes(b"".join(lines))


@pytest.mark.parametrize(
    ("now", "seconds"),
    [(4, 30), (10, 24), (33.75, 0.25), (34, None), (3600, None), (-3600, 30)],
    ids=["at once", "soon", "almost", "just over", "long ago", "a clock that was set back"],
)
def test_the_wait_ends_when_the_youngest_is_too_old(tmp_path: Path, now: float, seconds: float | None) -> None:
    """What is left of the settling time of the call that was sent last; never longer than the settling time."""
    keep(tmp_path, CRASHED)
    found = find_pending_writes(tmp_path, URL, now=at(now), settle_seconds=SETTLE)
    assert (found and found.seconds) == seconds
    assert found is None or found.calls == 2


@pytest.mark.parametrize(
    "lines",
    [
        [*MADE, SEEN],
        [*CRASHED, outcome(8, "c1", "failed"), outcome(9, "c2", "done", "groups.rename")],
        [opening(0)],
        [b""],
    ],
    ids=["it saw all that it made", "it made nothing", "nothing was sent", "an empty file"],
)
def test_no_wait_for_what_cannot_arrive(tmp_path: Path, lines: list[bytes]) -> None:
    """A run that saw what it made, or that had nothing in flight, is not waited for."""
    keep(tmp_path, lines)
    assert find_pending_writes(tmp_path, URL, now=at(10), settle_seconds=SETTLE) is None


@pytest.mark.parametrize("lines", [MADE, [*MADE, UNSEEN]], ids=["cut short", "ended"])
def test_what_was_made_and_not_seen_may_not_show_yet(tmp_path: Path, lines: list[bytes]) -> None:
    """A service may list new things late: planned too early, they would be made once more."""
    keep(tmp_path, lines)
    found = find_pending_writes(tmp_path, URL, now=at(10), settle_seconds=SETTLE)
    assert found is not None
    assert found.seconds == 22
    assert str(found) == (
        "The run 20260601T080000Z-ab made 1 thing that it could not read back afterwards. Waiting 22 s before "
        "looking at the "
        "workspace, because what was created may not be readable yet."
    )


def test_a_call_whose_answer_never_came_is_in_flight(tmp_path: Path) -> None:
    """Also where the run has ended, as after a SIGTERM in the middle of looking for it."""
    keep(tmp_path, [opening(0), intent(1, "c1"), outcome(3, "c1", "in_flight"), SEEN])
    found = find_pending_writes(tmp_path, URL, now=at(10), settle_seconds=SETTLE)
    assert found is not None
    assert (found.calls, found.seconds) == (1, 21)


def test_a_run_that_cannot_be_told_is_waited_for(tmp_path: Path) -> None:
    """Where the first line is lost, the workspace may be this one."""
    keep(tmp_path, [CRASHED[0][:20], b"\n", *CRASHED[1:]])
    assert find_pending_writes(tmp_path, URL, now=at(10), settle_seconds=SETTLE) is not None


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


def test_without_a_journal_there_is_no_wait(tmp_path: Path) -> None:
    """Whoever deletes the journals can run all the same."""
    wait_for_pending_writes(
        tmp_path, URL, SETTLE, notify=pytest.fail, sleep=lambda seconds: pytest.fail(f"slept {seconds}")
    )
