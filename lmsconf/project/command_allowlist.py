"""Persistent per-user allowlist of the token commands that a project may run.

An entry is the project's real path, the command's words as the project file spells them, and the sha256 of each file
of the project that they name: when such a file changes, the command needs approval again. A command that names none
does not run in the project's folder, where a branch may add a file that programs read by themselves, such as a module
of Python or a Makefile.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import shlex
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Final

from msgspec import Struct

from lmsconf.errors import LmsconfError
from lmsconf.support.folders import outermost_work_tree, read_own_file, state_folder, write_own_file

VARIABLE: Final = "LMSCONF_TOKEN_COMMANDS"
FORMAT: Final = "lmsconf.token-commands/1"
_ALLOW: Final = "allow"
_PARTS: Final = re.compile(r"[\s;&|<>()`'\"=,:@$]+")
"""Between the parts of a word: `sh -c "./token.sh; true"` and `--config=token.ini` name files too."""
_ELSEWHERE: Final = Path("/")

Ask = Callable[[str], bool]
"""Prompt: shows the command line to the user and returns whether it may run."""


class CommandNotApproved(LmsconfError):
    """A token command was not approved."""

    code = "token/refused"


class CommandAllowlist(Struct, frozen=True):
    """The commands approved so far.

    file: where approvals are stored; None: they are not stored. always: every command is approved. ask: the prompt;
    None where there is no terminal.
    """

    file: Path | None
    always: bool
    ask: Ask | None = None

    @classmethod
    def of_user(cls, environ: Mapping[str, str], ask: Ask | None = None) -> CommandAllowlist:
        """Return the approvals of the user with this environment.

        They are stored under $XDG_STATE_HOME, or ~/.local/state. LMSCONF_TOKEN_COMMANDS=allow approves every command.
        """
        folder = state_folder(environ)
        file = None if folder is None else folder / "token-commands.json"
        return cls(file, environ.get(VARIABLE) == _ALLOW, ask)

    def require_approval(self, command: Sequence[str], expanded: Sequence[str], root: Path) -> None:
        """Return if the command is approved; otherwise prompt, and store a yes.

        command: its words before variables are expanded; of these, only the program is approved as expanded.
        Raises CommandNotApproved if the user declines or cannot be asked, LmsconfError for a damaged file of approvals.
        """
        if self.always:
            return
        command = (*expanded[:1], *command[1:])
        entry = _entry(command, files_of_project(expanded, root), root)
        known = self._known()
        if entry in known:
            return
        shown = shlex.join(command)
        if self.ask is None:
            hint = f"Run it once on a terminal to allow it, or set {VARIABLE}={_ALLOW} where every change is reviewed."
            raise CommandNotApproved(f"the token's command is not allowed to run yet: {shown}", hint=hint)
        if not self.ask(shown):
            raise CommandNotApproved("declined: the token's command did not run", hint=f"The command is: {shown}")
        if self.file is not None:
            write_own_file(self.file, json.dumps({"format": FORMAT, "allowed": [*known, entry]}, indent=2) + "\n")

    def _known(self) -> list[object]:
        """Return the stored entries; none from a file that another user owns or may write to."""
        try:
            content = None if self.file is None else read_own_file(self.file)
            if content is None:
                return []
            document = json.loads(content)
        except ValueError as error:
            raise LmsconfError(
                f"{self.file} is damaged", hint="Delete the file; lmsconf then asks again for each command."
            ) from error
        allowed = document.get("allowed") if isinstance(document, dict) and document.get("format") == FORMAT else None
        return allowed if isinstance(allowed, list) else []


def files_of_project(command: Sequence[str], root: Path) -> dict[str, Path]:
    """Return each word of a command, or part of one, that names a file which a branch may change.

    These are the files of the project and of the repository that it is in, and whatever links among them lead to.
    """
    names = {part for word in command for part in (word, *_PARTS.split(word))}
    if not names:
        return {}

    real = Path(os.path.realpath(root))
    top = outermost_work_tree(real) or real
    # Path.is_file may raise, for a name that is too long.
    files = {name: real / name for name in sorted(names) if os.path.isfile(real / name)}  # noqa: PTH113  as said above
    seen = (os.path.normpath, os.path.realpath)
    return {name: path for name, path in files.items() if any(Path(at(path)).is_relative_to(top) for at in seen)}


def folder_to_run_in(command: Sequence[str], root: Path) -> Path:
    """Return the project's folder for a command that names a file of it, and `/` for any other."""
    return root if files_of_project(command, root) else _ELSEWHERE


def _entry(command: Sequence[str], files: Mapping[str, Path], root: Path) -> dict[str, object]:
    digests = {name: hashlib.sha256(path.read_bytes()).hexdigest() for name, path in files.items()}
    return {"project": os.path.realpath(root), "command": list(command), "files": digests}
