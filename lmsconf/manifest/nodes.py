"""Dicts and lists with source positions, each packed in one array, and what plain scalars mean.

A position (Mark) is one integer: line and column, both from 1. A column of 0 means that only the line is
known. Some keys are expanded before entries are looked at: sets, windows, `use`, `except` and `for_each`.
"""

from __future__ import annotations

import json
import re
from array import array
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from typing import Final, TypeAlias, cast

from msgspec import Struct
from msgspec.structs import replace

from lmsconf.errors import SourceLocation
from lmsconf.model.canonical_json import Json
from lmsconf.model.names import casefold_name

SET_SECTIONS: Final = ("condition_sets", "people_sets", "windows")
FOR_EACH: Final = "for_each"


_WORDS: dict[str, Json] = {
    **dict.fromkeys(("", "~", "null", "Null", "NULL")),
    **dict.fromkeys(("true", "True", "TRUE"), True),
    **dict.fromkeys(("false", "False", "FALSE"), False),
}
_NUMBERS: Final[tuple[tuple[re.Pattern[str], Callable[[str], float]], ...]] = (
    (re.compile(r"[-+]?[0-9]{1,300}"), int),
    (re.compile(r"0o[0-7]{1,300}|0x[0-9a-fA-F]{1,300}"), lambda word: int(word, 0)),
    (re.compile(r"[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?"), float),
    (re.compile(r"[-+]?\.(inf|Inf|INF)|\.(nan|NaN|NAN)"), lambda word: float(word.replace(".", ""))),
)
"""Form of a number → how it is read."""

EMAIL: Final = re.compile(r"[^@\s]+@[^@\s]+")
VARIABLE_START = "$("
"""The start of a variable."""


def resolve_scalar(word: str) -> Json:
    """Return the value of a plain scalar. Dates, `yes`, `no`, `on` and `off` are text."""
    if word in _WORDS:
        return _WORDS[word]
    if word[0] not in "+-.0123456789":
        return word
    for form, read in _NUMBERS:
        if form.fullmatch(word):
            return read(word)
    return word


_WORD = re.compile(r"(?:[&!]\S+ +)*[\"']?([^\s,\[\]{}#\"']*)")
"""A word of one line, without its tag, its anchor, and the quotes around a value tagged as a number."""
Mark: TypeAlias = int
KeyPath: TypeAlias = "tuple[str | int, ...]"


def pack_mark(line: int, column: int) -> Mark:
    """Pack a line and a column, both from 1, into one integer."""
    return line << 32 | column


def unpack_mark(at: Mark) -> tuple[int, int]:
    """Return the line and the column of a mark."""
    return divmod(at, 1 << 32)


class EscapedText(str):
    """A text on one line, in double quotes, whose line breaks, tabs and other control characters are all escapes."""

    __slots__ = ()


class Source(Struct, dict=True, eq=False):
    """One file: its path in the project, and its text. opens: whether any text in it may contain a variable."""

    path: str = ""
    text: str = ""
    opens: bool = False

    def where(self, at: Mark) -> SourceLocation:
        """Return the source location of a mark."""
        return SourceLocation(self.path, *unpack_mark(at))

    def rest(self, at: Mark) -> str:
        """Return the text from a mark to the end of its line."""
        line, column = unpack_mark(at)
        return self._lines[line - 1][max(column - 1, 0) :] if 0 < line <= len(self._lines) else ""

    @cached_property
    def _lines(self) -> list[str]:
        return self.text.splitlines()


Place: TypeAlias = "tuple[Source, Mark]"
"""A position: a file, and a mark in it."""
Pair: TypeAlias = "tuple[str, Json, Place, Place]"
"""A key and a value of a mapping, and their places."""


