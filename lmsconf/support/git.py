"""Runs git on a repository that somebody else may have filled: read-only, and without the repository's configuration.

The repository is found here, by its `.git`, never by git: so a bare repository among the files is not one. Git then
runs in a folder of its own whose `refs` and `objects` are links to the repository's, with a configuration that is
ours. No hook, filter, pager, file system monitor, credential helper or transport that a configuration could name is
ever known to it, objects that are missing stay missing, and the environment of the caller is not handed on.
"""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

from lmsconf.errors import LmsconfError

SECONDS: Final = 120.0
_NAME: Final = ".git"
_GITFILE: Final = "gitdir: "
_LARGEST: Final = 1 << 20
_LINKED: Final = ("objects", "refs", "packed-refs", "reftable", "shallow", "logs")
"""What of a repository's common folder git may read: history, and nothing that says what to run."""
_COPIED: Final = ("HEAD", "FETCH_HEAD", "ORIG_HEAD", "MERGE_HEAD")
_EXTENSIONS: Final = {"objectformat": ("sha1", "sha256"), "refstorage": ("files", "reftable")}
"""How objects and refs are stored, without which they cannot be read. Any other extension is left out."""
_HARDENED: Final = (
    *("safe.bareRepository=explicit", "protocol.allow=never", f"core.hooksPath={os.devnull}", "core.fsmonitor=false"),
    *(f"core.attributesFile={os.devnull}", "core.commitGraph=false", "core.multiPackIndex=false", "credential.helper="),
    *("core.pager=cat", "core.sshCommand=false", "core.askPass=false", "gc.auto=0", "maintenance.auto=false"),
)


class GitFailed(LmsconfError):
    """Git cannot be run, or cannot read what must be there."""

    code = "git/failed"


@dataclass(frozen=True, slots=True)
class Git:
    """Git on one repository. top: the folder of its work tree."""

    top: Path
    _folder: Path

    def ask(self, *arguments: str, stdin: bytes = b"") -> bytes | None:
        """What git answers; None where it says no. Raises GitFailed where it cannot be run."""
        done = _run(self._folder, arguments, stdin)
        return done.stdout if done.returncode == 0 else None

    def read(self, *arguments: str, stdin: bytes = b"") -> bytes:
        """What git answers. Raises GitFailed where it says no."""
        answer = self.ask(*arguments, stdin=stdin)
        if answer is None:
            hint = "Of a shallow or partial clone, fetch the rest first. Otherwise see what `git fsck` says."
            raise GitFailed(f"git cannot read the history of {self.top}", hint=hint)
        return answer


def work_tree(folder: Path) -> Path | None:
    """The nearest folder, from this one up, that holds `.git`; None where there is none."""
    real = Path(os.path.realpath(folder))
    return next((above for above in (real, *real.parents) if _is_repository(above / _NAME)), None)


@contextmanager
def opened(folder: Path, environ: Mapping[str, str]) -> Iterator[Git | None]:
    """Git on the repository that a folder is in; None where it is in none.

    Raises GitFailed for one that another user owns, as git does, unless `safe.directory` of this user names it.
    """
    top = work_tree(folder)
    if top is None:
        yield None
        return
    own = _followed(top)
    common = _common(own)
    _refuse_foreign(top, Path(os.path.realpath(folder)), common, environ)
    with TemporaryDirectory(prefix="lmsconf-git-") as name:
        mirror = Path(name)
        (mirror / "config").write_text("[core]\n\trepositoryformatversion = 0\n\tbare = true\n", encoding="utf-8")
        for linked in _LINKED:
            if (common / linked).exists():
                (mirror / linked).symlink_to(common / linked)
        for copied in _COPIED:
            if (text := _text(own / copied)) is not None:
                (mirror / copied).write_text(text, encoding="utf-8", errors="surrogateescape")
        _adopt_formats(mirror, common)
        yield Git(top, mirror)


def _is_repository(path: Path) -> bool:
    return path.is_file() or (path / "HEAD").is_file()


def _followed(top: Path) -> Path:
    """The folder that `.git` stands for. Raises GitFailed for a `.git` file that leads to the repository of others."""
    path = top / _NAME
    if path.is_dir() and not path.is_symlink():
        return path
    said = path.resolve() if path.is_dir() else _pointed(path)
    if said is None or not _names_back(said, top):
        hint = "Run it in a clone or a work tree that git made, or name a folder as the base."
        raise GitFailed(f"{path} leads to no repository that has its work tree here", hint=hint)
    return said


def _pointed(path: Path) -> Path | None:
    """Where a `.git` file leads."""
    text = (_text(path) or "").rstrip("\n")
    return path.parent / text.removeprefix(_GITFILE) if text.startswith(_GITFILE) else None


def _names_back(folder: Path, top: Path) -> bool:
    """Whether a repository says itself that a folder is its work tree: a linked one, or that of a submodule."""
    linked = _text(folder / "gitdir")
    if linked is not None:
        return (folder / linked.rstrip("\n")).resolve() == (top / _NAME).resolve()
    said = _setting(folder / "config", "core.worktree")
    return bool(said) and (folder / said).resolve() == top


