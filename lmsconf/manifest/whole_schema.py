"""The JSON Schema of a whole manifest, `schemas/manifest.schema.json`, and of its sections, to check entries by.

Editors use the file as it is. It allows `$(name)` in place of a value; values are checked without, once variables are
substituted.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import cache
from typing import Final, cast

import msgspec
from msgspec import Struct

from lmsconf.kinds.kind_table import KINDS
from lmsconf.kinds.shared.kind_names import CONTENT_TARGET, Kind
from lmsconf.manifest.nodes import FOR_EACH, SET_SECTIONS, EntrySourceMap, KeyPath, Map, Seq
from lmsconf.manifest.schema_check import (
    Schema,
    SchemaValidator,
    branches_of,
    item_schemas,
    properties,
    property_schema,
)
from lmsconf.model.canonical_json import Json
from lmsconf.support.files import read_schema

ABSENT: Final = "absent"
TESTS: Final = "tests"
_FILE: Final = "manifest.schema.json"
_VARIABLE: Final = {"$ref": "#/$defs/variable"}


def manifest_schema() -> Schema:
    """Return the complete schema of one manifest document."""
    return written_out_schema(_FILE)


@cache
def written_out_schema(file: str) -> Schema:
    """Return the schema in a file of `schemas/` with its references written out, and without variables."""
    whole: Json = {key: part for key, part in _content(file).items() if key != "$defs"}
    return cast(Schema, _written_out(whole, file))


@cache
def schema_definition(file: str, name: str) -> Schema:
    """Return a definition in a file of `schemas/`, written out in the same way."""
    return cast(Schema, _written_out(cast("dict[str, Json]", _content(file)["$defs"])[name], file))


@cache
def _content(file: str) -> Schema:
    return cast(Schema, msgspec.json.decode(read_schema(file)))


def _written_out(part: Json, file: str) -> Json:
    """Return a part of a schema without references; what is beside a reference is kept."""
    if isinstance(part, list):
        return [_written_out(item, file) for item in part if item != _VARIABLE]
    if not isinstance(part, dict):
        return part
    whole = {key: _written_out(below, file) for key, below in part.items() if key != "$ref"}
    if "$ref" in part:
        whole = {**schema_definition(file, str(part["$ref"]).rpartition("/")[2]), **whole}
    if len(branches := branches_of(whole)) == 1:  # the other one was the variable
        whole = {**{key: below for key, below in whole.items() if key != "oneOf"}, **branches[0]}
    return whole


@cache
def for_each_validator() -> SchemaValidator:
    """Return the schema of an entry of which only `for_each` is checked, since that is expanded first."""
    lists = dict(schema_definition(_FILE, "for_each"))
    return SchemaValidator({"type": "object", "properties": {FOR_EACH: lists}}, FOR_EACH)


def _entry_forms(section: Schema) -> tuple[Schema, Schema | None]:
    """Return the schema of an entry of a section, and of one that reads entries from a file, if there may be one."""
    entry = cast(Schema, section["items"])
    sheet = next((form for form in branches_of(entry) if form.get("x-sheet")), None)
    return (entry, None) if sheet is None else (branches_of(entry)[0], sheet)


def _outline(schema: Schema) -> dict[str, Json]:
    """Return a schema of sections in which the items of each are not restricted.

    `x-items` keeps the schema of an item, for suggestions only.
    """
    sections: dict[str, Json] = {}
    for key, part in cast("Mapping[str, Schema]", properties(schema)).items():
        if key == ABSENT:
            sections[key] = _outline(part)
        elif key in SET_SECTIONS:
            sections[key] = {"type": "object"}
        else:
            sections[key] = {"type": "array", "x-items": dict(_entry_forms(part)[0])}
    return {**schema, "properties": sections}


def item_keys(kind: Kind) -> Mapping[str, Schema]:
    """Return the keys that both an entry and its items may have, with their schemas: columns of a sheet."""
    key = kind.entry_items.key if kind.entry_items is not None else ""
    entry = declared_section(kind).shape.schema
    items = {name for form in item_schemas(property_schema(entry, key)) for name in properties(form)}
    return {name: cast(Schema, part) for name, part in properties(entry).items() if name in items}


class Section(Struct, frozen=True):
    """How the entries of one section are checked: their kind, the schema of an entry.

    sheet: the schema of an entry that reads entries from a file.
    """

    kind: Kind
    path: KeyPath
    shape: SchemaValidator
    sheet: SchemaValidator | None = None
    is_test: bool = False

    @property
    def is_declared(self) -> bool:
        """Whether its entries declare resources."""
        return not self.is_test and self.path[0] != ABSENT

    @property
    def name(self) -> str:
        return ".".join(str(step) for step in self.path)


@cache
def sections_by_path() -> Mapping[KeyPath, Section]:
    """Map the keys that lead to each section of each kind to it: declared, absent, and tests."""
    return {section.path: section for section in _sections()}


def declared_section(kind: Kind) -> Section:
    """Return the section whose entries declare resources of a kind."""
    return sections_by_path()[(kind.section,)]


def _sections() -> Iterator[Section]:
    whole = manifest_schema()
    for kind in KINDS.values():
        entry, sheet = _entry_forms(property_schema(whole, kind.section))
        yield Section(
            kind,
            (kind.section,),
            SchemaValidator(entry, kind.section),
            None if sheet is None else SchemaValidator(sheet, f"{kind.section} of a file"),
        )
        absent, _ = _entry_forms(property_schema(property_schema(whole, ABSENT), kind.section))
        yield Section(kind, (ABSENT, kind.section), SchemaValidator(absent, f"{ABSENT} {kind.section}"))
    tests, _ = _entry_forms(property_schema(whole, TESTS))
    yield Section(KINDS[CONTENT_TARGET], (TESTS,), SchemaValidator(tests, TESTS), is_test=True)


@cache
def sections_validator() -> SchemaValidator:
    """Return the schema of the sections alone: each a list, or a mapping of sets, with any content."""
    return SchemaValidator(_outline(manifest_schema()), "sections")


@cache
def set_validators() -> Mapping[str, SchemaValidator]:
    """Map each section of sets to the schema of one set."""
    whole = manifest_schema()
    sets = {section: property_schema(whole, section)["additionalProperties"] for section in SET_SECTIONS}
    return {section: SchemaValidator(cast(Schema, schema), section) for section, schema in sets.items()}


def has_sections(document: EntrySourceMap) -> bool:
    """Whether a document has a section of entries. If none had any, a plan would delete all owned resources."""
    value = document.value
    return not isinstance(value, Map) or any(not key.startswith("x-") and key not in SET_SECTIONS for key in value)


def entry_lists(value: Map) -> Iterator[tuple[KeyPath, Seq]]:
    """Yield the lists of entries in one document, with the keys that lead to each."""
    for key, items in value.items():
        if isinstance(items, Seq):
            yield (key,), items
        elif key == ABSENT and isinstance(items, Map):
            yield from (((key, below), part) for below, part in items.items() if isinstance(part, Seq))


def entry_from_short_form(key: str, name: Json, items: Seq, at: int) -> Map:
    """Return the mapping that a plain string abbreviates."""
    return Map(items.source, {key: name}, [at, at])
