"""Files: read with readable errors, written atomically, several all or none, pipes and devices in place; and where
files are that are not a project's own: in the package, in the git work tree around it, and the user's.

Files in the user's state folder are readable and writable by the user only.

Lines that are written to a file, a pipe or stdout while a command runs have a thread of their own. A reader
that stops reading, a closed pipe or a full disk must not stop a run that changes a workspace: `put` never
raises, and waits at most once for too long. The first failure ends the stream; only its last line may be
cut.
"""

from __future__ import annotations

import contextlib
import os
import re
import stat
import threading
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from queue import Full, Queue
from tempfile import mkstemp
from typing import BinaryIO, Final

from lmsconf.errors import LmsconfError

LARGEST: Final = 1 << 28
"""Bytes of the largest file that is read: more than a plan or a snapshot of the largest workspace has."""
_PRIVATE: Final = 0o600
_NOT_OURS: Final = "It may be damaged, or not a file of lmsconf."


def read_text(path: Path, *, regular: bool = False) -> str:
    """Return the text of a UTF-8 file with its line ends unchanged. Raises LmsconfError if it cannot be read.

    regular: whether a pipe or a device is refused, too, which may never end.
    """
    try:
        with open_nonblocking(path) if regular else path.open("rb") as file:
            if regular and not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
                raise LmsconfError(f"{path} is a pipe or a device, not a file", hint=_NOT_OURS)
            # The size tells of a large file before it is read; the loop, of one that grows and of a device.
            size, data = os.fstat(file.fileno()).st_size, bytearray()
            while size <= LARGEST and (piece := file.read(1 << 16)):
                data += piece
                size = max(size, len(data))
        if size > LARGEST:
            raise LmsconfError(f"{path} is larger than {LARGEST >> 20} MiB", hint=_NOT_OURS)
        return data.decode("utf-8")
    except UnicodeDecodeError as error:
        raise LmsconfError(f"{path} is not UTF-8 text", hint=_NOT_OURS) from error
    except OSError as error:
        raise LmsconfError(f"{path} cannot be read: {os_error_message(error)}", hint="Check the path.") from error


def open_nonblocking(path: Path, flags: int = 0) -> BinaryIO:
    """Open a file to read bytes, also with other `flags` of os.open. Raises OSError.

    O_NONBLOCK: opening a named pipe would otherwise block until it has a writer.
    """
    return open(path, "rb", opener=lambda name, mode: os.open(name, mode | flags | os.O_NONBLOCK))


def write_atomically(path: Path, text: str | Iterator[str], mode: int = _PRIVATE, *, durable: bool = True) -> None:
    """Replace `path` by a file with this text and mode; after a crash, it is either the old file or the whole new one.

    text: whole, or in pieces that are written as they are made. durable: whether it is synced to disk, which temporary
    files need not be.
    A symbolic link to a file is replaced, never followed. A pipe, a device or /dev/stdout is kept and written to.
    Raises LmsconfError if it cannot be written.
    """
    content = (piece.encode("utf-8") for piece in ([text] if isinstance(text, str) else text))
    with os_errors_as(
        f"{path} cannot be written", "Check that its folder exists and is writable, and that there is free space."
    ):
        handle = _opened_in_place(path)
        if handle is not None:
            with os.fdopen(handle, "wb") as file:
                file.writelines(content)
            return
        _replace(path, content, mode, durable)
        if durable:
            fsync_folder(path.parent)


def open_for_lines(path: Path) -> int:
    """Return a descriptor of an empty file of mode 0600, to write while a command runs. Raises OSError.

    A symbolic link to a file is replaced, never followed. A pipe, a device or /dev/stderr is kept and written to.
    """
    handle = _opened_in_place(path)
    if handle is not None:
        return handle
    # A file stays the same one: somebody may follow it, or have mounted it.
    if path.is_symlink():
        path.unlink()
    handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW, _PRIVATE)
    try:
        os.fchmod(handle, _PRIVATE)
    except OSError:
        os.close(handle)
        raise
    return handle


def leads_to_stdout(path: Path) -> bool:
    """Whether `path` is an alias of this process's stdout, as /dev/stdout is."""
    return _descriptor(path) == 1


def is_writable(path: Path) -> bool:
    """Whether writing to `path` should succeed, as far as can be checked without writing."""
    place = path if _is_special(path) else path.parent
    return _descriptor(path) is not None or (not path.is_dir() and os.access(place, os.W_OK))


