"""One run at a time, for each workspace of a project."""

from __future__ import annotations

import errno
import os
import platform
import signal
import stat
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from waiting import HANGS

from journal.journal_project import BEGAN
from lmsconf.errors import ExitCode, LmsconfError
from lmsconf.journal.workspace_lock import WorkspaceLocked, hold_lock

HOLD = "import sys; from pathlib import Path; from lmsconf.journal.workspace_lock import hold_lock\n" \
       "with hold_lock(Path(sys.argv[1]), sys.argv[2]): print('held', flush=True); sys.stdin.read()"  # fmt: skip


@contextmanager
def holder(root: Path, workspace: str) -> Iterator[subprocess.Popen[str]]:
    """Another process that holds the lock until it is ended."""
    command = [sys.executable, "-c", HOLD, str(root), workspace]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "held\n"
        try:
            yield process
        finally:
            process.kill()


def test_the_second_is_told_who_has_it(tmp_path: Path) -> None:
    """While one has it, another gets an error with exit 1 that names the process, its host and since when."""
    first = hold_lock(tmp_path, "production", clock=lambda: BEGAN)
    with first, pytest.raises(WorkspaceLocked) as held, hold_lock(tmp_path, "production"):
        pytest.fail("two have it")
    who = f"process {os.getpid()} on {platform.node()}, since 2026-06-01T08:00:00Z"
    assert held.value.message == f"another run is applying to the workspace production: {who}"
    assert held.value.exit == ExitCode.ERROR
    assert held.value.hint


def test_what_a_longer_text_left_of_the_last_holder_is_not_read(tmp_path: Path) -> None:
    """The file holds what the one who has the lock has written, and nothing else."""
    with hold_lock(tmp_path, "production"):
        pass
    [path] = (path for path in (tmp_path / ".lmsconf").rglob("*") if "production" in path.name)
    path.write_text("x" * 500)
    first, told = hold_lock(tmp_path, "production"), f": process {os.getpid()} on "
    with first, pytest.raises(WorkspaceLocked, match=told), hold_lock(tmp_path, "production"):
        pytest.fail("two have it")


def test_it_holds_between_processes_and_goes_with_them(tmp_path: Path) -> None:
    """A lock of another process holds; when that process is killed, nothing is left to be cleaned up."""
    with holder(tmp_path, "production") as process:
        with pytest.raises(WorkspaceLocked, match=f"process {process.pid} "), hold_lock(tmp_path, "production"):
            pytest.fail("two have it")
        process.send_signal(signal.SIGKILL)
        process.wait(HANGS)
        with hold_lock(tmp_path, "production"):
            pass


def test_it_goes_when_the_run_fails(tmp_path: Path) -> None:
    """An error in a run gives the lock back."""
    with pytest.raises(LmsconfError, match="in between"), hold_lock(tmp_path, "production"):
        raise LmsconfError("in between")
    with hold_lock(tmp_path, "production"):
        pass


@pytest.mark.parametrize("other", ["staging", "../production", "production/x", "x" * 500, "..", "Åre"])
def test_each_workspace_has_its_own(tmp_path: Path, other: str) -> None:
    """Whatever a workspace is called, it has a lock of its own, which is a file in the private folder."""
    with hold_lock(tmp_path, "production"), hold_lock(tmp_path, other):
        folder = tmp_path / ".lmsconf"
        found = [path for path in folder.iterdir() if path.suffix == ".lock"]
        assert len(found) == 2
        assert {stat.S_IMODE(path.stat().st_mode) for path in found} == {0o600}
        assert [path.name for path in tmp_path.iterdir()] == [".lmsconf"]


def test_a_lock_that_says_nothing_holds_all_the_same(tmp_path: Path) -> None:
    """Who took it may not have written who it is yet; then the error says only that it is held."""
    with hold_lock(tmp_path, "production"):
        (tmp_path / ".lmsconf" / "production.lock").write_text('{"pid": 1', encoding="utf-8")
        with pytest.raises(WorkspaceLocked) as held, hold_lock(tmp_path, "production"):
            pytest.fail("two have it")
    assert held.value.message == "another run is applying to the workspace production"


def test_a_lock_that_cannot_be_written_is_an_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """On a full disk a run ends before anything is sent: with exit 1, and the file and the reason in the message."""

    def full(*_: object) -> int:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, "pwrite", full)
    refused = pytest.raises(LmsconfError, match=r"production\.lock.*No space left")
    with refused as error, hold_lock(tmp_path, "production"):
        pytest.fail("it was taken")
    assert error.value.exit == ExitCode.ERROR


def test_a_link_is_not_followed(tmp_path: Path) -> None:
    """A lock file that leads elsewhere is refused, and nothing is written there."""
    with hold_lock(tmp_path, "staging"):
        pass
    elsewhere = tmp_path / "elsewhere"
    elsewhere.write_text("as it was", encoding="utf-8")
    (tmp_path / ".lmsconf" / "production.lock").symlink_to(elsewhere)
    with pytest.raises(LmsconfError, match=r"production\.lock"), hold_lock(tmp_path, "production"):
        pytest.fail("it was taken")
    assert elsewhere.read_text(encoding="utf-8") == "as it was"
