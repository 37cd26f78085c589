"""What the API specification leaves to each service: the points of points.yaml, a draw, and the forms of answers."""

import random
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final, NamedTuple

import yaml

Value = str | int
TABLE: Final[Mapping[str, Sequence[Value]]] = yaml.safe_load(
    Path(__file__).with_name("points.yaml").read_text(encoding="utf-8")
)
"""Point → its values, the first as the sandbox has it."""
NAMES: Final = [point for point in TABLE if "." in point]
"""Points that are names of parts of bodies."""


class Points:
    """One service's values: each point is an attribute."""

    def __init__(self, chosen: Mapping[str, Value]) -> None:
        vars(self).update({point: values[0] for point, values in TABLE.items()} | chosen)

    def name(self, key: str) -> str:
        """The service's name for a part of a body."""
        return str(vars(self)[key])

    def changed(self) -> dict[str, Value]:
        """The points whose value is not the first of the table."""
        return {point: value for point, value in vars(self).items() if value != TABLE[point][0]}


def drawn(seed: int) -> Points:
    """The service of a seed."""
    dice = random.Random(seed)  # noqa: S311  no secret
    return made_of({point: dice.choice(values) for point, values in TABLE.items()})


def made_of(chosen: Mapping[str, Value]) -> Points:
    """The service with these values, made possible: a list that is replaced by each call cannot be written in parts."""
    if chosen.get("add") == "replaces" and int(chosen.get("batch", 100)) < 100:
        chosen = {**chosen, "batch": 100}
    if int(chosen.get("page", 100)) < 100 and chosen.get("page_over") == "refused":
        chosen = {**chosen, "page": 100}  # a limit of 100 is the default, and cannot be refused
    if chosen.get("system", "absent") not in ("absent", "null"):
        chosen = {**chosen, "is_any_beside": "choices"}
    return Points(chosen)


# Answers to custom fields as one service writes and shows them.


class Field(NamedTuple):
    """A field: its type, and the names of its choices by id."""

    id: str
    name: str
    type: str
    choices: Mapping[str, str]


class Unreadable(Exception):
    """The service does not take this as an answer."""


def read_answer(points: Points, field: Field, value: object) -> list[str] | str | None:
    """The ids of the choices, the text, or None for an answer to be cleared. Raises Unreadable."""
    if _clears(points, field, value):
        return None
    if field.type == "TEXT":
        text = _unwrapped(str(points.answer_text), value)
        if not isinstance(text, str) or not text:
            raise Unreadable(f"{field.name} takes another form of text")
        return text
    form = str(points.answer_choice if field.type == "CHOICE" else points.answer_multi)
    picked = _unwrapped(form, value)
    ids = {name if form in ("name", "names") else id: id for id, name in field.choices.items()}
    chosen = [picked] if isinstance(picked, str) else picked
    if not isinstance(chosen, list) or not chosen or not all(isinstance(one, str) and one in ids for one in chosen):
        raise Unreadable(f"{field.name} has no such choice, or takes another form of answer")
    if field.type == "CHOICE" and len(chosen) > 1:
        raise Unreadable(f"{field.name} takes one choice")
    return [ids[one] for one in chosen]


def _unwrapped(form: str, value: object) -> object:
    """The choice, the choices or the text in a value of that form. Raises Unreadable for another form."""
    keys = {"choiceId": "choiceId", "choiceIds": "choiceIds", "object-id": "id", "object-text": "text",
            "object-value": "value"}  # fmt: skip
    if form in keys:
        if not isinstance(value, dict) or set(value) != {keys[form]}:
            raise Unreadable(f"an answer is an object with {keys[form]}")
        value = value[keys[form]]
    if form == "objects":
        if not isinstance(value, list) or not all(isinstance(one, dict) and set(one) == {"choiceId"} for one in value):
            raise Unreadable("an answer is a list of objects with choiceId")
        return [one["choiceId"] for one in value]
    if isinstance(value, list) != (form in ("ids", "names", "choiceIds", "objects")):
        raise Unreadable("an answer has another form")
    return value


def _clears(points: Points, field: Field, value: object) -> bool:
    """Whether the service takes that as no answer."""
    how, form = {
        "CHOICE": (points.clear_choice, str(points.answer_choice)),
        "MULTI_SELECT": (points.clear_multi, str(points.answer_multi)),
        "TEXT": (points.clear_text, str(points.answer_text)),
    }[field.type]
    empty: Mapping[str, object] = {"choiceId": {"choiceId": ""}, "choiceIds": {"choiceIds": []}, "ids": [], "names": [],
                                   "objects": [], "object-id": {"id": ""}, "object-text": {"text": ""},
                                   "object-value": {"value": ""}}  # fmt: skip
    forms: Mapping[object, Sequence[object]] = {"null": [None], "empty": [empty.get(form, "")], "list": [[]]}
    return value in (forms[how] if how != "any" else [one for each in forms.values() for one in each])


def shown_answers(points: Points, fields: Sequence[Field], given: Mapping[str, list[str] | str]) -> dict[str, object]:
    """The answers of a person by the names of the fields. given: field id → ids of choices, or a text."""
    shown: dict[str, object] = {}
    for one in fields:
        if one.id in given:
            shown[one.name] = _shown(points, one, given[one.id])
        elif points.answer_none == "null":
            shown[one.name] = None
        elif points.answer_none == "empty":
            shown[one.name] = _shown(points, one, "" if one.type == "TEXT" else [])
    return shown


def _shown(points: Points, field: Field, value: list[str] | str) -> dict[str, object]:
    """One answer, which the specification says is an object."""
    how = str(points.answer_shown)
    if isinstance(value, str):
        text = {"value" if how in ("choice-ids", "values", "value") else "text": value}
        return {"type": "TEXT", "choices": [], **text} if how == "typed" else text
    names = [field.choices[id] for id in value]
    pairs = [{"choiceId": id, "name": field.choices[id]} for id in value]
    one = field.type == "CHOICE"
    forms: dict[str, dict[str, Any]] = {
        "choices": {"choices": pairs},
        "choice-ids": {"choiceIds": value},
        "values": {"values": names},
        "single": [*pairs, {"choiceId": None, "name": None}][0] if one else {"choiceIds": value},
        "typed": {"type": field.type, "choices": pairs, "text": None},
        "value": {"value": [*names, None][0] if one else names},
        "ids": {"choices": [{"id": id, "name": field.choices[id]} for id in value]},
    }
    return forms[how]
