"""Order a manifest: keys as the schema lists them, lists without a meaning to their order by name.

The lists are: the entries of a section, people, the choices of a condition, and the sets of a section. All others,
as the choices of a field and the audiences of an assignment, stay as they are written. Each part moves as the text it
is, with the comments that belong to it: one right above, and deeper ones below. A comment that stands alone, between
blank lines, is a heading: parts are ordered above and below it, and none moves past it. Blank lines stay.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from itertools import accumulate, chain, pairwise
from typing import Any, Final, TypeAlias, cast

from lmsconf.errors import Problem, ProblemsFound, Severity, SourceLocation, raise_found
from lmsconf.manifest.edit.text_edits import Part, TextBuffer, UnsafeEdit, part_spans
from lmsconf.manifest.edit.tree_builder import Node, parse_documents
from lmsconf.manifest.nodes import FOR_EACH
from lmsconf.manifest.schema_check import Schema, branches_of, properties
from lmsconf.manifest.yaml_reader import read_yaml
from lmsconf.model.canonical_json import Json, canonical_json
from lmsconf.model.names import casefold_name

_COMMENT: Final = r"#(?!\s*yaml-language-server:)"
"""Any comment but the one for editors, which stays at the top of its file."""


Permutation: TypeAlias = "tuple[Sequence[tuple[int, int]], Sequence[int]]"
"""Parts in the order of the text, and the index of the part that takes each place."""


def _sorted(buffer: TextBuffer, node: Node, keys: Sequence[Any]) -> Iterator[Permutation]:
    """Yield the permutation that sorts the parts of a node by their keys, unless they are sorted. Raises UnsafeEdit."""
    spans = list(part_spans(buffer, node))
    parts = [] if node.flow else [_part(buffer, node, start, end) for start, end in spans]
    between = (buffer.text[before.end : part.comment] for before, part in pairwise(parts))
    headings = list(accumulate((bool(text.strip()) for text in between), initial=0)) if parts else [0] * len(spans)
    order = sorted(range(len(spans)), key=lambda at: (headings[at], keys[at]))
    moved = [at for place, at in enumerate(order) if place != at]
    if moved:
        yield _movable(buffer, node, parts, moved) if parts else _in_brackets(buffer, node, spans), order


def reordered(text: str, permutations: Iterable[Permutation]) -> str:
    """Return the text with all permutations applied in turn. None changes the length of its text."""
    characters = list(text)
    for parts, order in permutations:
        moved = [characters[start:end] for start, end in (parts[source] for source in order)]
        between = [characters[before[1] : after[0]] for before, after in pairwise(parts)]
        texts = chain(*zip(moved, [*between, []], strict=True))
        characters[parts[0][0] : parts[-1][1]] = chain.from_iterable(texts)
    return "".join(characters)


def _in_brackets(buffer: TextBuffer, node: Node, spans: list[tuple[int, int]]) -> list[tuple[int, int]]:
    """Return the spans that change places within brackets. Raises UnsafeEdit for a comment between them."""
    between = [(before[1], after[0]) for before, after in pairwise([(0, node.start + 1), *spans, (node.end - 1, 0)])]
    if any("#" in buffer.text[start:end] for start, end in between):
        raise UnsafeEdit(node, "a comment stands between brackets")
    return spans


def _part(buffer: TextBuffer, node: Node, start: int, content_end: int) -> Part:
    """Return a part of a block: its dash or key, its lines, and the comments that belong to it."""
    if node.kind == "list" and buffer.text[start : start + 1] != "-":
        raise UnsafeEdit(node, "an item has no dash")
    indent = start - buffer.line_start(start)
    below = re.compile(rf"(?:(?:[^\S\n]*+\n)*+ {{{indent + 1},}}#[^\n]*+\n)*+")
    end = cast("re.Match[str]", below.match(buffer.text, buffer.next_line(content_end))).end()
    return Part(buffer.comment_above(buffer.line_start(start), rf" {{0,{indent}}}{_COMMENT}"), start, end)


def _movable(buffer: TextBuffer, node: Node, parts: Sequence[Part], moved: Sequence[int]) -> list[tuple[int, int]]:
    """Return the spans that change places. Raises UnsafeEdit if comments cannot tell what they belong to."""
    columns = {part.start - buffer.line_start(part.start) for part in parts}
    if len(columns) > 1 or not all(buffer.begins_line(part.start) for part in parts[1:]):
        raise UnsafeEdit(node, "its parts do not begin in one column")
    commented = [at for at, part in enumerate(parts) if part.comment < buffer.line_start(part.start)]
    if not buffer.begins_line(parts[0].start):
        # The first key stands beside the dash of an item, and so does what takes its place.
        if 0 in moved and any(at in commented for at in moved if at):
            raise UnsafeEdit(node, "the key that belongs beside the dash has a comment above it")
        return [
            (parts[0].start, parts[0].end),
            *((part.start if 0 in moved else part.comment, part.end) for part in parts[1:]),
        ]
    if commented == [0] and buffer.skip_blanks(0) == parts[0].start:
        # The first lines of a file are about the file.
        return [(buffer.line_start(part.start), part.end) for part in parts]
    if 0 in moved and commented == [0]:
        raise UnsafeEdit(node, "the comment above its first part may be about that part, or about all of them")
    return [(part.comment, part.end) for part in parts]


def order_manifest(name: str, text: str, schema: Schema) -> str:
    """Return the text of a manifest in order; equal if it is in order. What is reordered ends in a line break.

    schema: of a whole manifest. Raises ProblemsFound for a text that is not YAML, with errors, and for one that cannot
    be ordered safely, with a warning.
    """
    before = read_yaml(name, text)
    raise_found(before.problems)
    for document in before.documents:
        value, known = document.value, properties(schema)
        if not isinstance(value, dict) or not all(key in known or key.startswith("x-") for key in value):
            raise _refused("it has keys that manifests do not have", document.at())
    buffer = TextBuffer(text)
    try:
        permutations = [one for root in parse_documents(name, buffer.text) for one in _ordered(buffer, root, schema)]
    except UnsafeEdit as unsafe:
        node, why = unsafe.args
        raise _refused(why, node.where) from unsafe
    if not permutations:
        return text
    # Those of a part come after those of the whole.
    after = reordered(buffer.text, reversed(permutations))
    again = read_yaml(name, after)
    same = [_unordered(one.value) for one in again.documents] == [_unordered(one.value) for one in before.documents]
    if again.problems or not same:
        raise _refused("an anchor would come after its alias, or a value would change", SourceLocation(name))
    return after


def _refused(why: str, where: SourceLocation) -> ProblemsFound:
    return ProblemsFound(
        [
            Problem(
                code="fmt/left",
                message=f"not ordered: {why}",
                severity=Severity.WARNING,
                hint="Nothing was changed in this file. Order it by hand, or move the comment or anchor.",
                source=where,
            )
        ]
    )


def _unordered(value: Json) -> Json:
    """Return a value with all its lists sorted, to compare what two texts say whatever their order."""
    if isinstance(value, dict):
        return {key: _unordered(part) for key, part in value.items()}
    return sorted(map(_unordered, value), key=canonical_json) if isinstance(value, list) else value


def _ordered(buffer: TextBuffer, node: Node, schema: Schema) -> Iterator[Permutation]:
    """Yield the permutations of a node and all below it. `x-sorted-by` marks lists and sets without a meaning to their
    order, and names the key that items are sorted by.
    """
    if node.kind == "mapping":
        schema = _form(schema, node)
        if known := properties(schema):
            # Keys for anchors and `for_each` come first, since what follows refers to them.
            rank = {key: number for number, key in enumerate(dict.fromkeys((FOR_EACH, *known)))}
            ranks = [-1 if key.text.startswith("x-") else rank.get(key.text, len(rank)) for key, _ in node.parts]
            yield from _sorted(buffer, node, ranks)
        elif "x-sorted-by" in schema:
            yield from _sorted(buffer, node, [_sort_key(key.text) for key, _ in node.parts])
        for key, value in node.parts:
            more = schema.get("additionalProperties")
            below = properties(schema).get(key.text, more if isinstance(more, dict) else {})
            yield from _ordered(buffer, value, cast(Schema, below))
    elif node.kind == "list":
        schema = next((form for form in (schema, *branches_of(schema)) if "items" in form), {})
        if "x-sorted-by" in schema:
            yield from _sorted(
                buffer, node, [_sort_key(_name(item, str(schema["x-sorted-by"]))) for item in node.items]
            )
        for item in node.items:
            yield from _ordered(buffer, item, cast(Schema, schema.get("items", {})))


def _form(schema: Schema, node: Node) -> Schema:
    """Return the branch of a union that has all keys of a mapping; an empty schema if there is none."""
    keys = {key.text for key, _ in node.parts}
    forms = [schema, *branches_of(schema)] if properties(schema) else branches_of(schema) or [schema]
    return next((form for form in forms if keys <= properties(form).keys()), schema)


def _sort_key(name: str) -> tuple[str, str]:
    return casefold_name(name), name


def _name(item: Node, key: str) -> str:
    """Return the name of an entry or item: its text, that under its key, that of the first of several."""
    if item.target is not None:
        return _name(item.target, key)
    if item.kind == "list":
        return _name(item.items[0], key) if item.items else ""
    value = item.get(key) or item.get("name")
    return item.text if value is None else _name(value, "name")
