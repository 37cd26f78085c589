"""Validation of values against a JSON Schema, queries of schemas, and the schema of a whole manifest and its sections.

jsonschema judges, and its errors become findings. The code that fastjsonschema makes of a schema passes valid values
before it: 10,000 entries in 0.1 s, for which jsonschema takes 1.5 s.

Editors use `schemas/manifest.schema.json` as it is. It allows `$(name)` in place of a value; values are checked
without, once variables are substituted.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping
from contextlib import suppress
from functools import cache, cached_property
from itertools import chain
from typing import TYPE_CHECKING, Final, TypeAlias, cast

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from lmsconf.kinds.kind_table import KINDS
from lmsconf.kinds.shared.kind_names import CONTENT_TARGET, Kind
from lmsconf.manifest import schema_code
from lmsconf.manifest.file_set import MANIFEST_SCHEMA
from lmsconf.manifest.nodes import FOR_EACH, SET_SECTIONS, EntrySourceMap, EscapedText, KeyPath, Map, Seq
from lmsconf.model.canonical_json import Json
from lmsconf.model.control_characters import FORBIDDEN
from lmsconf.support.files import read_schema

if TYPE_CHECKING:
    from jsonschema.exceptions import ValidationError


Schema: TypeAlias = Mapping[str, Json]
TYPE_NAMES: Final = {
    "string": "text",
    "boolean": "true or false",
    "integer": "a whole number",
    "number": "a number",
    "array": "a list",
    "object": "a mapping",
    "null": "null",
}
"""Names of the JSON types in messages."""


def types_of_value(value: Json) -> frozenset[str]:
    """Return the JSON types of a value."""
    from jsonschema import Draft202012Validator  # only for a problem

    return frozenset(name for name in TYPE_NAMES if Draft202012Validator.TYPE_CHECKER.is_type(value, name))


def accepts_text(schema: Schema, text: str) -> bool:
    """Whether a schema accepts this text."""
    from jsonschema import Draft202012Validator  # only for a problem

    return bool(text.strip()) and Draft202012Validator(schema).is_valid(text)


def types_of_schema(schema: Schema) -> frozenset[str]:
    """Return the JSON types that a schema accepts; all if it restricts none."""
    match schema:
        case {"type": str(name)}:
            return frozenset([name])
        case {"type": [*names]}:
            return frozenset(map(str, names))
        case {"enum": [*values]}:
            return frozenset(chain.from_iterable(map(types_of_value, values)))
        case {"const": value}:
            return types_of_value(value)
    branches = branches_of(schema)
    return types_of_branches(branches) if branches else frozenset(TYPE_NAMES)


def types_of_branches(branches: Iterable[Schema]) -> frozenset[str]:
    """Return the JSON types that at least one of the schemas accepts."""
    return frozenset(chain.from_iterable(map(types_of_schema, branches)))


def properties(schema: Schema) -> Mapping[str, Json]:
    """Return the keys that a mapping may have, with the schema of each."""
    return cast("Mapping[str, Json]", schema.get("properties", {}))


def property_schema(schema: Schema, key: str) -> Schema:
    """Return the schema of one key; an empty schema for an unknown key."""
    return cast(Schema, properties(schema).get(key, {}))


def identifying_keys(schema: Schema) -> list[str]:
    """Return the keys that identify a branch of a union: its first required key, or else all its keys."""
    return required_keys(schema)[:1] or [*properties(schema)]


def required_keys(schema: Schema) -> list[str]:
    """Return the required keys of a mapping."""
    return cast("list[str]", schema.get("required", []))


def branches_of(schema: Schema) -> list[Schema]:
    """Return the branches of a union; empty if the schema is not one."""
    return cast("list[Schema]", schema.get("oneOf") or schema.get("anyOf") or [])


def item_schemas(schema: Schema) -> list[Schema]:
    """Return the alternative schemas of the items of a list; empty if items are not restricted."""
    items = schema.get("items") or schema.get("x-items")
    return alternative_schemas(items) if isinstance(items, dict) else []


def alternative_schemas(schema: Schema) -> list[Schema]:
    """Return the branches of a union, or the schema alone, also where its union only combines required keys."""
    return [schema] if "properties" in schema else branches_of(schema) or [schema]


NAME: Final = "name"
"""A format of texts that can be names: line breaks and tabs only as escapes."""
_TEXT: Final = "text"
"""A format of other texts: line breaks and tabs may stand as they are, other control characters may not."""
_FREE: Final = frozenset(["column", "system_condition", "where"])
"""Keys whose texts are not names: the service or a CSV header may have line breaks in them."""
NEEDED: Final = "x-required"
"""Marks the schema of a required key."""


class SchemaFinding(Struct, frozen=True):
    """One schema violation: the keyword and its value, the rejected value, its schema, and its path.

    union_branches: those of the union that the schema is one of.
    """

    path: KeyPath
    keyword: str
    keyword_value: Json
    value: Json
    schema: Schema
    union_branches: tuple[Schema, ...] = ()

    @property
    def is_item(self) -> bool:
        """Whether the rejected value is an item of a list."""
        return bool(self.path) and isinstance(self.path[-1], int)


class SchemaValidator(Struct, dict=True):
    """One schema, written out: jsonschema judges what its code in `schema_code` does not pass.

    name: that of the schema in `schema_code`; empty if it has no code there.
    names: whether a non-empty text, and a free key, must be a name: line breaks and tabs only as escapes.
    None: any text may hold any character, such as a pattern for such names.
    """

    schema: Schema
    name: str = ""
    names: bool | None = True

    def validate(self, value: Json) -> list[SchemaFinding]:
        """Return all findings against the value, in its order; empty if it is valid."""
        if self.name:
            with suppress(schema_code.Invalid):
                schema_code.validate({self.name: value}, FORMATS)
                return []
        from jsonschema import Draft202012Validator, FormatChecker  # only for a problem

        formats = FormatChecker(())
        for name, fits in FORMATS.items():
            formats.checks(name)(fits)
        validator = Draft202012Validator(self.strict_schema, format_checker=formats)
        return [finding for error in validator.iter_errors(value) for finding in _findings(error)]

    @cached_property
    def strict_schema(self) -> dict[str, Json]:
        """What values are judged by: the schema, made to reject texts that cannot be names."""
        return _strict(self.schema, names=self.names)


def forbidden_character(value: object, format: str) -> str | None:
    """Return the first character of a text that the format rejects."""
    if not isinstance(value, str) or value.isprintable() or (format == NAME and isinstance(value, EscapedText)):
        return None
    found = re.search(r"[\t\r\n]", value) if format == NAME else FORBIDDEN.search(value)
    return found and found[0]


FORMATS: Final[dict[str, Callable[[object], bool]]] = {
    NAME: lambda value: forbidden_character(value, NAME) is None,
    _TEXT: lambda value: forbidden_character(value, _TEXT) is None,
}
"""Format → whether a value has it."""


def new_findings(findings: Iterable[SchemaFinding], reported: set[Hashable]) -> Iterable[SchemaFinding]:
    """Return the findings not reported yet for another copy of the same `for_each` entry."""
    keyed = {
        (finding.path, finding.keyword, None if isinstance(finding.value, dict | list) else finding.value): finding
        for finding in findings
    }
    new = {key: finding for key, finding in keyed.items() if key not in reported}
    reported.update(new)
    return new.values()


def _strict(schema: Schema, *, names: bool | None) -> dict[str, Json]:
    """Make a schema reject texts that cannot be names, and a line break at the end of a text with a pattern."""
    strict = {**schema}
    mark: Schema = {NEEDED: True} if NEEDED in schema else {}
    for key, part in schema.items():
        match key, part:
            case "oneOf" | "anyOf", [*branches]:
                strict[key] = [_strict({**cast(Schema, branch), **mark}, names=names) for branch in branches]
            case "properties", {**parts}:
                strict[key] = {
                    name: _strict(
                        {**below, **({NEEDED: True} if name in required_keys(schema) else {})},
                        names=names and name not in _FREE,
                    )
                    for name, below in cast("Mapping[str, Schema]", parts).items()
                }
            case "items" | "additionalProperties", {**below}:
                # Values under free keys may be names, but also answers of several lines.
                strict[key] = _strict(cast(Schema, below), names=names if key == "items" else None)
            case "pattern", str(pattern):
                # In Python `$` also matches before a line break at the end of the text.
                strict[key] = re.sub(r"\$\Z", r"\\Z", pattern)
    if "type" in schema and "string" in types_of_schema(schema) and names is not None:
        strict["format"] = NAME if names and schema.get("minLength") else _TEXT
    if names and isinstance(schema.get("additionalProperties"), dict):
        strict["propertyNames"] = {"format": NAME}
    return strict


def _findings(error: ValidationError) -> Iterator[SchemaFinding]:
    """Convert one jsonschema error to findings; for a union, to the errors of the branch that was meant."""
    branches = branches_of({str(error.validator): cast(Json, error.validator_value)})
    meant = _meant(branches, cast(Json, error.instance))
    if meant is None:
        keyword = "union" if branches else str(error.validator)
        yield SchemaFinding(
            path=tuple(error.absolute_path),
            keyword="propertyNames" if "propertyNames" in error.absolute_schema_path else keyword,
            keyword_value=cast(Json, error.validator_value),
            value=cast(Json, error.instance),
            schema=cast(Schema, error.schema),
        )
    else:
        inner = (one for one in error.context or () if one.relative_schema_path[0] == meant)
        for finding in chain.from_iterable(map(_findings, inner)):
            is_whole = finding.path == tuple(error.absolute_path) and not finding.union_branches
            yield replace(finding, union_branches=tuple(branches)) if is_whole else finding


def _meant(branches: list[Schema], value: Json) -> int | None:
    """Return the index of the only branch that has the value's type and, for a mapping, one of its keys; else None."""
    typed = [number for number, branch in enumerate(branches) if types_of_value(value) & types_of_schema(branch)]
    if isinstance(value, dict):
        telling = properties if len(typed) == 1 else identifying_keys
        typed = [
            n for n in typed if "properties" not in branches[n] or not value.keys().isdisjoint(telling(branches[n]))
        ]
    return typed[0] if len(typed) == 1 else None


