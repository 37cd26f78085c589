"""Users' answers to custom fields: set by field id, in the dialect's shape (API specification, Users)."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Final

from lmsconf.sandbox.api_refusal import bad_request
from lmsconf.sandbox.handlers import custom_fields
from lmsconf.sandbox.request_context import Handler, Json, Request, RequestContext
from lmsconf.sandbox.store import Value, encode_ids

_KEY: Final = "users.update-custom-field-choice"
_TEXT_KEYS: Final = {"object": "text", "value": "value"}
"""Form of a text in an object → its key there."""


def update_answers(context: RequestContext, request: Request) -> None:
    """Set or clear the answers in the body. Omitted ones are kept or cleared, according to the dialect."""
    person = context.require_path_person(request)
    answers = _answers(context, request)
    types = dict(context.repository.pairs("SELECT id, type FROM fields"))
    if context.behaviour(f"{_KEY}.omitted") == "clear":
        context.repository.execute("DELETE FROM answers WHERE person = ?", person)
    for field, value in answers.items():
        if field not in types:
            raise bad_request(f"there is no custom field {field!r}")
        rows = list(_rows(context, field, str(types[field]), value))
        context.repository.execute("DELETE FROM answers WHERE person = ? AND field = ?", person, field)
        context.repository.execute_many(
            "INSERT INTO answers VALUES (?, ?, ?, ?)", [(person, field, *row) for row in rows]
        )


def _answers(context: RequestContext, request: Request) -> Mapping[str, Json]:
    """Field id → answer: the body itself, or its one wrapper key."""
    wrapper = context.behaviour(f"{_KEY}.wrapper")
    if wrapper == "none":
        return request.body
    wrapped = request.body.get(wrapper)
    if not isinstance(wrapped, Mapping) or len(request.body) > 1:
        raise bad_request(f"body must hold the answers under {wrapper}, and nothing else")
    return wrapped


def _rows(context: RequestContext, field: str, type: str, value: Json) -> Sequence[tuple[Value, Value]]:
    """Choice and text of each row of an answer. Raises Refusal (400) for a value that the type does not allow."""
    form = context.behaviour(f"{_KEY}.value" if type == "CHOICE" else f"{_KEY}.value-{_hyphenated(type)}")
    if _is_empty(value):
        clearing = context.behaviour(f"{_KEY}.clear-{_hyphenated(type)}")
        if clearing in ("omit", "refused") or value != _cleared(clearing, type, form):
            raise bad_request(f"{json.dumps(value)} does not clear custom field {field!r}")
        return []
    if type == "TEXT":
        return [("", _text(field, form, value))]
    choices = list(dict.fromkeys(_choices(field, form, value)))
    if type == "CHOICE" and len(choices) > 1:
        raise bad_request(f"custom field {field!r} takes one choice")
    column = "name" if form.startswith("name") else "id"
    known = dict(
        context.repository.pairs(
            f"SELECT {column}, id FROM choices "  # noqa: S608  one of two names of ours
            f"WHERE field = ? AND {column} IN (SELECT value FROM json_each(?))",
            field,
            encode_ids(choices),
        )
    )
    if unknown := [choice for choice in choices if choice not in known]:
        raise bad_request(f"custom field {field!r} has no choice {', '.join(map(repr, unknown))}")
    return [(known[choice], None) for choice in choices]


def _is_empty(value: Json) -> bool:
    """Whether a value clears an answer: null, an empty text or list, or an object that holds only these."""
    inside = list(value.values()) if isinstance(value, Mapping) else [value]
    return all(one is None or one in ("", []) for one in inside)


def _cleared(clearing: str, type: str, form: str) -> Json:
    """The value that clears an answer of that type, which is otherwise written in that form."""
    if clearing.startswith("object"):
        key = _object_key(type, form)
        empty: Json = [] if key == "choiceIds" else ""
        return {key: None if clearing == "object-null" else empty}
    if clearing == "null":
        return None
    return [] if clearing == "list" or form in ("list", "list-of-objects", "name-list") else ""


def _object_key(type: str, form: str) -> str:
    if type == "TEXT":
        return _TEXT_KEYS.get(form, "text")
    if form == "object-id":
        return "id"
    return "choiceIds" if type == "MULTI_SELECT" or form == "object-list" else "choiceId"


def _hyphenated(type: str) -> str:
    return type.lower().replace("_", "-")


def _text(field: str, form: str, value: Json) -> str:
    """The text of an answer. Raises Refusal (400) for another form."""
    if form == "list" and isinstance(value, list) and len(value) == 1:
        text = value[0]
    elif form in _TEXT_KEYS and isinstance(value, Mapping) and value.keys() == {_TEXT_KEYS[form]}:
        text = value[_TEXT_KEYS[form]]
    else:
        text = value if form == "text" else None
    if not isinstance(text, str):
        raise bad_request(f"custom field {field!r} takes a text, written as {form}")
    return text


def _choices(field: str, form: str, value: Json) -> list[str]:
    """The ids or names of the choices of an answer. Raises Refusal (400) for another form."""
    found: Json = None
    if form in ("list", "name-list"):
        found = value
    elif form in ("id", "name"):
        found = [value]
    elif form == "list-of-objects" and isinstance(value, list):
        found = [_inside(one, "choiceId") for one in value]
    elif form in ("object", "object-id"):
        found = [_inside(value, "id" if form == "object-id" else "choiceId")]
    elif form == "object-list":
        found = _inside(value, "choiceIds")
    if not isinstance(found, list) or not all(isinstance(one, str) for one in found):
        raise bad_request(f"the answer to custom field {field!r} must be written as {form}")
    return [str(one) for one in found]


def _inside(value: Json, key: str) -> Json:
    """The one value of an object; None if it is another object, or none."""
    return value[key] if isinstance(value, Mapping) and value.keys() == {key} else None


HANDLERS: Final[Mapping[str, Handler]] = {
    "users.update-custom-field-choice": update_answers,
    "users.custom-field-choice": custom_fields.list_fields,
}
