"""Plain values that know where they stand: dicts and lists that share one packed table of positions a file.

A position is one integer, line and column from 1; a column of 0 means that only the line is known.
"""

from __future__ import annotations

import re
from array import array
from collections.abc import Iterable, Iterator
from dataclasses import replace
from functools import cached_property
from typing import TypeAlias

from lmsconf.errors import SourceLocation
from lmsconf.model.names import look
from lmsconf.model.values import Json

_COLUMN = 0xFFFFFFFF
_LINE = 32
_WORD = re.compile(r"(?:[&!]\S+ +)*[\"']?([^\s,\[\]{}#\"']*)")
"""A word of one line, without its tag, its anchor, and the quotes that a tag may make a number of."""
Mark: TypeAlias = int
Trail: TypeAlias = "tuple[str | int, ...]"


def mark(line: int, column: int = 0) -> Mark:
    """One integer for a place, line and column from 1."""
    return line << _LINE | column


def line_of(at: Mark) -> int:
    """The line of a place."""
    return at >> _LINE


class Source:
    """One file as it was read: its path in the project, its text, and the positions of all values in it.

    opens: whether a text in it may hold a variable.
    """

    def __init__(self, path: str, text: str = "") -> None:
        self.path = path
        self.text = text
        self.opens = True
        self.marks: array[int] = array("Q")

    def where(self, at: Mark) -> SourceLocation:
        """The place that a mark stands for."""
        return SourceLocation(self.path, at >> _LINE, at & _COLUMN)

    def rest(self, at: Mark) -> str:
        """What the file says from that place to the end of its line."""
        line = (at >> _LINE) - 1
        return self._lines[line][max((at & _COLUMN) - 1, 0) :] if line < len(self._lines) else ""

    @cached_property
    def _lines(self) -> list[str]:
        return self.text.splitlines()


class Gathered(Source):
    """Stands for the files that the items of one list come from: each mark is the number of an item."""

    def __init__(self, places: list[SourceLocation]) -> None:
        super().__init__(places[0].file if places else "")
        self._places = places

    def where(self, at: Mark) -> SourceLocation:
        """The place of the item with that number."""
        return self._places[at]


class _Finder:
    """The texts below one node. Built when somebody looks for the first, since a plan may ask for thousands."""

    def __init__(self, node: Json) -> None:
        self._node = node

    def find(self, text: str) -> Trail:
        """The way to the first text that reads so, or that people take for the same; empty if there is none."""
        return self._exact.get(text) or self._alike.get(look(text), ())

    @cached_property
    def _exact(self) -> dict[str, Trail]:
        found: dict[str, Trail] = {}
        for text, trail in _texts(self._node):
            found.setdefault(text, trail)
        return found

    @cached_property
    def _alike(self) -> dict[str, Trail]:
        found: dict[str, Trail] = {}
        for text, trail in self._exact.items():
            found.setdefault(look(text), trail)
        return found


class Map(dict[str, Json]):
    """A mapping. The marks of its keys and values stand in its source, two for each, from `first` on."""

    __slots__ = ("_finder", "first", "source")

    def __init__(self, source: Source) -> None:
        super().__init__()
        self.source = source
        self.first = 0
        self._finder: _Finder | None = None

    @property
    def finder(self) -> _Finder:
        """Finds texts below this node, once it is whole."""
        if self._finder is None:
            self._finder = _Finder(self)
        return self._finder

    def mark(self, step: str | int) -> Mark | None:
        """Where the value under that key stands."""
        return self._mark(step, 1)

    def key_mark(self, key: str) -> Mark | None:
        """Where that key itself stands."""
        return self._mark(key, 0)

    def _mark(self, key: str | int, part: int) -> Mark | None:
        for position, known in enumerate(self):
            if known == key:
                return self.source.marks[self.first + 2 * position + part]
        return None


