"""Manifest files: discovery, size limits, text, and a digest over all files that were read."""

from __future__ import annotations

import codecs
import hashlib
import os
import re
import stat
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Final, cast

from msgspec import Struct, field

from lmsconf.errors import ProblemsFound, SourceLocation, problem_found
from lmsconf.model.guards import DEFAULTS
from lmsconf.support.files import open_nonblocking

FILE_LIMIT: Final = 5 * 1024 * 1024
TOTAL_LIMIT: Final = 10 * 1024 * 1024
TABLES_LIMIT: Final = 24 * 1024 * 1024
"""Size limit of all CSV files and workbooks together, in bytes: enough for a line for each of 200,000 people."""
FILES_LIMIT: Final = 10_000
PROJECT_FILE: Final = "lmsconf.yaml"
MANIFEST_SCHEMA: Final = "manifest.schema.json"
PROJECT_SCHEMA: Final = "project.schema.json"
MANIFESTS: Final = cast(str, DEFAULTS["manifests"])
"""The folder of manifests, unless the project file names others."""
MANIFEST_ENDINGS: Final = (".yaml", ".yml")


class ManifestFileReader(Struct):
    """Read the files of one project.

    unsaved_contents: path relative to its root → content to use instead of what is on disk. digests: path → sha256 of
    each file that was read.
    """

    root: Path
    unsaved_contents: Mapping[str, bytes] = {}
    digests: dict[str, str] = field(default_factory=dict)
    _left: dict[int, int] = field(default_factory=lambda: {limit: limit for limit in (TOTAL_LIMIT, TABLES_LIMIT)})

    def relative_path(self, path: Path) -> str:
        """Return the path relative to the project root, with forward slashes."""
        return Path(os.path.relpath(path, self.root)).as_posix()

    def read_yaml(self, path: Path) -> str:
        """Return the text of a manifest: UTF-8, with or without a byte order mark. Raises ProblemsFound."""
        return decode_text(self.relative_path(path), self._content(path, FILE_LIMIT, TOTAL_LIMIT))

    def read_table(self, path: Path) -> bytes:
        """Return the content of a CSV file or a workbook. Raises ProblemsFound."""
        return self._content(path, TABLES_LIMIT, TABLES_LIMIT)

    def check_total_size(self, paths: Sequence[Path]) -> None:
        """Check the total size of the manifests before reading any. Raises ProblemsFound if it exceeds TOTAL_LIMIT."""
        total = 0
        for path in paths:
            with suppress(OSError):  # reading will report it
                total += path.stat().st_size
        if total > TOTAL_LIMIT:
            raise problem_found(
                "manifest/too-large",
                f"the manifests are {_mib(total)} in {len(paths):,} files, and at most {_mib(TOTAL_LIMIT)} are read",
                hint=_SPLIT,
                source=SourceLocation(self.relative_path(paths[0])),
            )

    def _content(self, path: Path, limit: int, together: int) -> bytes:
        name = self.relative_path(path)
        unsaved = self.unsaved_contents.get(name)
        data = self._bytes(path, name, limit, together) if unsaved is None else unsaved
        if len(self.digests) >= FILES_LIMIT:
            raise problem_found(
                "manifest/too-many", f"these are more than {FILES_LIMIT:,} files", source=SourceLocation(name)
            )
        self.digests[name] = hashlib.sha256(data).hexdigest()
        return data

    def _bytes(self, path: Path, name: str, limit: int, together: int) -> bytes:
        """Read at most one byte over the limit, since the size reported by stat may be wrong. Raises ProblemsFound."""
        try:
            with open_nonblocking(path) as file:
                if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
                    raise problem_found(
                        "manifest/unreadable", "is a pipe or a device, not a file", source=SourceLocation(name)
                    )
                data = file.read(limit + 1)
        except (OSError, ValueError) as error:  # a path with a null byte raises ValueError
            reason = (error.strerror if isinstance(error, OSError) else None) or str(error)
            raise problem_found(
                "manifest/unreadable", f"cannot be read: {reason}", source=SourceLocation(name)
            ) from error
        if len(data) > limit:
            raise problem_found(
                "manifest/too-large", f"larger than {_mib(limit)}", hint=_SPLIT, source=SourceLocation(name)
            )
        self._left[together] -= len(data)
        if self._left[together] < 0:
            files = "CSV files and workbooks" if together == TABLES_LIMIT else "manifests"
            raise problem_found(
                "manifest/too-large",
                f"with this file the {files} are larger than {_mib(together)}",
                hint=_SPLIT,
                source=SourceLocation(name),
            )
        return data

    def is_inside_project(self, path: Path) -> bool:
        """Whether the path, with all symbolic links resolved, is inside the project."""
        # Unlike Path.resolve, realpath does not raise for circular symbolic links.
        return Path(os.path.realpath(path)).is_relative_to(os.path.realpath(self.root))


