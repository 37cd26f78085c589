"""The JSON Schemas in a project, and the comment by which editors find them.

They are in `schemas/` at the top of the project, so that editors need no network, and all who work on the project have
the schemas of the same version of lmsconf.
"""

from __future__ import annotations

import errno
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Final
from urllib.parse import quote

from lmsconf.support.folders import read_schema

FOLDER: Final = "schemas"
MANIFEST_SCHEMA: Final = "manifest.schema.json"
PROJECT_SCHEMA: Final = "project.schema.json"
_LARGEST: Final = 1 << 20
"""Bytes read of a copy: more than any schema has."""


def schema_texts() -> dict[str, str]:
    """Return path in the project → text of each schema."""
    return {f"{FOLDER}/{name}": read_schema(name) for name in (MANIFEST_SCHEMA, PROJECT_SCHEMA)}


def schema_comment(name: str, folder: Path, root: Path) -> str:
    """Return the first line of a YAML file in `folder`: where YAML language servers find its schema."""
    path = Path(os.path.relpath(os.path.realpath(root / FOLDER / name), os.path.realpath(folder))).as_posix()
    return f"# yaml-language-server: $schema={quote(path)}\n"


def read_project_schema(root: Path, name: str) -> str | None:
    """Return a project's copy of a schema; None if there is none. Raises OSError unless it is a file of the project."""
    path, real = root / FOLDER / name, Path(os.path.realpath(root / FOLDER / name))
    if not real.is_relative_to(os.path.realpath(root)) or (os.path.lexists(path) and not real.is_file()):
        raise OSError(errno.EINVAL, "it is not a file of the project")
    try:
        with real.open("rb") as file:
            return file.read(_LARGEST + 1).decode("utf-8", errors="replace")
    except FileNotFoundError:
        return None


def write_schemas(root: Path, *, replace: bool) -> Iterator[Path]:
    """Write the schemas of this version into a project, and yield the path of each that was written.

    replace: overwrite those of another version too. Raises LmsconfError.
    """
    from lmsconf.errors import LmsconfError
    from lmsconf.support.atomic_files import os_error_message, write_atomically

    for name, text in schema_texts().items():
        path = root / name
        try:
            before = read_project_schema(root, path.name)
            if before is not None and (not replace or before == text):
                continue
            path.parent.mkdir(exist_ok=True)
        except OSError as error:
            hint = "Check its folder."
            raise LmsconfError(f"{path} cannot be written: {os_error_message(error)}", hint=hint) from error
        write_atomically(path, text, mode=0o644)
        yield path
