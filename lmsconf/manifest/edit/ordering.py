"""Order a manifest: keys as the schema lists them, lists without a meaning to their order by name.

The lists are: the entries of a section, people, the choices of a condition, and the sets of a section. All others,
as the choices of a field and the audiences of an assignment, stay as they are written.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final, cast

from lmsconf.errors import Problem, ProblemsFound, Severity, SourceLocation
from lmsconf.manifest.edit import tree_builder as tree
from lmsconf.manifest.edit.permute import Permutation, SortKey, permutation, reordered
from lmsconf.manifest.edit.text_buffer import TextBuffer, UnsafeEdit
from lmsconf.manifest.expand.conditions import CHOICES
from lmsconf.manifest.expand.for_each import FOR_EACH
from lmsconf.manifest.expand.sets import SET_SECTIONS
from lmsconf.manifest.schemas import ABSENT, TESTS
from lmsconf.manifest.validation.schema_query import Schema, properties, property_schema, required_keys
from lmsconf.manifest.yaml.read_result import Document
from lmsconf.manifest.yaml.strict_reader import read_yaml
from lmsconf.model.canonical_json import Json, canonical_json
from lmsconf.model.names import casefold_name

BY_HAND: Final = "Nothing was changed in this file. Order it by hand, or move the comment or anchor."


def order_manifest(name: str, text: str, schema: Schema) -> str:
    """Return the text of a manifest in order; equal if it is in order. What is reordered ends in a line break.

    schema: of a whole manifest. Raises ProblemsFound for a text that is not YAML, with errors, and for one that cannot
    be ordered safely, with a warning.
    """
    before = read_yaml(name, text)
    if before.problems:
        raise ProblemsFound(before.problems)
    for document in before.documents:
        _refuse_other(document, schema)
    buffer = TextBuffer(text)
    try:
        permutations = [one for root in tree.parse_documents(buffer.text) for one in _document(buffer, root, schema)]
    except UnsafeEdit as unsafe:
        raise _refused(unsafe.why, SourceLocation(name, unsafe.node.line, unsafe.node.column)) from unsafe
    if not permutations:
        return text
    after = reordered(buffer.text, permutations)
    again = read_yaml(name, after)
    same = [_unordered(one.value) for one in again.documents] == [_unordered(one.value) for one in before.documents]
    if again.problems or not same:
        raise _refused("an anchor would come after its alias, or a value would change", SourceLocation(name))
    return after


def _refuse_other(document: Document, schema: Schema) -> None:
    """Raise ProblemsFound for a document of another kind, or with a mistyped key."""
    value = document.value
    unknown = (
        [key for key in value if key not in properties(schema) and not key.startswith("x-")]
        if isinstance(value, dict)
        else [""]
    )
    if unknown:
        raise _refused("it has keys that manifests do not have", document.source.where(document.at))


def _refused(why: str, where: SourceLocation) -> ProblemsFound:
    message = f"not ordered: {why}"
    return ProblemsFound(
        [Problem(code="fmt/left", message=message, severity=Severity.WARNING, hint=BY_HAND, source=where)]
    )


def _unordered(value: Json) -> Json:
    """Return a value with all its lists sorted, to compare what two texts say whatever their order."""
    if isinstance(value, dict):
        return {key: _unordered(part) for key, part in value.items()}
    return sorted(map(_unordered, value), key=canonical_json) if isinstance(value, list) else value


def _document(buffer: TextBuffer, root: tree.Node, schema: Schema) -> Iterator[Permutation]:
    yield from _ordered(buffer, root, schema)
    for section, node in _sections(root, schema):
        entry = cast(Schema, section.get("items", {}))
        if isinstance(node, tree.Sequence) and (key := _identity(entry)) is not None:
            yield from _sorted(buffer, node, _by_name(node, key))
        elif isinstance(node, tree.Mapping):
            yield from _sorted(buffer, node, _by_key(node))


def _sections(root: tree.Node, schema: Schema) -> Iterator[tuple[Schema, tree.Node]]:
    """Yield the sections of a document, those under `absent` and those of sets too, with their schemas."""
    if not isinstance(root, tree.Mapping):
        return
    for pair in root.pairs:
        part = property_schema(schema, pair.key.text)
        if pair.key.text == ABSENT:
            yield from _sections(pair.value, part)
        elif pair.key.text != TESTS and ("items" in part or pair.key.text in SET_SECTIONS):
            yield part, pair.value


def _identity(entry: Schema) -> str | None:
    """Return the key that names an entry: the first one that it needs."""
    return next((key for form in (entry, *_forms(entry)) for key in required_keys(form)), None)


def _sorted(buffer: TextBuffer, node: tree.Mapping | tree.Sequence, key: SortKey) -> Iterator[Permutation]:
    made = permutation(buffer, node, key)
    if made is not None:
        yield made


def _ordered(buffer: TextBuffer, node: tree.Node, schema: Schema) -> Iterator[Permutation]:
    """Yield the permutations of a node and all below it, but for those that sort a section."""
    if isinstance(node, tree.Mapping):
        schema = _form(schema, node)
        if properties(schema):
            yield from _sorted(buffer, node, _by_schema(node, schema))
        for pair in node.pairs:
            yield from _ordered(buffer, pair.value, _below(schema, pair.key.text))
    elif isinstance(node, tree.Sequence):
        if schema.get("x-people") or schema.get("x-choice-names"):
            yield from _sorted(buffer, node, _by_name(node, "set"))
        items = _items(schema)
        for item in node.items:
            yield from _ordered(buffer, item, items)


def _items(schema: Schema) -> Schema:
    """Return the schema of the items of a list; in a condition the choices are marked: their order has no meaning."""
    form = next((one for one in (schema, *_forms(schema)) if "items" in one), {})
    items = cast(Schema, form.get("items", {}))
    if not schema.get("x-conditions"):
        return items
    marked: Json = {**property_schema(items, CHOICES), "x-choice-names": True}
    return {**items, "properties": {**properties(items), CHOICES: marked}}


def _below(schema: Schema, key: str) -> Schema:
    more = schema.get("additionalProperties")
    return cast(Schema, properties(schema).get(key, more if isinstance(more, dict) else {}))


def _forms(schema: Schema) -> list[Schema]:
    return cast("list[Schema]", schema.get("oneOf", []))


def _form(schema: Schema, node: tree.Mapping) -> Schema:
    """Return the branch of a union that has all keys of a mapping; an empty schema if there is none."""
    keys = {pair.key.text for pair in node.pairs}
    forms = [schema, *_forms(schema)] if properties(schema) else _forms(schema) or [schema]
    return next((form for form in forms if keys <= properties(form).keys()), schema)


def _by_schema(node: tree.Mapping, schema: Schema) -> SortKey:
    """Sort keys as the schema has them: keys for anchors and `for_each` first, since what follows refers to them."""
    known = [FOR_EACH, *(key for key in properties(schema) if key != FOR_EACH)]
    rank = {key: number for number, key in enumerate(known)}

    def key(at: int) -> object:
        text = node.pairs[at].key.text
        return -1 if text.startswith("x-") else rank.get(text, len(rank))

    return key


def _by_key(node: tree.Mapping) -> SortKey:
    return lambda at: _sort_key(node.pairs[at].key.text)


def _by_name(node: tree.Sequence, key: str) -> SortKey:
    return lambda at: _sort_key(_name(node.items[at], key))


def _sort_key(name: str) -> tuple[str, str]:
    return casefold_name(name), name


def _name(item: tree.Node, key: str) -> str:
    """Return the name of an entry or item: its text, that under its key, that of the first of several."""
    if isinstance(item, tree.Alias):
        return _name(item.target, key)
    if isinstance(item, tree.Scalar):
        return item.text
    if isinstance(item, tree.Sequence):
        return _name(item.items[0], key) if item.items else ""
    under: Mapping[str, tree.Node] = {pair.key.text: pair.value for pair in cast(tree.Mapping, item).pairs}
    value = under.get(key, under.get("name"))
    return "" if value is None else _name(value, "name")
