"""Named windows: `window: NAME` stands for the times of a window that is defined under `windows`."""

from __future__ import annotations

from typing import Final, cast

from lmsconf.errors import Problem, SourceLocation
from lmsconf.manifest.expand.people import ANY_ITEM
from lmsconf.manifest.expand.sets import NamedSet, NamedSets, Report
from lmsconf.manifest.yaml.nodes import CombinedSource, EntrySourceMap, KeyPath, Map, Seq, store_marks
from lmsconf.model.canonical_json import Json

WINDOW: Final = "window"


class WindowExpander:
    """Replace `window: NAME` by the times of the window, each located in its definition."""

    def __init__(self, windows: NamedSets, report: Report) -> None:
        self._windows = windows
        self._report = report
        properties = cast("dict[str, Json]", windows.shape.schema.get("properties", {}))
        self._times = tuple(properties)
        self._is_sound = True

    def expand(self, body: Map, trails: tuple[KeyPath, ...], places: EntrySourceMap) -> Map | None:
        """Return the entry with the times of its windows; None after reporting a problem.

        trails: the paths at which a window may be named.
        """
        for trail in trails:
            body = cast(Map, self._replaced(body, trail, (), places))
        return body if self._is_sound else None

    def _replaced(self, node: Json, trail: KeyPath, path: KeyPath, places: EntrySourceMap) -> Json:
        """Return the value with the mapping at the end of `trail` replaced; lists and mappings around it are edited."""
        step, rest = trail[0], trail[1:]
        if not rest:
            return self._with_times(node, path, places) if isinstance(node, Map) and WINDOW in node else node
        if step == ANY_ITEM and isinstance(node, Seq):
            for number, item in enumerate(node):
                node[number] = self._replaced(item, rest, (*path, number), places)
        elif isinstance(node, Map) and isinstance(step, str) and step in node:
            node[step] = self._replaced(node[step], rest, (*path, step), places)
        return node

    def _with_times(self, node: Map, path: KeyPath, places: EntrySourceMap) -> Map:
        """Return a mapping with the times of its window; the same one after reporting a problem."""
        own = next((key for key in self._times if key in node), None)
        if own is not None:
            message = f"{WINDOW} and {own} exclude each other"
            where = places.key(*path, own)
            self._report(Problem(code="manifest/together", message=message, hint="Keep one of them.", source=where))
        window = self._windows.find(str(node[WINDOW]), places.at(*path, WINDOW)) if own is None else None
        if window is None or not isinstance(window.value, Map):
            self._is_sound = False
            return node
        pairs: list[tuple[str, Json, SourceLocation, SourceLocation]] = []
        for key, value in node.items():
            if key == WINDOW:
                pairs += self._times_of(window, places.at(*path, WINDOW), is_entry=not path)
            else:
                pairs.append((key, value, places.key(*path, key), places.at(*path, key)))
        return _map_of(pairs)

    def _times_of(
        self, window: NamedSet, where: SourceLocation, *, is_entry: bool
    ) -> list[tuple[str, Json, SourceLocation, SourceLocation]]:
        """Return each time of a window, with the locations of its key and value.

        An end that the window leaves out is open: null in an item, whose entry may have a time for all items.
        """
        value = cast(Map, window.value)
        times = [
            (key, value[key], window.places.key(key), window.places.at(key)) for key in self._times if key in value
        ]
        open_ends = () if is_entry else (key for key in self._times if key not in value)
        return [*times, *((key, None, where, where) for key in open_ends)]


def _map_of(pairs: list[tuple[str, Json, SourceLocation, SourceLocation]]) -> Map:
    """Build a mapping whose keys and values have unrelated source locations."""
    node = Map(CombinedSource([where for _, _, *both in pairs for where in both]))
    for key, value, *_ in pairs:
        node[key] = value
    store_marks(node, list(range(2 * len(pairs))))
    return node
