"""Files that are whole or not there: reading text with kind errors, writing it atomically; and what is no file."""

from __future__ import annotations

import contextlib
import os
import tempfile
from pathlib import Path
from typing import Final

from lmsconf.errors import LmsconfError

_LINKS: Final = 40
"""So many links in a row are a ring for the system too."""


def read_text(path: Path) -> str:
    """The text of a UTF-8 file, byte for byte. Raises LmsconfError that says why there is none."""
    try:
        return path.read_bytes().decode("utf-8")
    except UnicodeDecodeError as error:
        raise LmsconfError(f"{path} is not UTF-8 text", hint="It may be damaged, or not a file of lmsconf.") from error
    except OSError as error:
        raise LmsconfError(f"{path} cannot be read: {why(error)}", hint="Check the path.") from error


def write_atomically(path: Path, text: str, mode: int = 0o600) -> None:
    """Leaves either the old file or the whole new one at `path`, whatever happens, with that mode.

    A symbolic link to a file is replaced, never followed. What is no file, such as a pipe, a device or /dev/stdout,
    stays what it is and gets the text. Raises LmsconfError for what cannot be written.
    """
    content = text.encode("utf-8")
    try:
        if path.is_dir():
            raise IsADirectoryError(None, "it is a folder")
        if _stays(path):
            _pour(path, content)
        else:
            _replace(path, content, mode)
            sync_folder(path.parent)
    except OSError as error:
        hint = "Check that its folder exists, may be written to, and has room."
        raise LmsconfError(f"{path} cannot be written: {why(error)}", hint=hint) from error


def writable(path: Path) -> bool:
    """Whether nothing that can be known before is in the way of writing to `path`."""
    if _descriptor(path) is not None:
        return True
    return not path.is_dir() and os.access(path if _stays(path) else path.parent, os.W_OK)


def _stays(path: Path) -> bool:
    """Whether something is there that is no file, so that a file in its place would destroy it."""
    return _descriptor(path) is not None or (path.exists() and not path.is_file())


def _descriptor(path: Path) -> int | None:
    """The descriptor of this process that the path is another name for, as /dev/stdout is one; None for a file.

    Even where it leads to a file, that is another program's, and the name is a link of the whole system.
    """
    own = Path("/dev/fd").resolve()
    for _ in range(_LINKS):
        if path.name.isdecimal() and path.parent.resolve() == own:
            return int(path.name)
        if not path.is_symlink():
            break
        path = path.parent / path.readlink()
    return None


def _pour(path: Path, content: bytes) -> None:
    """Writes into what is there already."""
    descriptor = _descriptor(path)
    # A descriptor is used as it is: opened by its name, a file would be written from its beginning, and no socket is.
    handle = os.open(path, os.O_WRONLY | os.O_NOCTTY) if descriptor is None else os.dup(descriptor)
    with os.fdopen(handle, "wb") as file:
        file.write(content)


def _replace(path: Path, content: bytes, mode: int) -> None:
    """Writes beside `path` and renames; nothing is left beside it when that fails."""
    # The same folder, because a rename is atomic only within one file system.
    handle, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name[:100]}.", suffix=".tmp")
    try:
        with os.fdopen(handle, "wb") as file:
            os.fchmod(file.fileno(), mode)
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        Path(name).replace(path)
    except BaseException:
        with contextlib.suppress(FileNotFoundError):
            Path(name).unlink()
        raise


def sync_folder(folder: Path) -> None:
    """Makes what a folder lists, a new name or a rename, survive a power cut. Raises OSError."""
    handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def why(error: OSError) -> str:
    """What the system says of it, without the path."""
    return error.strerror or str(error)
