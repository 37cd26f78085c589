"""The project's manifests: load them, validate them offline, refuse their errors, and name their git commit."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Final

from msgspec import Struct
from msgspec.structs import replace

from lmsconf.errors import LmsconfError, Problem, ProblemsFound
from lmsconf.manifest.file_set import PROJECT_FILE
from lmsconf.manifest.load import ExpandedEntries, load_folder
from lmsconf.model.address import Address
from lmsconf.model.canonical_json import Json
from lmsconf.model.declarations import Manifests
from lmsconf.model.outcomes import ManifestsCommit
from lmsconf.model.plan import RenameCandidate
from lmsconf.model.policy import Policy
from lmsconf.planner.lint_rules import lint_manifests
from lmsconf.planner.planned_resources import find_expired_absent, find_left_alone
from lmsconf.project.config_file import ENV_WORKSPACE
from lmsconf.project.settings import Settings
from lmsconf.support.files import find_work_tree, open_nonblocking

if TYPE_CHECKING:
    from lmsconf.support.git import GitRepository


class ManifestsVersion(Struct, frozen=True):
    """Manifests of one commit or folder, with the settings of its project file as a policy and by path."""

    manifests: Manifests
    policy: Policy
    settings: Mapping[str, Json]


class BaseManifests(Struct, frozen=True, kw_only=True):
    """What manifests are compared with. older: previous versions, latest first, as far as the history reaches."""

    name: str
    version: ManifestsVersion
    older: Sequence[ManifestsVersion] = ()


def load_manifests(
    settings: Settings, expanded: ExpandedEntries | None = None, drafts: Mapping[str, bytes] | None = None
) -> Manifests:
    """Load the project's manifests, with every problem of every file. expanded: filled with each entry.

    drafts: content by path in the project, used instead of the files on disk.
    """
    loaded = load_folder(
        settings.manifests,
        settings.root,
        overlays=settings.overlays,
        timezone=settings.policy.timezone,
        variables=settings.variables,
        workspaces=(*settings.workspaces, ENV_WORKSPACE),
        expanded=expanded,
        unsaved_contents=drafts,
    )
    return replace(loaded, problems=(*settings.problems, *loaded.problems))


def validate_offline(settings: Settings, expanded: ExpandedEntries | None = None) -> Manifests:
    """Load the manifests, with every problem that can be found offline, including the dialect's,
    expired entries and the findings of lints.
    """
    manifests = load_manifests(settings, expanded)
    policy = settings.policy
    dialect: Sequence[Problem] = ()
    late = [*find_expired_absent(manifests.absent, policy)]
    if settings.dialect:
        from lmsconf.workspace.connection import dialect_problems

        dialect = dialect_problems(settings)
    if settings.ignores:
        from lmsconf.planner.drift import warn_of_expired_ignores

        late += warn_of_expired_ignores(settings.ignores, policy.today)
    alone = find_left_alone([*manifests.declared, *manifests.absent], policy)
    # Of manifests with errors only a part is parsed, and a lint would judge that part.
    broken = any(problem.is_error for problem in manifests.problems)
    lints = [] if broken else lint_manifests(manifests, policy)
    return replace(manifests, problems=(*dialect, *manifests.problems, *alone, *late, *lints))


def add_previous_names(manifests: Manifests, renamed: Mapping[Address, RenameCandidate]) -> Manifests:
    """The manifests with each detected live name added to `previously`."""
    declared = (
        replace(one, previously=(*one.previously, renamed[one.address].address.name)) if one.address in renamed else one
        for one in manifests.declared
    )
    return replace(manifests, declared=tuple(declared)) if renamed else manifests


def error_free(manifests: Manifests) -> Manifests:
    """Return the manifests. Raises ProblemsFound if they have errors: nothing is read for such manifests."""
    if any(problem.is_error for problem in manifests.problems):
        raise ProblemsFound(manifests.problems)
    return manifests


def without_entries(manifests: Manifests, addresses: Collection[str | None]) -> Manifests:
    """The manifests without the entries of these addresses."""
    return replace(
        manifests,
        declared=tuple(resource for resource in manifests.declared if str(resource.address) not in addresses),
        absent=tuple(entry for entry in manifests.absent if str(entry.address) not in addresses),
    )


_HASHES: Final = {40: hashlib.sha1, 64: hashlib.sha256}
"""The hash of a repository's objects, by the length of their names."""
_LARGEST: Final = 64 << 20
"""Bytes of a file that is compared with its commit; no manifest may be as large."""


def manifests_commit(
    settings: Settings, files: Sequence[str], digest: str, environ: Mapping[str, str]
) -> ManifestsCommit:
    """Return the commit of the manifests with that digest, and whether the files are as it has them.

    files: their paths relative to the project. Where there is no commit to name, the result says why; a repository that
    cannot be read does not stop a run.
    """
    if find_work_tree(settings.root) is None:
        return ManifestsCommit(reason="the project is in no git repository")
    try:
        contents = {name: _content(settings.root / name) for name in files}
        if _digest(contents) != digest:
            return ManifestsCommit(reason="the plan was made from other manifests than those in this folder")
        from lmsconf.support.git import open_repository  # needs subprocess, which is slow to import

        with open_repository(settings.root, environ) as git:
            return (
                ManifestsCommit(reason="the project is in no git repository")
                if git is None
                else _of(git, settings, contents)
            )
    except LmsconfError as error:
        return ManifestsCommit(reason=error.message)
    except OSError as error:
        return ManifestsCommit(reason=f"{error.filename} cannot be read: {error.strerror}")


def _of(git: GitRepository, settings: Settings, contents: Mapping[str, bytes]) -> ManifestsCommit:
    answer = git.run_if_possible("rev-parse", "--verify", "--quiet", "--end-of-options", "HEAD^{commit}")
    if answer is None:
        return ManifestsCommit(reason="the repository has no commit yet")
    commit = answer.decode("ascii").strip()
    committed = _committed(git, commit, settings.root)
    compared = {**contents, PROJECT_FILE: _content(settings.root / PROJECT_FILE)}
    same = all(committed.get(name) == _blob(content, len(commit)) for name, content in compared.items())
    # A manifest of the commit that was deleted since is no file of the plan.
    folder = PurePosixPath(os.path.relpath(settings.manifests, settings.root))
    missing = any(
        PurePosixPath(name).is_relative_to(folder) and not os.path.lexists(settings.root / name) for name in committed
    )
    return ManifestsCommit(commit=commit, clean=same and not missing)


def _committed(git: GitRepository, commit: str, root: Path) -> dict[str, str]:
    """Return the object name of each file of the project in a commit, by its path relative to the project."""
    below = PurePosixPath(os.path.relpath(os.path.realpath(root), git.top))
    return {file.path: file.oid for file in git.files(commit, below)}


def _blob(content: bytes, length: int) -> str:
    """Return the name that git gives a file with this content; length: of the repository's object names."""
    hashed = _HASHES[length](b"blob %d\0" % len(content), usedforsecurity=False)
    hashed.update(content)
    return hashed.hexdigest()


def _content(path: Path) -> bytes:
    with open_nonblocking(path) as file:
        return file.read(_LARGEST)


def _digest(contents: Mapping[str, bytes]) -> str:
    """Return the digest of manifests, as they are loaded."""
    lines = (f"{name}\0{hashlib.sha256(contents[name]).hexdigest()}\n" for name in sorted(contents))
    return hashlib.sha256("".join(lines).encode("utf-8", "surrogateescape")).hexdigest()
