"""The folder `.lmsconf` of a project: readable by its owner only, and ignored by git."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from lmsconf.errors import LmsconfError
from lmsconf.model.canonical_json import sha256_of_bytes
from lmsconf.support.atomic_files import os_error_message

FOLDER: Final = ".lmsconf"
RUNS: Final = "runs"
SUFFIX: Final = ".jsonl"
"""Of a journal, behind the name of its run."""
_READABLE: Final = 60
_DIGEST: Final = 12
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


def runs_folder(url: str) -> str:
    """Return the name of the folder in `runs` for the workspace with this URL: a readable part, and a digest of it.

    With a folder for each, a workspace of a fleet does not look at the runs of all others.
    """
    readable = re.sub(r"[^A-Za-z0-9.]+", "-", url)[:_READABLE].strip("-.")
    return f"{readable}-{sha256_of_bytes(url.encode('utf-8', 'surrogatepass'))[:_DIGEST]}"


def journals(root: Path, url: str | None = None) -> Iterator[Path]:
    """Yield the journals of a project, or of its runs in the workspace with one URL. Raises OSError."""
    folder = root / FOLDER / RUNS
    if url is not None:
        places = [folder / runs_folder(url)]
    else:
        places = [place for place in folder.iterdir() if place.is_dir()] if folder.is_dir() else []
    for place in places:
        if place.is_dir():
            yield from (path for path in place.iterdir() if path.suffix == SUFFIX)


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