class Seq(list[Json]):
    """A list. The marks of its items stand in its source, from `first` on."""

    __slots__ = ("_finder", "first", "source")

    def __init__(self, source: Source) -> None:
        super().__init__()
        self.source = source
        self.first = 0
        self._finder: _Finder | None = None

    @property
    def finder(self) -> _Finder:
        """Finds texts below this node, once it is whole."""
        if self._finder is None:
            self._finder = _Finder(self)
        return self._finder

    def mark(self, step: str | int) -> Mark | None:
        """Where the item with that number stands."""
        return self.source.marks[self.first + step] if isinstance(step, int) and 0 <= step < len(self) else None


def settle(node: Map | Seq, marks: list[Mark]) -> None:
    """Gives a finished node its marks."""
    node.first = len(node.source.marks)
    node.source.marks.extend(marks)


def gathered(items: Iterable[tuple[Json, SourceLocation]]) -> Seq:
    """A list whose items come from several places."""
    listed = list(items)
    found = Seq(Gathered([where for _, where in listed]))
    found.extend(item for item, _ in listed)
    settle(found, list(range(len(listed))))
    return found


class EntryPlaces:
    """Where the parts of one entry stand. Nothing is looked up before somebody asks.

    each: the values of `for_each` for which the entry was written out.
    """

    __slots__ = ("_each", "_mark", "_node", "_source")

    def __init__(self, node: Json, source: Source, at: Mark, each: str = "") -> None:
        self._node = node
        self._source = source
        self._mark = at
        self._each = each

    def of(self, node: Json) -> EntryPlaces:
        """The places of what the entry has become."""
        return EntryPlaces(node, self._source, self._mark, self._each)

    def at(self, *path: str | int) -> SourceLocation:
        """The place of the value at `path`, or the nearest one above it that has a place."""
        where = self._walk(path)[1]
        return replace(where, each=self._each) if self._each else where

    def key(self, *path: str | int) -> SourceLocation:
        """The place of the last key of `path`; of its value where it is an item of a list."""
        node = self._walk(path[:-1])[0]
        step = path[-1]
        found = node.key_mark(step) if isinstance(node, Map) and isinstance(step, str) else None
        if found is None or not isinstance(node, Map):
            return self.at(*path)
        return replace(node.source.where(found), each=self._each)

    def written(self, *path: str | int) -> str:
        """The plain word at `path` as the file spells it: `010` where the value is 10; empty for nothing at all."""
        found = _WORD.match(self.rest(*path))
        return found[1] if found else ""

    def rest(self, *path: str | int) -> str:
        """What the file says from the value at `path` to the end of its line."""
        where = self._walk(path)[1]
        return self._source.rest(mark(where.line, where.column))

    def find(self, text: str, *path: str | int) -> SourceLocation:
        """The place of what reads `text` at or below `path`; of `path` itself if nothing does."""
        node = self._walk(path)[0]
        return self.at(*path, *(node.finder.find(text) if isinstance(node, Map | Seq) else ()))

    def _walk(self, path: Trail) -> tuple[Json, SourceLocation]:
        """The value at `path`, or the last one on the way there, and its place."""
        node, source, at = self._node, self._source, self._mark
        for step in path:
            found = node.mark(step) if isinstance(node, Map | Seq) else None
            if found is None or not isinstance(node, Map | Seq):
                return None, source.where(at)
            source, at = node.source, found
            node = node[step]  # type: ignore[index]  # it has a mark, so it has the step
        return node, source.where(at)


def _texts(node: Json, trail: Trail = ()) -> Iterator[tuple[str, Trail]]:
    """Every text below a node, with the way that leads to it."""
    for step, child in _children(node):
        if isinstance(child, str):
            yield child, (*trail, step)
        else:
            yield from _texts(child, (*trail, step))


def _children(node: Json) -> Iterator[tuple[str | int, Json]]:
    if isinstance(node, dict):
        yield from node.items()
    elif isinstance(node, list):
        yield from enumerate(node)
