"""How it is verified that answers were set, before a field that they were copied from is deleted.

The service lists answers by the name of the field, with ids or names of choices; requests have ids of fields, and ids
or names of choices (API specification, Users).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import NamedTuple

from lmsconf.api.spec.operations import CUSTOM_FIELDS
from lmsconf.api.spec.value_encoding import ANSWERS, decode_answers_body
from lmsconf.kinds.custom_field.types import FieldRow, parse_field_row
from lmsconf.kinds.shared.answer_rows import AnswerRow, try_parse_answers
from lmsconf.kinds.shared.response_json import object_list, require_object
from lmsconf.model.api import GetRequest
from lmsconf.model.calls import Call
from lmsconf.model.canonical_json import Json
from lmsconf.model.names import normalize_name
from lmsconf.planner.grant_verification import GrantVerification, SentCall


class _SentAnswer(NamedTuple):
    """One part of an answer that a call sets: a choice by id or by name, or a text."""

    field: str
    value: str


def answers_verification(call: Call) -> GrantVerification | None:
    """Return how the call that sets answers is verified, by reading the person; None for any other call."""
    if call.operation != ANSWERS:
        return None
    return GrantVerification(
        lambda sent: {_key(one) for one in _sent_answers(sent)},
        _visible,
        "{missing} of {granted} are not among the person's answers",
        "what they were copied from is not deleted",
    )


def _key(answer: _SentAnswer) -> str:
    return f"{answer.field}\n{answer.value}"


def _sent_answers(call: SentCall) -> Iterator[_SentAnswer]:
    """Yield what a call sets; an empty answer sets nothing."""
    for field, value in decode_answers_body(call.body):
        yield _SentAnswer(field, normalize_name(value))


def _visible(get: GetRequest, call: SentCall) -> set[str]:
    """Return which of the answers of a call the person has now."""
    person = require_object(get("users.get", path=dict(call.path)), "a user")
    sent = list(_sent_answers(call))
    ids = set(_choice_ids(person.get("customFields")))
    visible = {_key(one) for one in sent if one.value in ids}
    if len(visible) == len(sent):
        return visible
    # Texts, and choices that are shown by name, may be those of another field: only its definition tells.
    fields: dict[str, FieldRow] = {row.id: row for row in _fields(get)}
    held = {answer.field: answer for answer in try_parse_answers(person) or ()}
    return visible | {_key(one) for one in sent if _has(held, fields.get(one.field), one)}


def _choice_ids(value: Json) -> Iterator[str]:
    """Yield the ids of choices in a JSON value: the values of `choiceId` and `choiceIds`."""
    if isinstance(value, list):
        for item in value:
            yield from _choice_ids(item)
    elif isinstance(value, dict):
        for key, part in value.items():
            if key in ("choiceId", "choiceIds"):
                yield from map(str, part if isinstance(part, list) else [part])
            else:
                yield from _choice_ids(part)


def _fields(get: GetRequest) -> list[FieldRow]:
    data = require_object(get(CUSTOM_FIELDS.name), "the custom fields")
    return [parse_field_row(row) for row in object_list(data, CUSTOM_FIELDS.rows)]


def _has(held: Mapping[str, AnswerRow], field: FieldRow | None, wanted: _SentAnswer) -> bool:
    """Whether an answer is among those of a person, which name the field by its name or its id."""
    if field is None:
        return False
    answer = held.get(normalize_name(field.name)) or held.get(field.id)
    if answer is None:
        return False
    if field.type == "TEXT":
        return normalize_name(answer.as_text) == wanted.value
    both = ({str(choice.id), normalize_name(choice.name)} for choice in field.choices)
    shown = set[str]().union({wanted.value}, *(one for one in both if wanted.value in one))
    return any(normalize_name(choice) in shown for choice in answer.picked)
