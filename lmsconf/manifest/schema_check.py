"""Validation of values against a JSON Schema, and queries of schemas: the types, keys and branches that they accept.

jsonschema judges, and its errors become findings. The code that fastjsonschema makes of a schema passes valid values
before it: 10,000 entries in 0.1 s, for which jsonschema takes 1.5 s.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping
from functools import cached_property
from typing import TYPE_CHECKING, Final, TypeAlias, cast

from msgspec import Struct
from msgspec.structs import replace

from lmsconf.errors import SHOWN
from lmsconf.manifest import schema_code
from lmsconf.manifest.nodes import EscapedText, KeyPath, resolve_scalar
from lmsconf.model.canonical_json import Json
from lmsconf.model.names import FORBIDDEN

if TYPE_CHECKING:
    from jsonschema.exceptions import ValidationError


Schema: TypeAlias = Mapping[str, Json]
_TYPES: Final[dict[type, frozenset[str]]] = {
    bool: frozenset(["boolean"]),
    int: frozenset(["integer", "number"]),
    float: frozenset(["number"]),
    str: frozenset(["string"]),
    type(None): frozenset(["null"]),
}
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
_PLAIN: Final = re.compile(r"[^\W\d_][\w.@+/&()'-]*(?: [\w.@+/&()'-]+)*|\d{4}-\d{2}-\d{2}")
_ALL: Final = frozenset(["string", "boolean", "integer", "number", "array", "object", "null"])


def types_of_value(value: Json) -> frozenset[str]:
    """Return the JSON types of a value."""
    if isinstance(value, dict | str):
        return frozenset(["object" if isinstance(value, dict) else "string"])
    return _TYPES.get(type(value), frozenset(["array"]))


def types_of_schema(schema: Schema) -> frozenset[str]:
    """Return the JSON types that a schema accepts; all if it restricts none."""
    if "type" in schema:
        named = schema["type"]
        return frozenset([named] if isinstance(named, str) else cast("list[str]", named))
    if "enum" in schema:
        return _union(types_of_value(value) for value in cast("list[Json]", schema["enum"]))
    if "const" in schema:
        return types_of_value(schema["const"])
    branches = branches_of(schema)
    return types_of_branches(branches) if branches else _ALL


def types_of_branches(branches: Iterable[Schema]) -> frozenset[str]:
    """Return the JSON types that at least one of the schemas accepts."""
    return _union(map(types_of_schema, branches))


def _union(sets: Iterable[frozenset[str]]) -> frozenset[str]:
    return frozenset[str]().union(*sets)


def properties(schema: Schema) -> Mapping[str, Json]:
    """Return the keys that a mapping may have, with the schema of each."""
    return cast("Mapping[str, Json]", schema.get("properties", {}))


def property_schema(schema: Schema, key: str) -> Schema:
    """Return the schema of one key; an empty schema for an unknown key."""
    return cast(Schema, properties(schema).get(key, {}))


def all_property_names(branches: Iterable[Schema]) -> list[str]:
    """Return the keys that a mapping of any of the branches may have."""
    return list(dict.fromkeys(key for branch in branches for key in properties(branch)))


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


def is_free_text(schema: Schema) -> bool:
    """Whether a schema accepts texts other than those it lists."""
    return "string" in types_of_schema(schema) and "enum" not in schema


def accepts_text(schema: Schema, text: str) -> bool:
    """Whether a schema accepts this text."""
    branches = branches_of(schema)
    if branches:
        return any(accepts_text(branch, text) for branch in branches)
    if "enum" in schema:
        return text in cast("list[Json]", schema["enum"])
    pattern = cast(str, schema.get("pattern", ""))
    return "string" in types_of_schema(schema) and bool(text.strip()) and re.search(pattern, text) is not None


def quote_if_needed(text: str) -> str:
    """Format a text for use within brackets, quoted only where needed."""
    if len(text) > SHOWN:
        return "…"
    bare = _PLAIN.fullmatch(text) and isinstance(resolve_scalar(text), str)
    return text if bare else json.dumps(text, ensure_ascii=False)


def join_with_or(words: list[str]) -> str:
    """Join words: `a`, `a or b`, `a, b or c`."""
    return " or ".join([", ".join(words[:-1]), words[-1]] if len(words) > 1 else words)


def suggest_from_schema(schema: Schema) -> str:
    """Return the suggestion that follows from the schema alone."""
    branches = alternative_schemas(schema)
    samples = [sample for branch in _harmless(branches) for sample in _samples(branch)]
    return f"Write {join_with_or(list(dict.fromkeys(samples)))}."


def _harmless(branches: list[Schema]) -> list[Schema]:
    """Drop branches whose key or value is a constant such as `everyone`, so that none is suggested by mistake."""
    words = {
        key for branch in branches for key in identifying_keys(branch)[:1] if "const" in property_schema(branch, key)
    }
    return [
        branch
        for branch in branches
        if not words.intersection(identifying_keys(branch)[:1])
        and not words.intersection(cast("list[str]", branch.get("enum", [])))
    ] or branches


def _samples(schema: Schema) -> Iterator[str]:
    """Yield samples of what a schema accepts, in the form in which people write them."""
    if "enum" in schema or "const" in schema:
        values = cast("list[Json]", schema.get("enum", [schema.get("const")]))
        yield from (value if isinstance(value, str) else json.dumps(value) for value in values)
        return
    types = types_of_schema(schema) - {"null"}
    if "object" in types:
        yield mapping_sample(schema)
    if "array" in types:
        yield f"a list: [{first_item_sample(item_schemas(schema))}]"
    yield from (TYPE_NAMES[name] for name in ("string", "boolean") if name in types)
    if types & {"integer", "number"}:
        low, high = schema.get("minimum"), schema.get("maximum")
        number = TYPE_NAMES["number" if "number" in types else "integer"]
        yield f"{number} from {low} {'on' if high is None else f'to {high}'}" if low is not None else number


def first_item_sample(items: list[Schema]) -> str:
    mappings = [item for item in items if "object" in types_of_schema(item)]
    return mapping_sample(mappings[0]) if items and len(mappings) == len(items) else "…"


def mapping_sample(schema: Schema, first_value: str | None = None) -> str:
    """Return a sample mapping with its required keys, the first of them with the value `first_value`."""
    below = schema.get("additionalProperties")
    if isinstance(below, dict) and types_of_schema(below) == {"array"}:
        return "{name: […]}"
    keys = required_keys(schema) or identifying_keys(schema)[:1] or ["key"]
    more = next((required_keys(branch) for branch in branches_of(schema)), []) if required_keys(schema) else []
    parts = [
        f"{key}: {'[…]' if types_of_schema(property_schema(schema, key)) == {'array'} else '…'}" for key in keys + more
    ]
    if first_value is not None:
        parts[0] = f"{keys[0]}: {first_value}"
    return f"{{{', '.join(parts)}}}"


NAME: Final = "name"
"""A format of texts that can be names: line breaks and tabs only as escapes."""
_TEXT: Final = "text"
"""A format of other texts: line breaks and tabs may stand as they are, other control characters may not."""
_RAW: Final = re.compile(r"[\t\r\n]")
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


class SchemaValidator:
    """One schema: jsonschema judges what its code in `schema_code` does not pass.

    schema: without `$ref` (`written_out_schema`).
    name: that of the schema in `schema_code`; empty if it has no code there.
    names: whether a non-empty text, and a free key, must be a name: line breaks and tabs only as escapes.
    None: any text may hold any character, such as a pattern for such names.
    """

    def __init__(self, schema: Schema, name: str = "", *, names: bool | None = True) -> None:
        self.schema = schema
        self.name = name
        self._names = names

    def validate(self, value: Json) -> list[SchemaFinding]:
        """Return all findings against the value, in its order; empty if it is valid."""
        return [] if self.name and self._passes(value) else self._judged(value)

    def _passes(self, value: Json) -> bool:
        try:
            schema_code.validate({self.name: value}, FORMATS)
        except schema_code.Invalid:
            return False
        return True

    def _judged(self, value: Json) -> list[SchemaFinding]:
        from jsonschema import Draft202012Validator, FormatChecker

        formats = FormatChecker(())
        for name, fits in FORMATS.items():
            formats.checks(name)(fits)
        errors = Draft202012Validator(self.strict_schema, format_checker=formats).iter_errors(value)
        return [finding for error in errors for finding in _findings(error)]

    @cached_property
    def strict_schema(self) -> dict[str, Json]:
        """What values are judged by: the schema, made to reject texts that cannot be names."""
        return _strict(self.schema, names=self._names)


def forbidden_character(value: object, format: str) -> str | None:
    """Return the first character of a text that the format rejects."""
    if not isinstance(value, str) or value.isprintable():
        return None
    is_fit = format == NAME and isinstance(value, EscapedText)
    found = None if is_fit else (_RAW if format == NAME else FORBIDDEN).search(value)
    return found and found[0]


FORMATS: Final[dict[str, Callable[[object], bool]]] = {
    NAME: lambda value: forbidden_character(value, NAME) is None,
    _TEXT: lambda value: forbidden_character(value, _TEXT) is None,
}
"""Format → whether a value has it."""


def path_label(path: KeyPath) -> str:
    """Name the value at `path` by its keys; the index of an item is left out, since the location shows it."""
    keys = ".".join(str(step) for step in path if isinstance(step, str))
    if path and isinstance(path[-1], int):
        return f"an item of {keys}" if keys else "an item"
    return keys or "this"


def new_findings(findings: Iterable[SchemaFinding], reported: set[Hashable]) -> Iterator[SchemaFinding]:
    """Yield the findings not reported yet for another copy of the same `for_each` entry."""
    for finding in findings:
        value = None if isinstance(finding.value, dict | list) else finding.value
        key = (finding.path, finding.keyword, value)
        if key not in reported:
            reported.add(key)
            yield finding


def _strict(schema: Schema, *, names: bool | None) -> dict[str, Json]:
    """Make a schema reject texts that cannot be names, and a line break at the end of a text with a pattern."""
    strict: dict[str, Json] = {}
    mark: Schema = {NEEDED: True} if NEEDED in schema else {}
    for key, part in schema.items():
        if key in ("oneOf", "anyOf"):
            strict[key] = [_strict({**branch, **mark}, names=names) for branch in cast("list[Schema]", part)]
        elif key == "properties":
            strict[key] = {
                name: _strict(
                    {**below, NEEDED: True} if name in required_keys(schema) else below,
                    names=names and name not in _FREE,
                )
                for name, below in cast("Mapping[str, Schema]", part).items()
            }
        elif key in ("items", "additionalProperties") and isinstance(part, dict):
            # Values under free keys may be names, but also answers of several lines.
            strict[key] = _strict(part, names=names if key == "items" else None)
        elif key == "pattern":
            # In Python `$` also matches before a line break at the end of the text.
            strict[key] = re.sub(r"\$\Z", r"\\Z", cast(str, part))
        else:
            strict[key] = part
    if "type" in schema and "string" in types_of_schema(schema) and names is not None:
        strict["format"] = NAME if names and schema.get("minLength") else _TEXT
    if names and isinstance(schema.get("additionalProperties"), dict):
        strict["propertyNames"] = {"format": NAME}
    return strict


def _findings(error: ValidationError) -> Iterator[SchemaFinding]:
    """Convert one jsonschema error to findings; for a union, to the errors of the branch that was meant."""
    if error.validator not in ("oneOf", "anyOf"):
        is_key = "propertyNames" in error.absolute_schema_path
        yield _finding(error, "propertyNames" if is_key else str(error.validator))
        return
    branches = cast("list[Schema]", error.validator_value)
    meant = _meant(branches, cast(Json, error.instance))
    if meant is None:
        yield _finding(error, "union")
        return
    for inner in error.context or ():
        if inner.relative_schema_path[0] == meant:
            for finding in _findings(inner):
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


def _finding(error: ValidationError, keyword: str) -> SchemaFinding:
    return SchemaFinding(
        path=tuple(error.absolute_path),
        keyword=keyword,
        keyword_value=cast(Json, error.validator_value),
        value=cast(Json, error.instance),
        schema=cast(Schema, error.schema),
    )