ABSENT: Final = "absent"


def manifest_schema() -> Schema:
    """Return the complete schema of one manifest document."""
    return written_out_schema(MANIFEST_SCHEMA)


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
        return [_written_out(item, file) for item in part if item != {"$ref": "#/$defs/variable"}]
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
    return SchemaValidator(
        {"type": "object", "properties": {FOR_EACH: dict(schema_definition(MANIFEST_SCHEMA, "for_each"))}}, FOR_EACH
    )


def _entry_forms(section: Schema) -> tuple[Schema, Schema | None]:
    """Return the schema of an entry of a section, and of one that reads entries from a file, if there may be one."""
    entry = cast(Schema, section["items"])
    sheet = next((form for form in branches_of(entry) if form.get("x-sheet")), None)
    return (entry, None) if sheet is None else (branches_of(entry)[0], sheet)


def _outline(schema: Schema) -> dict[str, Json]:
    """Return a schema of sections in which the items of each are not restricted.

    `x-items` keeps the schema of an item, for suggestions only.
    """
    sections = cast("Mapping[str, Schema]", properties(schema))
    return {**schema, "properties": {key: _section_outline(key, part) for key, part in sections.items()}}


def _section_outline(key: str, section: Schema) -> Json:
    match key:
        case "absent":
            return _outline(section)
        case "condition_sets" | "people_sets" | "windows":
            return {"type": "object"}
    return {"type": "array", "x-items": dict(_entry_forms(section)[0])}


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

    @property
    def is_declared(self) -> bool:
        """Whether its entries declare resources."""
        return self.path[0] not in (ABSENT, "tests")

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
        absent = cast(Schema, property_schema(property_schema(whole, ABSENT), kind.section)["items"])
        yield Section(kind, (ABSENT, kind.section), SchemaValidator(absent, f"{ABSENT} {kind.section}"))
    tests = cast(Schema, property_schema(whole, "tests")["items"])
    yield Section(KINDS[CONTENT_TARGET], ("tests",), SchemaValidator(tests, "tests"))


@cache
def sections_validator() -> SchemaValidator:
    """Return the schema of the sections alone: each a list, or a mapping of sets, with any content."""
    return SchemaValidator(_outline(manifest_schema()), "sections")


@cache
def set_validators() -> Mapping[str, SchemaValidator]:
    """Map each section of sets to the schema of one set."""
    return {
        section: SchemaValidator(
            cast(Schema, property_schema(manifest_schema(), section)["additionalProperties"]), section
        )
        for section in SET_SECTIONS
    }


def has_sections(document: EntrySourceMap) -> bool:
    """Whether a document has a section of entries. If none had any, a plan would delete all owned resources."""
    value = document.value
    return not isinstance(value, Map) or any(not key.startswith("x-") and key not in SET_SECTIONS for key in value)


def entry_lists(document: EntrySourceMap) -> Iterator[tuple[Section, EntrySourceMap]]:
    """Yield the lists of entries in one document, each with its section."""
    sections = sections_by_path()
    for key, part in document.parts():
        lists = [((ABSENT, name), items) for name, items in part.parts()] if key == ABSENT else [((key,), part)]
        for path, items in lists:
            if path in sections and isinstance(items.value, Seq):
                yield sections[path], items
