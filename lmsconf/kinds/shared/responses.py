"""Typed access to parts of a JSON response, and the answers to custom fields in it."""

from __future__ import annotations

from collections.abc import Mapping
from hashlib import sha256
from sys import intern
from typing import Final, TypeVar

from msgspec.structs import replace

from lmsconf.errors import InvalidResponse
from lmsconf.model.address import Address, Ref, RemoteId, text_of_id
from lmsconf.model.canonical_json import Json
from lmsconf.model.names import normalize_name
from lmsconf.model.snapshot import IdAndName, SnapshotRow

Object = Mapping[str, Json]
NamedRow = TypeVar("NamedRow", bound=IdAndName)
T = TypeVar("T", bool, dict[str, Json], list[Json])


def require_object(value: Json, part: str) -> Object:
    """Return the value as a JSON object. Raises InvalidResponse; `part` names the value in the message."""
    return _of_type(dict, value, part)


def object_list(data: Object, key: str) -> list[Object]:
    """Return the objects in the list under `key`; null or a missing key is an empty list, as some services write it."""
    return [require_object(item, f"an item of {key}") for item in _listed(data, key)]


def require_text(data: Object, key: str) -> str:
    """Return the text under `key`; an integer, as some services write ids, becomes its digits."""
    return _text(data.get(key), key)


def optional_text(data: Object, key: str) -> str:
    """Return the text under `key`; null or a missing key is the empty string."""
    return "" if data.get(key) is None else require_text(data, key)


def optional_flag(data: Object, key: str) -> bool | None:
    """Return the boolean under `key`; None for null or a missing key."""
    return None if data.get(key) is None else _of_type(bool, data[key], key)


def text_or_none(value: Json) -> str | None:
    """Return a value of any type as text; None for null and for the empty text."""
    return None if value is None or value == "" else str(value)


def id_set(data: Object, key: str) -> frozenset[RemoteId]:
    """Return the ids in the list under `key`; null or a missing key is an empty set."""
    # One person is in many lists: each id is kept once.
    return frozenset(RemoteId(intern(_text(item, f"an item of {key}"))) for item in _listed(data, key))


def parse_id_and_name(row_type: type[NamedRow], id_key: str, data: Object) -> NamedRow:
    """Parse a row of a listing that has only ids and names; all else of the row is None, not read."""
    return row_type(RemoteId(require_text(data, id_key)), optional_text(data, "name"))


def id_in_response(at: Address, answer: Json, key: str) -> dict[Ref, str]:
    """Return the id under `key` of a response, by the Ref that later calls use; empty if the response has no id."""
    id = text_of_id(answer.get(key)) if isinstance(answer, dict) else None
    return {Ref(at): id} if id else {}


def _listed(data: Object, key: str) -> list[Json]:
    return [] if data.get(key) is None else _of_type(list, data[key], f"the list {key}")


def _of_type(type: type[T], value: Json, part: str) -> T:
    """Return a value of a type. Raises InvalidResponse for another; `part` names the value in the message."""
    if not isinstance(value, type):
        raise InvalidResponse(f"an answer holds {value!r:.60} where {part} should be")
    return value


def _text(value: Json, part: str) -> str:
    if isinstance(value, bool) or not isinstance(value, str | int):
        raise InvalidResponse(f"an answer holds {value!r:.60} where {part} should be")
    return str(value)


_TEXTS: Final = ("value", "text", "answer")
"""Keys under which an answer object holds a text, or anything else."""
_VALUE_KEYS: Final = (
    *("selected", "selectedChoices", "selectedChoiceIds", "choiceIds", "choices", "values", "choiceId", "choice"),
    *("selectedChoice", *_TEXTS),
)
"""Keys under which it may hold its value: choices, or a text. The first that is not empty counts."""
_FIELD_KEYS: Final = frozenset(("type", "fieldType", "fieldName", "customFieldId", "fieldId"))
"""Keys of an object that describes the field beside the answer."""
_DESCRIPTIVE: Final = frozenset((*_FIELD_KEYS, "description", "isHidden", "isLocked", "isOptional"))


def comparable(text: str) -> str:
    """Return the form in which answers are compared with choices: normalised, and a long text as its digest."""
    text = normalize_name(text)
    # A digest has 64 digits, so that it is its own comparable form.
    return text if len(text) <= 64 else sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


