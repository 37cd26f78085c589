"""One run at a time, for each workspace of a project folder on one machine.

Uses flock: the kernel releases the lock when the process ends, however it ends, so there are no stale locks.
It does not cover other machines or other checkouts.
"""

from __future__ import annotations

import json
import os
import platform
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from urllib.parse import quote

from lmsconf.errors import LmsconfError
from lmsconf.journal.journal_folder import ensure_folder, open_private_file, writing
from lmsconf.model.time_formats import format_utc

_LONGEST = 100
"""Characters of a workspace's name in a file name, which has a maximum length. Names that differ later share a lock."""


class WorkspaceLocked(LmsconfError):
    """Another run holds the lock; nothing was read or sent."""

    code = "lock/held"


@contextmanager
def hold_lock(
    root: Path, workspace: str, *, clock: Callable[[], datetime] = lambda: datetime.now(UTC)
) -> Iterator[None]:
    """Hold the lock of a workspace of the project in `root`.

    Raises WorkspaceLocked, naming the holder, if another run holds it; LmsconfError if the file or the lock is not
    available.
    """
    path = ensure_folder(root) / f"{quote(workspace, safe=' ')[:_LONGEST]}.lock"
    with writing(path):
        descriptor = open_private_file(path, os.O_RDWR)
    try:
        _take(descriptor, path, workspace)
        me = {"pid": os.getpid(), "host": platform.node(), "since": format_utc(clock())}
        _write(descriptor, path, json.dumps(me))
        yield
    finally:
        os.close(descriptor)


def _take(descriptor: int, path: Path, workspace: str) -> None:
    try:
        import fcntl
    except ImportError as missing:
        raise LmsconfError(
            "this system has no file locks, which apply needs", hint="Apply on Linux, macOS or WSL."
        ) from missing
    with writing(path):
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as held:
            raise WorkspaceLocked(
                f"another run is applying to the workspace {workspace}{_holder(descriptor)}",
                hint="Wait until it ends, or stop it; then apply again.",
            ) from held


def _write(descriptor: int, path: Path, text: str) -> None:
    """Replace the content of the file."""
    with writing(path):
        os.ftruncate(descriptor, 0)
        os.pwrite(descriptor, text.encode(), 0)


def _holder(descriptor: int) -> str:
    """Return the holder of the lock, for a message; empty if the holder has not written its details yet."""
    try:
        holder = json.loads(os.pread(descriptor, 4096, 0))
        return f": process {holder['pid']} on {holder['host']}, since {holder['since']}"
    except (OSError, ValueError, LookupError, TypeError):
        return ""
