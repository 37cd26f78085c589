"""Try what is assumed of answers to custom fields with one call, before other calls rest on it.

The API specification shows neither how an answer is written or cleared, nor whether a call keeps the answers that it
omits (Users, update-custom-field-choice). The first call that rests on one of these keys of the dialect is sent alone:
the person is read before and after it. Answers that were lost are given back, and the run ends.
"""

from __future__ import annotations

from collections.abc import Mapping
from itertools import islice
from typing import TYPE_CHECKING, Final, Protocol

from lmsconf.api.spec.candidate_values import Value, joint_values, other_values
from lmsconf.api.spec.listings import CUSTOM_FIELDS
from lmsconf.api.spec.value_encoding import (
    ANSWERS,
    OMITTED,
    WRAPPER,
    PickedChoice,
    answer_leaves,
    answer_value_key,
    answers_in_body,
    build_answers_body,
    clear_answer_key,
    encode_answer,
)
from lmsconf.errors import Rejected, WrongAssumption
from lmsconf.kinds.custom_field.types import parse_field_row
from lmsconf.kinds.grant_verification import SentCall, grant_verification
from lmsconf.kinds.shared.answer_rows import AnswerRow, try_parse_answers
from lmsconf.kinds.shared.response_json import object_list, require_object
from lmsconf.model.names import normalize_name

if TYPE_CHECKING:
    from lmsconf.api.client import Client
    from lmsconf.apply.ambiguous_writes import AmbiguousWriteResolver, IssuedRequest

_MOST_FORMS: Final = 30
_Answers = Mapping[str, AnswerRow]
"""Normalized name of a field → a person's answer to it."""


class _Choice(Protocol):
    @property
    def id(self) -> str: ...

    @property
    def name(self) -> str: ...


class _Field(Protocol):
    @property
    def id(self) -> str: ...

    @property
    def name(self) -> str: ...

    @property
    def type(self) -> str: ...

    @property
    def choices(self) -> tuple[_Choice, ...]: ...


class AnsweredFields:
    """The custom fields, as the calls of one run have read them."""

    def __init__(self) -> None:
        self.by_id: dict[str, _Field] = {}

    def keys(self, client: Client, sent: IssuedRequest) -> frozenset[str]:
        """Return the dialect keys that a call rests on. Reads the fields for their types."""
        answers = answers_in_body(client.spec.behaviour, sent.body)
        if not answers.keys() <= self.by_id.keys():
            self.by_id = {str(field.id): field for field in _read_fields(client)}
        keys = {WRAPPER, OMITTED}
        for id, value in answers.items():
            if field := self.by_id.get(id):
                keys.add(answer_value_key(field.type) if any(answer_leaves(value)) else clear_answer_key(field.type))
        return frozenset(keys)


