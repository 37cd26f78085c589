"""Finds the project that a command is about where nobody names its folder."""

from __future__ import annotations

import os
import shlex
import stat
from collections.abc import Mapping
from pathlib import Path

from lmsconf.errors import LmsconfError
from lmsconf.project.config_file import FILE
from lmsconf.support.git import work_tree


class ForeignProject(LmsconfError):
    """A project file that somebody else may have put there."""

    code = "project/foreign"


def project_folder(start: Path, environ: Mapping[str, str]) -> Path:
    """The nearest folder with a project file: this one, or one above it in the repository, or else in the home folder.

    `start` itself where there is none. Raises ForeignProject for one in a folder that other users may write to.
    """
    real = Path(os.path.realpath(start))
    last = work_tree(real) or _home(real, environ) or real
    for folder in (real, *real.parents):
        foreign = _foreign(folder)
        if os.path.lexists(folder / FILE):
            if foreign is not None:
                hint = f"If you trust it, name its folder: -C {shlex.quote(str(folder))}"
                raise ForeignProject(f"{folder} {foreign}, so its {FILE} is not used by itself", hint=hint)
            return start if folder == real else folder
        if folder == last or foreign is not None:
            break
    return start


def _home(folder: Path, environ: Mapping[str, str]) -> Path | None:
    """The home folder, for what lies in it."""
    home = Path(os.path.realpath(environ["HOME"])) if environ.get("HOME") else None
    return home if home is not None and folder.is_relative_to(home) else None


def _foreign(folder: Path) -> str | None:
    """Who else may have put a file there, in words; None where nobody may but this user and root."""
    about = folder.stat()
    if about.st_mode & stat.S_IWOTH:
        return "can be written to by everybody"
    return None if about.st_uid in (0, os.geteuid()) else "belongs to another user"