def _common(folder: Path) -> Path:
    """Where the history of a repository is: of a linked work tree, which is one of several, that of the main one."""
    said = _text(folder / "commondir")
    common = folder if said is None else (folder / said.rstrip("\n")).resolve()
    return common if common / "worktrees" in folder.resolve().parents else folder


def _adopt_formats(mirror: Path, common: Path) -> None:
    """Says in our configuration how objects and refs are stored, as the repository's says it."""
    lines = [
        f"\t{key} = {said}\n"
        for key, known in _EXTENSIONS.items()
        if (said := _setting(common / "config", f"extensions.{key}")) in known
    ]
    if lines:
        text = f"[core]\n\trepositoryformatversion = 1\n\tbare = true\n[extensions]\n{''.join(lines)}"
        (mirror / "config").write_text(text, encoding="utf-8")


def _setting(config: Path, key: str) -> str:
    """One value of one configuration file, read as data; empty where it has none, or cannot be read."""
    if not config.is_file():
        return ""
    with TemporaryDirectory(prefix="lmsconf-git-") as name:
        done = _run(Path(name), ("config", "--no-includes", "--file", str(config), "--get", key))
    return done.stdout.decode("utf-8", "surrogateescape").rstrip("\n") if done.returncode == 0 else ""


def _refuse_foreign(top: Path, folder: Path, common: Path, environ: Mapping[str, str]) -> None:
    """Raises GitFailed where neither this user nor the owner of the project owns the repository.

    In a container the files often belong to another user than the one who runs; then all of them do.
    """
    owner = common.stat().st_uid
    if owner in (0, os.geteuid(), folder.stat().st_uid) or _is_safe(top, environ):
        return
    hint = f"If you trust it: git config --global --add safe.directory {top}"
    raise GitFailed(f"the repository {top} belongs to another user than the project in it", hint=hint)


def _is_safe(top: Path, environ: Mapping[str, str]) -> bool:
    """Whether the configuration of this user or of this machine names the folder as safe."""
    user = {key: environ[key] for key in ("HOME", "XDG_CONFIG_HOME", "GIT_CONFIG_GLOBAL") if key in environ}
    safe: set[str] = set()
    with TemporaryDirectory(prefix="lmsconf-git-") as name:
        for scope in ("--system", "--global"):
            done = _run(Path(name), ("config", scope, "--get-all", "safe.directory"), environ=user)
            for line in done.stdout.decode("utf-8", "surrogateescape").splitlines():
                safe = safe | {line} if line else set()
    return "*" in safe or str(top) in safe


def _run(
    folder: Path, arguments: tuple[str, ...], stdin: bytes = b"", *, environ: Mapping[str, str] | None = None
) -> subprocess.CompletedProcess[bytes]:
    """Runs git with that folder as its repository. environ: whose settings it reads; left out, nobody's."""
    own = {"GIT_CONFIG_NOSYSTEM": "1", "GIT_CONFIG_GLOBAL": os.devnull, "HOME": str(folder)}
    settings = [word for said in _HARDENED for word in ("-c", said)]
    try:
        return subprocess.run(  # noqa: S603  a program that we name, with arguments that cannot be options
            ["git", "--no-pager", "--no-replace-objects", *settings, *arguments],  # noqa: S607  the user's path has it
            cwd=folder,  # so that neither a relative PATH nor git looks among the files of the project
            env={
                "PATH": os.environ.get("PATH", os.defpath),
                "GIT_DIR": str(folder),
                "GIT_NO_LAZY_FETCH": "1",
                "GIT_ALLOW_PROTOCOL": "",
                "GIT_ATTR_NOSYSTEM": "1",
                "GIT_GRAFT_FILE": os.devnull,
                "GIT_LITERAL_PATHSPECS": "1",
                "GIT_OPTIONAL_LOCKS": "0",
                "GIT_TERMINAL_PROMPT": "0",
                "LC_ALL": "C",
                **(own if environ is None else environ),
            },
            input=stdin,
            capture_output=True,
            check=False,
            timeout=SECONDS,
        )
    except OSError as error:
        hint = "Install git, or name a folder with the manifests to compare with."
        raise GitFailed(f"git cannot be run: {error.strerror}", hint=hint) from error
    except subprocess.TimeoutExpired as error:
        raise GitFailed(f"git gave no answer within {SECONDS:.0f} seconds", hint="Try it by hand.") from error


def _text(path: Path) -> str | None:
    """What a small file of a repository holds; None where there is none."""
    try:
        with open(path, "rb", opener=lambda name, flags: os.open(name, flags | os.O_NONBLOCK)) as file:
            return file.read(_LARGEST).decode("utf-8", "surrogateescape")
    except (FileNotFoundError, NotADirectoryError, IsADirectoryError):
        return None
