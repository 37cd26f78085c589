"""Validation of values against a JSON Schema: jsonschema judges, and its errors become findings.

fastjsonschema passes valid values before it: 10,000 entries in 0.1 s, for which jsonschema takes 1.5 s.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping
from functools import cached_property
from typing import TYPE_CHECKING, Final, NamedTuple, cast

from lmsconf.manifest.validation.schema_query import (
    Schema,
    identifying_keys,
    properties,
    required_keys,
    types_of_schema,
    types_of_value,
)
from lmsconf.manifest.yaml.nodes import EscapedText, KeyPath
from lmsconf.model.canonical_json import Json
from lmsconf.model.names import FORBIDDEN

if TYPE_CHECKING:
    from jsonschema.exceptions import ValidationError

NAME: Final = "name"
"""A format of texts that can be names: line breaks and tabs only as escapes."""
_TEXT: Final = "text"
"""A format of other texts: line breaks and tabs may stand as they are, other control characters may not."""
_RAW: Final = re.compile(r"[\t\r\n]")
_FREE: Final = frozenset(["column", "system_condition", "where"])
"""Keys whose texts are not names: the service or a CSV header may have line breaks in them."""
_PROSE: Final = ("title", "description")
_NEEDED: Final = "x-required"
"""Marks the schema of a required key."""


class SchemaFinding(NamedTuple):
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
    def is_required(self) -> bool:
        """Whether the key of the value is required."""
        return _NEEDED in self.schema


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
        return [] if self._passes(value) else self._judged(value)

    def _judged(self, value: Json) -> list[SchemaFinding]:
        from jsonschema import Draft202012Validator, FormatChecker

        formats = FormatChecker(())
        for name, fits in _FORMATS.items():
            formats.checks(name)(fits)
        errors = Draft202012Validator(self._strict, format_checker=formats).iter_errors(value)
        return [finding for error in errors for finding in _findings(error)]

    @cached_property
    def _strict(self) -> dict[str, Json]:
        return _strict(self.schema, names=self._names)

    @cached_property
    def _passes(self) -> Callable[[Json], bool]:
        """Return the quick check, which passes only what jsonschema finds valid, too."""
        from fastjsonschema import JsonSchemaValueException, compile

        # Details of exceptions would take most of the time, and jsonschema words them.
        check = compile(_quick(self._strict), formats=_FORMATS, use_default=False, detailed_exceptions=False)

        def passes(value: Json) -> bool:
            try:
                check(value)
            except JsonSchemaValueException:
                return False
            return True

        return passes


def forbidden_character(value: object, format: str) -> str | None:
    """Return the first character of a text that the format rejects."""
    if not isinstance(value, str) or value.isprintable():
        return None
    is_fit = format == NAME and isinstance(value, EscapedText)
    found = None if is_fit else (_RAW if format == NAME else FORBIDDEN).search(value)
    return found and found[0]


_FORMATS: Final[dict[str, Callable[[object], bool]]] = {
    NAME: lambda value: forbidden_character(value, NAME) is None,
    _TEXT: lambda value: forbidden_character(value, _TEXT) is None,
}


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


def _quick(schema: Schema) -> dict[str, Json]:
    """Return the schema for fastjsonschema: what stands in it several times is compiled once.

    The branches of each of our unions exclude each other, so that `anyOf`, which ends with the first that fits, says
    what `oneOf` says, in a fifth of the time. `const` cannot be compiled without details of exceptions.
    """
    shared: dict[str, str] = {}

    def quick(part: Json) -> Json:
        if isinstance(part, list):
            return [*map(quick, part)]
        if not isinstance(part, dict):
            return part
        if "const" in part:
            return {"enum": [part["const"]]}
        kept = {
            "anyOf" if key == "oneOf" else key: quick(below)
            for key, below in part.items()
            if not key.startswith(("x-", "$schema")) and not (key in _PROSE and isinstance(below, str))
        }
        if kept.get("type") not in ("object", "array"):
            return kept
        return {"$ref": f"#/$defs/{shared.setdefault(json.dumps(kept), str(len(shared)))}"}

    whole = quick({key: part for key, part in schema.items() if key != "$defs"})
    named = {name: quick(part) for name, part in cast("Mapping[str, Json]", schema.get("$defs", {})).items()}
    definitions = {**named, **{name: json.loads(text) for text, name in shared.items()}}
    return {**cast("dict[str, Json]", whole), "$defs": definitions}


def _strict(schema: Schema, *, names: bool | None) -> dict[str, Json]:
    """Make a schema reject texts that cannot be names, and a line break at the end of a text with a pattern."""
    strict: dict[str, Json] = {}
    mark: Schema = {_NEEDED: True} if _NEEDED in schema else {}
    for key, part in schema.items():
        if key in ("oneOf", "anyOf"):
            strict[key] = [_strict({**branch, **mark}, names=names) for branch in cast("list[Schema]", part)]
        elif key in ("properties", "$defs"):
            strict[key] = {
                name: _strict(
                    {**below, _NEEDED: True} if name in required_keys(schema) else below,
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
                yield finding._replace(union_branches=tuple(branches)) if is_whole else finding


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
