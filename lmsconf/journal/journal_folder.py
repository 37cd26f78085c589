"""The folder `.lmsconf` of a project: readable by its owner only, and ignored by git."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Final

from lmsconf.errors import LmsconfError
from lmsconf.support.atomic_files import os_error_message

FOLDER: Final = ".lmsconf"
RUNS: Final = "runs"
SUFFIX: Final = ".jsonl"
"""Of a journal, behind the name of its run."""
_MODE: Final = 0o700
_IGNORE: Final = ".gitignore"


def ensure_folder(root: Path, *subfolders: str) -> Path:
    """Return the folder `.lmsconf` in `root`, or one below it; create it if missing. Raises LmsconfError."""
    folder = root / FOLDER
    _make(folder)
    _ignore(folder / _IGNORE)
    for name in subfolders:
        folder /= name
        _make(folder)
    return folder


def open_private_file(path: Path, *flags: int) -> int:
    """Open a file, created with mode 0600 if missing, and return its descriptor. Raises OSError, also for a symlink."""
    return os.open(path, sum(flags, os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC), 0o600)


def unwritable_error(path: Path, error: OSError) -> LmsconfError:
    """Return the error of a run that is refused because its files cannot be written."""
    return LmsconfError(
        f"{path} cannot be written: {os_error_message(error)}",
        hint="Each run writes its journal there. Check the permissions of the folder and the free space.",
    )


def _make(folder: Path) -> None:
    try:
        # A symlink planted by another user would put the files where others can read them.
        if folder.is_symlink():
            raise NotADirectoryError(None, "it is a symbolic link")
        folder.mkdir(mode=_MODE, exist_ok=True)
    except OSError as error:
        raise unwritable_error(folder, error) from error


def _ignore(path: Path) -> None:
    """Write a `.gitignore` into the folder, so that git ignores it without a rule of the project."""
    try:
        # An empty one is what a full disk leaves of it.
        if not path.exists() or not path.stat().st_size:
            with os.fdopen(open_private_file(path, os.O_WRONLY), "w", encoding="utf-8") as file:
                file.write("*\n")
    except OSError as error:
        raise unwritable_error(path, error) from error