class AnswerRow(SnapshotRow, frozen=True):
    """A live answer: choices, or a text, which may be the name of a choice. `field` is the field's normalized name."""

    field: str
    choices: frozenset[str]
    text: str | None = None

    def comparable(self) -> AnswerRow:
        """Return the answer with its choices and its text in comparable form."""
        return AnswerRow(self.field, frozenset(map(comparable, self.choices)), self.text and comparable(self.text))

    @property
    def picked(self) -> frozenset[str]:
        """The choices, for a field that has choices: ids, or names if the service returns only names."""
        return self.choices or frozenset({self.text} if self.text else ())

    @property
    def as_text(self) -> str:
        """The text, for a TEXT field, which some services return as a list of one; "" without an answer."""
        return self.text or (next(iter(self.choices)) if len(self.choices) == 1 else "")


def try_parse_answers(data: Mapping[str, Json]) -> tuple[AnswerRow, ...] | None:
    """Parse a person's answers; None if their shape, which the API specification leaves open, is not recognized.

    Unreadable answers must not fail the reading of all people: only declared ones are needed.
    """
    try:
        return parse_answers(data)
    except InvalidResponse:
        return None


def parse_answers(data: Mapping[str, Json]) -> tuple[AnswerRow, ...]:
    """Parse a person's answers, sorted by field name, without empty ones. Raises InvalidResponse for another shape."""
    held = require_object(data.get("customFields") or {}, "the answers of a user")
    answers = (parse_answer(name, value) for name, value in sorted(held.items()))
    return tuple(answer for answer in answers if answer is not None and answer.picked)


def parse_answer(name: str, value: Json) -> AnswerRow | None:
    """Parse the answer to one field; None for null. Raises InvalidResponse for an unrecognized shape.

    A text, a number, choices by id or name, or objects around them (API specification, User: not shown).
    """
    return None if value is None else _answer(name, value, depth=4)


def _answer(name: str, value: Json, depth: int) -> AnswerRow:
    """Parse an answer inside of at most `depth` more objects and lists."""
    if depth and isinstance(value, list):
        return AnswerRow(normalize_name(name), frozenset(_choice(name, item, depth - 1) for item in value))
    if depth and isinstance(value, dict):
        return _object(name, value, depth - 1)
    if isinstance(value, bool) or not isinstance(value, str | int | float):
        raise InvalidResponse(f"the answer to {name} holds {value!r:.60} instead of an answer")
    return AnswerRow(normalize_name(name), frozenset(), str(value))


def _object(name: str, body: Mapping[str, Json], depth: int) -> AnswerRow:
    filled = {part for part, value in body.items() if value is not None and value not in ("", [], {})}
    key = next((key for key in _VALUE_KEYS if key in filled), None) or _own_name(name, body, filled)
    if key is not None:
        answer = _answer(name, body[key], depth if key in _VALUE_KEYS else 0)
        return answer if key in _TEXTS else replace(answer, choices=answer.picked, text=None)
    if filled and body.keys().isdisjoint(_VALUE_KEYS) and not _describes_field(name, body, filled):
        raise InvalidResponse(f"the answer to {name} has an unknown format: {sorted(body)}")
    return AnswerRow(normalize_name(name), frozenset())


def _own_name(name: str, body: Mapping[str, Json], filled: set[str]) -> str | None:
    """Return the key of the id or the name of a choice that an object without a value is; None if it is none."""
    is_field = _is_named_so(name, body) or (filled & _FIELD_KEYS and "name" not in filled)
    if is_field or not body.keys() & set(_VALUE_KEYS) <= {"choiceId", "choice"}:
        return None
    return next((part for part in ("id", "name") if part in filled), None)


def _describes_field(name: str, body: Mapping[str, Json], filled: set[str]) -> bool:
    """Whether an object without a value describes the field: nothing in it can be an answer."""
    own = {"id", "name"} if _is_named_so(name, body) else set[str]()
    if body.get("id") in (body.get("customFieldId"), body.get("fieldId")):
        own.add("id")
    return bool(filled & _FIELD_KEYS) and filled <= _DESCRIPTIVE | own


def _is_named_so(name: str, body: Mapping[str, Json]) -> bool:
    """Whether the name in an object is that of the field, which it may then describe."""
    return normalize_name(str(body.get("name"))) == normalize_name(name)


def _choice(name: str, value: Json, depth: int) -> str:
    """Return the one choice, by id or by name, that an item of a list is."""
    picked = _answer(name, value, depth).picked
    if len(picked) != 1 or isinstance(value, list):
        raise InvalidResponse(f"an answer to {name} holds {value!r:.60} instead of a choice")
    return next(iter(picked))