def _opened_in_place(path: Path) -> int | None:
    """Return a descriptor of what exists and is not a file: a file in its place would destroy it. Else None."""
    descriptor = _descriptor(path)
    # A descriptor is duplicated: opening it by name would start at offset 0 of a file, and fails for a socket.
    if descriptor is not None:
        return os.dup(descriptor)
    return os.open(path, os.O_WRONLY | os.O_NOCTTY) if _is_special(path) else None


def _is_special(path: Path) -> bool:
    """Whether a pipe, a device or a folder exists there."""
    return path.exists() and not path.is_file()


def _descriptor(path: Path) -> int | None:
    """Return the file descriptor of this process that `path` is an alias of, as /dev/stdout is; None for other paths.

    Such a path is never replaced, even if the descriptor is a file: another program opened that file, and the link is
    system-wide.
    """
    for _ in range(40):  # so many links in a row does Linux follow before it reports a loop
        if re.fullmatch("[0-9]{1,9}", path.name) and path.parent.resolve() == Path("/dev/fd").resolve():
            return int(path.name)
        if not path.is_symlink():
            break
        path = path.parent / path.readlink()
    return None


def _replace(path: Path, content: Iterator[bytes], mode: int, durable: bool) -> None:
    """Write a temporary file next to `path` and rename it; remove it on failure."""
    # The same folder, because a rename is atomic only within one file system.
    handle, name = mkstemp(dir=path.parent, prefix=".", suffix=".tmp")
    try:
        with os.fdopen(handle, "wb") as file:
            os.fchmod(handle, mode)
            file.writelines(content)
            if durable:
                file.flush()
                os.fsync(handle)
        Path(name).replace(path)
    finally:
        Path(name).unlink(missing_ok=True)


def fsync_folder(folder: Path) -> None:
    """Fsync a directory, so that new and renamed entries survive a power failure. Raises OSError."""
    handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


@contextlib.contextmanager
def os_errors_as(what: str, hint: str) -> Iterator[None]:
    """Raise LmsconfError in place of an OSError. what: what cannot be done, such as `plan.json cannot be written`."""
    try:
        yield
    except OSError as error:
        raise LmsconfError(f"{what}: {os_error_message(error)}", hint=hint) from error


def os_error_message(error: OSError) -> str:
    """Return the system's message of an error, without the path."""
    return error.strerror or str(error)


def write_all_or_none(root: Path, old_contents: Mapping[str, bytes], new_contents: Mapping[str, bytes]) -> None:
    """Write every file, keeping its mode. If a write fails, files already written are restored.

    old_contents: the content of each file when it was read. Raises LmsconfError, writing nothing, if one was changed
    since.
    """
    # Symbolic links are kept: their targets are written.
    paths = {name: (root / name).resolve() for name in sorted(new_contents)}
    for name, path in paths.items():
        if read_text(path).encode() != old_contents[name]:
            raise LmsconfError(f"{name} was changed by another process; nothing was written", hint="Run it again.")
    try:
        for name, path in paths.items():
            _write(path, new_contents[name])
    except BaseException:
        # An interruption may come right after a file was replaced: what it holds now decides.
        for name, path in paths.items():
            if path.read_bytes() == new_contents[name]:
                _write(path, old_contents[name])
        raise


def _write(path: Path, data: bytes) -> None:
    write_atomically(path, data.decode("utf-8"), mode=stat.S_IMODE(path.stat().st_mode))


class LineStream:
    """A stream of lines. The first line is written at once, and raises OSError if it cannot be.

    write: writes all bytes, and flushes them. patience: the seconds for which `put`, where there is no room for more
    lines, and `close` wait for a reader that does not read; None: no limit. room: the lines that may wait for it.
    failure: why lines are missing; None if none are. is_stuck: a write that nobody reads may still be under way.
    """

    def __init__(
        self, first: bytes, write: Callable[[bytes], None], *, patience: float | None = None, room: int = 1 << 16
    ) -> None:
        write(first)
        self.failure: str | None = None
        self.is_stuck = False
        self._write, self._patience = write, patience
        self._lines: Queue[bytes | None] = Queue(room)
        # A daemon: a reader that never reads does not keep the process alive.
        self._writer = threading.Thread(target=self._drain, name="lmsconf-events", daemon=True)
        self._writer.start()

    def put(self, line: bytes | None) -> None:
        """Queue a line; it is written as soon as those before it are. Wait while there is no room. None: the end."""
        if self.failure is None:
            try:
                self._lines.put(line, timeout=self._patience)
            except Full:
                self._give_up()

    def close(self) -> None:
        """Wait until all lines are written, or the stream has failed; fail if nothing moves for too long."""
        self.put(None)
        while self._writer.is_alive() and self.failure is None:
            before = self._lines.qsize()
            self._writer.join(self._patience)
            if self._writer.is_alive() and self._lines.qsize() == before:
                self._give_up()

    def _give_up(self) -> None:
        self.is_stuck = True
        self.failure = f"its reader has not read for {self._patience:g} seconds"

    def _drain(self) -> None:
        # After a failure, the lines that wait are taken without being written, so that no `put` waits for room.
        while self.failure is None or not self._lines.empty():
            line = self._lines.get()
            if line is None:
                break
            try:
                if self.failure is None:
                    self._write(line)
            except OSError as error:
                self.failure = self.failure or os_error_message(error)


