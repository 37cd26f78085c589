"""Lessons on one person, a scratch account or the named person: archive date, metadata, and answers to fields.

A named person's data is never put at risk: existing answers are sent along with those to scratch fields, and metadata
is only omitted, never added, because it might not be removable.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from datetime import datetime, timedelta
from itertools import count
from typing import Final

from lmsconf.api.spec import ApiSpec
from lmsconf.api.spec.listings import CUSTOM_FIELDS
from lmsconf.api.spec.value_encoding import ANSWERS, clear_answer_key, encode_answer
from lmsconf.doctor.findings import Value
from lmsconf.doctor.probe.candidate_values import candidate_values
from lmsconf.doctor.probe.live_rows import Field, most_fields, parse_field
from lmsconf.doctor.probe.person_backup import DATE, SHAPE, VALUE, PersonBackup
from lmsconf.doctor.probe.scratch_objects import ScratchObjects
from lmsconf.doctor.probe.trial_client import TrialClient, WriteResult
from lmsconf.model.canonical_json import Json

MODE: Final = "users.update-metadata.mode"
OMITTED: Final = f"{ANSWERS}.omitted"
CLEARING: Final = {type: clear_answer_key(type) for type in ("CHOICE", "MULTI_SELECT", "TEXT")}
"""Type of a field → the key for clearing an answer to it."""
ANSWER_KEYS: Final = (SHAPE, VALUE, OMITTED, *CLEARING.values())
KEYS: Final = (DATE, MODE, *ANSWER_KEYS)
_FAR: Final = timedelta(days=3650)
_NOTE: Final = "probe"


class PersonLessons:
    """Each lesson builds on the results of those before. scratch_account: the person may be changed permanently."""

    def __init__(
        self,
        client: TrialClient,
        scratch: ScratchObjects,
        person: PersonBackup,
        now: datetime,
        *,
        scratch_account: bool,
    ) -> None:
        self._client, self._scratch, self._person, self._scratch_account = client, scratch, person, scratch_account
        self._days, self._turn = count(int((now + _FAR).timestamp()) // 86_400), count()

    def probe_archive_date(self) -> None:
        """Probe the archive date field: years ahead, another day for each try; then restore the date."""
        if self._person.rights.get("admin") or self._person.rights.get("manager"):
            self._client.record_undetermined(
                DATE, "the person is admin or manager, so an archive date is not allowed; name somebody else"
            )
        elif self._person.archived:
            self._client.record_undetermined(DATE, "the person is archived; name somebody else")
        else:
            self._client.try_candidates(DATE, self._is_date)
            self._person.restore_date(self._client)

    def _is_date(self, value: Value) -> bool:
        moment = next(self._days) * 86_400_000
        path = {"userId": self._person.id}
        self._client.send("users.set-custom-archived-date", path=path, fields={"date": moment}, trying={DATE: value})
        return self._person.retake(self._client).date == moment

    def probe_metadata_mode(self) -> None:
        """Probe whether omitted metadata is removed."""
        held = dict(self._person.metadata)
        if not held and not self._scratch_account:
            self._client.record_undetermined(
                MODE, "the person has no metadata, and it might be impossible to remove it again"
            )
            return
        if not held:
            held = {_NOTE: "1", f"{_NOTE}-2": "2"}
            self._send_metadata(held)
        first = min(held)
        sent = self._send_metadata({key: value for key, value in held.items() if key != first})
        after = self._person.retake(self._client).metadata
        self._person.restore_metadata(self._client)
        if not sent.accepted:
            self._client.record_undetermined(MODE, f"metadata without one of its names is refused: {sent.reason}")
        elif first in after:
            self._client.record_value(MODE, "merge", "what was omitted was kept")
        else:
            self._client.record_value(MODE, "replace", "what was omitted was removed")

    def _send_metadata(self, metadata: Mapping[str, str]) -> WriteResult:
        return self._client.send(
            "users.update-metadata", path={"userId": self._person.id}, fields={"metadata": metadata}
        )

    def probe_answers(self) -> None:
        """Probe the shape of an answer on one scratch field, and with a second one what happens to omitted answers."""
        most = most_fields()
        free = most - len(self._scratch.list_rows(CUSTOM_FIELDS))
        if free < 1 or self._person.answers is None:
            full = f"no field is free: {most} of {most} are used"
            self._unknown(ANSWER_KEYS, full if free < 1 else "the person's answers have an unknown format")
            return
        field = self._field("CHOICE")
        if len(field.choices) != 2:
            self._unknown(ANSWER_KEYS, "the scratch field did not get its two choices")
        elif not self._client.try_candidates(SHAPE, self._has_shape(field)):
            self._unknown(ANSWER_KEYS[1:], "no answer to a field could be given")
        else:
            self._client.try_candidates(VALUE, lambda form: self._answers(field, {VALUE: form}))
            self._client.try_candidates(CLEARING["CHOICE"], self._clears(field))
            self._learn_omitted(field, free)
            for type in ("MULTI_SELECT", "TEXT"):
                # Free the previous field's place, which is needed where only one is left.
                self._scratch.delete_created(CUSTOM_FIELDS)
                self._client.try_candidates(CLEARING[type], self._clears(self._field(type)))

    def _unknown(self, keys: Iterable[str], reason: str) -> None:
        for key in keys:
            self._client.record_undetermined(key, reason)

    def _has_shape(self, field: Field) -> Callable[[Value], bool]:
        """Return whether an answer in that shape is stored, in one of the forms that a choice may have."""

        def works(shape: Value) -> bool:
            forms = candidate_values(VALUE, self._client.project_spec.behaviour(VALUE))
            return any(self._answers(field, {SHAPE: shape, VALUE: form}) for form in forms)

        return works

    def _answers(self, field: Field, trying: Mapping[str, Value] | None = None) -> bool:
        """Whether an answer is stored. Each try sends another one, so that an earlier one is not mistaken for it."""
        turn = next(self._turn)
        answer: str | list[str] = [str(field.choices[turn % 2].id)] if field.choices else f"{_NOTE}-{turn}"
        sent = self._send(field, answer, trying or {})
        return sent.accepted and self._answer_to(field) == answer

    def _clears(self, field: Field) -> Callable[[Value], bool]:
        """Return whether an existing answer is cleared."""

        def works(form: Value) -> bool:
            if not self._answers(field):
                return False
            sent = self._send(field, None, {clear_answer_key(field.type): form})
            return sent.accepted and not self._answer_to(field)

        return works

    def _learn_omitted(self, field: Field, free: int) -> None:
        """Probe omission: answer one field while the answer to the other is omitted."""
        if free < 2:
            self._client.record_undetermined(
                OMITTED, f"only one field is free, and it takes two: {most_fields() - 1} are used"
            )
            return
        other = self._field("TEXT")
        if not self._answers(field) or not self._answers(other):
            self._client.record_undetermined(OMITTED, "one of the two scratch fields did not take an answer")
        elif self._answer_to(field):
            self._client.record_value(OMITTED, "keep", "an omitted answer was kept")
        else:
            self._client.record_value(OMITTED, "clear", "an omitted answer was removed")

    def _field(self, type: str) -> Field:
        """Create a hidden scratch field of that type; with two choices if it takes choices."""
        choices: dict[str, Json] = {} if type == "TEXT" else {"choices": [{"name": "A"}, {"name": "B"}]}
        definition = {"type": type, **choices, "isHidden": True, "isOptional": True}
        return parse_field(self._scratch.create(CUSTOM_FIELDS, definition, f"answered-{type.lower()}"))

    def _send(self, field: Field, answer: str | list[str] | None, trying: Mapping[str, Value]) -> WriteResult:
        """Answer one scratch field, or clear the answer."""
        behaviour = ApiSpec({**self._client.words, **trying}).behaviour
        return self._person.send_answers(
            self._client, {str(field.id): encode_answer(behaviour, field.type, answer)}, trying
        )

    def _answer_to(self, field: Field) -> str | list[str]:
        """The person's current answer to a scratch field; empty if there is none."""
        rows = (answer for answer in self._person.retake(self._client).answers or () if answer.field == field.name)
        row = next(rows, None)
        if row is None:
            return []
        return row.as_text if field.type == "TEXT" else sorted(row.choices)
