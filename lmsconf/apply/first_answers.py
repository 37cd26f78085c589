"""Try what is assumed of answers to custom fields with one call, before other calls rest on it.

The API specification shows neither how an answer is written or cleared, nor whether a call keeps the answers that it
omits (Users, update-custom-field-choice). The first call that rests on one of these keys of the dialect is sent alone:
the person is read before and after it. Answers that were lost are given back, and the run ends.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Final, NamedTuple, Protocol

from lmsconf.api.spec.listings import CUSTOM_FIELDS
from lmsconf.api.spec.value_encoding import (
    ANSWERS,
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
from lmsconf.kinds import all_kinds
from lmsconf.kinds.shared.answer_rows import AnswerRow, try_parse_answers
from lmsconf.kinds.shared.response_json import object_list, require_object
from lmsconf.model.names import normalize_name
from lmsconf.planner.grant_verification import SentCall

if TYPE_CHECKING:
    from lmsconf.api.client import Client
    from lmsconf.apply.ambiguous_writes import AmbiguousWriteResolver, IssuedRequest

OMITTED: Final = f"{ANSWERS}.omitted"
_FIELD: Final = next(kind for kind in all_kinds().values() if kind.list_operation == CUSTOM_FIELDS)
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


class _Tried(NamedTuple):
    """A call that is compared: the person's answers before it, all fields by id, and what it sends by field id."""

    before: _Answers
    fields: Mapping[str, _Field]
    sent: Mapping[str, object]

    def others(self) -> _Answers:
        """Return the answers that the call does not name."""
        named = {normalize_name(self.fields[id].name) for id in self.sent if id in self.fields}
        return {name: answer for name, answer in self.before.items() if name not in named}


def _keys(fields: Mapping[str, _Field], answers: Mapping[str, object]) -> set[str]:
    """Return the dialect keys that a call with these answers by field id rests on."""
    keys = {WRAPPER, OMITTED}
    for id, value in answers.items():
        if field := fields.get(id):
            keys.add(answer_value_key(field.type) if any(answer_leaves(value)) else clear_answer_key(field.type))
    return keys


class FirstAnswers:
    """The keys that the calls of one run rest on, and that no call has tried yet."""

    def __init__(self, known: Mapping[str, object], all_keys: tuple[str, ...]) -> None:
        self.untried = {key for key in all_keys if key not in known}
        self._fields: dict[str, _Field] = {}

    def untried_keys(self, client: Client, sent: IssuedRequest) -> set[str]:
        """Return the keys that a call rests on and that no call has tried. Reads the fields for their types."""
        answers = answers_in_body(client.spec.behaviour, sent.body)
        if not answers.keys() <= self._fields.keys():
            self._fields = {str(field.id): field for field in _read_fields(client)}
        return _keys(self._fields, answers) & self.untried

    @contextmanager
    def comparing(self, client: Client, sent: IssuedRequest, resolver: AmbiguousWriteResolver) -> Iterator[None]:
        """Send a call inside. Raises WrongAssumption if it did something else than it says."""
        keys, before = self.untried_keys(client, sent), _read(client, sent)
        tried = _Tried(before or {}, self._fields, answers_in_body(client.spec.behaviour, sent.body))
        try:
            yield
        except Rejected as refused:
            if refused.is_forbidden:
                raise
            raise refused.restated(Rejected, f"If the answer is right: {_check(keys)}") from refused
        # Nothing shows on a person whose answers cannot be read, and none are lost where there are no others.
        if before is not None and (keys != {OMITTED} or tried.others()):
            self._compare(client, sent, resolver, tried, keys)

    def _compare(
        self,
        client: Client,
        sent: IssuedRequest,
        resolver: AmbiguousWriteResolver,
        tried: _Tried,
        keys: set[str],
    ) -> None:
        others, after = tried.others(), dict[str, AnswerRow]()
        missing = ""
        for _ in resolver.poll_visibility():
            after = dict(_read(client, sent) or {})
            missing = _missing(client, sent, tried, after)
            if not missing:
                break
        lost = {name: answer for name, answer in others.items() if after.get(name) != answer}
        if lost:
            left = _put_back(client, sent, resolver, tried, lost)
            back = f"{len(lost) - left} of them given back" if left else "given back again"
            raise WrongAssumption(
                f"{ANSWERS} cleared {_number(len(lost))} that the call does not name, {back}",
                hint=f"Set under `dialect:` in the project file: {OMITTED}: clear",
            )
        if missing:
            raise WrongAssumption(f"{ANSWERS} was accepted, and {missing}", hint=_check(keys))
        # Without another answer, nothing shows whether those are kept.
        self.untried -= keys if others else keys - {OMITTED}


def _missing(client: Client, sent: IssuedRequest, tried: _Tried, after: _Answers) -> str:
    """Return which effect of a call does not show; empty if all of it does."""
    cleared = [id for id, value in tried.sent.items() if not any(answer_leaves(value)) and id in tried.fields]
    still = [tried.fields[id] for id in cleared if normalize_name(tried.fields[id].name) in after]
    if still:
        return f"the answer to {still[0].name} is still there"
    check = all_kinds()[sent.call.address.kind].grant_verification(sent.call)
    if check is None:
        return ""
    call = SentCall(_path(client, sent), sent.body)
    granted = frozenset(check.granted(call))
    number = len(granted.difference(check.visible(client.call, call)))
    return check.missing.format(missing=number, granted=len(granted)) if number else ""


def _put_back(
    client: Client, sent: IssuedRequest, resolver: AmbiguousWriteResolver, tried: _Tried, lost: _Answers
) -> int:
    """Send the lost answers together with those that the call sends; return how many are still missing."""
    behaviour, by_name = client.spec.behaviour, {normalize_name(one.name): one for one in tried.fields.values()}
    again = {
        by_name[name].id: encode_answer(behaviour, by_name[name].type, _value(by_name[name], answer))
        for name, answer in tried.others().items()
        if name in by_name
    }
    body = build_answers_body(behaviour, {**again, **tried.sent})
    client.send(sent.call.method, sent.path, body=body, operation=ANSWERS)
    left = len(lost)
    for _ in resolver.poll_visibility():
        after = _read(client, sent) or {}
        left = sum(after.get(name) != answer for name, answer in lost.items())
        if not left:
            break
    return left


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
    return [_FIELD.parse_row(row) for row in object_list(data, CUSTOM_FIELDS.rows)]


def _path(client: Client, sent: IssuedRequest) -> Mapping[str, str]:
    route = client.spec.match_route(sent.call.method, sent.path)
    return route[1] if route else {}


def _check(keys: set[str]) -> str:
    return f"Check the dialect keys {', '.join(sorted(keys))}, or find them out with `lmsconf doctor --probe`."


def _number(answers: int) -> str:
    return "1 answer" if answers == 1 else f"{answers} answers"