def descriptor_writer(descriptor: int) -> Callable[[bytes], None]:
    """Return a function that writes all of its bytes to a file descriptor, without a buffer. It raises OSError."""

    def write(data: bytes) -> None:
        while data:
            data = data[os.write(descriptor, data) :]

    return write


def state_folder(environ: Mapping[str, str]) -> Path | None:
    """Return the folder below $XDG_STATE_HOME, or ~/.local/state; None where the environment names no home."""
    xdg, home = environ.get("XDG_STATE_HOME", ""), environ.get("HOME", "")
    state = Path(xdg) if xdg.startswith("/") else Path(home) / ".local" / "state" if home.startswith("/") else None
    return None if state is None else state / "lmsconf"


def read_own_file(file: Path) -> bytes | None:
    """Return the content of a file; None if it is missing, or if another user owns it or may write to it."""
    try:
        about = file.lstat()
        if not stat.S_ISREG(about.st_mode) or about.st_uid != os.geteuid() or about.st_mode & 0o022:
            return None
        return file.read_bytes()
    except (FileNotFoundError, NotADirectoryError):
        return None


def write_own_file(file: Path, text: str) -> None:
    """Replace a file atomically, in a folder that is created if missing. Raises LmsconfError."""
    with os_errors_as(f"{file.parent} cannot be created", "Set XDG_STATE_HOME to a folder that is writable."):
        file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    write_atomically(file, text)


REPOSITORY: Final = ".git"
"""What a work tree contains: its repository, or a file that points to it."""


def find_work_tree(folder: Path) -> Path | None:
    """Return the nearest folder, from this one up, that contains `.git`; None if there is none."""
    real = Path(os.path.realpath(folder))
    return next((above for above in (real, *real.parents) if _is_repository(above / REPOSITORY)), None)


def outermost_work_tree(folder: Path) -> Path | None:
    """Return the farthest folder, from this one up, that contains `.git`: of a submodule, the repository around it."""
    top = find_work_tree(folder)
    above = None if top is None or top == top.parent else outermost_work_tree(top.parent)
    return above or top


def _is_repository(path: Path) -> bool:
    # As pathlib's is_file, but False also where a folder may not be searched by this user.
    return os.path.isfile(path) or os.path.isfile(path / "HEAD")  # noqa: PTH113  as said above


_PACKAGE = Path(__file__).parent.parent


def read_schema(name: str) -> str:
    """Return the text of `schemas/<name>`: inside the package in a wheel, next to it in a checkout."""
    return _text(_PACKAGE / "schemas" / name, _PACKAGE.parent / "schemas" / name)


def read_ci_workflow(name: str) -> str:
    """Return the text of a CI workflow: `ci/<name>` in the package of a wheel, `examples/ci/<name>` in a checkout."""
    return _text(_PACKAGE / "ci" / name, _PACKAGE.parent / "examples" / "ci" / name)


def guide_topics() -> list[str]:
    """Return the topics of `lmsconf help`."""
    return sorted(page.stem for page in (_PACKAGE / "guide").glob("*.md"))


def read_guide_page(topic: str) -> str:
    """Return the text of a page of the guide without its comments; `topic` is one of `guide_topics`."""
    text = (_PACKAGE / "guide" / f"{topic}.md").read_text(encoding="utf-8")
    return re.sub(r"^<!-- .* -->\n", "", text, flags=re.MULTILINE)


def _text(inside: Path, beside: Path) -> str:
    return (inside if inside.exists() else beside).read_text(encoding="utf-8")
