"""YAML text → nodes with their start and end offsets, and their pending edits."""

from __future__ import annotations

import re
import weakref
from collections.abc import Iterator
from itertools import chain
from typing import Any, Final, Literal, cast

import yaml
from msgspec import UNSET, Struct, UnsetType, field

from lmsconf.errors import LmsconfError, SourceLocation
from lmsconf.manifest.nodes import resolve_scalar
from lmsconf.manifest.yaml_reader import YamlParser
from lmsconf.model.canonical_json import Json


class Node(Struct, eq=False, kw_only=True, weakref=True):
    """One value of a file: the text from `start` to `end`, without the anchor and tag before it.

    outer: where the anchor or tag begins; `start` if there is none. aliases: how many repeat it.
    container: what it is in, weakly, so that a tree is freed with its last root.
    text and scalar: of a scalar, as written and its value. style: its quote or block sign; empty for a plain one.
    anchor: its name, or that of the node that an alias repeats, which is its target.
    flow: whether a list or mapping has brackets. parts: its items, or its keys each with its value.
    replacement: its new raw value. removed: indexes of parts to remove. added: raw items to append to a list.
    added_keys: raw pairs to append to a mapping. commented: whether the comment above a removed part goes with it.
    """

    kind: Literal["scalar", "alias", "list", "mapping"]
    start: int
    end: int
    outer: int
    where: SourceLocation
    container: weakref.ref[Node] | None
    text: str
    scalar: Json
    style: str
    flow: bool
    target: Node | None = None
    anchor: str | None = None
    aliases: int = 0
    parts: tuple[tuple[Node, ...], ...] = ()
    replacement: Json | UnsetType = UNSET
    removed: frozenset[int] = frozenset()
    added: tuple[Json, ...] = ()
    added_keys: dict[str, Json] = field(default_factory=dict)
    commented: bool = False

    @property
    def parent(self) -> Node | None:
        """The list or mapping that it is in."""
        return None if self.container is None else self.container()

    def value(self) -> Json:
        """Return the raw value after all pending edits: texts as written, variables included."""
        if self.replacement is not UNSET:
            return self.replacement
        if self.target is not None:
            return self.target.value()
        match self.kind:
            case "list":
                return [*(item.value() for (item,) in self.kept()), *self.added]
            case "mapping":
                return {**{str(key.value()): value.value() for key, value in self.kept()}, **self.added_keys}
        return self.scalar

    def kept(self) -> list[tuple[Node, ...]]:
        """Return the parts that are not removed."""
        return [part for at, part in enumerate(self.parts) if at not in self.removed]

    def get(self, key: str) -> Node | None:
        """Return the value under a key of a mapping; None if there is none."""
        return next((part[1] for part in self.parts if len(part) > 1 and part[0].text == key), None)

    @property
    def items(self) -> list[Node]:
        """The items of a list, the values of a mapping."""
        return [part[-1] for part in self.parts]

    @property
    def is_changed(self) -> bool:
        """Whether it has pending edits of its own."""
        return self.replacement is not UNSET or bool(self.removed or self.added or self.added_keys)


def part_span(part: tuple[Node, ...]) -> tuple[int, int]:
    """Return start and end of an item without its dash, or of a key with its value."""
    return part[0].outer, max(node.end for node in part)


def parse_documents(file: str, text: str) -> list[Node]:
    """Return the root of each document of a YAML text that the strict reader has accepted. Raises LmsconfError."""
    events = yaml.parse(text, Loader=YamlParser)
    return [
        _TreeBuilder(file, text, events, {}).node(next(events), None)
        for event in events
        if isinstance(event, yaml.DocumentStartEvent)
    ]


class _TreeBuilder(Struct):
    """Build the nodes of one document from parser events. The strict reader limits how deep they are nested."""

    file: str
    text: str
    events: Iterator[Any]
    anchors: dict[str, Node]

    def node(self, event: Any, parent: Node | None) -> Node:
        """Return the node that begins with an event. Raises LmsconfError for a key that is not text."""
        node = self._placed(event, parent)
        if isinstance(event, yaml.AliasEvent):
            node.target = self.anchors[str(event.anchor)]
            node.target.aliases += 1
        elif event.anchor is not None:
            self.anchors[event.anchor] = node
        if isinstance(event, yaml.CollectionStartEvent):
            self._add_parts(node)
        return node

    def _placed(self, event: Any, parent: Node | None) -> Node:
        """Return a node with its position; `start` is after its anchor and tag, which a replacement must keep."""
        begins = event.start_mark
        prefix = re.compile(r"(?:[&!]\S*\s*)*+").match(self.text, begins.index)
        start = cast("re.Match[str]", prefix).end()
        text = event.value if isinstance(event, yaml.ScalarEvent) else ""
        return Node(
            kind=_KINDS[event.__class__],
            start=start,
            # A block scalar ends after the line break.
            end=start + len(self.text[start : event.end_mark.index].rstrip()),
            outer=begins.index,
            where=SourceLocation(self.file, begins.line + 1, begins.column + 1),
            container=None if parent is None else weakref.ref(parent),
            text=text,
            scalar=resolve_scalar(text) if isinstance(event, yaml.ScalarEvent) and event.implicit[0] else text,
            style=getattr(event, "style", None) or "",
            flow=bool(getattr(event, "flow_style", False)),
            anchor=event.anchor,
        )

    def _add_parts(self, node: Node) -> None:
        """Add the parts of a list or mapping, up to the event that ends it; without brackets it ends with the last."""
        children = []
        while not isinstance(event := next(self.events), yaml.CollectionEndEvent):
            children.append(self.node(event, node))
        size = 1 if node.kind == "list" else 2
        node.parts = tuple(tuple(children[at : at + size]) for at in range(0, len(children), size))
        for key in children[::size] if size > 1 else ():
            if key.kind != "scalar":
                raise LmsconfError(f"line {key.where.line}: this key is not text", hint="Change this manifest by hand.")
        node.end = cast(yaml.Mark, event.end_mark).index if node.flow or not children else part_span(node.parts[-1])[1]


_KINDS: Final[dict[type, Any]] = {
    yaml.ScalarEvent: "scalar",
    yaml.AliasEvent: "alias",
    yaml.SequenceStartEvent: "list",
    yaml.MappingStartEvent: "mapping",
}


def node_and_descendants(node: Node) -> Iterator[Node]:
    """Yield a node and its descendants; the target of an alias is not a descendant of it."""
    yield node
    for child in chain.from_iterable(node.parts):
        yield from node_and_descendants(child)
