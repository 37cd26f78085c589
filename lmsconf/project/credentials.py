"""Token sources: environment variable, file or command, read only when needed; a token is never printed.

A command runs once the user has allowed it. An entry of that list is the project's real path, the command's
words as the project file spells them, and the sha256 of each file of the project that they name: when such a file
changes, the command needs approval again. A command that names none does not run in the project's folder, where a
branch may add a file that programs read by themselves, such as a module of Python or a Makefile.

`plan --base` and `drift --base` run on changes that are not reviewed yet: url, token source, token command
and dialect of the branch's project file must match the base's. A difference that could send a request or a
credential elsewhere is refused before any request, unless the caller trusts that part (`--trust-project`).
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import shlex
import stat
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Final, cast

from msgspec import Struct

from lmsconf.errors import LmsconfError, Problem, Severity, SourceLocation, UsageError, raise_found, shorten
from lmsconf.model.canonical_json import Json, members
from lmsconf.project.config_file import ProjectFile
from lmsconf.support.files import (
    open_nonblocking,
    outermost_work_tree,
    read_own_file,
    state_folder,
    write_own_file,
)
from lmsconf.support.secrets import register_secret
from lmsconf.support.url_rules import strip_final_newline, token_problem

VARIABLE: Final = "LMSCONF_TOKEN_COMMANDS"
FORMAT: Final = "lmsconf.token-commands/1"


Ask = Callable[[str], bool]
"""Prompt: shows the command line to the user and returns whether it may run."""


class TokenSourceForbidden(LmsconfError, code="token/refused"):
    """The project file names a token source that the environment does not allow, or a command that nobody approved."""


def require_approval(
    command: Sequence[str], expanded: Sequence[str], root: Path, environ: Mapping[str, str], ask: Ask | None
) -> None:
    """Return if the user with this environment has approved the command; otherwise prompt, and store a yes.

    Approvals are stored under $XDG_STATE_HOME, or ~/.local/state; LMSCONF_TOKEN_COMMANDS=allow approves every command.
    command: its words before variables are expanded; of these, only the program is approved as expanded. ask: the
    prompt; None where there is no terminal. Raises TokenSourceForbidden if the user declines or cannot be asked,
    LmsconfError for damaged approvals.
    """
    if environ.get(VARIABLE) == "allow":
        return
    folder = state_folder(environ)
    file = None if folder is None else folder / "token-commands.json"
    command = (*expanded[:1], *command[1:])
    entry = {
        "project": os.path.realpath(root),
        "command": list(command),
        "files": {
            name: hashlib.sha256(path.read_bytes()).hexdigest()
            for name, path in files_of_project(expanded, root).items()
        },
    }
    known = _approved_commands(file)
    # What a folder holds is not compared, so a command that names one is asked for each time.
    may_store = not folders_of_project(expanded, root)
    if may_store and entry in known:
        return
    shown = shlex.join(command)
    if ask is None:
        raise TokenSourceForbidden(
            f"the token's command is not allowed to run yet: {shown}",
            hint=f"Run it once on a terminal to allow it, or set {VARIABLE}=allow where every change is reviewed.",
        )
    if not ask(shown):
        raise TokenSourceForbidden("declined: the token's command did not run", hint=f"The command is: {shown}")
    if file and may_store:
        write_own_file(file, json.dumps({"format": FORMAT, "allowed": [*known, entry]}, indent=2) + "\n")


def _approved_commands(file: Path | None) -> list[object]:
    """Return the stored entries; none from a file that another user owns or may write to."""
    try:
        content = None if file is None else read_own_file(file)
        document = json.loads(content) if content is not None else {}
    except ValueError as error:
        raise LmsconfError(
            f"{file} is damaged", hint="Delete the file; lmsconf then asks again for each command."
        ) from error
    allowed = document.get("allowed") if isinstance(document, dict) and document.get("format") == FORMAT else None
    return allowed if isinstance(allowed, list) else []


def files_of_project(command: Sequence[str], root: Path) -> dict[str, Path]:
    """Return each word of a command, or part of one, that names a file which a branch may change.

    These are the files of the project and of the repository that it is in, and whatever links among them lead to.
    """
    # `sh -c "./token.sh; true"` and `--config=token.ini` name files in parts of words.
    names = {part for word in command for part in (word, *re.split(r"[\s;&|<>()`'\"=,:@$]+", word))}
    real = Path(os.path.realpath(root))
    top = outermost_work_tree(real) or real
    # Path.is_file may raise, for a name that is too long.
    files = {name: real / name for name in sorted(names) if os.path.isfile(real / name)}  # noqa: PTH113  as said above
    return {
        name: path
        for name, path in files.items()
        if any(Path(seen).is_relative_to(top) for seen in (os.path.normpath(path), os.path.realpath(path)))
    }


def folders_of_project(command: Sequence[str], root: Path) -> list[str]:
    """Return the folder of the project, or of its repository, if a word contains its path, or a variable or ~ for it.

    Such a command may run any file in it. The path of a file alone does not name its folder.
    """
    real = Path(os.path.realpath(root))
    folders = {str(outermost_work_tree(real) or real), os.path.abspath(root)}  # noqa: PTH100  links are kept
    files = "|".join(re.escape(name) for name in files_of_project(command, root) if name.startswith("/"))
    words = re.sub(rf"({files})(?![\w./-])" if files else "(?!)", "", "\n".join(command))
    # A shell that the command starts has the same variables.
    words = os.path.expandvars(re.sub(r"(?<![\w./~-])~(?=/)", "$HOME", words))
    return sorted(one for one in folders if re.search(rf"{re.escape(one)}(?![\w.-])", words))


_PATIENCE = 60.0
_OURS: Final = "LMSCONF_"
ENVS: Final = "LMSCONF_TOKEN_ENVS"
DIRS: Final = "LMSCONF_TOKEN_DIRS"
_FILE_HINT: Final = (
    "Write only the token, in one line, into that file, or name another: `token: {file: PATH}`, as seen from the "
    "project's folder."
)
_COMMAND_HINT: Final = (
    "It must exit with 0 and print only the token, in one line. It runs in the project's folder if it names a file "
    "there, and in / otherwise. Write another as `token: {command: [PROGRAM, ARGUMENT]}`."
)


class TokenUnavailable(LmsconfError, code="token/missing"):
    """The declared token source has no usable token."""


class Secret:
    """A string that is registered for redaction in all output and whose repr hides it."""

    __slots__ = ("_text",)

    def __init__(self, text: str) -> None:
        self._text = text
        register_secret(text.strip())

    def reveal(self) -> str:
        """Return the plain text, for the Authorization header."""
        return self._text

    def __repr__(self) -> str:
        return "Secret(…)"


class Token(Struct, frozen=True, kw_only=True):
    """A source of the token.

    origin, hint: what messages call it, and how to give it a token. read: returns its text, when it is needed.
    warning: that others can read it.
    """

    origin: str
    hint: str
    read: Callable[[], str]
    warning: Problem | None = None

    def secret(self) -> Secret:
        """Return the token without its trailing newline. Raises TokenUnavailable and TokenSourceForbidden."""
        token = strip_final_newline(self.read())
        if wrong := token_problem(token):
            raise TokenUnavailable(f"{self.origin} does not hold a valid token: {wrong}", hint=self.hint)
        return Secret(token)


def env_token(name: str, environ: Mapping[str, str], *, is_allowed: bool = True) -> Token:
    """Return the token source of an environment variable; an empty value counts as unset."""
    # Made at once, so that no output shows the token, be it used or not.
    value = Secret(environ[name]) if is_allowed and environ.get(name) else None

    def read() -> str:
        if not is_allowed:
            raise TokenSourceForbidden(
                f"a token must not come from the environment variable {shorten(name)}",
                hint=f"Use one that begins with {_OURS}, or list it outside the project: {ENVS}={shorten(name)}",
            )
        if value is None:
            raise TokenUnavailable(f"the environment variable {name} is not set", hint=f"Set it to the token: {name}=…")
        return value.reveal()

    return Token(
        origin=f"the environment variable {name}", hint=f"Set it to the token, in one line: {name}=…", read=read
    )


def _file_token(path: Path, folders: Sequence[Path], source: SourceLocation) -> Token:
    """Return the token source of a file that is the token. folders: where token files are allowed."""

    def read() -> str:
        real = Path(os.path.realpath(path))
        if not _is_allowed(real, folders):
            raise TokenSourceForbidden(
                f"the token file {path} is outside the project",
                hint=f"Put it into the project, or name its folder outside the project: {DIRS}=FOLDER",
            )
        try:
            with open_nonblocking(real, os.O_NOFOLLOW) as file:
                if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
                    raise OSError(None, "it is a pipe or a device, not a file")
                return file.read(65_536).decode("utf-8")
        except (OSError, UnicodeDecodeError) as error:
            reason = error.strerror if isinstance(error, OSError) else "it is not text"
            raise TokenUnavailable(f"the token file {path} cannot be read: {reason}", hint=_FILE_HINT) from error

    is_used = _is_allowed(Path(os.path.realpath(path)), folders) and path.is_file()
    is_open = is_used and path.stat().st_mode & (stat.S_IRWXG | stat.S_IRWXO)
    readable = Problem(
        code="token/readable",
        message=f"others on this machine can read the token file {path}",
        severity=Severity.WARNING,
        hint=f"chmod 600 {shlex.quote(str(path))}",
        source=source,
    )
    return Token(
        origin=f"the file {path}",
        hint=_FILE_HINT,
        read=read,
        warning=readable if is_open else None,
    )


def _is_allowed(real: Path, folders: Sequence[Path]) -> bool:
    """Whether a resolved path is in one of the folders and not inside a `.git` directory."""
    inside = (real.relative_to(folder) for folder in folders if real.is_relative_to(folder))
    return any(".git" not in path.parts for path in inside)


def _command_token(
    command: Sequence[str], pattern: Sequence[str], root: Path, environ: Mapping[str, str], ask: Ask | None
) -> Token:
    """Return the token source of a command, which prints it to stdout; its stderr is passed through.

    It runs without a shell, only when the token is needed. pattern: its words as the project file has them,
    before variables are expanded. They are what is approved.
    """
    words = shlex.join(command)

    def read() -> str:
        import subprocess  # slow to import, and few tokens come from a command

        require_approval(pattern, command, root, environ, ask)
        try:
            done = subprocess.run(  # noqa: S603  # the project file names the program, and no shell reads it
                command,
                cwd=root if files_of_project(command, root) else Path("/"),
                stdout=subprocess.PIPE,
                timeout=_PATIENCE,
                check=False,
            )
        except (OSError, subprocess.TimeoutExpired) as error:
            reason = error.strerror if isinstance(error, OSError) else f"no output within {_PATIENCE:.0f} seconds"
            raise TokenUnavailable(f"the command {words} gave no token: {reason}", hint=_COMMAND_HINT) from error
        if done.returncode:
            raise TokenUnavailable(
                f"the command {words} gave no token: it exited with {done.returncode}", hint=_COMMAND_HINT
            )
        return done.stdout.decode("utf-8", "replace")

    return Token(origin=f"the command {words}", hint=_COMMAND_HINT, read=read)


def declared_token(
    project: ProjectFile, workspace: str, root: Path, environ: Mapping[str, str], ask: Ask | None
) -> Token | None:
    """Return the source of a workspace's token, without reading it: LMSCONF_TOKEN, else the file's, if any.

    ask: the prompt for a command that is not approved yet. Raises LmsconfError for a relative path in
    LMSCONF_TOKEN_DIRS.
    """
    if environ.get("LMSCONF_TOKEN"):
        return env_token("LMSCONF_TOKEN", environ)
    match project.expanded_token(workspace):
        case {"env": name}:
            return env_token(str(name), environ, is_allowed=env_may_hold_token(str(name), environ))
        case {"file": file}:
            named = [folder for folder in re.split("[,:]", environ.get(DIRS, "")) if folder]
            for folder in (folder for folder in named if not folder.startswith("/")):
                raise LmsconfError(f"{DIRS}: {shorten(folder)} is not an absolute path", hint="Write the path from /.")
            path, folders = root / Path(str(file)).expanduser(), [Path(os.path.realpath(one)) for one in (root, *named)]
            return _file_token(path, folders, project.places.at("workspaces", workspace, "token"))
        case {"command": [*words]}:
            pattern = cast("list[Json]", project.mapping_at("workspaces", workspace, "token")["command"])
            return _command_token([*map(str, words)], [*map(str, pattern)], root, environ, ask)
    return None


def env_may_hold_token(name: str, environ: Mapping[str, str]) -> bool:
    """Whether a project file may name this variable: one with prefix LMSCONF_, or listed in LMSCONF_TOKEN_ENVS."""
    # The key that signs plans is lmsconf's own secret; a project file must not send it as a token.
    if name == "LMSCONF_PLAN_KEY" or not re.fullmatch(r"[A-Za-z_][A-Za-z0-9_]*", name):
        return False
    return name.startswith(_OURS) or name in re.split(r"[,:\s]+", environ.get(ENVS, ""))


PARTS: Final = ("url", "token", "command", "dialect")
"""The values of `--trust-project`."""


class RequestDestination(Struct, frozen=True, kw_only=True):
    """The url, token source and dialect of one workspace, as the project file declares them.

    places: the source location of each part. programs: what of the project the token command names.
    """

    url: str | None = None
    token: Mapping[str, Json] | None = None
    dialect: Mapping[str, Json] = {}
    places: Mapping[str, SourceLocation] = {}
    programs: tuple[str, ...] = ()


NOWHERE: Final = RequestDestination()
"""The destination of a base without a readable project file."""


def request_destination(project: ProjectFile, workspace: str, root: Path) -> RequestDestination:
    """Return the destination of a workspace; for the one of LMSCONF_URL only the dialect is from the file."""
    at = project.dialect_locations(workspace)
    declared = project.mapping_at("workspaces", workspace)
    places = {
        part: project.places.at("workspaces", workspace, key)
        for part, key in (("url", "url"), ("token", "token"), ("command", "token"))
        if key in declared
    }
    # Expanded: a label that a branch changes may choose another variable, file or argument.
    token = project.expanded_token(workspace)
    command = cast("list[str]", members(token).get("command", []))
    return RequestDestination(
        url=cast("str | None", declared.get("url")),
        token=cast("Mapping[str, Json] | None", token),
        dialect=project.merged_mapping("dialect", workspace),
        places={"dialect": next(iter(at.values())), **places} if at else places,
        programs=(*files_of_project(command, root), *folders_of_project(command, root)),
    )


def parse_trusted_parts(text: str | None) -> frozenset[str]:
    """Parse the comma-separated value of `--trust-project`. Raises UsageError for an unknown part."""
    parts = frozenset(part.strip() for part in (text or "").split(",") if part.strip())
    if unknown := sorted(parts - set(PARTS)):
        raise UsageError(
            f"--trust-project: there is no {shorten(unknown[0])}",
            hint=f"Name any of {', '.join(PARTS)}, with commas between them.",
        )
    return parts


def refuse_untrusted_changes(
    now: RequestDestination, base: RequestDestination, trusted: Collection[str], *, workspace: str, name: str
) -> None:
    """Raise ProblemsFound for each part that differs from the base and is not trusted. name: the base, for messages."""
    differs = dict(_differences(now, base, name))
    wanted = ",".join(part for part in PARTS if part in differs)
    raise_found(
        [
            Problem(
                code=f"trust/{part}",
                message=f"workspaces.{workspace}: {message}",
                hint=f"No request was sent. If you have reviewed the change: --trust-project={wanted}",
                source=now.places.get(part),
            )
            for part, message in differs.items()
            if part not in trusted
        ]
    )


def _differences(now: RequestDestination, base: RequestDestination, name: str) -> Iterator[tuple[str, str]]:
    """Yield (part, message) for each difference. name: the base, for messages.

    A command that names a file or the folder of the project always counts as different.
    """
    if now.url != base.url:
        yield "url", f"the url is {_shown(now.url)}, and in {name} {_shown(base.url)}"
    if now.token != base.token:
        part = "command" if "command" in (now.token or {}) else "token"
        yield part, f"the token is {_shown(now.token)}, and in {name} {_shown(base.token)}"
    elif now.programs:
        yield (
            "command",
            f"the token's command names {_shown(now.programs[0])}, and the project's files may be changed",
        )
    if now.dialect != base.dialect:
        keys = sorted(dict(now.dialect.items() ^ base.dialect.items()))
        yield "dialect", f"the dialect differs from that of {name} in {_shown(', '.join(keys))}"


def _shown(value: object) -> str:
    if value is None:
        return "not set"
    return shorten(value if isinstance(value, str) else json.dumps(value, ensure_ascii=False))
