"""Lessons on scratch accounts, and on one person, a scratch account or the named person.

Of an account: the body fields of creating a user, only for projects that create people. Of a person:
archive date, metadata, and answers to fields. A named person's data is never put at risk: existing answers
are sent along with those to scratch fields, none is given before a call that clears it was accepted, and
metadata is only omitted, never added, because it might not be removable.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from datetime import datetime
from functools import partial, reduce
from itertools import count
from typing import Final

from lmsconf.api.spec.dialect_candidates import METADATA_MODE, Value, candidate_combinations, candidate_values
from lmsconf.api.spec.operations import CUSTOM_FIELDS, USERS
from lmsconf.api.spec.value_encoding import (
    NEVER_CLEARED,
    OMITTED,
    WRAPPER,
    PickedChoice,
    answer_value_key,
    clear_answer_key,
)
from lmsconf.doctor.person_backup import DATE, FAR, PersonBackup
from lmsconf.doctor.probe_trials import (
    SEEN,
    ScratchObjects,
    TrialClient,
    Trying,
    Undetermined,
    WriteResult,
    reason_of_leftover,
    required,
)
from lmsconf.errors import Rejected, Unauthorized
from lmsconf.kinds.custom_field.types import MOST_FIELDS, FieldRow, answer_value
from lmsconf.model.canonical_json import Json

EMAIL: Final = "users.create.email"
FIRST: Final = "users.create.firstName"
LAST: Final = "users.create.lastName"
LANGUAGE: Final = "users.create.language"
WELCOME: Final = "users.create.sendWelcomeEmail"
ACCOUNT_KEYS: Final = (EMAIL, FIRST, LAST, LANGUAGE, WELCOME)


class AccountLessons:
    """Each try creates another account, so that the effect of an earlier try is not mistaken for its own.

    accounts: gets the ids of those that stay for other lessons, the last one at the end.
    """

    def __init__(self, client: TrialClient, scratch: ScratchObjects, accounts: list[str]) -> None:
        self._client, self._scratch, self._accounts, self._number = client, scratch, accounts, count(1)
        self._names: Trying | None = None

    def probe_keys(self) -> None:
        """Probe all keys. The e-mail is first: without an account nothing can be observed.

        Raises Undetermined if the other keys cannot be probed.
        """
        required(self._client.try_candidates(EMAIL, self._has_email), "no scratch account could be created")
        self._scratch.delete_created(USERS)
        # A service may answer 403 for what is not there. The next call shows whether the token is refused.
        with suppress(Rejected, Unauthorized):
            self._client.read_person(self._accounts[-1])
            raise Undetermined(reason_of_leftover(USERS))
        self._accounts.clear()
        for key in (FIRST, LAST):
            self._client.try_candidates(key, partial(self._shows_name, key))
        # Two languages, because a new account may have one of them by default.
        self._client.try_candidates(
            LANGUAGE, lambda value: all(self._creates({"language": one}, {LANGUAGE: value}) for one in ("en", "sv"))
        )
        # It has no visible effect, so only a service that rejects unknown names reveals it.
        required(
            not self._takes_welcome("lmsconfProbeOfUnknownNames"),
            "the service accepts unknown names, and a mail that is not sent leaves no trace",
        )
        self._client.try_candidates(WELCOME, self._takes_welcome, "accepted by a service that refuses unknown names")

    def _has_email(self, value: Value) -> bool:
        """Whether an account is created, by e-mail alone or with names, if the service requires them."""
        first, last = (candidate_values(key, self._client.project_spec.behaviour(key)) for key in (FIRST, LAST))
        # The names of both that belong together.
        for names in (None, *({FIRST: one, LAST: other} for one, other in zip(first, last, strict=False))):
            self._names = names
            if self._creates({}, {EMAIL: value}):
                return True
        return False

    def _shows_name(self, key: str, value: Value) -> bool:
        """Return whether a name is shown as sent."""
        return self._creates({key.rpartition(".")[2]: f"Probe {next(self._number)}"}, {key: value})

    def _takes_welcome(self, value: Value) -> bool:
        return self._creates({"sendWelcomeEmail": False}, {WELCOME: value})

    def _creates(self, fields: Mapping[str, Json], trying: Trying) -> bool:
        """Whether an account is created that shows everything that was sent."""
        required = {"firstName": "Probe", "lastName": "Probe"} if self._names else {}
        words = {
            **{key: name for key, name in (self._names or {}).items() if not self._client.is_determined(key)},
            **trying,
        }
        row = self._scratch.create_account(f"user-{next(self._number)}", {**required, **fields}, words)
        if row is None:
            return False
        self._accounts.append(str(row["userId"]))
        shown = {**row, **self._client.read_person(self._accounts[-1])}
        return all(shown.get(name) == fields[name] for name in fields if name != "sendWelcomeEmail")


_TYPES: Final = ("TEXT", "CHOICE", "MULTI_SELECT")
VALUES: Final = {type: answer_value_key(type) for type in _TYPES}
"""Type of a field → the key for how an answer to it is written."""
CLEARING: Final = {type: clear_answer_key(type) for type in _TYPES}
"""Type of a field → the key for clearing an answer to it."""
ANSWER_KEYS: Final = (WRAPPER, *VALUES.values(), OMITTED, *CLEARING.values())
KEYS: Final = (DATE, METADATA_MODE, *ANSWER_KEYS)
_NOTE: Final = "probe"


class PersonLessons:
    """Each lesson builds on the results of those before. scratch_account: the person may be changed permanently.

    keep: called before an answer is given that a killed probe would leave. _fields: the scratch fields that may be
    answered.
    """

    def __init__(
        self,
        client: TrialClient,
        scratch: ScratchObjects,
        person: PersonBackup,
        now: datetime,
        *,
        scratch_account: bool,
        keep: Callable[[], None],
    ) -> None:
        self._client, self._scratch, self._person = client, scratch, person
        self._scratch_account, self._keep = scratch_account, keep
        self._fields: list[FieldRow] = []
        self._days, self._turn = count(int((now + FAR).timestamp()) // 86_400), count()

    def probe_archive_date(self) -> None:
        """Probe the archive date field: years ahead, another day for each try; then restore the date."""
        required(
            not any(self._person.rights.values()),
            "the person is admin or manager, so an archive date is not allowed; name somebody else",
        )
        required(not self._person.archived, "the person is archived; name somebody else")
        self._client.try_candidates(DATE, self._is_date)
        self._person.restore_date(self._client)

    def _is_date(self, value: Value) -> bool:
        moment = next(self._days) * 86_400_000
        self._person.send_date(self._client, moment, {DATE: value})
        return self._person.retake(self._client).date == moment

    def probe_metadata_mode(self) -> None:
        """Probe whether omitted metadata is removed."""
        held = dict(self._person.metadata)
        required(
            held or self._scratch_account, "the person has no metadata, and it might be impossible to remove it again"
        )
        if not held:
            held = {_NOTE: "1", f"{_NOTE}-2": "2"}
            self._person.send_metadata(self._client, held)
        first = min(held)
        sent = self._person.send_metadata(self._client, {key: held[key] for key in held if key != first})
        after = self._person.retake(self._client).metadata
        self._person.send_metadata(self._client, self._person.metadata)
        self._client.conclude(
            METADATA_MODE,
            (not sent.accepted, None, f"metadata without one of its names is refused: {sent.reason}"),
            (first in after, "merge", "what was omitted was kept"),
            (True, "replace", "what was omitted was removed"),
        )

    def probe_answers(self) -> None:
        """Probe how answers are written on one scratch field of each type, and with a second one what omission does.

        Raises Undetermined if no answer can be given.
        """
        free = self._scratch.count_free_fields()
        required(self._person.answers is not None, "the person's answers have an unknown format")
        # Existing answers are in every body, so that a type that they have costs no further combinations.
        first, *others = sorted(_TYPES, key=lambda type: type not in self._person.answered_types)
        self._repeat_answers()
        self._learn_first(self._field(first))
        self._client.learn((OMITTED,), partial(self._learn_omitted, self._fields[0], free))
        self._client.learn((CLEARING[first],), partial(self._learn_clearing, self._fields[0]))
        for type in others:
            self._client.learn((VALUES[type], CLEARING[type]), partial(self._learn_type, type))
        self._delete_fields()

    def _repeat_answers(self) -> None:
        """Send the person's existing answers as they are. Raises Undetermined if they are refused in every form."""
        if forms := [VALUES[type] for type in self._person.answered_types]:
            # A body in a wrong form may be taken for one without answers: the right one brings them back.
            found = self._person.restore_answers(self._client, self._repetitions((WRAPPER, *forms)))
            self._client.along = {
                **required(found, f"the person's answers are refused in every form: {self._client.last}")
            }

    def _repetitions(self, keys: Sequence[str]) -> Iterator[dict[str, Value]]:
        """Yield the combinations to send the existing answers in: there are many, and reasons of refusals help.

        Under the right wrapper the service looks at the answers: it refuses them for another reason than a wrapper.
        """
        tries = [*candidate_combinations(keys, self._client.likely_value)]
        names = [*dict.fromkeys(str(trying[WRAPPER]) for trying in tries)]
        reasons: dict[Value, str] = {}
        for trying in tries[: len(names)]:
            yield trying
            reasons[trying[WRAPPER]] = reduce(lambda why, name: why.replace(name, ""), names, self._client.last)
        alone = [wrapper for wrapper, why in reasons.items() if [*reasons.values()].count(why) == 1]
        likely = alone[0] if len(alone) == 1 else None
        yield from sorted(tries[len(names) :], key=lambda trying: trying[WRAPPER] != likely)

    def _learn_first(self, field: FieldRow) -> None:
        """Probe where the answers stand in the body, together with how one of that type is written."""
        forms = [VALUES[type] for type in dict.fromkeys([field.type, *self._person.answered_types])]
        self._refuse_unclearable(field)
        tries = candidate_combinations((WRAPPER, *forms), self._client.likely_value)
        self._client.along = required(
            next((trying for trying in tries if self._answers(field, trying)), None),
            self._client.failure_reason(WRAPPER),
        )
        for key in (WRAPPER, VALUES[field.type]):
            self._client.conclude(key, (True, self._client.along[key], SEEN))

    def _learn_type(self, type: str) -> None:
        """Probe how an answer to a field of that type is written and cleared."""
        # Free the previous field's place, which is needed where only one is left.
        self._delete_fields()
        self._scratch.refuse_leftovers(CUSTOM_FIELDS)
        field, key = self._field(type), VALUES[type]
        self._refuse_unclearable(field)
        required(
            self._client.try_candidates(key, lambda form: self._answers(field, {key: form})),
            "no answer to such a field could be given",
        )
        self._learn_clearing(field)

    def _refuse_unclearable(self, field: FieldRow) -> None:
        """Raise Undetermined where the answer of a named person might stay."""
        if self._scratch_account:
            return
        known = self._client.along.keys() | ({WRAPPER} if self._client.is_determined(WRAPPER) else set())
        clearing = CLEARING[field.type]
        keys = [clearing, *(key for key in (WRAPPER, VALUES[field.type]) if key not in known)]
        forms = candidate_combinations(keys, self._client.likely_value)
        clears = (one for one in forms if one[clearing] != "omit" and self._send(field, None, one).accepted)
        self._client.along |= required(
            next(clears, None),
            f"no call that clears an answer is accepted, so none is given that might stay: {self._client.last}",
        )
        self._keep()
        del self._client.along[clearing]

    def _answers(self, field: FieldRow, trying: Trying | None = None) -> bool:
        """Whether an answer is stored. Each try sends another one, so that an earlier one is not mistaken for it."""
        turn = next(self._turn)
        choice = field.choices[turn % 2] if field.choices else None
        text = choice.id if choice else f"{_NOTE}-{turn}"
        answer = [PickedChoice(str(choice.id), choice.name)] if choice else text
        return self._send(field, answer, trying or {}).accepted and self._answer_to(field) == [text]

    def _learn_clearing(self, field: FieldRow) -> None:
        """Probe what clears an existing answer. Raises Undetermined if none can be given."""
        key = CLEARING[field.type]
        keeps = self._client.is_determined(OMITTED) and self._client.spec.behaviour(OMITTED) == "keep"
        required(self._answers(field), "the scratch field did not take another answer")
        clears = self._client.try_candidates(
            key,
            lambda form: (
                not (keeps and form == "omit")
                and self._send(field, None, {key: form}).accepted
                and not self._answer_to(field)
            ),
        )
        if not clears and self._answer_to(field):
            self._client.conclude(key, (True, NEVER_CLEARED, self._client.failure_reason(key)))

    def _learn_omitted(self, field: FieldRow, free: int) -> None:
        """Probe omission: answer one field while the answer to the other is omitted."""
        required(free > 1, f"only one field is free, and it takes two: {MOST_FIELDS - 1} are used")
        other = self._field(field.type)
        is_answered = self._answers(field) and self._answers(other)
        self._client.conclude(
            OMITTED,
            (not is_answered, None, "one of the two scratch fields did not take an answer"),
            (is_answered and self._answer_to(field), "keep", "an omitted answer was kept"),
            (True, "clear", "an omitted answer was removed"),
        )

    def _field(self, type: str) -> FieldRow:
        """Create a hidden scratch field, with two choices if it takes choices. Raises Undetermined."""
        field = self._scratch.create_field(type, f"answered-{next(self._turn)}")
        required(field.type == type, f"the scratch field is of type {field.type}, not {type}")
        required(type == "TEXT" or len(field.choices) == 2, "the scratch field did not get its two choices")
        self._fields.append(field)
        return field

    def _delete_fields(self) -> None:
        """Delete the scratch fields, without their answers: a field that is answered may count as in use."""
        for field in self._fields:
            if self._client.is_determined(CLEARING[field.type]):
                self._send(field, None, {})
        self._fields.clear()
        self._scratch.delete_created(CUSTOM_FIELDS)

    def _send(self, field: FieldRow, answer: str | list[PickedChoice] | None, trying: Trying) -> WriteResult:
        """Answer one scratch field, or clear the answer."""
        return self._person.send_answers(self._client, {**self._client.along, **trying}, [(field, answer)])

    def _answer_to(self, field: FieldRow) -> list[str]:
        """The person's current answer to a scratch field: its text, or its choices by id; empty if there is none."""
        answers = self._person.retake(self._client).answers or ()
        answer = next((one for one in answers if one.field == field.name), None)
        value = [] if answer is None else answer_value(field, answer)
        return [value] if isinstance(value, str) else [str(choice.id) for choice in value]
