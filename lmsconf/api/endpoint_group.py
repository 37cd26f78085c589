"""EndpointGroup: base class of the endpoint groups in `sdk`, and the validation of their arguments.

Callers use canonical names; they are translated here to the wire names of the project's dialect, and back in responses.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import cache
from typing import Final, TypeAlias, cast

from msgspec import UNSET, UnsetType, json

from lmsconf.api.client import Client
from lmsconf.api.spec import ApiSpec, Schema
from lmsconf.api.spec.dialect_candidates import ADD_MODE, BATCH, EVERYONE_ID, PAGE_SIZE, TIME_FORMAT, WINDOW
from lmsconf.api.spec.operations import compile_schema, with_names
from lmsconf.api.spec.value_encoding import (
    EVERYONE,
    TIME_ZONE,
    PickedChoice,
    build_answers_body,
    encode_answer,
    encode_cleared_description,
    encode_cleared_time,
)
from lmsconf.errors import InvalidResponse
from lmsconf.model.canonical_json import Json
from lmsconf.model.time_formats import format_request_time, parse_response_time


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
    _refuse_unlike(operation, _arguments_schema(operation), given)


def _refuse_unlike(operation: str, schema: bytes, given: object) -> None:
    try:
        compile_schema(schema, formats=False)(given)
    except ValueError as wrong:
        raise ValueError(f"{operation}: {wrong}") from None


@cache
def _arguments_schema(operation: str) -> bytes:
    """Return the schema of an operation's arguments as JSON. In the body of a read operation, lists are filters."""
    known = ApiSpec.default()[operation]
    body = known.body or {"type": "object"}
    properties = cast("Mapping[str, Schema]", body.get("properties", {}))
    return json.encode(
        {
            "properties": {
                "path": _named(known.path_schemas, filters=False),
                "query": _named(known.query, filters=True) | {"required": sorted(known.required_query)},
                "headers": _named({name: {"type": "string"} for name in known.headers}, filters=False),
                "body": {**body, **_named(properties, filters=not known.writes)},
            }
        }
    )


def _named(schemas: Mapping[str, Schema], *, filters: bool) -> dict[str, object]:
    """Return an object schema with these properties. filters: arrays must not be empty."""
    return {"properties": {name: _property(name, schema, filters=filters) for name, schema in schemas.items()}}


def _property(name: str, schema: Schema, *, filters: bool) -> Schema:
    """Return the schema of a property without its pattern, and with ids that are not empty."""
    is_id, has_ids = name.endswith("Id") and schema["type"] == "string", name.removesuffix("[]").endswith("Ids")
    return {
        **{key: value for key, value in schema.items() if key != "pattern"},
        **({"minLength": 1} if is_id else {}),
        **({"items": {**cast("Schema", schema["items"]), "minLength": 1}} if has_ids else {}),
        **({"minItems": 1} if filters and schema["type"] == "array" else {}),
    }


ListOf = list
"""`list`, for annotations in classes with a method `list`."""


LEFT_OUT: Final = UNSET
"""The default of arguments for which None is a value."""
LeftOut: TypeAlias = UnsetType
Values = Mapping[str, object]
_GROUP_IDS: Final = frozenset({"targetId", "groupIds", "groupIds[]", "visibleForGroups"})
"""The keys of requests and responses whose values may be the id of the group of all users."""


class EndpointGroup:
    """The operations of one endpoint group, over one client."""

    def __init__(self, client: Client) -> None:
        self._client = client

    def _ask(
        self,
        operation: str,
        *,
        path: Mapping[str, str | bool] | None = None,
        query: Mapping[str, object] | None = None,
        headers: Mapping[str, str | None] | None = None,
        body: Mapping[str, object] | None = None,
        nullable: Mapping[str, object] | None = None,
    ) -> object:
        """Return the response, in canonical names. Omits arguments that are None, LEFT_OUT in `nullable`.

        Raises ValueError for arguments that do not match the operation's schemas, before anything is sent.
        """
        spec = self._client.spec
        known = spec[operation]
        stated = {name: value for name, value in (nullable or {}).items() if value is not LEFT_OUT}
        content = None if known.body is None else _given(body) | stated
        query_values, header_values = _given(query), _given(headers)
        validate_arguments(operation, path=path or {}, query=query_values, headers=header_values, body=content)
        answer = self._client.call(
            operation,
            path={
                name: str(value).lower() if isinstance(value, bool) else value for name, value in (path or {}).items()
            },
            query=cast("Mapping[str, Json]", _renamed(spec, operation, query_values, inward=False)),
            body=None if content is None else spec.body_to_wire(operation, **_body_to_wire(spec, operation, content)),
            headers={known.headers[name]: str(value) for name, value in header_values.items()},
        )
        return _renamed(spec, operation, with_names(answer, known.from_response), inward=True)

    def _in_batches(self, operation: str, *, path: Mapping[str, str | bool], body: Mapping[str, list[str]]) -> None:
        """Add people in batches of at most `manual-groups.add.batch` ids (dialect), one after the other.

        Where each call replaces the list (`manual-groups.add.mode`), one call names them all.
        """
        validate_arguments(operation, path=path, query={}, headers={}, body=body)
        ((name, ids),) = body.items()
        spec, number = self._client.spec, max(len(ids), 1)
        size = number if spec.behaviour(ADD_MODE) == "replace" else spec.integer_behaviour(BATCH)
        for start in range(0, number, size):
            self._ask(operation, path=path, body={name: ids[start : start + size]})

    def _answers(self, operation: str, **answers: Mapping[str, object] | None) -> Mapping[str, object]:
        """Return the body for answers by field type and id. Raises ValueError for a value of another type."""
        # The schema of the operation is looser, as it covers all body shapes.
        _refuse_unlike(operation, _ANSWERS_SCHEMA, _given(answers))
        behaviour, values = self._client.spec.behaviour, dict[str, object]()
        for type, given in _given(answers).items():
            for field, answer in cast("Values", given).items():
                if field in values:
                    raise ValueError(f"{operation}: {field} is answered twice")
                values[field] = encode_answer(behaviour, type, _picked(type, answer))
        return build_answers_body(behaviour, values)

    def _every(
        self, page: Callable[[int, int], Mapping[str, object]], *, rows: str, id: str | None, total: str | None
    ) -> Iterator[object]:
        """Yield every row of a listing, each id once. page: (skip, limit) → response.

        Raises InvalidResponse for a page of known rows only, and if the number of rows differs from the service's
        total.
        """
        limit = self._client.spec.integer_behaviour(PAGE_SIZE)
        seen_ids: set[object] = set()
        skip, last = 0, None
        while True:
            answer = page(skip, limit)
            page_rows = _rows(answer, rows)
            fresh = [row for row in page_rows if id is None or row.get(id) not in seen_ids]
            if page_rows and (not fresh or page_rows == last):
                raise InvalidResponse(f"a page of {rows} returned only rows that were already read", hint=_AGAIN)
            yield from fresh
            seen_ids.update(row.get(id) for row in fresh if id is not None)
            # Advance by the rows received, not by `limit`: the service may cap its pages.
            skip, last = skip + len(page_rows), page_rows
            counted = answer.get(total) if total else None
            if not page_rows or (id is not None and len(seen_ids) == counted):
                if isinstance(counted, int) and id is not None and len(seen_ids) != counted:
                    raise InvalidResponse(
                        f"{len(seen_ids)} {rows} received, but the service counts {counted}", hint=_AGAIN
                    )
                return


