"""Tokens: where each comes from, read only when it is needed, and never shown."""

from __future__ import annotations

import shlex
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from lmsconf.endpoint import bare_token, token_problem
from lmsconf.errors import LmsconfError, Problem, Severity, Where
from lmsconf.redact import keep_secret

_PATIENCE = 60.0
_READABLE_BY_OTHERS = 0o077
_FILE_HINT: Final = (
    "Write the token alone, in one line, into that file, or name another: `token: {file: PATH}`, as seen from the "
    "project's folder."
)
_COMMAND_HINT: Final = (
    "Run the command in the project's folder: it must end with 0 and print the token alone, in one line. Write another "
    "as `token: {command: [PROGRAM, ARGUMENT]}`."
)


class NoToken(LmsconfError):
    """There is a place where the token should be, and it gives none."""

    code = "token/missing"


class Secret:
    """A text that no repr, log or traceback shows, nor anything else that lmsconf says."""

    __slots__ = ("_text",)

    def __init__(self, text: str) -> None:
        self._text = text
        keep_secret(text.strip())

    def reveal(self) -> str:
        """The text itself, for the one header that carries it."""
        return self._text

    def __repr__(self) -> str:
        return "Secret(…)"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Secret) and other._text == self._text

    def __hash__(self) -> int:
        return hash(self._text)


@dataclass(frozen=True, slots=True)
class EnvToken:
    """The token is in an environment variable; `found` is None where that is not set."""

    name: str
    found: Secret | None

    def secret(self) -> Secret:
        """The token. Raises NoToken."""
        if self.found is None:
            raise NoToken(
                f"the environment variable {self.name} is not set", hint=f"It should hold the token: {self.name}=…"
            )
        hint = f"Set it to the token alone, in one line: {self.name}=…"
        return _usable(self.found.reveal(), f"the environment variable {self.name}", hint)

    def warning(self, source: Where) -> Problem | None:
        """Nothing about a variable is worth a warning."""
        return None


@dataclass(frozen=True, slots=True)
class FileToken:
    """The token is all that a file holds."""

    path: Path

    def secret(self) -> Secret:
        """The token. Raises NoToken."""
        try:
            text = self.path.read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError) as error:
            reason = error.strerror if isinstance(error, OSError) else "it is not text"
            raise NoToken(f"the token file {self.path} cannot be read: {reason}", hint=_FILE_HINT) from error
        return _usable(text, f"the file {self.path}", _FILE_HINT)

    def warning(self, source: Where) -> Problem | None:
        """That others on this machine can read the file, if they can."""
        if not self.path.is_file() or not self.path.stat().st_mode & _READABLE_BY_OTHERS:
            return None
        return Problem(
            code="token/readable",
            message=f"others on this machine can read the token file {self.path}",
            severity=Severity.WARNING,
            hint=f"chmod 600 {shlex.quote(str(self.path))}",
            source=source,
        )


@dataclass(frozen=True, slots=True)
class CommandToken:
    """A program prints the token. It runs when the token is needed, never before."""

    command: tuple[str, ...]
    folder: Path

    def secret(self) -> Secret:
        """The token. Raises NoToken. What the program says on stderr goes to the terminal."""
        shown = shlex.join(self.command)
        try:
            done = subprocess.run(  # noqa: S603  # the project file names the program, and no shell reads it
                self.command, cwd=self.folder, stdout=subprocess.PIPE, timeout=_PATIENCE, check=False
            )
        except (OSError, subprocess.TimeoutExpired) as error:
            reason = error.strerror if isinstance(error, OSError) else f"no answer within {_PATIENCE:.0f} seconds"
            raise NoToken(f"the command {shown} gave no token: {reason}", hint=_COMMAND_HINT) from error
        if done.returncode:
            message = f"the command {shown} gave no token: it ended with {done.returncode}"
            raise NoToken(message, hint=_COMMAND_HINT)
        return _usable(done.stdout.decode("utf-8", "replace"), f"the command {shown}", _COMMAND_HINT)

    def warning(self, source: Where) -> Problem | None:
        """Nothing about a command is worth a warning."""
        return None


Token = EnvToken | FileToken | CommandToken


def token_from(said: Mapping[str, object], root: Path, environ: Mapping[str, str]) -> Token:
    """The token that the project file speaks of; it is not read yet."""
    if "env" in said:
        return env_token(str(said["env"]), environ)
    if "file" in said:
        return FileToken(root / Path(str(said["file"])).expanduser())
    command = said["command"]
    return CommandToken(tuple(str(word) for word in command) if isinstance(command, list) else (), root)


def env_token(name: str, environ: Mapping[str, str]) -> EnvToken:
    """The token in an environment variable; one that is set to nothing counts as not set."""
    return EnvToken(name, Secret(environ[name]) if environ.get(name) else None)


def _usable(text: str, origin: str, hint: str) -> Secret:
    """The token without the line break at its end. Raises NoToken where a header could not carry it."""
    token = bare_token(text)
    if wrong := token_problem(token):
        raise NoToken(f"{origin} holds no token: {wrong}", hint=hint)
    return Secret(token)
