"""People's answers to custom fields as responses show them, in any of the shapes that the API leaves open."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, NamedTuple

from lmsconf.errors import InvalidResponse
from lmsconf.kinds.shared.response_json import require_object, require_text
from lmsconf.model.canonical_json import Json
from lmsconf.model.names import normalize_name

_VALUE_KEYS: Final = ("choices", "choiceIds", "values", "choiceId", "text", "value")
"""Keys under which an answer object may hold its value; its other keys are descriptive."""


class AnswerRow(NamedTuple):
    """A live answer: choices, or a text, which may be the name of a choice. `field` is the field's normalized name."""

    field: str
    choices: frozenset[str]
    text: str | None

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
    answers = (parse_answer(name, held[name]) for name in sorted(held))
    return tuple(answer for answer in answers if answer is not None and answer.picked)


def parse_answer(name: str, value: Json) -> AnswerRow | None:
    """Parse the answer to one field; None for null. Raises InvalidResponse for an unrecognized shape."""
    return None if value is None else _answer(name, value)


def _answer(name: str, value: Json) -> AnswerRow:
    """Parse an answer, whose shape the API leaves open: choices as objects, ids or names, one choice, or a text."""
    if isinstance(value, str):
        return AnswerRow(normalize_name(name), frozenset(), value)
    if isinstance(value, list):
        return _choices(name, value)
    body = require_object(value, f"the answer to {name}")
    parts = {key: part for key in _VALUE_KEYS if (part := body.get(key)) is not None and part != "" and part != []}
    for key, part in parts.items():
        if isinstance(part, list):
            return _choices(name, part)
        if key == "choiceId":
            return AnswerRow(normalize_name(name), frozenset({require_text(body, key)}), None)
        if key in ("text", "value") and isinstance(part, str):
            return AnswerRow(normalize_name(name), frozenset(), part)
    if not parts and (body.keys() & _VALUE_KEYS or not any(part is not None and part != "" for part in body.values())):
        return AnswerRow(normalize_name(name), frozenset(), None)
    raise InvalidResponse(f"the answer to {name} has an unknown format: {sorted(body)}")


def _choices(name: str, picked: list[Json]) -> AnswerRow:
    return AnswerRow(normalize_name(name), frozenset(_choice(name, choice) for choice in picked), None)


def _choice(name: str, value: Json) -> str:
    if isinstance(value, dict):
        return require_text(value, "choiceId" if value.get("choiceId") is not None else "name")
    if isinstance(value, str | int) and not isinstance(value, bool):
        return str(value)
    raise InvalidResponse(f"an answer to {name} holds {value!r:.60} instead of a choice")
