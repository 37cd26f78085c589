"""Edit one manifest: pending edits on its nodes → its new text, which is parsed again for verification."""

from __future__ import annotations

import codecs
from collections.abc import Iterator
from functools import cached_property

from lmsconf.errors import Problem, ProblemsFound, SourceLocation
from lmsconf.manifest.edit.blocks import block_list_edits, block_mapping_edits
from lmsconf.manifest.edit.brackets import bracket_edits
from lmsconf.manifest.edit.text_buffer import TextBuffer, TextEdit, UnsafeEdit, render_inline, replacement_edit
from lmsconf.manifest.edit.tree_builder import (
    UNCHANGED,
    Mapping,
    Node,
    Sequence,
    node_and_ancestors,
    node_and_descendants,
    parse_documents,
)
from lmsconf.manifest.yaml.strict_reader import read_yaml
from lmsconf.model.canonical_json import Json

BY_HAND = "Change this place by hand, and run it again."


class EditRefused(Exception):
    """Raised for an edit that cannot be made safely; `problem` has location, reason and hint."""

    def __init__(self, message: str, where: SourceLocation, hint: str = BY_HAND, address: str | None = None) -> None:
        super().__init__(message)
        self.problem = Problem(code="editing/refused", message=message, hint=hint, source=where, address=address)


class YamlEditor:
    """A manifest with pending edits. name: its path in the project."""

    def __init__(self, name: str, data: bytes) -> None:
        self.name = name
        self.data = data
        self._mark = codecs.BOM_UTF8 if data.startswith(codecs.BOM_UTF8) else b""
        self._buffer = TextBuffer(data.decode("utf-8-sig"))

    @property
    def text(self) -> str:
        """The original text."""
        return self._buffer.text

    @cached_property
    def roots(self) -> list[Node]:
        """The root node of each document."""
        return parse_documents(self.text)

    def location_of(self, node: Node) -> SourceLocation:
        """Return the source location of a node."""
        return SourceLocation(self.name, node.line, node.column)

    def node_at(self, where: SourceLocation) -> Node | None:
        """Return the node that begins at a location: the mapping, where its first key begins there too."""
        return self._places.get((where.line, where.column))

    @cached_property
    def _places(self) -> dict[tuple[int, int], Node]:
        places: dict[tuple[int, int], Node] = {}
        for root in self.roots:
            for node in node_and_descendants(root):
                places.setdefault((node.line, node.column), node)
        return places

    def refuse_shared(self, node: Node) -> None:
        """Check that the node is not shared through an alias. Raises EditRefused."""
        shared = next((ancestor for ancestor in node_and_ancestors(node) if ancestor.shared), None)
        if shared is not None:
            hint = "Replace each alias by the value, or change it here by hand for all of them."
            raise EditRefused(f"&{shared.anchor} is repeated by an alias elsewhere", self.location_of(shared), hint)

    @property
    def is_changed(self) -> bool:
        """Whether there are pending edits."""
        return any(_is_noted(node) for root in self.roots for node in node_and_descendants(root))

    def edited_bytes(self) -> bytes:
        """Return the edited file.

        Raises EditRefused for an edit that cannot be made in place, and ProblemsFound if the new text does not parse to
        the expected value.
        """
        try:
            text = self._buffer.apply_edits(piece for root in self.roots for piece in self._pieces(root))
        except UnsafeEdit as unsafe:
            raise EditRefused(
                f"this cannot be edited in place: {unsafe.why}", self.location_of(unsafe.node)
            ) from unsafe
        again = read_yaml(self.name, text)
        wanted = [value for value in (root.value() for root in self.roots) if value is not None]
        if again.problems or [document.value for document in again.documents] != wanted:
            first = next(node for root in self.roots for node in node_and_descendants(root) if _is_noted(node))
            problem = EditRefused(
                "this cannot be edited in place: its meaning would change", self.location_of(first)
            ).problem
            raise ProblemsFound([problem])
        return self._mark + text.encode("utf-8")

    def _pieces(self, node: Node) -> Iterator[TextEdit]:
        """Yield the text edits of a node and its descendants."""
        if node.replacement is not UNCHANGED:
            yield replacement_edit(self._buffer, node, node.value())
            return
        removed: set[Node] = set()
        if isinstance(node, Mapping):
            removed = {part for at in node.removed for part in (node.pairs[at].key, node.pairs[at].value)}
            yield from _mapping_pieces(self._buffer, node)
        elif isinstance(node, Sequence):
            removed = {node.items[at] for at in node.removed}
            yield from _list_pieces(self._buffer, node)
        for part in node.children():
            if part not in removed:
                yield from self._pieces(part)


def _mapping_pieces(buffer: TextBuffer, node: Mapping) -> list[TextEdit]:
    if not node.removed and not node.added:
        return []
    if not node.flow:
        return block_mapping_edits(buffer, node)
    spans = [(pair.key.outer, max(pair.key.end, pair.value.content_end)) for pair in node.pairs]
    more = [render_inline({key: value}, in_brackets=True)[1:-1] for key, value in node.added.items()]
    return bracket_edits(buffer, node, spans, node.removed, more)


def _list_pieces(buffer: TextBuffer, node: Sequence) -> list[TextEdit]:
    if not node.removed and not node.added:
        return []
    if not node.flow:
        return block_list_edits(buffer, node)
    spans = [(item.outer, item.content_end) for item in node.items]
    return bracket_edits(
        buffer, node, spans, node.removed, [render_inline(item, in_brackets=True) for item in node.added]
    )


def _is_noted(node: Node) -> bool:
    notes = (node.removed or node.added) if isinstance(node, Mapping | Sequence) else False
    return node.replacement is not UNCHANGED or bool(notes)


def replace_value(editor: YamlEditor, node: Node, raw: Json) -> None:
    """Replace the value of a node. Raises EditRefused."""
    editor.refuse_shared(node)
    if node.value() != raw:
        node.replacement = raw
