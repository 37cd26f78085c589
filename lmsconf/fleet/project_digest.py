"""Whether the project on a worker is the coordinator's: digests of the files that a workspace is planned from.

The files are named, so that a worker needs to understand none of them before it knows that they are the right ones.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Final

from msgspec import Struct

from lmsconf.documents.document import JsonObjectReader
from lmsconf.errors import Problem
from lmsconf.manifest.file_set import ManifestFileReader, UnreadableFile
from lmsconf.model.canonical_json import Json, sha256
from lmsconf.project.config_file import FILE, ProjectFile, expand_pattern
from lmsconf.project.settings import DEFAULT_MANIFESTS

_ENDINGS: Final = (".yaml", ".yml", ".csv", ".tsv", ".xlsx", ".ods")
"""Of manifests, and of tables that they name."""
_SHOWN: Final = 5


class ProjectDigest(Struct, frozen=True, kw_only=True):
    """The files of a project that decide about one workspace.

    files: the project file and its table of workspaces. folders: those of the workspace's manifests. settings,
    manifests: the digest of both.
    """

    files: tuple[str, ...]
    folders: tuple[str, ...]
    settings: str
    manifests: str


class ProjectDigests:
    """The digests of one project; each set of folders is read once."""

    def __init__(self, root: Path, project: ProjectFile) -> None:
        self._root, self._project = root, project
        self._known: dict[tuple[str, ...], str] = {}
        self._read: dict[tuple[str, ...], str] = {}

    def of(self, workspace: str) -> ProjectDigest:
        """Return the digest of what decides about a workspace."""
        values = self._project.pattern_values(workspace)
        named = [expand_pattern(name, values) for name in self._project.folders(workspace)]
        files = tuple(sorted({FILE, self._project.places.at("workspaces", workspace, "url").file}))
        folders = tuple(named or [DEFAULT_MANIFESTS])
        return ProjectDigest(
            files=files, folders=folders, settings=self._digest(files), manifests=self._digest(folders)
        )

    def made_elsewhere(self, plan: str) -> tuple[str, ...]:
        """Return the files that a plan file was made from, if any differs here; empty if none does.

        Manifests can name tables of people anywhere in the project, which nothing but a plan lists.
        """
        manifests = JsonObjectReader(JsonObjectReader(json.loads(plan)).json("manifests"))
        names = manifests.texts("files")
        if names not in self._read:
            reader = ManifestFileReader(self._root)
            try:
                for name in names:
                    reader.read_table(self._root / name)
            except UnreadableFile:
                return names
            self._read[names] = reader.content_digest
        return () if self._read[names] == manifests.text("digest") else names

    def _digest(self, names: tuple[str, ...]) -> str:
        if names not in self._known:
            self._known[names] = _digest(self._root, names)
        return self._known[names]


def digest_json(digest: ProjectDigest) -> dict[str, Json]:
    """Return a digest as JSON."""
    return {
        "files": list(digest.files),
        "folders": list(digest.folders),
        "settings": digest.settings,
        "manifests": digest.manifests,
    }


def digest_from_json(at: JsonObjectReader) -> ProjectDigest:
    """Return the digest that `digest_json` wrote. Raises ValueError for any other value."""
    return ProjectDigest(
        files=at.texts("files"),
        folders=at.texts("folders"),
        settings=at.text("settings"),
        manifests=at.text("manifests"),
    )


def differing_files(root: Path, wanted: ProjectDigest) -> tuple[str, ...]:
    """Return which files or folders of a project differ from those of a digest; empty if none does."""
    if _digest(root, wanted.files) != wanted.settings:
        return wanted.files
    return () if _digest(root, wanted.folders) == wanted.manifests else wanted.folders


def other_project(names: Sequence[str]) -> Problem:
    """Return the problem of a worker with other files than those here."""
    some = f"{', '.join(names[:_SHOWN])}{f' and {len(names) - _SHOWN:,} more' if len(names) > _SHOWN else ''}"
    hint = "Update the project on the workers, and run it again."
    message = f"the project on the worker differs from the one here, in some of: {some}"
    return Problem(code="fleet/worker-project", message=message, hint=hint)


def _digest(root: Path, names: Iterable[str]) -> str:
    """Return a digest of path and content of files, and of all files below folders."""
    lines: list[Json] = []
    for name in names:
        path = root / name
        files = sorted(_below(path)) if path.is_dir() else [path]
        lines += [[file.relative_to(root).as_posix(), _content_digest(file)] for file in files]
    return sha256(lines)


def _below(folder: Path) -> Iterator[Path]:
    """Yield the manifests and tables below a folder; names that begin with `.` are skipped."""
    for parent, folders, files in os.walk(folder):
        folders[:] = [name for name in folders if not name.startswith(".")]
        for name in files:
            if name.endswith(_ENDINGS) and not name.startswith("."):
                yield Path(parent, name)


def _content_digest(path: Path) -> str | None:
    """Return the digest of a file's content; None for what is not a readable file."""
    try:
        if not path.is_file():
            return None
        with path.open("rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()
    except OSError:
        return None
