"""Write several files: all of them, or none."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from lmsconf.errors import LmsconfError
from lmsconf.support.atomic_files import read_text, write_atomically


def write_all_or_none(root: Path, old_contents: Mapping[str, bytes], new_contents: Mapping[str, bytes]) -> None:
    """Write every file, keeping its mode. If a write fails, files already written are restored.

    old_contents: the content of each file when it was read. Raises LmsconfError, writing nothing, if one was changed
    since.
    """
    # Symbolic links are kept: their targets are written.
    paths = {name: (root / name).resolve() for name in sorted(new_contents)}
    for name, path in paths.items():
        if read_text(path).encode() != old_contents[name]:
            raise LmsconfError(f"{name} was changed meanwhile; nothing was written", hint="Run it again.")
    done: list[str] = []
    try:
        for name, path in paths.items():
            _write(path, new_contents[name])
            done.append(name)
    except BaseException:
        for name in done:
            _write(paths[name], old_contents[name])
        raise


def _write(path: Path, data: bytes) -> None:
    write_atomically(path, data.decode("utf-8"), mode=path.stat().st_mode & 0o777)
