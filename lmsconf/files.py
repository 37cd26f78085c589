"""Files that are whole or not there: reading text with kind errors, writing it atomically."""

from __future__ import annotations

import contextlib
import os
import tempfile
from pathlib import Path

from lmsconf.errors import LmsconfError


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

    A symbolic link at `path` is replaced, never followed. Raises LmsconfError when the folder cannot be written to.
    """
    try:
        if path.is_dir():
            raise IsADirectoryError(None, "it is a folder")
        _replace(path, text.encode("utf-8"), mode)
        sync_folder(path.parent)
    except OSError as error:
        hint = "Check that its folder exists, may be written to, and has room."
        raise LmsconfError(f"{path} cannot be written: {why(error)}", hint=hint) from error


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
