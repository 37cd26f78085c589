"""Name the git commit of the manifests that a plan was made from, and tell whether the files are as it has them."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Mapping, Sequence
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING

from lmsconf.errors import LmsconfError
from lmsconf.manifest.file_set import PROJECT_FILE, files_digest
from lmsconf.model.outcomes import ManifestsCommit
from lmsconf.project.settings import Settings
from lmsconf.support.files import find_work_tree, open_nonblocking

if TYPE_CHECKING:
    from lmsconf.support.git import GitRepository


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
        if files_digest({name: hashlib.sha256(data).hexdigest() for name, data in contents.items()}) != digest:
            return ManifestsCommit(reason="the plan was made from other manifests than those in this folder")
        from lmsconf.support.git import open_repository  # needs subprocess, which is slow to import

        with open_repository(settings.root, environ) as git:
            if git is None:
                return ManifestsCommit(reason="the project is in no git repository")
            return _of(git, settings, contents)
    except LmsconfError as error:
        return ManifestsCommit(reason=error.message)
    except OSError as error:
        return ManifestsCommit(reason=f"{error.filename} cannot be read: {error.strerror}")


def _of(git: GitRepository, settings: Settings, contents: Mapping[str, bytes]) -> ManifestsCommit:
    answer = git.run_if_possible("rev-parse", "--verify", "--quiet", "--end-of-options", "HEAD^{commit}")
    if answer is None:
        return ManifestsCommit(reason="the repository has no commit yet")
    commit = answer.decode("ascii").strip()
    below = PurePosixPath(os.path.relpath(os.path.realpath(settings.root), git.top))
    committed = {file.path: file.oid for file in git.files(commit, below)}
    compared = {**contents, PROJECT_FILE: _content(settings.root / PROJECT_FILE)}
    same = all(committed.get(name) == _blob(content, len(commit)) for name, content in compared.items())
    # A manifest of the commit that was deleted since is no file of the plan.
    folder = PurePosixPath(os.path.relpath(settings.manifests, settings.root))
    inputs = [settings.root / name for name in committed if PurePosixPath(name).is_relative_to(folder)]
    return ManifestsCommit(commit=commit, clean=same and all(os.path.lexists(path) for path in inputs))


def _blob(content: bytes, length: int) -> str:
    """Return the name that git gives a file with this content; length: of the repository's object names."""
    return hashlib.new(
        {40: "sha1", 64: "sha256"}[length], b"blob %d\0" % len(content) + content, usedforsecurity=False
    ).hexdigest()


def _content(path: Path) -> bytes:
    """Return what a file has, up to 64 MiB: no manifest may be as large."""
    with open_nonblocking(path) as file:
        return file.read(64 << 20)
