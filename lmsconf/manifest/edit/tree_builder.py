"""YAML text → nodes with their start and end offsets, and their pending edits."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any, Final, TypeVar, cast

import yaml
from msgspec import Struct, field

from lmsconf.errors import LmsconfError
from lmsconf.manifest.nodes import resolve_scalar
from lmsconf.manifest.yaml_reader import YamlParser
from lmsconf.model.canonical_json import Json

_BEFORE: Final = re.compile(r"[&!]\S*\s*")
"""An anchor or a tag, with the space after it."""
UNCHANGED: Final = object()
"""Value of `Node.becomes` for a node that is not replaced."""


class Node(Struct, eq=False, kw_only=True):
    """One value of a file: the text from `start` to `end`, without the anchor and tag before it.

    outer: where the anchor or tag begins; `start` if there is none. inside: whether it is within brackets. shared:
    whether an alias repeats it. becomes: its raw replacement, if any.
    """

    start: int
    end: int
    outer: int
    line: int
    column: int
    inside: bool
    anchor: str | None = None
    shared: bool = False
    parent: Mapping | Sequence | None = None
    replacement: object = UNCHANGED

    def value(self) -> Json:
        """Return the raw value after all pending edits: texts as written, variables included."""
        return self.unreplaced_value() if self.replacement is UNCHANGED else cast(Json, self.replacement)

    def unreplaced_value(self) -> Json:
        """Return the raw value with the pending edits of its parts, ignoring `becomes`."""
        raise NotImplementedError

    def children(self) -> list[Node]:
        """Return the child nodes."""
        return []

    def kept(self) -> list[Node]:
        """Return the child nodes that are not removed."""
        return []

    @property
    def content_end(self) -> int:
        """Return the end of its last scalar: the parser ends a block only where the next token begins."""
        return self.end


class Scalar(Node, Struct, eq=False, kw_only=True):
    """A scalar. style: its quote or block sign, empty for a plain scalar."""

    text: str
    style: str
    is_plain: bool

    def unreplaced_value(self) -> Json:
        return resolve_scalar(self.text) if self.is_plain else self.text


class Alias(Node, Struct, eq=False, kw_only=True):
    """An alias, `*name`: the value of another node."""

    target: Node

    def unreplaced_value(self) -> Json:
        return self.target.value()


class Pair(Struct, eq=False):
    """A key and its value."""

    key: Scalar
    value: Node


class Mapping(Node, Struct, eq=False, kw_only=True):
    """A mapping. removed: indexes of pairs to remove; more: raw pairs to add."""

    flow: bool
    pairs: list[Pair] = field(default_factory=list)
    removed: set[int] = field(default_factory=set)
    added: dict[str, Json] = field(default_factory=dict)

    def unreplaced_value(self) -> Json:
        kept = (pair for at, pair in enumerate(self.pairs) if at not in self.removed)
        return {**{str(pair.key.value()): pair.value.value() for pair in kept}, **self.added}

    def children(self) -> list[Node]:
        return [part for pair in self.pairs for part in (pair.key, pair.value)]

    def kept(self) -> list[Node]:
        return [part for at, pair in enumerate(self.pairs) if at not in self.removed for part in (pair.key, pair.value)]

    def spans(self) -> list[tuple[int, int]]:
        """Return start and end of each key with its value."""
        return [(pair.key.outer, max(pair.key.end, pair.value.content_end)) for pair in self.pairs]

    def get(self, key: str) -> Node | None:
        """Return the value under a key; None if there is none."""
        return next((pair.value for pair in self.pairs if pair.key.text == key), None)

    def position(self, key: str) -> int | None:
        """Return the index of the pair with that key; None if there is none."""
        return next((at for at, pair in enumerate(self.pairs) if pair.key.text == key), None)

    @property
    def content_end(self) -> int:
        return (
            self.end if self.flow or not self.pairs else max(self.pairs[-1].key.end, self.pairs[-1].value.content_end)
        )


class Sequence(Node, Struct, eq=False, kw_only=True):
    """A list. removed: indexes of items to remove; more: raw items to append.

    commented: whether a comment above a removed item is removed with it.
    """

    flow: bool
    items: list[Node] = field(default_factory=list)
    removed: set[int] = field(default_factory=set)
    added: list[Json] = field(default_factory=list)
    commented: bool = False

    def unreplaced_value(self) -> Json:
        return [*(item.value() for item in self.kept()), *self.added]

    def children(self) -> list[Node]:
        return self.items

    def kept(self) -> list[Node]:
        return [item for at, item in enumerate(self.items) if at not in self.removed]

    def spans(self) -> list[tuple[int, int]]:
        """Return start and end of each item, without its dash."""
        return [(item.outer, item.content_end) for item in self.items]

    @property
    def content_end(self) -> int:
        return self.end if self.flow or not self.items else self.items[-1].content_end


_AnyNode = TypeVar("_AnyNode", bound=Node)


def parse_documents(text: str) -> list[Node]:
    """Return the root of each document of a YAML text that the strict reader has accepted. Raises LmsconfError."""
    events = yaml.parse(text, Loader=YamlParser)
    return [
        _TreeBuilder(text, events, {}).node(next(events), None)
        for event in events
        if isinstance(event, yaml.DocumentStartEvent)
    ]


class _TreeBuilder(Struct):
    """Build the nodes of one document from parser events. The strict reader limits how deep they are nested."""

    text: str
    events: Iterator[Any]
    anchors: dict[str, Node]

    def node(self, event: Any, parent: Mapping | Sequence | None) -> Node:
        """Return the node that begins with an event. Raises LmsconfError for a key that is not text."""
        if isinstance(event, yaml.AliasEvent):
            target = self.anchors[str(event.anchor)]
            target.shared = True
            return self._placed(Alias, event, parent, target=target)
        if isinstance(event, yaml.ScalarEvent):
            style, is_plain = event.style or "", bool(event.implicit[0])
            scalar = self._placed(Scalar, event, parent, text=event.value, style=style, is_plain=is_plain)
            if style in ("|", ">"):
                scalar.end = scalar.start + len(self.text[scalar.start : scalar.end].rstrip())
            return scalar
        if isinstance(event, yaml.SequenceStartEvent):
            items = self._placed(Sequence, event, parent, flow=bool(event.flow_style))
            items.items.extend(self._parts(items))
            items.end = items.end if items.flow else items.content_end
            return items
        mapping = self._placed(Mapping, event, parent, flow=bool(event.flow_style))
        parts = self._parts(mapping)
        for key in parts:
            if not isinstance(key, Scalar):
                raise LmsconfError(f"line {key.line}: this key is not text", hint="Change this manifest by hand.")
            mapping.pairs.append(Pair(key, next(parts)))
        mapping.end = mapping.end if mapping.flow else mapping.content_end
        return mapping

    def _parts(self, parent: Mapping | Sequence) -> Iterator[Node]:
        """Yield the parts of a list or mapping, up to the event that ends it."""
        while not isinstance(event := next(self.events), yaml.CollectionEndEvent):
            yield self.node(event, parent)
        parent.end = cast(yaml.Mark, event.end_mark).index

    def _placed(self, kind: type[_AnyNode], event: Any, parent: Mapping | Sequence | None, **about: Any) -> _AnyNode:
        """Return a node with its position; `start` is after its anchor and tag, which a replacement must keep."""
        begins, end = event.start_mark, event.end_mark.index
        start = begins.index
        while kind is not Alias and (prefix := _BEFORE.match(self.text, start)):
            start = prefix.end()
        node = kind(
            start=start,
            end=max(start, end),
            outer=begins.index,
            line=begins.line + 1,
            column=begins.column + 1,
            inside=parent is not None and (parent.flow or parent.inside),
            parent=parent,
            **about,
        )
        if kind is not Alias and event.anchor is not None:
            node.anchor = event.anchor
            self.anchors[event.anchor] = node
        return node


def node_and_descendants(node: Node) -> Iterator[Node]:
    """Yield a node and its descendants; the target of an alias is not a descendant of it."""
    yield node
    for part in node.children():
        yield from node_and_descendants(part)


def node_and_ancestors(node: Node) -> Iterator[Node]:
    """Yield a node and its ancestors, innermost first."""
    at: Node | None = node
    while at is not None:
        yield at
        at = at.parent
