"""Compare the list, or the answers, that the first call of its sort changes: does it keep what it does not name?

The API specification does not say whether adding people keeps those who are in a list or replaces them (Manual Groups,
Smart Groups). So the first call names everybody who is in the list, too, which is right in both cases. Where that is
refused, because a service may refuse people who are in the list, it names the new people alone; people who are
missing then are put back.

Nor does it show how an answer to a custom field is written or cleared, and whether a call keeps the answers that it
omits (Users, update-custom-field-choice). The person is read before and after the first call that rests on one of
these keys. Answers that were lost are given back, and the run ends.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from contextlib import suppress
from functools import partial
from itertools import islice
from operator import not_
from typing import Final

from msgspec.structs import replace

from lmsconf.api.client import Client
from lmsconf.api.spec import ApiSpec
from lmsconf.api.spec.dialect_candidates import (
    ADD_MODE,
    CLEAR_TIME,
    WINDOW_KEYS,
    Value,
    joint_values,
    likeliest,
)
from lmsconf.api.spec.operations import load_api_description
from lmsconf.api.spec.value_encoding import (
    ANSWERS,
    OMITTED,
    WRAPPER,
    answer_leaves,
    answer_value_key,
    answers_in_body,
    build_answers_body,
    clear_answer_key,
)
from lmsconf.apply.ambiguous_writes import AmbiguousWriteResolver, IssuedRequest, is_left
from lmsconf.errors import ApiError, InvalidResponse, Rejected, WriteOutcomeUnknown, WrongAssumption
from lmsconf.kinds.custom_field.types import FieldRow, encode_live_answers
from lmsconf.kinds.grant_verification import ANSWERS_GIVEN, SentCall, read_fields, targets_of
from lmsconf.kinds.shared.responses import AnswerRow, id_set, require_object, try_parse_answers
from lmsconf.model.canonical_json import Json
from lmsconf.model.names import count_noun, normalize_name

LISTS: Final = {
    "manual-groups.add-members": "manual-groups.members",
    "manual-groups.add-managers": "manual-groups.managers",
    "smart-groups.add-managers": "smart-groups.managers",
}
"""Operation that adds people to a list → the operation that reads the list."""


def empty_parts(spec: ApiSpec, body: object) -> frozenset[str]:
    """Return the keys of the parts of a body that a service may give by itself: false, or nothing.

    Where a service passes over names that it does not know, such a part shows under any name.
    """
    parts = body if isinstance(body, dict) else {}
    empty = frozenset(key for key in load_api_description().names if not parts.get(spec.behaviour(key), True))
    return empty | {CLEAR_TIME} if empty & WINDOW_KEYS else empty


def read_person(client: Client, id: str) -> Mapping[str, Json]:
    """Return a person as the service shows them now."""
    return require_object(client.call("users.get", path={"userId": id}), "a user")


def named_people(body: object) -> int:
    """Return how many people the lists of a body name."""
    return len(SentCall({}, body).listed_ids())


class ComparedList:
    """The list of one call, as it was before the call."""

    def __init__(self, sent: IssuedRequest, resolver: AmbiguousWriteResolver) -> None:
        self._resolver, self.sent = resolver, sent
        self._before = self._first_listed()
        self._added = sent.values.listed_ids()

    def begun(self) -> ComparedList | None:
        """Add one of several people to an empty list, and return it for the call with the others.

        Two calls show what adding does to those who are in a list, and nobody is in it but by this run. None if nobody
        was added.
        """
        if self._before or len(self._added) < 2:
            return None
        first = frozenset((min(self._added),))
        try:
            self.add(first)
        except (WriteOutcomeUnknown, InvalidResponse):
            # It may still arrive, and a service may refuse people who are in the list.
            self._resolver.poll(self._listed, first.issubset, self._resolver.settle_after_loss)
        except ApiError:
            return None  # The call itself meets the same, and tells what it is.
        rest = ComparedList(replace(self.sent, body=self._naming(self._added - first)), self._resolver)
        return rest if rest.others else None

    @property
    def others(self) -> frozenset[str]:
        """The people in the list that the call does not name."""
        return self._before - self._added

    @property
    def everybody(self) -> frozenset[str]:
        """The people who are in the list before the call or after it."""
        return self._before | self._added

    @property
    def has_archived(self) -> bool:
        """Whether some of the others are archived, or cannot be read: a service may refuse to put them back."""
        return any(is_archived(self.sent.client, id) for id in self.others)

    def rewritten(self, body: object) -> object:
        """Return a body of a call, whatever the name of its list, with the people who are in the list before it."""
        parts = body if isinstance(body, dict) else {}
        lists = [(key, ids) for key, ids in parts.items() if isinstance(ids, list)]
        return {**parts, **{key: sorted(self._before.union(map(str, ids))) for key, ids in lists}}

    def add(self, people: frozenset[str]) -> None:
        """Send the call once more, naming these people. Raises ApiError."""
        self.sent.send_again(self._naming(people))

    def _naming(self, people: frozenset[str]) -> object:
        """Return a body of the call that names these people."""
        return self.sent.client.spec.body_to_wire(self.sent.call.operation, userIds=sorted(people))

    def compare(self) -> bool:
        """Return whether the list shows the call, with everybody who was in it before.

        Raises WrongAssumption if somebody is missing, after putting them back; WriteOutcomeUnknown if the list cannot
        be read.
        """
        try:
            after = self._resolver.poll(self._listed, self._added.issubset)
            missing = self._before - after
            if not missing:
                return self._added <= after
            try:
                self.add(self.everybody)
            except Rejected:
                self.add(self._before)
            left = self._before - self._resolver.poll(self._listed, self._before.issubset)
        except ApiError as error:
            raise WriteOutcomeUnknown(
                f"the call was accepted, but the list could not be read after it: {error.message}",
                hint=error.hint,
                operation=self.sent.call.operation,
            ) from error
        people = count_noun(len(missing), "person who was", "people who were")
        back = f"{len(missing - left)} of them put back" if left else "put back again"
        raise WrongAssumption(
            f"{self.sent.call.operation} took {people} in the list before out of it, {back}: "
            "the service replaces the list",
            values={ADD_MODE: "replace"},
        )

    def _first_listed(self) -> frozenset[str]:
        """Return the list as soon as it can be read: the list of a new group may not be at once."""
        for _ in self._resolver.poll_times(self._resolver.settle_after_response):
            with suppress(Rejected):
                return self._listed()
        return self._listed()

    def _listed(self) -> frozenset[str]:
        """Return the user ids in the list."""
        response = self.sent.client.call(LISTS[self.sent.call.operation], path=self.sent.values.path)
        return frozenset(map(str, id_set(require_object(response, "a list of people"), "userIds")))


def is_archived(client: Client, person: str) -> bool:
    """Whether the person with an id is archived, or cannot be read."""
    with suppress(Rejected):
        return bool(read_person(client, person).get("archivedAt"))
    return True


def without_second(sent: IssuedRequest, resolver: AmbiguousWriteResolver, second: WrongAssumption) -> WrongAssumption:
    """Delete one of two assignments that a call has left where one was; return the error with what was done.

    A service may delete one of them or both. If both, the assignment is created again, as planned.
    """
    client = sent.client
    live = partial(targets_of, client.call, sent.values)
    rows = live()
    if len(rows) < 2:
        return second  # The service lists the audience under another id.
    delete, row = "content-targets.delete", rows[-1]
    body = client.spec.body_to_wire(delete, targetId=row.target, targetType=row.type, contentId=row.content)
    resolver.before_retry(sent.call)
    with suppress(Rejected):
        client.call(delete, body=body)
        rows = resolver.poll(live, lambda rows: len(rows) < 2)
    if len(rows) > 1:
        return second
    fresh = None
    if not rows:
        resolver.before_retry(sent.call)
        sent.send_again(sent.body)
        fresh = resolver.shown(sent)
    return WrongAssumption(
        "the service made a second assignment; one of the two is left",
        values=second.values,
        is_done=fresh is not None and not is_left(fresh, sent),
    )


_Answers = Mapping[str, AnswerRow]
"""Normalized name of a field → a person's answer to it."""


