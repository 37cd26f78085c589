"""JSON Schema of a whole manifest, from the kinds' schemas: for validation by section, and written out for editors.

A kind's schema describes a plain entry; `for_each`, sets, `use`, `except` and short forms are added here.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from functools import cache
from typing import Final, cast

from msgspec import Struct

from lmsconf.kinds.assignment.access_test_entries import TEST_SCHEMA
from lmsconf.kinds.kind_table import KINDS
from lmsconf.kinds.shared.kind import Kind
from lmsconf.kinds.shared.kind_names import CONTENT_TARGET
from lmsconf.manifest.expand.table_files import ANY_ITEM
from lmsconf.manifest.keys import (
    ALLOW_EMPTY,
    CHOICES,
    CONDITION_SETS,
    CONDITIONS,
    EXCEPT,
    FOR_EACH,
    FOR_EACH_SCHEMA,
    PEOPLE_SETS,
    SET,
    SET_SECTIONS,
    USE,
    WINDOWS,
)
from lmsconf.manifest.nodes import EntrySourceMap, KeyPath, Map, Seq
from lmsconf.manifest.schema_check import Schema, SchemaValidator, properties, property_schema
from lmsconf.model.canonical_json import Json

ABSENT: Final = "absent"
TESTS: Final = "tests"
_DRAFT: Final = "https://json-schema.org/draft/2020-12/schema"
_HOME: Final = {"^x-": {"description": "Ignored, for anchors."}}
_TEXT: Final[dict[str, Json]] = {"type": "string", "minLength": 1}
_SET: Final[dict[str, Json]] = {
    "type": "object",
    "description": f"The people of a set under {PEOPLE_SETS}.",
    "properties": {
        SET: {**_TEXT, "description": "The name of the set."},
        ALLOW_EMPTY: {"type": "boolean", "description": "true: a set without people means nobody."},
    },
    "required": [SET],
    "additionalProperties": False,
}
_USE: Final[dict[str, Json]] = {
    "description": f"Adds the conditions of sets under {CONDITION_SETS}: one name, or a list of names.",
    "oneOf": [_TEXT, {"type": "array", "items": _TEXT, "minItems": 1}],
}
_EXCEPT: Final[dict[str, Json]] = {
    "type": "array",
    "items": _TEXT,
    "minItems": 1,
    "description": "All choices except these. The field must be declared with the whole list of its choices.",
}
_SET_WORDS: Final = {
    PEOPLE_SETS: "Lists of people by name, for {set: NAME} wherever people are listed.",
    CONDITION_SETS: "Lists of conditions by name, for `use: NAME` beside the conditions of smart groups.",
    WINDOWS: "Windows by name, for `window: NAME` wherever visible_from and visible_until may stand.",
}
SHEET_FILE: Final[dict[str, Json]] = {**_TEXT, "description": "A CSV, .xlsx or .ods file, relative to this manifest."}
SHEET_PROPERTIES: Final[dict[str, Json]] = {
    "file": SHEET_FILE,
    "sheet": {**_TEXT, "description": "The sheet of a workbook. Default: the first that is not hidden."},
    "where": {
        "type": "object",
        "description": "Only rows with exactly these values in these columns.",
        "additionalProperties": {"type": "string"},
    },
    ALLOW_EMPTY: {"type": "boolean", "description": "true: a file without a row declares nothing."},
}
_VARIABLE: Final[dict[str, Json]] = {
    "type": "string",
    "pattern": "^\\$\\([^()]+\\)$",
    "description": "A variable, as a whole: $(name).",
}
_OF_VARIABLES: Final = "#/$defs/variable"


def manifest_schema() -> dict[str, Json]:
    """Return the complete schema of one manifest document."""
    sets = {
        section: {"type": "object", "description": _SET_WORDS[section], "additionalProperties": schema}
        for section, schema in set_schemas().items()
    }
    whole = _document(_any_entry_schema, _list, cast("dict[str, Json]", sets))
    return {"$schema": _DRAFT, "title": "A manifest of lmsconf", **whole}


def manifest_schema_text() -> str:
    """Return the text of `schemas/manifest.schema.json`, ending in a newline.

    Unlike manifest_schema, it accepts `$(name)`: editors see the variable, lmsconf validates the value it stands for.
    """
    schema = _with_variables(manifest_schema())
    return json.dumps(({**schema, "$defs": {"variable": _VARIABLE}}), indent=2, ensure_ascii=False) + "\n"


def _unread(entry: Schema) -> dict[str, Json]:
    """Return the schema of a list whose items are checked later.

    `x-items` keeps the schema of an item, for suggestions only.
    """
    return {"type": "array", "x-items": dict(entry)}


def entry_schema(kind: Kind) -> dict[str, Json]:
    """Return the schema of one entry of a section, with `for_each`, sets, `use` and `except` allowed."""
    return _may_repeat(_shortened(kind.schema))


def sheet_entry_schema(kind: Kind) -> dict[str, Json] | None:
    """Return the schema of an entry that reads entries from a file; None for a kind that is not read from tables.

    What it says beside the file holds for each row, as beside the items of an entry.
    """
    if kind.entry_items is None:
        return None
    own = (kind.entry_items.subject, kind.entry_items.key)
    defaults = {key: part for key, part in properties(kind.schema).items() if key not in own}
    columns = f"{kind.entry_items.subject} and {kind.entry_items.noun}"
    file: Json = {**SHEET_FILE, "description": f"{SHEET_FILE['description']} In place of {' and '.join(own)}."}
    return _may_repeat(
        {
            "type": "object",
            "x-sheet": True,
            "description": f"Entries from a sheet with the columns {columns}, one for each row.",
            "properties": {**SHEET_PROPERTIES, "file": file, **defaults},
            "required": ["file"],
            "additionalProperties": False,
        }
    )


def item_keys(kind: Kind) -> Mapping[str, Schema]:
    """Return the keys that both an entry and its items may have, with their schemas: columns of a sheet."""
    key = kind.entry_items.key if kind.entry_items is not None else ""
    items = {name for _, part in _parts(property_schema(kind.schema, key)) for name in properties(part)}
    return {name: cast(Schema, part) for name, part in properties(kind.schema).items() if name in items}


def _any_entry_schema(kind: Kind) -> dict[str, Json]:
    sheet = sheet_entry_schema(kind)
    return entry_schema(kind) if sheet is None else {"oneOf": [entry_schema(kind), sheet]}


def test_entry_schema(kind: Kind) -> dict[str, Json] | None:
    """Return the schema of one entry under `tests`, with `for_each` allowed; None for a kind without tests."""
    if kind.name != CONTENT_TARGET:
        return None
    forms = cast("list[Schema]", TEST_SCHEMA["oneOf"])
    return {**TEST_SCHEMA, "oneOf": [_may_repeat(form) for form in forms]}


def set_schemas() -> Mapping[str, Mapping[str, Json]]:
    """Map each section of sets to the schema of one set; a section that no kind has lists for is left out."""
    schemas: dict[str, Mapping[str, Json]] = {}
    for kind in KINDS.values():
        for _, part in _parts(kind.schema):
            if part.get("x-people") and sum(bool(below.get("x-people")) for _, below in _parts(part)) == 1:
                schemas.setdefault(PEOPLE_SETS, part)
            if part.get("x-conditions"):
                schemas.setdefault(CONDITION_SETS, _shortened(part))
            if any(cast(Schema, below).get("x-window") for below in properties(part).values()):
                schemas.setdefault(WINDOWS, _window_schema(part))
    return schemas


def _window_schema(part: Schema) -> dict[str, Json]:
    """Return the schema of a window, given that of a mapping which may name one: the times beside the name."""
    times = {key: below for key, below in properties(part).items() if cast(Schema, below).get("x-time")}
    return {
        "type": "object",
        "description": "When content can be seen. An end that is left out is open.",
        "properties": times,
        "minProperties": 1,
        "additionalProperties": False,
    }


def declares_choices(kind: Kind) -> bool:
    """Whether entries of this kind declare the choices of a field."""
    return bool(property_schema(kind.schema, CHOICES).get("x-choices"))


def has_conditions(kind: Kind) -> bool:
    """Whether entries of this kind have conditions."""
    return bool(property_schema(kind.schema, CONDITIONS).get("x-conditions"))


def absent_entry_schema(kind: Kind) -> dict[str, Json]:
    """Return the schema of one entry under `absent`; a string is accepted where one key identifies the resource."""
    schema = _may_repeat(_shortened(kind.absent_schema))
    key = identifying_key(kind)
    if key is None:
        return schema
    return {"oneOf": [{"type": "string", "minLength": 1, "description": f"Its {key}."}, schema]}


def identifying_key(kind: Kind) -> str | None:
    """Return the key that alone identifies an entry under `absent`: `name` or `email`; None if there is none."""
    return next((key for key in ("name", "email") if kind.absent_schema.get("required") == [key]), None)


def _document(
    entry: Callable[[Kind], Schema],
    listed: Callable[[Schema], dict[str, Json]],
    sets: Schema,
) -> dict[str, Json]:
    """Return the schema of a document. entry: the schema of an entry of a kind. listed: of a list of entries."""
    sections = {kind.section: listed(entry(kind)) for kind in KINDS.values()}
    sections.update((TESTS, listed(schema)) for kind in KINDS.values() if (schema := test_entry_schema(kind)))
    absent: Json = {
        "type": "object",
        "description": "Resources to delete if they exist.",
        "properties": {kind.section: listed(absent_entry_schema(kind)) for kind in KINDS.values()},
        "additionalProperties": False,
    }
    return {
        "type": "object",
        "properties": {**sections, ABSENT: absent, **sets},
        "patternProperties": cast(Json, _HOME),
        "additionalProperties": False,
    }


def _list(entry: Schema) -> dict[str, Json]:
    return {"type": "array", "items": dict(entry)}


def _may_repeat(entry: Schema) -> dict[str, Json]:
    """Allow `for_each` in an entry. It is expanded before the shape of the entry is checked."""
    return {**entry, "properties": {**properties(entry), FOR_EACH: FOR_EACH_SCHEMA}}


def _shortened(schema: Schema) -> dict[str, Json]:
    """Return a kind's schema with sets, `use` and `except` allowed."""
    extended = {key: _rebuilt(part, key) for key, part in schema.items()}
    if schema.get("x-people"):
        branches = cast("list[dict[str, Json]]", extended["oneOf"])
        # `{set: NAME}` may be an item of a list of people, too.
        mixed: list[Json] = [
            {**part, "items": {"oneOf": [part["items"], _SET]}} if "items" in part else part for part in branches
        ]
        extended["oneOf"] = [*mixed, _SET]
    if schema.get("x-conditions"):
        extended["items"] = _may_except(cast("dict[str, Json]", extended["items"]))
    if property_schema(schema, CONDITIONS).get("x-conditions"):
        extended["properties"] = {**properties(extended), USE: _USE}
    return extended


