"""Users' answers to custom fields: set by field id, in the dialect's shape (API specification, Users)."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Final

from lmsconf.sandbox.api_refusal import bad_request
from lmsconf.sandbox.handlers import custom_fields
from lmsconf.sandbox.request_context import Handler, Json, Request, RequestContext
from lmsconf.sandbox.store import Value, encode_ids

WRAPPER: Final = "customFields"
_KEY: Final = "users.update-custom-field-choice"


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
    if context.behaviour(f"{_KEY}.shape") == "map":
        return request.body
    wrapped = request.body.get(WRAPPER)
    if not isinstance(wrapped, Mapping) or len(request.body) > 1:
        raise bad_request(f"body must hold the answers under {WRAPPER}, and nothing else")
    return wrapped


def _rows(context: RequestContext, field: str, type: str, value: Json) -> Sequence[tuple[Value, Value]]:
    """Choice and text of each row of an answer. Raises Refusal (400) for a value that the type does not allow."""
    if value is None or value in ("", []):
        return _no_rows(context, field, type, value)
    if type == "TEXT":
        if not isinstance(value, str):
            raise bad_request(f"custom field {field!r} takes a text")
        return [("", value)]
    choices = _choices(field, _takes_a_list(context, type), value)
    if type == "CHOICE" and len(choices) > 1:
        raise bad_request(f"custom field {field!r} takes one choice")
    known = context.repository.column(
        "SELECT id FROM choices WHERE field = ? AND id IN (SELECT value FROM json_each(?))", field, encode_ids(choices)
    )
    if unknown := [choice for choice in choices if choice not in known]:
        raise bad_request(f"custom field {field!r} has no choice {', '.join(map(repr, unknown))}")
    return [(choice, None) for choice in choices]


def _no_rows(context: RequestContext, field: str, type: str, value: Json) -> Sequence[tuple[Value, Value]]:
    """No row, if the dialect clears an answer of that type with this value. Raises Refusal (400) otherwise."""
    form = context.behaviour(f"{_KEY}.clear-{type.lower().replace('_', '-')}")
    empty: Json = [] if form == "list" or (form == "empty" and _takes_a_list(context, type)) else ""
    wanted = None if form == "null" else empty
    if value != wanted:
        raise bad_request(f"custom field {field!r} is cleared with {json.dumps(wanted)}, not {json.dumps(value)}")
    return []


def _takes_a_list(context: RequestContext, type: str) -> bool:
    return type == "MULTI_SELECT" or (type == "CHOICE" and context.behaviour(f"{_KEY}.value") == "list")


def _choices(field: str, takes_a_list: bool, value: Json) -> list[str]:
    """The choice ids of an answer, without duplicates."""
    if takes_a_list and isinstance(value, list):
        return list(dict.fromkeys(map(str, value)))
    if not takes_a_list and isinstance(value, str):
        return [value]
    raise bad_request(f"custom field {field!r} takes {'a list of choice ids' if takes_a_list else 'a choice id'}")


HANDLERS: Final[Mapping[str, Handler]] = {
    "users.update-custom-field-choice": update_answers,
    "users.custom-field-choice": custom_fields.list_fields,
}
