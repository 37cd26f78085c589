"""Encode values under the dialect: custom-field answers, and the values that clear an answer, a text or a time.

Shared by the kinds and the typed methods, so that both honour the same dialect keys.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Final, TypeVar

from msgspec import Struct

from lmsconf.model.canonical_json import Json, members
from lmsconf.model.time_formats import with_offset

ANSWERS: Final = "users.update-custom-field-choice"
WRAPPER: Final = f"{ANSWERS}.wrapper"
"""The key of the body that holds the map from field ids to answers, or NO_WRAPPER."""
OMITTED: Final = f"{ANSWERS}.omitted"
"""What happens to the answers that a body omits."""
TIME_ZONE: Final = "content-targets.time-zone"
"""The zone of the times of assignments that have no offset."""
NO_WRAPPER: Final = "none"
EVERYONE: Final = "EVERYONE"
"""Canonical id of the group of all users (API specification, Content catalog item); the dialect may override it."""
NEVER_CLEARED: Final = "refused"
"""The value of a key for clearing answers where the service never clears such an answer."""
Behaviour = Callable[[str], str]
"""Return the value of a dialect key, as `ApiSpec.behaviour` does."""
Key = TypeVar("Key")


class PickedChoice(Struct, frozen=True):
    """A choice that an answer picks: `id` is a placeholder while the choice is still to be created."""

    id: object
    name: str


_CHOICES: Final[Mapping[str, Callable[[Sequence[PickedChoice]], object]]] = {
    "id": lambda picked: picked[0].id,
    "list": lambda picked: [one.id for one in picked],
    "object": lambda picked: {"choiceId": picked[0].id},
    "object-id": lambda picked: {"id": picked[0].id},
    "object-list": lambda picked: {"choiceIds": [one.id for one in picked]},
    "list-of-objects": lambda picked: [{"choiceId": one.id} for one in picked],
    "name": lambda picked: picked[0].name,
    "name-list": lambda picked: [one.name for one in picked],
}
"""Form of an answer to a field with choices → its value."""
_TEXTS: Final[Mapping[str, Callable[[object], object]]] = {
    "text": lambda text: text,
    "object": lambda text: {"text": text},
    "value": lambda text: {"value": text},
    "list": lambda text: [text],
}
"""Form of an answer to a TEXT field → its value."""
_LEFT_OUT: Final = object()
"""The value of an answer that is cleared by leaving its field out of the body."""


def answer_value_key(field_type: str) -> str:
    """Return the dialect key for how an answer to a field of that type is written."""
    return f"{ANSWERS}.value" if field_type == "CHOICE" else f"{ANSWERS}.value-{_hyphenated(field_type)}"


def clear_answer_key(field_type: str) -> str:
    """Return the dialect key for how an answer to a field of that type is cleared."""
    return f"{ANSWERS}.clear-{_hyphenated(field_type)}"


def _hyphenated(field_type: str) -> str:
    return field_type.lower().replace("_", "-")


def sends_names(behaviour: Behaviour, field_type: str) -> bool:
    """Return whether an answer to a field of that type names its choices, so that they need these names by then."""
    return field_type != "TEXT" and behaviour(answer_value_key(field_type)).startswith("name")


def encode_answer(behaviour: Behaviour, field_type: str, answer: str | Sequence[PickedChoice] | None) -> object:
    """Return an answer in wire form: a text for a TEXT field, choices for any other; an empty one clears it."""
    form = behaviour(answer_value_key(field_type))
    if not answer:
        return _cleared(behaviour(clear_answer_key(field_type)), field_type, form)
    return _TEXTS[form](answer) if isinstance(answer, str) else _CHOICES[form](answer)


def build_answers_body(behaviour: Behaviour, answers: Mapping[Key, object]) -> dict[Key | str, object]:
    """Return the body for answers by field id, each as returned by `encode_answer` (API specification, Users)."""
    sent: dict[Key | str, object] = {field: value for field, value in answers.items() if value is not _LEFT_OUT}
    wrapper = behaviour(WRAPPER)
    return sent if wrapper == NO_WRAPPER else {wrapper: sent}


def answers_in_body(behaviour: Behaviour, body: object) -> Mapping[str, object]:
    """Return the answers by field id in a body that `build_answers_body` made."""
    wrapper = behaviour(WRAPPER)
    answers = body.get(wrapper) if isinstance(body, Mapping) and wrapper != NO_WRAPPER else body
    return answers if isinstance(answers, Mapping) else {}


def decode_answers_body(body: object) -> Iterator[tuple[str, str]]:
    """Yield field id and value of each choice, by id or by name, and of each text that a body sets, in any dialect."""
    answers = body if isinstance(body, Mapping) else {}
    inner = list(answers.values())
    keys_of_one_answer = {"choiceId", "choiceIds", "id", "text", "value"}
    if len(inner) == 1 and isinstance(inner[0], Mapping) and not inner[0].keys() <= keys_of_one_answer:
        answers = inner[0]
    yield from ((str(field), one) for field, value in answers.items() for one in answer_leaves(value))


def answer_leaves(value: object) -> Iterator[str]:
    """Yield the choices, or the text, in the value of one answer; nothing for one that clears it."""
    if isinstance(value, Mapping | list):
        for part in value.values() if isinstance(value, Mapping) else value:
            yield from answer_leaves(part)
    elif value not in (None, ""):
        yield str(value)


def encode_cleared_description(behaviour: Behaviour) -> str | None:
    """Return the value that clears the description of a custom field."""
    return None if behaviour("custom-fields.clear-description") == "null" else ""


def encode_cleared_time(behaviour: Behaviour, name: str) -> dict[str, str | None]:
    """Return the part of an assignment's body that leaves one end of its visibility window open."""
    clear = behaviour("content-targets.clear-time")
    return {} if clear == "omit" else {name: "" if clear == "empty" else None}


def with_offsets(behaviour: Behaviour, response: Json) -> Json:
    """Return the targets of a response, with their times that have no offset in UTC (Content Targeting)."""
    zone, targets = behaviour(TIME_ZONE), members(response).get("targets")
    for target in map(members, targets if isinstance(targets, list) and zone != "UTC" else ()):
        for name in ("startTime", "finishTime", "createdAt", "updatedAt"):
            if isinstance(text := target.get(name), str):
                target[name] = with_offset(text, zone)
    return response


def _cleared(clearing: str, field_type: str, form: str) -> object:
    """Return the value that clears an answer. form: how an answer to such a field is written otherwise."""
    empty = _empty_object(field_type, form)
    cleared = {"omit": _LEFT_OUT, "null": None, "list": [], "object": empty, "object-null": dict.fromkeys(empty)}
    return cleared.get(clearing, [] if form in ("list", "list-of-objects", "name-list") else "")


def _empty_object(field_type: str, form: str) -> dict[str, object]:
    """Return an answer's object without an answer, also where answers are written without an object."""
    if field_type == "TEXT":
        return {"value" if form == "value" else "text": ""}
    if field_type == "MULTI_SELECT" or form == "object-list":
        return {"choiceIds": []}
    return {"id" if form == "object-id" else "choiceId": ""}
