"""Encode values under the dialect: custom-field answers, and the values that clear an answer, a text or a time.

Shared by the kinds and the typed methods, so that both honour the same dialect keys.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final, TypeVar

ANSWERS: Final = "users.update-custom-field-choice"
ANSWERS_KEY: Final = "customFields"
EVERYONE: Final = "EVERYONE"
"""Canonical id of the group of all users (API specification, Content catalog item); the dialect may override it."""
Behaviour = Callable[[str], str]
"""Return the value of a dialect key, as `ApiSpec.behaviour` does."""
Key = TypeVar("Key")


def clear_answer_key(field_type: str) -> str:
    """Return the dialect key for how an answer to a field of that type is cleared."""
    return f"{ANSWERS}.clear-{field_type.lower().replace('_', '-')}"


def encode_answer(behaviour: Behaviour, field_type: str, answer: object) -> object:
    """Return an answer in wire form: a string for a TEXT field, else a choice id or a list of them; empty clears it."""
    if not answer:
        return _cleared(behaviour, field_type)
    if field_type == "TEXT":
        return answer
    choices = answer if isinstance(answer, list) else [answer]
    return choices if _takes_list(behaviour, field_type) else choices[0]


def build_answers_body(behaviour: Behaviour, answers: Mapping[Key, object]) -> dict[Key | str, object]:
    """Return the body for answers by field id, each as returned by `encode_answer` (API specification, Users)."""
    return {ANSWERS_KEY: answers} if behaviour(f"{ANSWERS}.shape") == "wrapped" else dict(answers.items())


def encode_cleared_description(behaviour: Behaviour) -> str | None:
    """Return the value that clears the description of a custom field."""
    return None if behaviour("custom-fields.clear-description") == "null" else ""


def encode_cleared_time(behaviour: Behaviour, name: str) -> dict[str, str | None]:
    """Return the part of an assignment's body that leaves one end of its visibility window open."""
    clear = behaviour("content-targets.clear-time")
    return {} if clear == "omit" else {name: "" if clear == "empty" else None}


def _cleared(behaviour: Behaviour, type: str) -> object:
    form = behaviour(clear_answer_key(type))
    if form == "empty":
        return [] if _takes_list(behaviour, type) else ""
    return [] if form == "list" else None


def _takes_list(behaviour: Behaviour, type: str) -> bool:
    return type == "MULTI_SELECT" or (type == "CHOICE" and behaviour(f"{ANSWERS}.value") == "list")
