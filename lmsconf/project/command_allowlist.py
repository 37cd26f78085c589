"""Persistent per-user allowlist of the token commands that a project may run.

An entry is the project's real path, the command's words as the project file spells them, and the sha256 of each word
that names a file of the project: when such a file changes, the command needs approval again.
"""

from __future__ import annotations

import hashlib
import json
import os
import shlex
import stat
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Final

from lmsconf.errors import LmsconfError
from lmsconf.support.atomic_files import write_atomically
from lmsconf.support.lazy_dataclass import dataclass

VARIABLE: Final = "LMSCONF_TOKEN_COMMANDS"
FORMAT: Final = "lmsconf.token-commands/1"
_ALLOW: Final = "allow"
_WRITABLE_BY_OTHERS: Final = 0o022

Ask = Callable[[str], bool]
"""Prompt: shows the command line to the user and returns whether it may run."""


class CommandNotApproved(LmsconfError):
    """A token command was not approved."""

    code = "token/refused"


@dataclass(frozen=True, slots=True)
class CommandAllowlist:
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
        xdg, home = environ.get("XDG_STATE_HOME", ""), environ.get("HOME", "")
        state = Path(xdg) if xdg.startswith("/") else Path(home) / ".local" / "state" if home.startswith("/") else None
        file = None if state is None else state / "lmsconf" / "token-commands.json"
        return cls(file, environ.get(VARIABLE) == _ALLOW, ask)

    def require_approval(self, command: Sequence[str], root: Path) -> None:
        """Return if the command is approved; otherwise prompt, and store a yes.

        Raises CommandNotApproved if the user declines or cannot be asked, LmsconfError for a damaged file of approvals.
        """
        if self.always:
            return
        entry = _entry(command, root)
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
            self.file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            write_atomically(self.file, json.dumps({"format": FORMAT, "allowed": [*known, entry]}, indent=2) + "\n")

    def _known(self) -> list[object]:
        """Return the stored entries; none from a file that another user owns or may write to."""
        try:
            if self.file is None:
                return []
            about = self.file.lstat()
            if not stat.S_ISREG(about.st_mode) or about.st_uid != os.geteuid() or about.st_mode & _WRITABLE_BY_OTHERS:
                return []
            document = json.loads(self.file.read_bytes())
        except (FileNotFoundError, NotADirectoryError):
            return []
        except ValueError as error:
            raise LmsconfError(
                f"{self.file} is damaged", hint="Delete the file; lmsconf then asks again for each command."
            ) from error
        allowed = document.get("allowed") if isinstance(document, dict) and document.get("format") == FORMAT else None
        return allowed if isinstance(allowed, list) else []


def _entry(command: Sequence[str], root: Path) -> dict[str, object]:
    real = Path(os.path.realpath(root))
    files = {word: digest for word in command if (digest := _digest(real, word))}
    return {"project": str(real), "command": list(command), "files": files}


def _digest(root: Path, word: str) -> str | None:
    """Return the sha256 of the project file that a word names; None for any other word."""
    path = Path(os.path.realpath(root / word)) if "\0" not in word else root
    if not path.is_relative_to(root) or not os.path.isfile(path):  # noqa: PTH113  Path.is_file may raise
        return None
    return hashlib.sha256(path.read_bytes()).hexdigest()
