"""Where files are that are not a project's own: in the package, in the git work tree around it, and the user's.

Files in the user's state folder are readable and writable by the user only.
"""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from lmsconf.support.atomic_files import os_errors_as, write_atomically

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
