"""Typed access to parts of a JSON response: a value of an unexpected type raises InvalidResponse."""

from __future__ import annotations

from collections.abc import Mapping

from lmsconf.errors import InvalidResponse
from lmsconf.model.address import Address, Ref, RemoteId, text_of_id
from lmsconf.model.canonical_json import Json

Object = Mapping[str, Json]


def require_object(value: Json, part: str) -> Object:
    """Return the value as a JSON object. Raises InvalidResponse; `part` names the value in the message."""
    if not isinstance(value, dict):
        raise InvalidResponse(f"an answer holds {value!r:.60} where {part} should be")
    return value


def object_list(data: Object, key: str) -> list[Object]:
    """Return the objects in the list under `key`; null or a missing key is an empty list, as some services write it."""
    return [require_object(item, f"an item of {key}") for item in _listed(data, key)]


def require_text(data: Object, key: str) -> str:
    """Return the text under `key`; an integer, as some services write ids, becomes its digits."""
    value = data.get(key)
    return value if isinstance(value, str) else _text(value, key)


def optional_text(data: Object, key: str) -> str:
    """Return the text under `key`; null or a missing key is the empty string."""
    return "" if data.get(key) is None else require_text(data, key)


def text_or_none(value: Json) -> str | None:
    """Return a value of any type as text; None for null and for the empty text."""
    return None if value is None or value == "" else str(value)


def id_set(data: Object, key: str) -> frozenset[RemoteId]:
    """Return the ids in the list under `key`; null or a missing key is an empty set."""
    return frozenset(RemoteId(_text(item, f"an item of {key}")) for item in _listed(data, key))


def id_in_response(at: Address, answer: Json, key: str) -> dict[Ref, str]:
    """Return the id under `key` of a response, by the Ref that later calls use; empty if the response has no id."""
    id = text_of_id(answer.get(key)) if isinstance(answer, dict) else None
    return {Ref(at): id} if id else {}


def _listed(data: Object, key: str) -> list[Json]:
    items = data.get(key)
    if items is not None and not isinstance(items, list):
        raise InvalidResponse(f"an answer holds {items!r:.60} where the list {key} should be")
    return items or []


def _text(value: Json, part: str) -> str:
    if isinstance(value, bool) or not isinstance(value, str | int):
        raise InvalidResponse(f"an answer holds {value!r:.60} where {part} should be")
    return str(value)