_AGAIN = "The workspace may have changed during the read: read it again."


def _rows(answer: Mapping[str, object], key: str) -> list[Mapping[str, object]]:
    """Return the rows of a page. Raises InvalidResponse if it has no list of objects under `key`."""
    rows = answer.get(key)
    if not isinstance(rows, list) or not all(isinstance(row, dict) for row in rows):
        raise InvalidResponse(f"a page is missing its list of {key}")
    return cast("list[Mapping[str, object]]", rows)


_ANSWERS: Final = {
    "CHOICE": {"type": ["string", "null"]},
    "MULTI_SELECT": {"type": "array", "items": {"type": "string", "minLength": 1}},
    "TEXT": {"type": ["string", "null"]},
}
_ANSWERS_SCHEMA: Final = json.encode(
    {
        "properties": {
            type: {"type": "object", "propertyNames": {"type": "string", "minLength": 1}, "additionalProperties": one}
            for type, one in _ANSWERS.items()
        }
    }
)
"""The schema of answers, by type and id of the field."""


def _picked(type: str, answer: object) -> str | list[PickedChoice] | None:
    """Return a checked answer as it is encoded. A choice is whatever the caller has: its id, or its name."""
    if type == "TEXT":
        return cast("str | None", answer)
    choices = cast("list[str]", answer if isinstance(answer, list) else [answer] if answer else [])
    return [PickedChoice(one, one) for one in choices]


def _given(values: Mapping[str, object] | None) -> dict[str, object]:
    """Return the values that are not None."""
    return {name: value for name, value in (values or {}).items() if value is not None}


def _body_to_wire(spec: ApiSpec, operation: str, body: Values) -> Values:
    """Return a body with its values in wire form. Raises ValueError for an invalid time."""
    values = dict(body)
    if operation.startswith("custom-fields.") and "description" in values and not values["description"]:
        values["description"] = encode_cleared_description(spec.behaviour)
    if operation == "content-targets.create":
        for name in filter(values.__contains__, WINDOW):
            values |= _time(spec, f"{operation}: {name}", name, values.pop(name))
    return cast("Values", _renamed(spec, operation, values, inward=False))


def _time(spec: ApiSpec, name_in_errors: str, name: str, value: object) -> Mapping[str, Json]:
    """Return one end of a visibility window in wire form; with time format `auto`, as given."""
    if value is None or value == "":
        return encode_cleared_time(spec.behaviour, name)
    form = spec.behaviour(TIME_FORMAT)
    if form == "auto":
        return {name: cast("Json", value)}
    try:
        return {name: format_request_time(parse_response_time(str(value)), form, spec.behaviour(TIME_ZONE))}
    except ValueError as wrong:
        raise ValueError(f"{name_in_errors}: {wrong}") from None


def _renamed(spec: ApiSpec, operation: str, value: object, *, inward: bool) -> object:
    """Translate the id of the group of all users, from wire to canonical if `inward`."""
    everyone_id = spec.behaviour(EVERYONE_ID)
    if everyone_id == EVERYONE or EVERYONE_ID not in spec[operation].dialect_keys:
        return value
    return _replaced(value, *((everyone_id, EVERYONE) if inward else (EVERYONE, everyone_id)))


def _replaced(value: object, old: str, new: str, key: str = "") -> object:
    """Replace an id in the values of _GROUP_IDS. key: the one that holds the value."""
    if isinstance(value, Mapping):
        return {name: _replaced(part, old, new, name) for name, part in value.items()}
    if isinstance(value, list):
        return [_replaced(item, old, new, key) for item in value]
    return new if key in _GROUP_IDS and value == old else value
