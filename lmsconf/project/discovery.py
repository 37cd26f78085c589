"""Locate the project folder when -C is not given."""

from __future__ import annotations

import os
import shlex
import stat
from collections.abc import Mapping
from pathlib import Path

from lmsconf.errors import LmsconfError
from lmsconf.project.config_file import FILE
from lmsconf.support.folders import find_work_tree


class UntrustedProjectFolder(LmsconfError):
    """The project file is in a folder that another user owns or may write to."""

    code = "project/foreign"


def find_project_folder(start: Path, environ: Mapping[str, str]) -> Path:
    """Return the nearest folder with a project file, from `start` upwards; `start` if there is none.

    The search ends at the root of the git work tree; outside a repository, at the home folder; outside both, at
    `start`; and at any folder that another user (but root) owns or may write to. Raises UntrustedProjectFolder if such
    a folder has the project file.
    """
    real = Path(os.path.realpath(start))
    last = find_work_tree(real) or _home(real, environ) or real
    for folder in (start, *real.parents):
        foreign = _foreign(folder)
        if os.path.lexists(folder / FILE):
            if foreign is not None:
                named = real if folder is start else folder
                hint = f"If you trust it, pass its folder: -C {shlex.quote(str(named))}"
                raise UntrustedProjectFolder(f"{named} {foreign}, so its {FILE} is not used", hint=hint)
            return folder
        if foreign is not None or last == (real if folder is start else folder):
            break
    return start


def _home(folder: Path, environ: Mapping[str, str]) -> Path | None:
    """Return the home folder if `folder` is inside it."""
    home = Path(os.path.realpath(environ["HOME"])) if environ.get("HOME") else None
    return home if home is not None and folder.is_relative_to(home) else None


def _foreign(folder: Path) -> str | None:
    """Return why a folder is not trusted, in words; None if it belongs to this user or root, and not all may write."""
    try:
        about = folder.stat()
    except OSError:  # a folder above it may not be searched by this user
        return "cannot be inspected"
    if about.st_mode & stat.S_IWOTH:
        return "is writable by everybody"
    return None if about.st_uid in (0, os.geteuid()) else "belongs to another user"