def _rebuilt(part: Json, key: str) -> Json:
    if key == "properties":
        return {name: _shortened(below) for name, below in cast("Mapping[str, Schema]", part).items()}
    if key in ("oneOf", "anyOf"):
        return [_shortened(branch) for branch in cast("list[Schema]", part)]
    return _shortened(cast(Schema, part)) if key == "items" else part


def _may_except(condition: dict[str, Json]) -> dict[str, Json]:
    needs = cast("list[Json]", condition["anyOf"])
    keys = {**properties(condition), EXCEPT: _EXCEPT}
    return {**condition, "properties": keys, "anyOf": [*needs, {"required": [EXCEPT]}]}


def _with_variables(schema: Schema) -> dict[str, Json]:
    """Allow a variable wherever the schema requires something other than free text."""
    relaxed: dict[str, Json] = {}
    for key, part in schema.items():
        if key == "properties":
            relaxed[key] = {name: _or_variable(below) for name, below in cast("Mapping[str, Schema]", part).items()}
        elif key in ("oneOf", "anyOf"):
            relaxed[key] = [_with_variables(branch) for branch in cast("list[Schema]", part)]
        elif key in ("items", "additionalProperties") and isinstance(part, dict):
            relaxed[key] = _or_variable(part)
        else:
            relaxed[key] = part
    return relaxed


