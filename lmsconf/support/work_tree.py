"""Locate the git work tree that contains a folder, without running git."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Final

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
