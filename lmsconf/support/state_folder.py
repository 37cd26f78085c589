"""Files of the user that no project has: readable and writable by the user only, in the state folder."""

from __future__ import annotations

import os
import stat
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from lmsconf.errors import LmsconfError
from lmsconf.support.atomic_files import os_error_message, write_atomically

_WRITABLE_BY_OTHERS: Final = stat.S_IWGRP | stat.S_IWOTH


def state_folder(environ: Mapping[str, str]) -> Path | None:
    """Return the folder below $XDG_STATE_HOME, or ~/.local/state; None where the environment names no home."""
    xdg, home = environ.get("XDG_STATE_HOME", ""), environ.get("HOME", "")
    state = Path(xdg) if xdg.startswith("/") else Path(home) / ".local" / "state" if home.startswith("/") else None
    return None if state is None else state / "lmsconf"


def read_own_file(file: Path) -> bytes | None:
    """Return the content of a file; None if it is missing, or if another user owns it or may write to it."""
    try:
        about = file.lstat()
        if not stat.S_ISREG(about.st_mode) or about.st_uid != os.geteuid() or about.st_mode & _WRITABLE_BY_OTHERS:
            return None
        return file.read_bytes()
    except (FileNotFoundError, NotADirectoryError):
        return None


def write_own_file(file: Path, text: str) -> None:
    """Replace a file atomically, in a folder that is created if missing. Raises LmsconfError."""
    try:
        file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    except OSError as error:
        hint = "Set XDG_STATE_HOME to a folder that is writable."
        raise LmsconfError(f"{file.parent} cannot be created: {os_error_message(error)}", hint=hint) from error
    write_atomically(file, text)
