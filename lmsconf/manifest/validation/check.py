"""Validation of values against a JSON Schema. The only module that imports jsonschema.

The gate accepts valid values, many times as fast; jsonschema examines only those that it rejects.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from functools import cached_property
from typing import TYPE_CHECKING, Any, cast

from msgspec.structs import replace

from lmsconf.manifest.validation.gate import ESCAPES, Check, compile_gate, forbidden_character
from lmsconf.manifest.validation.schema_finding import SchemaFinding
from lmsconf.manifest.validation.schema_query import (
    Schema,
    identifying_keys,
    property_names,
    required_keys,
    types_of_schema,
    types_of_value,
)
from lmsconf.model.canonical_json import Json

if TYPE_CHECKING:
    from jsonschema.exceptions import ValidationError

_FREE = frozenset(["column", "system_condition", "where"])
"""Keys whose texts are not names: the service or a CSV header may have line breaks in them."""


class SchemaValidator:
    """One schema, compiled when the first value is checked.

    names: whether a non-empty text, and a free key, must be a name: line breaks and tabs only as escapes.
    None: any text may hold any character, such as a pattern for such names.
    """

    def __init__(self, schema: Schema, *, names: bool | None = True) -> None:
        self.schema = schema
        self._names = names

    def validate(self, value: Json) -> list[SchemaFinding]:
        """Return all findings against the value, in its order; empty if it is valid."""
        return [] if self._gate(value) else self._rejected(value)

    def _rejected(self, value: Json) -> list[SchemaFinding]:
        """Return jsonschema's findings, which are authoritative: the gate only filters valid values."""
        errors = _validator()(self._strict).iter_errors(value)
        return [finding for error in errors for finding in _findings(error, self._strict)]

    @cached_property
    def _strict(self) -> dict[str, Json]:
        return _strict(self.schema, names=self._names)

    @cached_property
    def _gate(self) -> Check:
        return compile_gate(self._strict)


def _validator() -> Any:
    """Return jsonschema's validator with the keyword of names."""
    from jsonschema import Draft202012Validator, ValidationError
    from jsonschema.validators import extend

    def escapes(validator: object, wanted: bool, value: Json, schema: object) -> Iterator[ValidationError]:
        if character := forbidden_character(value, escapes=wanted):
            yield ValidationError(f"it holds {character!r}")

    return extend(Draft202012Validator, {ESCAPES: escapes})  # type: ignore[no-untyped-call]


def _strict(schema: Schema, *, names: bool | None) -> dict[str, Json]:
    """Make a schema reject texts that cannot be names, and a line break at the end of a text with a pattern."""
    strict: dict[str, Json] = {}
    for key, part in schema.items():
        if key in ("oneOf", "anyOf"):
            strict[key] = [_strict(branch, names=names) for branch in cast("list[Schema]", part)]
        elif key in ("properties", "$defs"):
            below = cast("Mapping[str, Schema]", part).items()
            strict[key] = {name: _strict(inner, names=names and name not in _FREE) for name, inner in below}
        elif key in ("items", "additionalProperties") and isinstance(part, dict):
            # Values under free keys may be names, but also answers of several lines.
            strict[key] = _strict(part, names=names if key == "items" else None)
        elif key == "pattern":
            # In Python `$` also matches before a line break at the end of the text.
            strict[key] = re.sub(r"\$\Z", r"\\Z", cast(str, part))
        else:
            strict[key] = part
    if "type" in schema and "string" in types_of_schema(schema) and names is not None:
        strict[ESCAPES] = names and bool(schema.get("minLength"))
    if names and isinstance(schema.get("additionalProperties"), dict):
        strict["propertyNames"] = {ESCAPES: True}
    return strict


def _findings(error: ValidationError, root: Schema) -> Iterator[SchemaFinding]:
    """Convert one jsonschema error to findings; for a union, to the errors of the branch that was meant."""
    if error.validator not in ("oneOf", "anyOf"):
        yield _finding(error, str(error.validator), error.validator_value, root)
        return
    branches = cast("list[Schema]", error.validator_value)
    meant = _meant(branches, cast(Json, error.instance))
    if meant is None:
        yield _finding(error, "union", branches, root)
        return
    for inner in error.context or ():
        if inner.relative_schema_path[0] == meant:
            for finding in _findings(inner, root):
                is_whole = finding.path == tuple(error.absolute_path)
                yield (
                    replace(finding, union_branches=tuple(branches))
                    if is_whole and not finding.union_branches
                    else finding
                )


def _meant(branches: list[Schema], value: Json) -> int | None:
    """Return the index of the only branch that has the value's type and, for a mapping, one of its keys; else None."""
    typed = [number for number, branch in enumerate(branches) if types_of_value(value) & types_of_schema(branch)]
    if isinstance(value, dict):
        telling = property_names if len(typed) == 1 else identifying_keys
        typed = [
            n for n in typed if "properties" not in branches[n] or not value.keys().isdisjoint(telling(branches[n]))
        ]
    return typed[0] if len(typed) == 1 else None


def _finding(error: ValidationError, keyword: str, wanted: object, root: Schema) -> SchemaFinding:
    keyword = "propertyNames" if "propertyNames" in error.absolute_schema_path else keyword
    return SchemaFinding(
        path=tuple(error.absolute_path),
        keyword=keyword,
        keyword_value=cast(Json, wanted),
        value=cast(Json, error.instance),
        schema=cast(Schema, error.schema),
        is_required=_is_needed(error, root),
    )


def _is_needed(error: ValidationError, root: Schema) -> bool:
    """Whether the value is under a required key."""
    node, holder, key = cast("dict[str | int, Json]", root), root, ""
    steps = list(error.absolute_schema_path)
    for number, step in enumerate(steps[:-1]):
        # The schema path of an error omits the `$ref` that it passes through.
        if "$ref" in node:
            name = str(node["$ref"]).removeprefix("#/$defs/")
            node = cast("dict[str | int, Json]", cast(Schema, root["$defs"])[name])
        if step == "properties":
            holder, key = cast(Schema, node), str(steps[number + 1])
        node = cast("dict[str | int, Json]", node[step])
    path = error.absolute_path
    return bool(path) and path[-1] == key and key in required_keys(holder)
