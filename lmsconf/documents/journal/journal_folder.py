"""The folder `.lmsconf` of a project, the lines of its journals, and the lock that allows one run at a time.

The folder is readable by its owner only, and ignored by git. Each line of a journal is a JSON object with a
checksum, which reveals a damaged line. The lock is for each workspace of the folder on one machine. It uses
flock: the kernel releases it when the process ends, however it ends, so there are no stale locks. It does
not cover other machines or other checkouts.
"""

from __future__ import annotations

import fcntl
import json
import os
import platform
import re
import stat
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Final
from urllib.parse import quote

from lmsconf.documents.json_documents import escape_in_strings
from lmsconf.errors import LmsconfError
from lmsconf.model.canonical_json import Json, canonical_json, sha256_of_bytes
from lmsconf.model.time_formats import format_utc
from lmsconf.support.files import open_nonblocking, os_errors_as


class WorkspaceLocked(LmsconfError, code="lock/held"):
    """Another run holds the lock; nothing was read or sent."""


@contextmanager
def hold_lock(
    root: Path, workspace: str, *, clock: Callable[[], datetime] = lambda: datetime.now(UTC)
) -> Iterator[None]:
    """Hold the lock of a workspace of the project in `root`.

    Raises WorkspaceLocked, naming the holder, if another run holds it; LmsconfError without access to the file.
    """
    # File names have a maximum length. Names of workspaces that differ later share a lock.
    path = ensure_folder(root) / f"{quote(workspace, safe=' ')[:100]}.lock"
    with writing(path):
        descriptor = open_private_file(path, os.O_RDWR)
    try:
        holder = f": process {os.getpid()} on {platform.node()}, since {format_utc(clock())}\n"
        with writing(path):
            _take(descriptor, workspace)
            os.ftruncate(descriptor, 0)
            os.pwrite(descriptor, holder.encode("utf-8", "replace"), 0)
        yield
    finally:
        os.close(descriptor)


def _take(descriptor: int, workspace: str) -> None:
    """Take the lock. Raises WorkspaceLocked, with the holder, unless that has not written its line yet."""
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError as held:
        holder, is_whole, _ = os.pread(descriptor, 4096, 0).decode("utf-8", "replace").partition("\n")
        raise WorkspaceLocked(
            f"another run is applying to the workspace {workspace}{holder if is_whole else ''}",
            hint="Wait until it ends, or stop it; then apply again.",
        ) from held


FOLDER: Final = ".lmsconf"
RUNS: Final = "runs"
SUFFIX: Final = ".jsonl"
"""Of a journal, behind the name of its run."""
_LINK: Final = "it is a symbolic link"
_TO_READ: Final = "Check its permissions, or delete it."


def ensure_folder(root: Path, *subfolders: str) -> Path:
    """Return the folder `.lmsconf` in `root`, or one below it; create it if missing. Raises LmsconfError."""
    folder = root / FOLDER
    for name in ("", *subfolders):
        folder /= name
        with writing(folder):
            # A symlink planted by another user would put the files where others can read them.
            if not _is_folder(folder):
                folder.mkdir(mode=0o700, exist_ok=True)
    _ignore(root / FOLDER / ".gitignore")
    return folder


def runs_folder(url: str) -> str:
    """Return the name of the folder in `runs` for the workspace with this URL: a readable part, and a digest of it."""
    # With a folder for each, a workspace of a fleet does not look at the runs of all others.
    readable = re.sub(r"[^A-Za-z0-9.]+", "-", url)[:60].strip("-.")
    return f"{readable}-{sha256_of_bytes(url.encode('utf-8', 'surrogatepass'))[:12]}"


def journals(root: Path, url: str | None = None) -> Iterator[Path]:
    """Yield the journals of a project, or of its runs in the workspace with one URL. Raises LmsconfError."""
    folder = root / FOLDER / RUNS
    with os_errors_as(f"{folder} cannot be read", _TO_READ):
        if _is_folder(root / FOLDER) and _is_folder(folder):
            for place in filter(_is_folder, folder.iterdir() if url is None else [folder / runs_folder(url)]):
                yield from (path for path in place.iterdir() if path.suffix == SUFFIX)


def read_journal(path: Path, *, first_line: bool = False, hint: str = _TO_READ) -> bytes:
    """Return the content of a journal, or only its first line. Raises LmsconfError, with the hint.

    Also for a symbolic link, a pipe or a device, which may never end: a branch can add any of the first to `.lmsconf`,
    and lmsconf writes none of them.
    """
    with os_errors_as(f"{path} cannot be read", hint):
        if path.is_symlink():
            raise OSError(None, _LINK, str(path))
        with open_nonblocking(path, os.O_NOFOLLOW) as file:
            if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
                raise OSError(None, "it is not a file", str(path))
            return file.readline() if first_line else file.read()


def open_private_file(path: Path, *flags: int) -> int:
    """Open a file, created with mode 0600 if missing, and return its descriptor. Raises OSError, also for a symlink."""
    return os.open(path, sum(flags, os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC), 0o600)


def writing(path: Path) -> AbstractContextManager[None]:
    """Raise LmsconfError, of a run that is refused because its files cannot be written, in place of an OSError."""
    return os_errors_as(
        f"{path} cannot be written",
        "Each run writes its journal there. Check the permissions of the folder and the free space.",
    )


def _is_folder(path: Path) -> bool:
    """Whether there is a folder. Raises LmsconfError for a link, which leads to journals of another project."""
    if path.is_symlink():
        raise LmsconfError(f"{path} cannot be read: {_LINK}", hint=_TO_READ)
    return path.is_dir()


def _ignore(path: Path) -> None:
    """Write a `.gitignore` into the folder, so that git ignores it, also over one that a full disk emptied."""
    with writing(path):
        if not path.exists() or not path.stat().st_size:
            with os.fdopen(open_private_file(path, os.O_WRONLY), "w", encoding="utf-8") as file:
                file.write("*\n")


FORMAT: Final = "lmsconf.journal/1"
_SUM: Final = "sum"


def encode_line(entry: Mapping[str, Json]) -> bytes:
    """Return the entry as a line, with its checksum and line feed."""
    content = canonical_json(entry)
    whole = content[:-1] + f',"{_SUM}":"{_sum(content)}"}}'.encode()
    return escape_in_strings(whole.decode("utf-8", "surrogatepass")).encode() + b"\n"


def decode_line(line: bytes) -> dict[str, Json] | None:
    """Return the entry that `encode_line` was given; None for a line that is truncated or was changed."""
    with suppress(ValueError, RecursionError):
        entry = json.loads(line)
        if isinstance(entry, dict) and entry.pop(_SUM, None) == _sum(canonical_json(entry)):
            return entry
    return None


def decode_lines(content: bytes) -> Iterator[dict[str, Json] | None]:
    """Yield the entries of a journal; None for each damaged line."""
    return (decode_line(line) for line in content.split(b"\n") if line)


def _sum(content: bytes) -> str:
    return sha256_of_bytes(content)[:8]
