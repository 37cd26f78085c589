"""Which files belong to the manifests, their text, and the digest over all that was read."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from lmsconf.errors import Problem, Where

FILE_LIMIT: Final = 5 * 1024 * 1024
TOTAL_LIMIT: Final = 50 * 1024 * 1024
PROJECT_FILE: Final = "lmsconf.yaml"
_ENDINGS: Final = (".yaml", ".yml")


class Unreadable(Exception):
    """A file, or a folder, that gives no text; `problem` says why."""

    def __init__(self, code: str, message: str, *, source: Where, hint: str | None = None) -> None:
        super().__init__(message)
        self.problem = Problem(code=code, message=message, hint=hint, source=source)


class Shelf:
    """Reads the files of one project, each path as seen from its root, and remembers what was read."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self._digests: dict[str, str] = {}
        self._total = 0

    def name(self, path: Path) -> str:
        """The path as people see it: from the root of the project, with slashes."""
        return Path(os.path.relpath(path, self.root)).as_posix()

    def text(self, path: Path, *, limit: int = FILE_LIMIT) -> str:
        """The text of a file, UTF-8 with or without a byte order mark. Raises Unreadable."""
        name = self.name(path)
        data = self._bytes(path, name, limit)
        self._digests[name] = hashlib.sha256(data).hexdigest()
        try:
            return data.decode("utf-8-sig")
        except UnicodeDecodeError as error:
            before = data[: error.start]
            line = before.count(b"\n") + 1
            message, hint = "this is not UTF-8 text", "Save the file as UTF-8."
            raise Unreadable("manifest/encoding", message, hint=hint, source=Where(name, line)) from error

    def _bytes(self, path: Path, name: str, limit: int) -> bytes:
        try:
            size = path.stat().st_size
            self._total += size
            if size > limit:
                raise Unreadable("manifest/too-large", f"larger than {limit >> 20} MiB", source=Where(name))
            if self._total > TOTAL_LIMIT:
                message = f"with this file the manifests are larger than {TOTAL_LIMIT >> 20} MiB"
                raise Unreadable("manifest/too-large", message, source=Where(name))
            return path.read_bytes()
        except OSError as error:
            message = f"cannot be read: {error.strerror or error}"
            raise Unreadable("manifest/unreadable", message, source=Where(name)) from error

    @property
    def names(self) -> tuple[str, ...]:
        """All files that were read, sorted."""
        return tuple(sorted(self._digests))

    @property
    def digest(self) -> str:
        """sha256 over path and content of all files, whatever the order in which they were read."""
        lines = (f"{name}\0{self._digests[name]}\n" for name in self.names)
        return hashlib.sha256("".join(lines).encode()).hexdigest()


def manifest_files(folder: Path, shelf: Shelf) -> list[Path]:
    """All manifests below a folder, sorted by path. Raises Unreadable where there is no folder."""
    if not folder.is_dir():
        name = shelf.name(folder)
        message = "is not a folder" if folder.exists() else "there is no such folder"
        hint = "`manifests:` in the project file names the folder with the manifests."
        raise Unreadable("manifest/no-folder", message, hint=hint, source=Where(name))
    # Where the manifests lie beside the project file, that is still none of them.
    return sorted((path for path in _below(folder, shelf) if shelf.name(path) != PROJECT_FILE), key=shelf.name)


def _below(folder: Path, shelf: Shelf) -> Iterator[Path]:
    """The manifests of a folder and of those in it. Skips `.` and `_` names and linked folders."""
    try:
        entries = list(folder.iterdir())
    except OSError as error:
        message = f"cannot be read: {error.strerror or error}"
        raise Unreadable("manifest/unreadable", message, source=Where(shelf.name(folder))) from error
    for entry in entries:
        if entry.name.startswith((".", "_")):
            continue
        if entry.is_dir():
            if not entry.is_symlink():
                yield from _below(entry, shelf)
        elif entry.suffix in _ENDINGS:
            yield entry