def files_digest(digests: Mapping[str, str]) -> str:
    """Return the sha256 over the paths of files and the sha256 of each."""
    lines = "".join(f"{name}\0{digests[name]}\n" for name in sorted(digests))
    # File names may contain bytes that are not valid UTF-8.
    return hashlib.sha256(lines.encode("utf-8", "surrogateescape")).hexdigest()


def decode_text(name: str, data: bytes) -> str:
    """Return UTF-8 text, with or without a byte order mark. Raises ProblemsFound with the place of another byte."""
    # The second form is how a text of ASCII characters begins without a byte order mark.
    if data[:2] in (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE) or re.match(rb"(?:[^\0]\0){4}|(?:\0[^\0]){4}", data):
        raise _not_utf8(name, "UTF-16", 1, 1)
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        before = data[: error.start]
        line, column = before.count(b"\n") + 1, len(before.rpartition(b"\n")[2].decode("utf-8-sig")) + 1
        raise _not_utf8(name, "not UTF-8", line, column) from error


def _not_utf8(name: str, what: str, line: int, column: int) -> ProblemsFound:
    return problem_found(
        "manifest/encoding",
        f"this is {what} text",
        f"Save the file as UTF-8{'; in Excel, as CSV UTF-8' if name.endswith('.csv') else ''}.",
        SourceLocation(name, line, column),
    )


_SPLIT: Final = "Remove what no workspace needs, or split the project."


def _mib(size: int) -> str:
    return f"{size >> 20} MiB"


def find_manifests(folder: Path, files: ManifestFileReader) -> list[Path]:
    """Return all manifests below a folder, sorted by path. Raises ProblemsFound if the project has no such folder.

    Folders that cannot be listed are included, so that reading them reports the error. Skipping one silently would be
    unsafe: resources that are owned and not declared are deleted.
    """
    where = SourceLocation(files.relative_path(folder))
    hint = "Create it, or set `manifests:` in the project file to the folder with the manifests, inside the project."
    if not folder.is_dir():
        raise problem_found(
            "manifest/no-folder", "is not a folder" if folder.exists() else "there is no such folder", hint, where
        )
    if not files.is_inside_project(folder):
        raise problem_found("manifest/outside", "is outside the project", hint, where)
    # The project file may be in the manifest folder, but is not a manifest.
    return sorted(
        (path for path in _below(folder) if files.relative_path(path) != PROJECT_FILE), key=files.relative_path
    )


def read_manifest(path: Path, files: ManifestFileReader) -> str:
    """Return the text of one manifest file. Raises ProblemsFound, also for a link that leads out of the project."""
    where = SourceLocation(files.relative_path(path))
    if os.path.islink(path) and os.path.isdir(path):  # noqa: PTH112, PTH114  # those of Path may raise
        raise problem_found(
            "manifest/linked-folder",
            "is a symbolic link to a folder, and such links are not followed",
            hint="Replace the link by the folder, or give it a name that begins with . or _ to skip it.",
            source=where,
        )
    if not files.is_inside_project(path):
        raise problem_found(
            "manifest/outside",
            "is a symbolic link out of the project",
            hint="Replace the link by the file.",
            source=where,
        )
    return files.read_yaml(path)


def _below(top: Path) -> Iterator[Path]:
    """Yield the manifests below a folder, recursively, and the folders that cannot be searched.

    Names that begin with `.` or `_` are skipped.
    """
    # Before Python 3.12, os.walk fails in folders that are nested deeply.
    folders = [top]
    while folders:
        folder = folders.pop()
        try:
            with os.scandir(folder) as listing:
                entries = [entry for entry in listing if not entry.name.startswith((".", "_"))]
        except OSError:
            yield folder
        else:
            for entry in entries:
                path = folder / entry.name
                if entry.is_dir(follow_symlinks=False):
                    folders.append(path)
                elif path.suffix in MANIFEST_ENDINGS or os.path.isdir(path):  # noqa: PTH112  # Path.is_dir may raise
                    yield path
