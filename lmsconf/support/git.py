"""Run git read-only on an untrusted repository, without the repository's configuration.

The repository is located by its `.git`, not by git's own discovery, so that a bare repository among the files is never
used. Git runs with a temporary GIT_DIR whose `refs` and `objects` are symbolic links to the repository's and whose
configuration is written here. So no hook, filter, pager, file system monitor, credential helper or transport of the
repository's configuration runs, missing objects are not fetched, and of the caller's environment only PATH is used
(and, to read the user's `safe.directory`, the variables that locate the user's configuration).
"""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from itertools import takewhile
from pathlib import Path, PurePosixPath
from tempfile import TemporaryDirectory
from typing import Final

from msgspec import Struct

from lmsconf.errors import LmsconfError
from lmsconf.support.files import REPOSITORY, find_work_tree, open_nonblocking

SECONDS: Final = 120.0
_GITFILE: Final = "gitdir: "
_LINKED_TREE: Final = "gitdir"
"""The file in which the repository of a linked work tree names that; one of a submodule has a setting instead."""
_HARDENED: Final = (
    *("-c", "safe.bareRepository=explicit", "-c", "protocol.allow=never", "-c", f"core.hooksPath={os.devnull}"),
    *("-c", "core.fsmonitor=false", "-c", f"core.attributesFile={os.devnull}", "-c", "core.commitGraph=false"),
    *("-c", "core.multiPackIndex=false", "-c", "credential.helper=", "-c", "core.pager=cat"),
    *("-c", "core.sshCommand=false", "-c", "core.askPass=false", "-c", "gc.auto=0", "-c", "maintenance.auto=false"),
)


class GitFailed(LmsconfError, code="git/failed"):
    """Git cannot be run or timed out, or the repository cannot be read."""


class GitFile(Struct, frozen=True):
    """A file of a commit. path: relative to a folder. oid: of its content. size: in bytes; maybe a word."""

    path: str
    mode: str
    oid: str
    size: str


class GitRepository(Struct, frozen=True):
    """Git for one repository. top: the folder of its work tree. is_submodule: of the repository around it."""

    top: Path
    _folder: Path
    is_submodule: bool = False

    def run_if_possible(self, *arguments: str, stdin: bytes = b"") -> bytes | None:
        """Return git's stdout; None if it fails. Raises GitFailed if git cannot be run or times out."""
        done = _run(self._folder, arguments, stdin)
        return done.stdout if done.returncode == 0 else None

    def run(self, *arguments: str, stdin: bytes = b"") -> bytes:
        """Return git's stdout. Raises GitFailed if git fails, cannot be run or times out."""
        answer = self.run_if_possible(*arguments, stdin=stdin)
        if answer is None:
            raise GitFailed(
                f"git cannot read the history of {self.top}",
                hint="If it is a shallow or partial clone, fetch the rest first. Otherwise run `git fsck`.",
            )
        return answer

    def files(self, commit: str, folder: PurePosixPath) -> Iterator[GitFile]:
        """Yield the files of a commit in a folder relative to the work tree; none if it has no such folder."""
        tree = f"{commit}:{'' if folder == PurePosixPath() else folder}"
        if self.run_if_possible("rev-parse", "--verify", "--quiet", "--end-of-options", tree) is None:
            return
        for line in self.run("ls-tree", "-r", "-z", "--long", tree).split(b"\0"):
            about, _, path = line.decode("utf-8", "surrogateescape").partition("\t")
            if about:
                mode, _, oid, size = about.split()
                yield GitFile(path, mode, oid, size)


@contextmanager
def open_repository(folder: Path, environ: Mapping[str, str]) -> Iterator[GitRepository | None]:
    """Yield Git for the repository that contains a folder; None if there is none.

    Raises GitFailed if the repository belongs to another user and the `safe.directory` setting does not list it, and if
    `.git` points to a repository that does not name this work tree.
    """
    top = find_work_tree(folder)
    if top is None:
        yield None
        return
    own = _followed(top)
    common = _common(own)
    _refuse_foreign(top, Path(os.path.realpath(folder)), common, environ)
    with TemporaryDirectory(prefix="lmsconf-git-") as name:
        mirror = Path(name)
        (mirror / "config").write_text(_configuration(common), encoding="utf-8")
        # History, and nothing that can configure commands.
        for linked in ("objects", "refs", "packed-refs", "reftable", "shallow", "logs"):
            if (common / linked).exists():
                (mirror / linked).symlink_to(common / linked)
        for copied in ("HEAD", "FETCH_HEAD", "ORIG_HEAD", "MERGE_HEAD"):
            if (text := _text(own / copied)) is not None:
                (mirror / copied).write_text(text, encoding="utf-8", errors="surrogateescape")
        yield GitRepository(top, mirror, is_submodule=own != top / REPOSITORY and not (own / _LINKED_TREE).exists())