def _or_variable(schema: Schema) -> Json:
    """Allow a variable in place of a value. Objects and free text are left as they are."""
    built = _with_variables(schema)
    if "oneOf" in built:
        branches = cast("list[Schema]", built["oneOf"])
        return built if any(map(_is_free, branches)) else {**built, "oneOf": [*map(dict, branches), _REFERENCE]}
    if _is_free(schema) or schema.get("type") == "object" or not {"type", "enum"} & schema.keys():
        return built
    about = {key: built.pop(key) for key in ("description",) if key in built}
    return {**about, "oneOf": [built, _REFERENCE]}


_REFERENCE: Final[dict[str, Json]] = {"$ref": _OF_VARIABLES}


def _is_free(schema: Schema) -> bool:
    """Whether any string is accepted, and so a variable too."""
    types = schema.get("type")
    return "pattern" not in schema and ("string" in types if isinstance(types, list) else types == "string")


def _parts(schema: Schema, path: KeyPath = ()) -> Iterator[tuple[KeyPath, Schema]]:
    """Yield a schema and all schemas nested in it, each with the path from a value to the one that it is of."""
    yield path, schema
    items = schema.get("items")
    nested = [(part, (*path, key)) for key, part in properties(schema).items()]
    nested += [(items, (*path, ANY_ITEM))] if isinstance(items, dict) else []
    nested += [(branch, path) for branch in cast("list[Json]", schema.get("oneOf", []))]
    for part, below in nested:
        yield from _parts(cast(Schema, part), below)