def answer_keys(sent: IssuedRequest, fields: dict[str, FieldRow]) -> frozenset[str]:
    """Return the dialect keys that a call with answers rests on. Reads the fields for their types, and keeps them."""
    answers = answers_in_body(sent.client.spec.behaviour, sent.body)
    if not answers.keys() <= fields.keys():
        fields |= {str(field.id): field for field in read_fields(sent.client.call)}
    key_of = {id: answer_value_key if any(answer_leaves(value)) else clear_answer_key for id, value in answers.items()}
    return frozenset({WRAPPER, OMITTED, *(key(fields[id].type) for id, key in key_of.items() if id in fields)})


class ComparedAnswers:
    """The answers of the person of one call, as they were before it.

    changed: the normalized names of the fields whose answers the plan changes; others may be sent along.
    """

    def __init__(
        self,
        sent: IssuedRequest,
        resolver: AmbiguousWriteResolver,
        fields: Mapping[str, FieldRow],
        changed: Collection[str],
    ) -> None:
        self._sent, self._resolver, self._fields, self._changed = sent, resolver, fields, changed
        self._answers = answers_in_body(sent.client.spec.behaviour, sent.body)
        self._before, self._unshown = _read(sent), set[str]()

    @property
    def others(self) -> _Answers:
        """The answers that the call does not name."""
        named = {normalize_name(self._fields[id].name) for id in self._answers if id in self._fields}
        return {name: answer for name, answer in (self._before or {}).items() if name not in named}

    def right(self, keys: frozenset[str]) -> frozenset[str]:
        """Return which of the keys that the call rests on it shows to be right; none where answers cannot be read.

        Raises WrongAssumption if the call does not show, or has cleared answers that it does not name. These are given
        back. A service may show no answers to hidden fields: a call with only such answers shows nothing.
        """
        if self._before is None:
            return frozenset()
        begun = self._resolver.timing.now()
        missing = self._resolver.poll(self._missing, not_)
        self.compare()
        if missing:
            raise WrongAssumption(f"{ANSWERS} was accepted, and {missing}")
        self._resolver.lags[self._sent.call.address.kind].append(self._resolver.timing.now() - begun)
        if self._unshown:
            keys -= {answer_value_key(self._fields[id].type) for id in self._unshown}
            keys = frozenset() if self._unshown == self._answers.keys() else keys
        # Without another answer, nothing shows whether those are kept.
        return keys if self.others else keys - {OMITTED}

    def compare(self) -> bool:
        """Give back changed answers that the plan does not change; then raise WrongAssumption."""
        after = self._read_now()
        kept = {name: answer for name, answer in (self._before or {}).items() if name not in self._changed}
        lost = _lacking(after, {**self.others, **kept})
        if not lost:
            return True
        forms, left = self._give_back({**after, **lost}, lost)
        back = f"{len(lost) - left} of them given back" if left else "given back again"
        is_omitted = not lost.keys().isdisjoint(self.others)
        do = "the call does not name" if is_omitted else "the plan does not change"
        raise WrongAssumption(
            f"{ANSWERS} cleared {count_noun(len(lost), 'answer')} that {do}, {back}",
            values={OMITTED: "clear", **forms} if is_omitted else forms,
        )

    def _give_back(self, whole: _Answers, lost: _Answers) -> tuple[Mapping[str, Value], int]:
        """Send all answers of the person, in other forms if those assumed are refused.

        Returns the forms, and how many of the lost answers are still missing.
        """
        own = self._sent.client.spec
        types = {one.type for one in self._fields.values() if normalize_name(one.name) in lost}
        keys = [key for key in (WRAPPER, *sorted(map(answer_value_key, types))) if not own.is_known(key)]
        best: Mapping[str, Value] = {}
        left = self._left_in(best, whole, lost)
        # Under the right wrapper, answers in the right form come back: the others are searched from there.
        for key in keys:
            for value in likeliest(key, own.behaviour(key), "") if left else ():
                number = self._left_in({**best, key: value}, whole, lost)
                if number < left:
                    best, left = {**best, key: value}, number
                    break
        for forms in islice(joint_values(keys, own.behaviour, ""), 30) if left == len(lost) else ():
            if not self._left_in(forms, whole, lost):
                return forms, 0
        if 0 < left < len(lost):
            left = self._left_in(best, whole, lost)
        return best, left

    def _left_in(self, forms: Mapping[str, Value], whole: _Answers, lost: _Answers) -> int:
        """Send all answers in some forms; return how many of the lost ones are still missing."""
        try:
            with self._sent.client.speaking(forms):
                behaviour = self._sent.client.spec.behaviour
                answers = encode_live_answers(behaviour, self._fields.values(), whole.values())
                self._sent.send_again(build_answers_body(behaviour, answers))
        except Rejected:
            return len(lost)
        return len(self._resolver.poll(lambda: _lacking(self._read_now(), lost), not_))

    def _read_now(self) -> _Answers:
        return _read(self._sent) or {}

    def _missing(self) -> str:
        """Return which effect of the call does not show; empty if all of it does."""
        after = self._read_now()
        for id, value in self._answers.items():
            if id in self._fields and not any(answer_leaves(value)) and normalize_name(self._fields[id].name) in after:
                return f"the answer to {self._fields[id].name} is still there"
        call = self._sent.values
        self._unshown = {
            id
            for id, field in self._fields.items()
            if field.hidden and id in self._answers and normalize_name(field.name) not in after
        }
        granted = {one for one in ANSWERS_GIVEN.granted(call) if isinstance(one, tuple) and one[0] not in self._unshown}
        number = len(granted.difference(ANSWERS_GIVEN.visible(self._sent.client.call, call)))
        return ANSWERS_GIVEN.missing.format(missing=number, granted=len(granted)) if number else ""


def _lacking(live: _Answers, answers: _Answers) -> _Answers:
    """Return those of some answers that are not live."""
    return {name: answer for name, answer in answers.items() if live.get(name) != answer}


def _read(sent: IssuedRequest) -> _Answers | None:
    """Return the answers of the person of a call; None if they cannot be read."""
    answers = try_parse_answers(read_person(sent.client, sent.values.path["userId"]))
    return None if answers is None else {answer.field: answer for answer in answers}