class CombinedSource(Source, kw_only=True, eq=False):
    """Source of values that come from several files: each mark is the index of a place."""

    places: Sequence[Place]

    def where(self, at: Mark) -> SourceLocation:
        """Return the source location of the place with that index."""
        source, mark = self.places[at]
        return source.where(mark)

    def rest(self, at: Mark) -> str:
        """Return the text from that place to the end of its line."""
        source, mark = self.places[at]
        return source.rest(mark)


class _Located:
    """A list or a mapping, with the source of its parts and their marks, packed in one array."""

    __slots__ = tuple[str, ...]()  # Map and Seq have slots for the attributes

    def __init__(self, source: Source, content: Iterable[Json] = (), marks: Iterable[Mark] = ()) -> None:
        super().__init__(content)  # type: ignore[call-arg]  # that of the list or the mapping
        self.source = source
        self.marks = array("Q", marks)
        self._trails: dict[str, KeyPath] | None = None

    @property
    def trails(self) -> dict[str, KeyPath]:
        """Map each text below to the path of the first that is equal, else of one that looks the same.

        Kept with the node, since a plan may ask for thousands.
        """
        if self._trails is None:
            found = [*node_texts(cast(Json, self))]
            folded = [(casefold_name(text), trail) for text, trail in found]
            self._trails = dict(reversed(found + folded))
        return self._trails


class Map(_Located, dict[str, Json]):
    """A mapping. marks: for each pair those of the key and of the value, and maybe more."""

    __slots__ = ("_trails", "marks", "source")

    def changed(self, values: Mapping[str, Json]) -> Map:
        """Return the mapping with other values, at the same positions."""
        return Map(self.source, values, self.marks)

    def put(self, key: str, pairs: Sequence[Pair]) -> None:
        """Put pairs in place of the one with that key; each pair keeps its source position."""
        whole = combine_pairs([new for own in self.pairs() for new in (pairs if own[0] == key else [own])])
        self.clear()
        self.update(whole)
        self.source, self.marks = whole.source, whole.marks

    def without(self, *keys: str) -> Map:
        """Return the mapping without some keys; all other parts keep their positions."""
        kept = [(number, key) for number, key in enumerate(self) if key not in keys]
        marks = [self.marks[2 * number + part] for number, _ in kept for part in (0, 1)]
        return Map(self.source, {key: self[key] for _, key in kept}, marks)

    def pairs(self) -> list[Pair]:
        """Return each key with its value, and their places."""
        return [
            (key, value, (self.source, self.marks[2 * number]), (self.source, self.marks[2 * number + 1]))
            for number, (key, value) in enumerate(self.items())
        ]

    def parts(self) -> Iterator[tuple[str | int, Json, Mark]]:
        """Return each key with its value, and the mark of the value, as they are now."""
        return zip([*self], [*self.values()], self.marks[1::2], strict=False)

    def mark(self, step: str | int, part: int = 1) -> Mark | None:
        """Return the mark of the value under a key; of the key itself for part 0."""
        return next((at for key, at in zip(self, self.marks[part::2], strict=False) if key == step), None)


class Seq(_Located, list[Json]):
    """A list. marks: those of its items."""

    __slots__ = ("_trails", "marks", "source")

    def parts(self) -> Iterator[tuple[str | int, Json, Mark]]:
        """Return each index with its item, and the mark of the item, as they are now."""
        return zip(range(len(self)), [*self], self.marks, strict=True)

    def mark(self, step: str | int) -> Mark | None:
        """Return the mark of the item with that index."""
        return self.marks[step] if isinstance(step, int) and 0 <= step < len(self) else None


def combine_items(items: Sequence[tuple[Json, Place]]) -> Seq:
    """Build a list whose items have unrelated places."""
    return Seq(CombinedSource(places=[place for _, place in items]), [item for item, _ in items], range(len(items)))


def merge_mappings(base: Map, other: Map) -> Map:
    """Return a mapping with the pairs of another in place of its own; each pair keeps its source position."""
    return combine_pairs({pair[0]: pair for pair in (*base.pairs(), *other.pairs())}.values())


