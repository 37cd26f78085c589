"""Typed access to parts of a JSON response: each function raises BadAnswer for a value of an unexpected type."""

from __future__ import annotations

from collections.abc import Mapping

from lmsconf.errors import BadAnswer
from lmsconf.model.address import RemoteId
from lmsconf.model.values import Json

Object = Mapping[str, Json]


def an_object(value: Json, part: str) -> Object:
    """Return the value as a JSON object. Raises BadAnswer; `part` names the value in the message."""
    if not isinstance(value, dict):
        raise BadAnswer(f"an answer holds {value!r:.60} where {part} should be")
    return value


def objects(data: Object, key: str) -> list[Object]:
    """Return the objects in the list under `key`; null or a missing key is an empty list, as some services write it."""
    return [an_object(item, f"an item of {key}") for item in _listed(data, key)]


def text(data: Object, key: str) -> str:
    """Return the text under `key`; an integer, as some services write ids, becomes its digits."""
    return _text(data.get(key), key)


def label(data: Object, key: str) -> str:
    """Return the text under `key`; null or a missing key is the empty string."""
    return "" if data.get(key) is None else text(data, key)


def ids(data: Object, key: str) -> frozenset[RemoteId]:
    """Return the ids in the list under `key`; null or a missing key is an empty set."""
    return frozenset(RemoteId(_text(item, f"an item of {key}")) for item in _listed(data, key))


def _listed(data: Object, key: str) -> list[Json]:
    items = data.get(key)
    if items is not None and not isinstance(items, list):
        raise BadAnswer(f"an answer holds {items!r:.60} where the list {key} should be")
    return items or []


def _text(value: Json, part: str) -> str:
    if isinstance(value, bool) or not isinstance(value, str | int):
        raise BadAnswer(f"an answer holds {value!r:.60} where {part} should be")
    return str(value)