class ComparedAnswers:
    """The answers of the person of one call, as they were before it."""

    def __init__(
        self, client: Client, sent: IssuedRequest, resolver: AmbiguousWriteResolver, fields: AnsweredFields
    ) -> None:
        self._client, self._sent, self._resolver = client, sent, resolver
        self._fields = fields.by_id
        self._answers = answers_in_body(client.spec.behaviour, sent.body)
        self._before = _read(client, sent)

    @property
    def is_readable(self) -> bool:
        """Whether the answers of the person can be read, so that a call shows anything."""
        return self._before is not None

    @property
    def others(self) -> _Answers:
        """The answers that the call does not name."""
        named = {normalize_name(self._fields[id].name) for id in self._answers if id in self._fields}
        return {name: answer for name, answer in (self._before or {}).items() if name not in named}

    def compare(self) -> None:
        """Raise WrongAssumption if the call does not show, or has cleared answers that it does not name.

        These are given back.
        """
        missing = ""
        for _ in self._resolver.poll_visibility():
            missing = self._missing(_read(self._client, self._sent) or {})
            if not missing:
                break
        self.compare_others()
        if missing:
            raise WrongAssumption(f"{ANSWERS} was accepted, and {missing}")

    def compare_others(self) -> None:
        """Raise WrongAssumption if answers that the call does not name have changed, after giving them back."""
        after = _read(self._client, self._sent) or {}
        lost = {name: answer for name, answer in self.others.items() if after.get(name) != answer}
        if not lost:
            return
        forms, left = self._give_back({**after, **lost}, lost)
        back = f"{len(lost) - left} of them given back" if left else "given back again"
        message = f"{ANSWERS} cleared {_number(len(lost))} that the call does not name, {back}"
        raise WrongAssumption(message, values={OMITTED: "clear", **forms})

    def _give_back(self, whole: _Answers, lost: _Answers) -> tuple[Mapping[str, Value], int]:
        """Send all answers of the person, in other forms if those assumed are refused.

        Returns the forms, and how many of the lost answers are still missing.
        """
        own, left = self._client.spec, len(lost)
        types = {one.type for one in self._fields.values() if normalize_name(one.name) in lost}
        keys = sorted(key for key in map(answer_value_key, types) if not own.is_known(key))
        forms: Mapping[str, Value]
        singles = [{key: value} for key in keys for value in other_values(key)]
        for forms in islice(({}, *singles, *joint_values(keys, own.behaviour, "")), _MOST_FORMS):
            try:
                with self._client.speaking(forms):
                    self._send(whole)
            except Rejected:
                continue
            left = self._still_lost(lost)
            if not left:
                return forms, 0
        return {}, left

    def _still_lost(self, lost: _Answers) -> int:
        left = len(lost)
        for _ in self._resolver.poll_visibility():
            after = _read(self._client, self._sent) or {}
            left = sum(after.get(name) != answer for name, answer in lost.items())
            if not left:
                break
        return left

    def _send(self, whole: _Answers) -> None:
        behaviour = self._client.spec.behaviour
        answers = {
            id: encode_answer(behaviour, field.type, _value(field, whole[name]))
            for id, field in self._fields.items()
            if (name := normalize_name(field.name)) in whole
        }
        body = build_answers_body(behaviour, answers)
        self._client.send(self._sent.call.method, self._sent.path, body=body, operation=ANSWERS)

    def _missing(self, after: _Answers) -> str:
        """Return which effect of the call does not show; empty if all of it does."""
        cleared = [id for id, value in self._answers.items() if not any(answer_leaves(value)) and id in self._fields]
        still = [self._fields[id] for id in cleared if normalize_name(self._fields[id].name) in after]
        if still:
            return f"the answer to {still[0].name} is still there"
        check = grant_verification(self._sent.call)
        if check is None:
            return ""
        call = SentCall(_path(self._client, self._sent), self._sent.body)
        granted = frozenset(check.granted(call))
        number = len(granted.difference(check.visible(self._client.call, call)))
        return check.missing.format(missing=number, granted=len(granted)) if number else ""


def _value(field: _Field, answer: AnswerRow) -> str | list[PickedChoice]:
    if field.type == "TEXT":
        return answer.as_text
    return [
        PickedChoice(choice.id, choice.name)
        for choice in field.choices
        if answer.picked & {choice.id, choice.name, normalize_name(choice.name)}
    ]


def _read(client: Client, sent: IssuedRequest) -> _Answers | None:
    """Return the answers of the person of a call; None if they cannot be read."""
    person = require_object(client.call("users.get", path=_path(client, sent)), "a user")
    answers = try_parse_answers(person)
    return None if answers is None else {answer.field: answer for answer in answers}


def _read_fields(client: Client) -> list[_Field]:
    data = require_object(client.call(CUSTOM_FIELDS.name), "the custom fields")
    return [parse_field_row(row) for row in object_list(data, CUSTOM_FIELDS.rows)]


def _path(client: Client, sent: IssuedRequest) -> Mapping[str, str]:
    route = client.spec.match_route(sent.call.method, sent.path)
    return route[1] if route else {}


def _number(answers: int) -> str:
    return "1 answer" if answers == 1 else f"{answers} answers"
