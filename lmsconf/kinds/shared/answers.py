"""Parts of answers, read at the border: what is not as described is BadAnswer, never a guess or a crash."""

from __future__ import annotations

from collections.abc import Mapping

from lmsconf.errors import BadAnswer
from lmsconf.model.address import RemoteId
from lmsconf.model.values import Json

Object = Mapping[str, Json]


def an_object(value: Json, what: str) -> Object:
    """The value as a JSON object."""
    if not isinstance(value, dict):
        raise BadAnswer(f"an answer holds {value!r:.60} where {what} should be")
    return value


def objects(data: Object, key: str) -> list[Object]:
    """The objects in the list under `key`; null and nothing are an empty list, as some services write it."""
    return [an_object(item, f"an item of {key}") for item in _listed(data, key)]


def text(data: Object, key: str) -> str:
    """The text under `key`; a number, as some services write ids, is its digits."""
    return _text(data.get(key), key)


def label(data: Object, key: str) -> str:
    """The text under `key`; null and nothing are an empty one."""
    return "" if data.get(key) is None else text(data, key)


def ids(data: Object, key: str) -> frozenset[RemoteId]:
    """The ids in the list under `key`; null and nothing are an empty list."""
    return frozenset(RemoteId(_text(item, f"an item of {key}")) for item in _listed(data, key))


def _listed(data: Object, key: str) -> list[Json]:
    found = data.get(key)
    if found is not None and not isinstance(found, list):
        raise BadAnswer(f"an answer holds {found!r:.60} where the list {key} should be")
    return found or []


def _text(value: Json, what: str) -> str:
    if isinstance(value, bool) or not isinstance(value, str | int):
        raise BadAnswer(f"an answer holds {value!r:.60} where {what} should be")
    return str(value)
