"""Convert values of the typed methods between canonical and wire form: times, cleared values, the id of all users.

The wire form depends on the dialect; callers use the specification's.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, cast

from lmsconf.api.spec import ApiSpec
from lmsconf.api.spec.value_encoding import EVERYONE, encode_cleared_description, encode_cleared_time
from lmsconf.model.canonical_json import Json
from lmsconf.model.time_formats import format_request_time, parse_response_time

_EVERYONE: Final = "content-targets.everyone"
_DESCRIBED: Final = ("custom-fields.create", "custom-fields.replace")
_WINDOW: Final = ("startTime", "finishTime")
_GROUP_IDS: Final = frozenset({"targetId", "groupIds", "groupIds[]", "visibleForGroups"})
"""The keys of requests and responses whose values may be the id of the group of all users."""
Values = Mapping[str, object]


def query_to_wire(spec: ApiSpec, operation: str, query: Values) -> Values:
    """Return a query with its values in wire form."""
    return cast("Values", _renamed(spec, operation, query, inward=False))


def body_to_wire(spec: ApiSpec, operation: str, body: Values) -> Values:
    """Return a body with its values in wire form. Raises ValueError for an invalid time."""
    values = dict(body)
    if operation in _DESCRIBED and "description" in values and not values["description"]:
        values["description"] = encode_cleared_description(spec.behaviour)
    if operation == "content-targets.create":
        for name in _WINDOW:
            if name in values:
                values |= _time(spec, f"{operation}: {name}", name, values.pop(name))
    return cast("Values", _renamed(spec, operation, values, inward=False))


def response_from_wire(spec: ApiSpec, operation: str, response: object) -> object:
    """Return a response with the canonical id of the group of all users."""
    return _renamed(spec, operation, response, inward=True)


def _time(spec: ApiSpec, name_in_errors: str, name: str, value: object) -> Mapping[str, Json]:
    """Return one end of a visibility window in wire form; with time format `auto`, as given."""
    if value is None or value == "":
        return encode_cleared_time(spec.behaviour, name)
    form = spec.behaviour("content-targets.time-format")
    if form == "auto":
        return {name: cast("Json", value)}
    try:
        return {name: format_request_time(parse_response_time(str(value)), form)}
    except ValueError as wrong:
        raise ValueError(f"{name_in_errors}: {wrong}") from None


def _renamed(spec: ApiSpec, operation: str, value: object, *, inward: bool) -> object:
    """Translate the id of the group of all users, from wire to canonical if `inward`."""
    everyone_id = spec.behaviour(_EVERYONE)
    if everyone_id == EVERYONE or _EVERYONE not in spec.dialect_keys(operation):
        return value
    return _replaced(value, *((everyone_id, EVERYONE) if inward else (EVERYONE, everyone_id)))


def _replaced(value: object, old: str, new: str, key: str = "") -> object:
    """Replace an id in the values of _GROUP_IDS. key: the one that holds the value."""
    if isinstance(value, Mapping):
        return {name: _replaced(part, old, new, name) for name, part in value.items()}
    if isinstance(value, list):
        return [_replaced(item, old, new, key) for item in value]
    return new if key in _GROUP_IDS and value == old else value