def _followed(top: Path) -> Path:
    """Return the repository that `.git` is or points to. Raises GitFailed if its target has another work tree."""
    path = top / REPOSITORY
    if path.is_dir() and not path.is_symlink():
        return path
    text = (_text(path) or "").rstrip("\n")  # none for a link to a folder
    is_pointer = text.startswith(_GITFILE)
    repository = path.parent / text.removeprefix(_GITFILE) if is_pointer else path.resolve()
    if not _names_back(repository, top):
        raise GitFailed(
            f"{path} does not belong to a repository with its work tree here",
            hint="Run it in a git clone or work tree, or pass a folder as the base.",
        )
    return repository


def _names_back(folder: Path, top: Path) -> bool:
    """Whether a repository names a folder as its work tree: a linked work tree, or that of a submodule."""
    linked = _text(folder / _LINKED_TREE)
    if linked is not None:
        return (folder / linked.rstrip("\n")).resolve() == (top / REPOSITORY).resolve()
    configured = _setting(folder / "config", "core.worktree")
    return bool(configured) and (folder / configured).resolve() == top


def _common(folder: Path) -> Path:
    """Return the folder with the history of a repository: for a linked work tree, that of the main repository."""
    pointer = _text(folder / "commondir")
    common = folder if pointer is None else (folder / pointer.rstrip("\n")).resolve()
    return common if common / "worktrees" in folder.resolve().parents else folder


def _configuration(common: Path) -> str:
    """Return the configuration of a mirror, with the extensions that git needs to read objects and refs."""
    known = {"objectformat": ("sha1", "sha256"), "refstorage": ("files", "reftable")}
    values = {key: _setting(common / "config", f"extensions.{key}") for key in known}
    lines = [f"\t{key} = {value}\n" for key, value in values.items() if value in known[key]]
    return f"[core]\n\trepositoryformatversion = {1 if lines else 0}\n\tbare = true\n[extensions]\n{''.join(lines)}"


def _setting(config: Path, key: str) -> str:
    """Return one value of a configuration file, without includes; empty if it is missing or cannot be read."""
    return "\n".join(_configured("--file", str(config), "--get", key)) if config.is_file() else ""


def _configured(*query: str, environ: Mapping[str, str] | None = None) -> list[str]:
    """Return the values that `git config` answers with, without includes; an empty one where it has none."""
    with TemporaryDirectory(prefix="lmsconf-git-") as name:
        done = _run(Path(name), ("config", "--no-includes", *query), environ=environ)
    answer = done.stdout if done.returncode == 0 else b""
    return answer.decode("utf-8", "surrogateescape").removesuffix("\n").split("\n")


def _refuse_foreign(top: Path, folder: Path, common: Path, environ: Mapping[str, str]) -> None:
    """Raises GitFailed unless root, this user or the project's owner owns the repository, or `safe.directory` lists it.

    In a container the project often belongs to another user than the process; then the repository does, too.
    """
    owner = common.stat().st_uid
    if owner not in (0, os.geteuid(), folder.stat().st_uid) and not _is_safe(top, environ):
        raise GitFailed(
            f"the repository {top} belongs to another user than the project in it",
            hint=f"If you trust it: git config --global --add safe.directory {top}",
        )


def _is_safe(top: Path, environ: Mapping[str, str]) -> bool:
    """Whether `safe.directory` in the user's or the system's git configuration lists the folder."""
    user = {key: environ[key] for key in ("HOME", "XDG_CONFIG_HOME", "GIT_CONFIG_GLOBAL") if key in environ}
    # An empty value takes back those before it.
    safe = {*takewhile(bool, reversed(_configured("--get-all", "safe.directory", environ=user)))}
    return "*" in safe or str(top) in safe


def _run(
    folder: Path, arguments: tuple[str, ...], stdin: bytes = b"", *, environ: Mapping[str, str] | None = None
) -> subprocess.CompletedProcess[bytes]:
    """Run git with `folder` as GIT_DIR. environ: locates the user's configuration; None: no user or system settings."""
    own = {"GIT_CONFIG_NOSYSTEM": "1", "GIT_CONFIG_GLOBAL": os.devnull, "HOME": str(folder)}
    try:
        return subprocess.run(  # noqa: S603  a fixed program, with arguments that cannot be options
            ["git", "--no-pager", "--no-replace-objects", *_HARDENED, *arguments],  # noqa: S607  git of the user's PATH
            cwd=folder,  # so that neither a relative PATH nor git finds the project's files
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
        raise GitFailed(
            f"git cannot be run: {error.strerror}",
            hint="Install git, or pass a folder with the manifests to compare with.",
        ) from error
    except subprocess.TimeoutExpired as error:
        raise GitFailed(
            f"git did not finish within {SECONDS:.0f} seconds", hint="Run the git command by hand."
        ) from error


def _text(path: Path) -> str | None:
    """Return the text of a small file of a repository, cut to 1 MiB; None if there is none."""
    with suppress(FileNotFoundError, NotADirectoryError, IsADirectoryError), open_nonblocking(path) as file:
        return file.read(1 << 20).decode("utf-8", "surrogateescape")
    return None
