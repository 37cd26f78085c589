"""Answers to custom fields as one service writes and shows them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from .points import Points


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
    ids = (
        {name: id for id, name in field.choices.items()}
        if form in ("name", "names")
        else {id: id for id in field.choices}
    )
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
    for field in fields:
        if field.id in given:
            shown[field.name] = _shown(points, field, given[field.id])
        elif points.answer_none != "absent":
            shown[field.name] = (
                None if points.answer_none == "null" else _shown(points, field, "" if field.type == "TEXT" else [])
            )
    return shown


def _shown(points: Points, field: Field, value: list[str] | str) -> dict[str, object]:
    """One answer, which the specification says is an object."""
    how = points.answer_shown
    if isinstance(value, str):
        text = {"choices": {"text": value}, "choice-ids": {"value": value}, "values": {"value": value},
                "single": {"text": value}, "typed": {"type": "TEXT", "choices": [], "text": value},
                "value": {"value": value}, "ids": {"text": value}}  # fmt: skip
        return dict(text[str(how)])
    names = [field.choices[id] for id in value]
    pairs = [{"choiceId": id, "name": field.choices[id]} for id in value]
    match how:
        case "choice-ids":
            return {"choiceIds": value}
        case "values":
            return {"values": names}
        case "single" if field.type == "CHOICE":
            return {"choiceId": value[0], "name": names[0]} if value else {"choiceId": None, "name": None}
        case "single":
            return {"choiceIds": value}
        case "typed":
            return {"type": field.type, "choices": pairs, "text": None}
        case "value" if field.type == "CHOICE":
            return {"value": names[0] if names else None}
        case "value":
            return {"value": names}
        case "ids":
            return {"choices": [{"id": one["choiceId"], "name": one["name"]} for one in pairs]}
    return {"choices": pairs}
