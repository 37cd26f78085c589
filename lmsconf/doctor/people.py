"""Lessons on one person, a scratch account or the one who was named: archive date, metadata, and answers to fields.

Of somebody who was named nothing is put at risk that could not be said again: their own answers are sent along with
those to scratch fields, and metadata is only left out, never added, because it might not go away any more.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import datetime, timedelta
from itertools import count
from typing import Final

from lmsconf.core.values import Json
from lmsconf.doctor.candidates import candidates
from lmsconf.doctor.findings import Value
from lmsconf.doctor.keepsake import DATE, SHAPE, VALUE, Keepsake
from lmsconf.doctor.lab import Lab, Sent
from lmsconf.doctor.scratch import Scratch
from lmsconf.kinds.field_values import MOST_FIELDS, FieldRow, field_row
from lmsconf.kinds.names import CUSTOM_FIELD

MODE: Final = "users.update-metadata.mode"
OMITTED: Final = "users.update-custom-field-choice.omitted"
KEYS: Final = (DATE, MODE, SHAPE, VALUE, OMITTED)
_FAR: Final = timedelta(days=3650)
_NOTE: Final = "probe"


class PersonLessons:
    """One lesson after the other, each on top of what is known already. scratch_account: the person may be marked."""

    def __init__(self, lab: Lab, scratch: Scratch, person: Keepsake, now: datetime, *, scratch_account: bool) -> None:
        self._lab, self._scratch, self._person, self._scratch_account = lab, scratch, person, scratch_account
        self._days, self._turn = count(int((now + _FAR).timestamp()) // 86_400), count()
        self._form: str | int = "id"

    def learn_date(self) -> None:
        """The name of the archive date: years ahead, another day for each try, and then as it was."""
        if self._person.rights.get("admin") or self._person.rights.get("manager"):
            self._lab.unknown(DATE, "the person is admin or manager, and may have no archive date; name somebody else")
        elif self._person.archived:
            self._lab.unknown(DATE, "the person is archived; name somebody else")
        else:
            self._lab.learn(DATE, self._is_date)
            self._person.put_date_back(self._lab)

    def _is_date(self, value: Value) -> bool:
        moment = next(self._days) * 86_400_000
        path = {"userId": self._person.id}
        self._lab.send("users.set-custom-archived-date", path=path, said={"date": moment}, trying={DATE: value})
        return self._person.now(self._lab).date == moment

    def learn_mode(self) -> None:
        """Whether metadata that is left out goes."""
        held = dict(self._person.metadata)
        if not held and not self._scratch_account:
            self._lab.unknown(MODE, "the person has no metadata, and what is put there might not go away any more")
            return
        if not held:
            held = {_NOTE: "1", f"{_NOTE}-2": "2"}
            self._send_metadata(held)
        first = min(held)
        sent = self._send_metadata({key: value for key, value in held.items() if key != first})
        after = self._person.now(self._lab).metadata
        self._person.put_metadata_back(self._lab)
        if not sent.accepted:
            self._lab.unknown(MODE, f"metadata without one of its names is refused: {sent.reason}")
        elif first in after:
            self._lab.settle(MODE, "merge", "what was left out stayed")
        else:
            self._lab.settle(MODE, "replace", "what was left out went")

    def _send_metadata(self, metadata: Mapping[str, str]) -> Sent:
        return self._lab.send("users.update-metadata", path={"userId": self._person.id}, said={"metadata": metadata})

    def learn_answers(self) -> None:
        """The shape of an answer, on one scratch field; what becomes of one that is left out, with a second one."""
        free = MOST_FIELDS - len(self._scratch.rows(CUSTOM_FIELD))
        if free < 1 or self._person.answers is None:
            full = f"no field is free: {MOST_FIELDS} of {MOST_FIELDS} are used"
            for key in (SHAPE, VALUE, OMITTED):
                self._lab.unknown(key, full if free < 1 else "the person's answers are shown in an unknown shape")
            return
        choices: list[Json] = [{"name": "A"}, {"name": "B"}]
        field = self._field("answered", {"type": "CHOICE", "choices": choices})
        if len(field.choices) != 2:
            for key in (SHAPE, VALUE, OMITTED):
                self._lab.unknown(key, "the scratch field did not get its two choices")
        elif not self._lab.learn(SHAPE, self._has_shape(field)):
            for key in (VALUE, OMITTED):
                self._lab.unknown(key, "no answer to a field could be given")
        else:
            self._lab.learn(VALUE, lambda form: self._answers(field, form))
            self._learn_omitted(field, free)
            self._person.answer(self._lab, {str(field.id): self._said(None, self._form)}, {})

    def _has_shape(self, field: FieldRow) -> Callable[[Value], bool]:
        """Whether an answer in that shape arrives, in one of the forms that a choice may have."""

        def works(shape: Value) -> bool:
            forms = candidates(VALUE, self._lab.said.behaviour(VALUE))
            return any(self._answers(field, form, {SHAPE: shape}) for form in forms)

        return works

    def _answers(self, field: FieldRow, form: Value, trying: Mapping[str, Value] | None = None) -> bool:
        """Whether a choice arrives. Each try takes the other one, so that an earlier one is not mistaken for it."""
        choice = str(field.choices[next(self._turn) % 2].id)
        words = {VALUE: form, **(trying or {})}
        sent = self._person.answer(self._lab, {str(field.id): self._said(choice, form)}, words)
        if not sent.accepted or self._choices_of(field) != {choice}:
            return False
        self._form = form
        return True

    def _learn_omitted(self, field: FieldRow, free: int) -> None:
        """The answer to the one field is left out while the other one is answered."""
        if free < 2:
            self._lab.unknown(OMITTED, f"only one field is free, and it takes two: {MOST_FIELDS - 1} are used")
            return
        other = self._field("also-answered", {"type": "TEXT"})
        self._person.answer(self._lab, {str(other.id): _NOTE}, {})
        now = self._person.now(self._lab).answers or ()
        if all(one.field != other.name or one.text != _NOTE for one in now):
            self._lab.unknown(OMITTED, "the second scratch field did not take an answer")
        elif self._choices_of(field):
            self._lab.settle(OMITTED, "keep", "an answer that was left out stayed")
        else:
            self._lab.settle(OMITTED, "clear", "an answer that was left out went")
        self._person.answer(self._lab, {str(other.id): "", str(field.id): self._said(None, self._form)}, {})

    def _field(self, what: str, said: Mapping[str, Json]) -> FieldRow:
        return field_row(self._scratch.make(CUSTOM_FIELD, {**said, "isHidden": True, "isOptional": True}, what))

    def _choices_of(self, field: FieldRow) -> frozenset[str]:
        found = (one.choices for one in self._person.now(self._lab).answers or () if one.field == field.name)
        return next(found, frozenset())

    def _said(self, choice: str | None, form: Value) -> Json:
        """A choice as it is sent in that form; None: the answer goes."""
        if form == "list":
            return [choice] if choice else []
        return choice or ""
