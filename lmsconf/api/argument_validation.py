"""Validate the arguments of the typed methods against the API description, before anything is sent."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from functools import cache
from typing import Any, Final, cast

from lmsconf.api.spec import ApiSpec, Operation, Schema

_SPELLING: Final = ("pattern", "format")
_BRANCHES: Final = {"oneOf": "exactly", "anyOf": "at least"}


def validate_arguments(
    operation: str,
    *,
    path: Mapping[str, object],
    query: Mapping[str, object],
    headers: Mapping[str, object],
    body: Mapping[str, object] | None,
) -> None:
    """Raise ValueError unless the arguments, under their canonical names, match the schemas of `operation`.

    Types, bounds, enums and required parameters are checked; patterns and formats of strings are left to the service.
    Ids must not be empty, nor must a list that filters: the service would read it as no filter.
    """
    given = {"path": path, "query": query, "headers": headers, "body": body or {}}
    for name, value in (pair for place in given.values() for pair in place.items()):
        # The validator accepts 1.0 as an integer and a tuple as an array, but neither is encoded as one.
        if isinstance(value, float | tuple):
            raise ValueError(f"{operation}: {name} cannot be a {type(value).__name__}")
    _compiled(operation)(given)


@cache
def _compiled(operation: str) -> Callable[[object], None]:
    """Return the compiled validator of an operation; it raises ValueError."""
    # Imported here because only the typed methods need it: no command pays for the import.
    import fastjsonschema

    known = ApiSpec.default()[operation]
    places = {
        "path": _named(known.path_schemas, filters=False),
        "query": _named(known.query, filters=True) | {"required": sorted(known.required_query)},
        "headers": _named({name: {"type": "string"} for name in known.headers}, filters=False),
        "body": _body_values(known),
    }
    validate = fastjsonschema.compile({"properties": places}, use_default=False)

    def check(given: object) -> None:
        try:
            validate(given)
        except fastjsonschema.JsonSchemaValueException as wrong:
            raise ValueError(f"{operation}{_wrong(wrong)}") from None

    return check


def _body_values(known: Operation) -> Schema:
    """Return the schema of the body's values. In a read operation, lists are filters."""
    body = cast("dict[str, Schema]", _without_spelling(known.body or {"type": "object"}))
    properties = cast("Mapping[str, Schema]", body.get("properties", {}))
    return {**body, **_named(properties, filters=not known.writes)}


def _named(schemas: Mapping[str, Schema], *, filters: bool) -> dict[str, object]:
    """Return an object schema with these properties and non-empty ids; with `filters`, arrays must not be empty."""
    properties: dict[str, Schema] = {}
    for name, schema in schemas.items():
        part = dict(schema)
        if name.endswith("Id") and part["type"] == "string":
            part["minLength"] = 1
        if name.removesuffix("[]").endswith("Ids"):
            part["items"] = {**cast("Schema", part["items"]), "minLength": 1}
        if filters and part["type"] == "array":
            part["minItems"] = 1
        properties[name] = part
    return {"properties": properties}


def _without_spelling(node: object) -> object:
    """Return the schema without `pattern` and `format`."""
    if isinstance(node, dict):
        # A `pattern` or `format` that is not a string is a property of that name, not the keyword.
        kept = {key: part for key, part in node.items() if key not in _SPELLING or not isinstance(part, str)}
        return {key: _without_spelling(part) for key, part in kept.items()}
    return [_without_spelling(item) for item in node] if isinstance(node, list) else node


def _wrong(error: Any) -> str:
    """Word a validation error with the path of the value, but not the value itself: it may be personal data."""
    _, _, key = str(error.name).removeprefix("data.").partition(".")
    place, rule, expected = f": {key}" if key else "", str(error.rule), error.rule_definition
    if rule == "required":
        return f"{place} needs {_listed(name for name in expected if name not in error.value)}"
    if rule in _BRANCHES and (names := [name for branch in expected for name in branch.get("required", [])]):
        return f"{place} needs {_BRANCHES[rule]} one of {_listed(names)}"
    if rule == "type":
        allowed = expected if isinstance(expected, list) else [expected]
        return f"{place} must be {' or '.join(allowed)}, not {_kind(error.value)}"
    if rule == "enum":
        return f"{place} is one of {_listed(expected)}"
    if rule in ("minLength", "minItems"):
        return f"{place} must not be empty"
    if rule in ("minimum", "maximum"):
        return f"{place} must be at {'least' if rule == 'minimum' else 'most'} {expected}"
    return f"{place} {str(error.message).removeprefix(str(error.name)).strip()}"


def _kind(value: object) -> str:
    return "None" if value is None else type(value).__name__


def _listed(names: Iterable[object]) -> str:
    return ", ".join(map(str, names))