def _marked_paths(schema: Schema, mark: str) -> tuple[KeyPath, ...]:
    """Return the paths from an entry to the values that its schema marks, such as lists of people with `x-people`."""
    return tuple(dict.fromkeys(path for path, part in _parts(schema) if part.get(mark)))


class Section(Struct, frozen=True):
    """How the entries of one section are checked: their kind, the schema of an entry.

    people, windows: the paths of lists of people, and of references to windows. sheet: the schema of an entry that
    reads entries from a file.
    """

    kind: Kind
    path: KeyPath
    shape: SchemaValidator
    people: tuple[KeyPath, ...] = ()
    windows: tuple[KeyPath, ...] = ()
    sheet: SchemaValidator | None = None
    is_absent: bool = False
    is_test: bool = False

    @property
    def is_declared(self) -> bool:
        """Whether its entries declare resources."""
        return not (self.is_absent or self.is_test)

    @property
    def name(self) -> str:
        return ".".join(str(step) for step in self.path)


@cache
def sections_by_path() -> Mapping[KeyPath, Section]:
    """Map the keys that lead to each section of each kind to it: declared, absent, and tests."""
    return {section.path: section for kind in KINDS.values() for section in _sections_of(kind)}


def _sections_of(kind: Kind) -> Iterator[Section]:
    sheet = sheet_entry_schema(kind)
    yield Section(
        kind,
        (kind.section,),
        SchemaValidator(entry_schema(kind)),
        _marked_paths(kind.schema, "x-people"),
        _marked_paths(kind.schema, "x-window"),
        None if sheet is None else SchemaValidator(sheet),
    )
    yield Section(kind, (ABSENT, kind.section), SchemaValidator(absent_entry_schema(kind)), is_absent=True)
    if tests := test_entry_schema(kind):
        yield Section(kind, (TESTS,), SchemaValidator(tests), is_test=True)


@cache
def sections_validator() -> SchemaValidator:
    """Return the compiled schema of the sections alone: each a list, or a mapping of sets, with any content.

    Cached, since compiling a schema is slow.
    """
    sets: dict[str, Json] = {section: {"type": "object"} for section in set_schemas()}
    return SchemaValidator(_document(entry_schema, _unread, sets))


@cache
def set_validators() -> Mapping[str, SchemaValidator]:
    """Map each section of sets to the compiled schema of one set. Cached for the same reason."""
    schemas = set_schemas()
    return {section: SchemaValidator(schemas.get(section, {})) for section in SET_SECTIONS}


def has_sections(document: EntrySourceMap) -> bool:
    """Whether a document has a section of entries.

    If no document had any, every owned resource would be planned for deletion.
    """
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
