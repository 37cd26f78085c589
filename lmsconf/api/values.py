"""Convert values of the typed methods between canonical and wire form: times, cleared values, the id of all users.

The wire form depends on the dialect; callers use the specification's.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, cast

from lmsconf.api.spec import ApiSpec
from lmsconf.api.spec.values import EVERYONE, cleared_description, cleared_time
from lmsconf.model.moments import live_time, wire_time
from lmsconf.model.values import Json

_EVERYONE: Final = "content-targets.everyone"
_DESCRIBED: Final = ("custom-fields.create", "custom-fields.replace")
_WINDOW: Final = ("startTime", "finishTime")
_GROUP_IDS: Final = frozenset({"targetId", "groupIds", "groupIds[]", "visibleForGroups"})
"""The keys of requests and responses whose values may be the id of the group of all users."""
Values = Mapping[str, object]


def query_to_wire(wire: ApiSpec, operation: str, query: Values) -> Values:
    """Return a query with its values in wire form."""
    return cast("Values", _renamed(wire, operation, query, inward=False))


def body_to_wire(wire: ApiSpec, operation: str, body: Values) -> Values:
    """Return a body with its values in wire form. Raises ValueError for an invalid time."""
    values = dict(body)
    if operation in _DESCRIBED and "description" in values and not values["description"]:
        values["description"] = cleared_description(wire.behaviour)
    if operation == "content-targets.create":
        for name in _WINDOW:
            if name in values:
                values |= _time(wire, f"{operation}: {name}", name, values.pop(name))
    return cast("Values", _renamed(wire, operation, values, inward=False))


def answer_from_wire(wire: ApiSpec, operation: str, answer: object) -> object:
    """Return a response with the canonical id of the group of all users."""
    return _renamed(wire, operation, answer, inward=True)


def _time(wire: ApiSpec, what: str, name: str, value: object) -> Mapping[str, Json]:
    """Return one end of a visibility window in wire form; with time format `auto`, as given."""
    if value is None or value == "":
        return cleared_time(wire.behaviour, name)
    form = wire.behaviour("content-targets.time-format")
    if form == "auto":
        return {name: cast("Json", value)}
    try:
        return {name: wire_time(live_time(str(value)), form)}
    except ValueError as wrong:
        raise ValueError(f"{what}: {wrong}") from None


def _renamed(wire: ApiSpec, operation: str, value: object, *, inward: bool) -> object:
    """Translate the id of the group of all users, from wire to canonical if `inward`."""
    theirs = wire.behaviour(_EVERYONE)
    if theirs == EVERYONE or _EVERYONE not in wire.dialect_keys(operation):
        return value
    return _replaced(value, *((theirs, EVERYONE) if inward else (EVERYONE, theirs)), within=False)


def _replaced(value: object, old: str, new: str, *, within: bool) -> object:
    """Replace an id in a value. within: the value is under one of _GROUP_IDS."""
    if isinstance(value, Mapping):
        return {key: _replaced(part, old, new, within=key in _GROUP_IDS) for key, part in value.items()}
    if isinstance(value, list):
        return [_replaced(item, old, new, within=within) for item in value]
    return new if within and value == old else value
