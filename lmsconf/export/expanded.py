"""All manifests as a single one, fully expanded."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import cast

from lmsconf.manifest.edit.yaml_text import entry_lines
from lmsconf.model.values import Json


@dataclass(slots=True)
class Expanded:
    """Collect expanded entries by section, in the order of the files."""

    _sections: dict[tuple[str | int, ...], list[Mapping[str, Json]]] = field(default_factory=dict)

    def take(self, section: tuple[str | int, ...], entry: Json) -> None:
        """Add one entry, with the keys that lead to its section."""
        self._sections.setdefault(section, []).append(cast("Mapping[str, Json]", entry))

    def text(self) -> str:
        """Return the manifest as YAML text; resources to delete are at its end."""
        return "".join(f"{line}\n" for line in self._lines())

    def _lines(self) -> Iterator[str]:
        opened: tuple[str | int, ...] = ()
        for path, entries in sorted(self._sections.items(), key=lambda item: len(item[0])):
            if path[:-1] != opened:
                opened = path[:-1]
                yield f"{opened[0]}:"
            indent = "  " * len(opened)
            yield f"{indent}{path[-1]}:"
            for entry in entries:
                yield from entry_lines(entry, f"{indent}  ")
