"""Values as the dialect says they are sent: answers to custom fields, and what clears an answer, a text or a time.

Planner and typed client both encode them here, so that no key is honoured by one of them only.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final, TypeVar

ANSWERS: Final = "users.update-custom-field-choice"
ANSWERS_KEY: Final = "customFields"
EVERYONE: Final = "EVERYONE"
"""The id of the group of all users as the specification has it; the dialect may have another one."""
Behaviour = Callable[[str], str]
"""Dialect key of a behaviour → its value."""
Key = TypeVar("Key")


def clear_key(type: str) -> str:
    """The dialect key that says how the answer to a field of that type is cleared."""
    return f"{ANSWERS}.clear-{type.lower().replace('_', '-')}"


def answer_value(behaviour: Behaviour, type: str, answer: object) -> object:
    """One answer as it is sent: the text of a TEXT field, else a choice's id or a list of them; empty clears it."""
    if not answer:
        return _cleared(behaviour, type)
    if type == "TEXT":
        return answer
    choices = answer if isinstance(answer, list) else [answer]
    return choices if _takes_list(behaviour, type) else choices[0]


def answers_body(behaviour: Behaviour, answers: Mapping[Key, object]) -> dict[Key | str, object]:
    """The body with these answers, by field id, each as `answer_value` gives it."""
    return {ANSWERS_KEY: answers} if behaviour(f"{ANSWERS}.shape") == "wrapped" else dict(answers.items())


def cleared_description(behaviour: Behaviour) -> str | None:
    """What takes the description of a custom field away."""
    return None if behaviour("custom-fields.clear-description") == "null" else ""


def cleared_time(behaviour: Behaviour, name: str) -> dict[str, str | None]:
    """The part of an assignment's body that opens that end of its window."""
    clear = behaviour("content-targets.clear-time")
    return {} if clear == "omit" else {name: "" if clear == "empty" else None}


def _cleared(behaviour: Behaviour, type: str) -> object:
    form = behaviour(clear_key(type))
    if form == "empty":
        return [] if _takes_list(behaviour, type) else ""
    return [] if form == "list" else None


def _takes_list(behaviour: Behaviour, type: str) -> bool:
    return type == "MULTI_SELECT" or (type == "CHOICE" and behaviour(f"{ANSWERS}.value") == "list")
