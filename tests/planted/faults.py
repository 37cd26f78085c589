"""The list of planted faults: what each changes, and whether that still is a change."""

from __future__ import annotations

import ast
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).parent.parent.parent
_LIST: Final = Path(__file__).parent / "faults.toml"


@dataclass(frozen=True, slots=True)
class Edit:
    """A text that stands in a file exactly once, and what is put in its place."""

    file: str
    find: str
    put: str


@dataclass(frozen=True, slots=True)
class Fault:
    """One fault. harm: what it would do to somebody. tests: those that have to fail."""

    name: str
    harm: str
    edits: tuple[Edit, ...]
    tests: tuple[str, ...]

    def planted(self, root: Path = ROOT) -> Mapping[str, str]:
        """What each file reads with the fault in it. Raises ValueError where the fault does not fit any more."""
        texts: dict[str, str] = {}
        for edit in self.edits:
            text = texts.get(edit.file) or (root / edit.file).read_text(encoding="utf-8")
            if (times := text.count(edit.find)) != 1:
                raise ValueError(f"{self.name}: its text stands {times} times in {edit.file}")
            texts[edit.file] = text.replace(edit.find, edit.put)
        for file, text in texts.items():
            if ast.dump(ast.parse(text)) == ast.dump(ast.parse((root / file).read_text(encoding="utf-8"))):
                raise ValueError(f"{self.name}: it changes nothing in {file}")
        return texts


def faults() -> dict[str, Fault]:
    """Every fault by its name, in the order of the list."""
    found = tomllib.loads(_LIST.read_text(encoding="utf-8"))["fault"]
    made = [
        Fault(
            name=one["name"],
            harm=one["harm"],
            edits=tuple(Edit(**edit) for edit in one["edit"]),
            tests=tuple(one["tests"]),
        )
        for one in found
    ]
    return {fault.name: fault for fault in made}