def combine_pairs(pairs: Collection[Pair]) -> Map:
    """Build a mapping whose pairs have unrelated places."""
    places = [place for _, _, *both in pairs for place in both]
    return Map(CombinedSource(places=places), {key: value for key, value, *_ in pairs}, range(len(places)))


class EntrySourceMap(Struct, frozen=True, eq=False):
    """SourceMap of one entry or document, or of a part of it: its value and its position; locations on demand.

    each: the values of `for_each` of which the entry is a copy.
    """

    value: Json
    source: Source
    mark: Mark
    each: str = ""

    def of(self, node: Json) -> EntrySourceMap:
        """Return the locations of `node`, which the value was expanded to."""
        return EntrySourceMap(node, self.source, self.mark, self.each)

    def below(self, *path: str | int) -> EntrySourceMap:
        """Return the value at `path`; None, at the position of its nearest ancestor that has one, if there is none."""
        here = self
        for step in path:
            node = here.value
            at = node.mark(step) if isinstance(node, Map | Seq) else None
            if at is None or not isinstance(node, Map | Seq):
                return here.of(None)
            value = node[step]  # type: ignore[index]  # a step with a mark exists
            here = EntrySourceMap(value, node.source, at, self.each)
        return here

    def parts(self) -> list[tuple[str | int, EntrySourceMap]]:
        """Return each key of a mapping, or index of a list, with the value there; nothing for another value."""
        if not isinstance(self.value, Map | Seq):
            return []
        source, each = self.value.source, self.each
        return [(step, EntrySourceMap(part, source, at, each)) for step, part, at in self.value.parts()]

    def place(self, *path: str | int) -> Place:
        """Return the place of the value at `path`, or of its nearest ancestor that has one."""
        here = self.below(*path)
        return here.source, here.mark

    def at(self, *path: str | int) -> SourceLocation:
        """Return the location of the value at `path`, or of its nearest ancestor that has one."""
        source, mark = self.place(*path)
        return replace(source.where(mark), each=self.each)

    def key(self, *path: str | int) -> SourceLocation:
        """Return the location of the last key of `path`; of its value if that is a list item."""
        node = self.below(*path[:-1]).value
        if not isinstance(node, Map) or path[-1] not in node:
            return self.at(*path)
        return replace(node.source.where(cast(Mark, node.mark(path[-1], 0))), each=self.each)

    def rest(self, *path: str | int) -> str:
        """Return the text from the value at `path` to the end of its line."""
        source, mark = self.place(*path)
        return source.rest(mark)

    def written(self, *path: str | int) -> str:
        """Return the scalar at `path` as the file spells it: `010` where the value is 10; empty if there is none."""
        word = _WORD.match(self.rest(*path))
        return word[1] if word else ""

    def variable(self) -> Json:
        """Return the value as variables have it: a number is text, as the file spells it.

        A number behind an alias is text as JSON spells it.
        """
        match self.value:
            case list():
                return [part.variable() for _, part in self.parts()]
            case str() | bool():
                return self.value
        spelt = self.written()
        # For an alias, the file spells only the alias's name.
        return spelt if spelt.startswith(tuple("+-.0123456789")) else json.dumps(self.value)

    def find(self, text: str, *path: str | int) -> SourceLocation:
        """Return the location of the text `text` at or below `path`; of `path` itself if it is not found."""
        node = self.below(*path).value
        if not isinstance(node, Map | Seq):
            return self.at(*path)
        return self.at(*path, *(node.trails.get(text) or node.trails.get(casefold_name(text), ())))


def node_texts(node: Json, trail: KeyPath = ()) -> Iterator[tuple[str, KeyPath]]:
    """Yield every text below a node, with its path."""
    for step, child in node.items() if isinstance(node, Map) else enumerate(node if isinstance(node, Seq) else ()):
        if isinstance(child, str):
            yield child, (*trail, step)
        else:
            yield from node_texts(child, (*trail, step))
