"""Finds the manifests that a change starts from: in a folder, or in a commit of the repository that the project is in.

A commit is read without touching the work tree: its files are put into a folder of their own for as long as it takes
to load them. Nothing that a ref or a path is called can become an option of git.
"""

from __future__ import annotations

import subprocess
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path, PurePosixPath
from tempfile import TemporaryDirectory
from typing import Final, NamedTuple

from lmsconf.comparing import Base, Version
from lmsconf.core.plan import Manifests
from lmsconf.core.policy import Policy
from lmsconf.errors import LmsconfError, UsageError
from lmsconf.manifest.folder import FILE_LIMIT, PROJECT_FILE
from lmsconf.project import ENV_WORKSPACE
from lmsconf.seeing import read_manifests
from lmsconf.settings import Settings, load

OLDER: Final = 10
"""How many versions before the base are looked at to tell what is pending from what was changed by hand."""
_TEXTS: Final = frozenset({".yaml", ".yml", ".csv", ".tsv", ".txt"})
_FILE_MODES: Final = ("100644", "100755")


class _File(NamedTuple):
    """One file of a commit, by its path from the project's folder."""

    oid: str
    path: PurePosixPath


def base_of(said: str, settings: Settings, policy: Policy, environ: Mapping[str, str]) -> Base:
    """What `--base` names. Raises UsageError where it names nothing, LmsconfError where git cannot tell."""
    folder = Path(said)
    if folder.is_dir():
        return Base(name=said, version=_version(folder, settings, policy, environ))
    if said.startswith("-"):
        raise UsageError(f"--base {said}: that is an option, not a ref", hint="Name a folder, a branch or a commit.")
    commit = _git(settings.root, "rev-parse", "--verify", "--quiet", "--end-of-options", f"{said}^{{commit}}")
    if commit is None:
        hint = "Name a folder, a branch or a commit. A branch of the server may have to be fetched first: git fetch."
        raise UsageError(f"--base {said}: there is no such folder, and git knows no such commit", hint=hint)
    base, *older = _versions_of(settings.root, commit.decode().strip())
    return Base(
        name=said,
        version=_at(base, settings, policy, environ),
        older=[_at(one, settings, policy, environ) for one in older],
    )


def _version(folder: Path, settings: Settings, policy: Policy, environ: Mapping[str, str]) -> Version:
    """The manifests in a folder: a whole project, or manifests alone, which are read as those of this one."""
    theirs = replace(settings, root=folder, manifests=folder)
    if (folder / PROJECT_FILE).is_file():
        name = settings.workspace.name
        try:
            theirs = load(folder, None if name == ENV_WORKSPACE else name, environ, today=policy.today)
        except LmsconfError as error:
            # A project that cannot be read is as good as manifests that cannot be planned.
            return Version(Manifests(problems=error.problems), policy)
    mine = replace(theirs.policy, only=policy.only, excluded=policy.excluded, additive=policy.additive)
    return Version(read_manifests(theirs), mine)


def _at(commit: str, settings: Settings, policy: Policy, environ: Mapping[str, str]) -> Version:
    """The manifests of a commit; none where it has no project in this place yet."""
    with TemporaryDirectory(prefix="lmsconf-base-") as name:
        folder = Path(name)
        _check_out(settings.root, commit, folder)
        if not (folder / PROJECT_FILE).is_file():
            return Version(Manifests(), replace(policy, ownership={}))
        return _version(folder, settings, policy, environ)


def _versions_of(root: Path, commit: str) -> list[str]:
    """The commit, and those before it in which the project was another."""
    found = _git(root, "rev-list", "--first-parent", f"--max-count={OLDER + 1}", commit, "--", ".")
    # The first of them is the project as it is at the commit itself.
    return [commit, *(found or b"").decode().split()[1:]]


def _check_out(root: Path, commit: str, folder: Path) -> None:
    """Writes the texts of a commit below the project's folder into another folder."""
    for file, content in _contents(root, list(_files(root, commit))):
        path = folder / file.path
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)


def _files(root: Path, commit: str) -> Iterator[_File]:
    """The files of a commit that can be manifests or belong to them; links are none."""
    listing = _git(root, "ls-tree", "-r", "-z", "--long", commit, "--", ".") or b""
    for line in listing.split(b"\0"):
        about, _, name = line.decode("utf-8", "surrogateescape").partition("\t")
        path = PurePosixPath(name)
        if not about or path.suffix not in _TEXTS or path.is_absolute() or ".." in path.parts:
            continue
        mode, _, oid, size = about.split()
        if mode in _FILE_MODES and int(size) <= FILE_LIMIT:
            yield _File(oid, path)


def _contents(root: Path, files: list[_File]) -> Iterator[tuple[_File, bytes]]:
    """What the files hold, byte for byte as they were committed."""
    wanted = "".join(f"{file.oid}\n" for file in files).encode()
    answer = _git(root, "cat-file", "--batch", stdin=wanted) or b""
    at = 0
    for file in files:
        end = answer.index(b"\n", at)
        size = int(answer[at:end].split()[2])
        yield file, answer[end + 1 : end + 1 + size]
        at = end + 1 + size + 1


def _git(root: Path, *arguments: str, stdin: bytes = b"") -> bytes | None:
    """What git answers in the project's folder; None where it says no."""
    try:
        done = subprocess.run(  # noqa: S603  a program that we name, with arguments that cannot be options
            ["git", "-C", str(root), *arguments],  # noqa: S607  git is where the user's path has it
            input=stdin,
            capture_output=True,
            check=False,
        )
    except OSError as error:
        hint = "Install git, or name a folder with the manifests to compare with."
        raise LmsconfError(f"git cannot be run: {error.strerror}", hint=hint) from error
    return done.stdout if done.returncode == 0 else None
