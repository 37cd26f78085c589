"""The state of a person before a probe changes them, kept on disk while it runs, to compare and restore it."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import datetime, timedelta
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Final, Literal

from msgspec import Struct, to_builtins
from msgspec.structs import replace

from lmsconf.api.spec.dialect_candidates import Value, candidate_combinations, candidate_values
from lmsconf.api.spec.operations import CUSTOM_FIELDS
from lmsconf.api.spec.value_encoding import (
    ANSWERS,
    WRAPPER,
    PickedChoice,
    answer_value_key,
    build_answers_body,
    clear_answer_key,
    encode_answer,
)
from lmsconf.doctor.probe_trials import PREFIX, TrialClient, Trying, WriteResult
from lmsconf.documents.json_documents import from_json
from lmsconf.errors import LmsconfError, Rejected
from lmsconf.kinds.custom_field.types import FieldRow, encode_live_answers, parse_field_row
from lmsconf.kinds.shared.responses import AnswerRow, try_parse_answers
from lmsconf.kinds.user.types import RIGHTS
from lmsconf.model.canonical_json import members, sha256
from lmsconf.model.names import normalize_name
from lmsconf.support.files import read_own_file, write_own_file

DATE: Final = "users.set-custom-archived-date.date"
FAR: Final = timedelta(days=3650)
"""How far ahead the archive dates of a probe are."""


class PersonBackup(Struct, frozen=True):
    """A person at one moment. answers: None if the service shows them in a form that cannot be read or sent again."""

    id: str
    email: str
    archived: bool
    rights: Mapping[str, bool]
    applications: frozenset[str]
    date: int | None
    metadata: Mapping[str, str]
    answers: tuple[AnswerRow, ...] | None
    fields: tuple[FieldRow, ...] = ()

    @classmethod
    def take(cls, client: TrialClient, person: str) -> PersonBackup:
        """Read the person's current state. Raises Rejected if the service does not show single people."""
        user = client.read_person(person)
        fields = tuple(map(parse_field_row, client.reader.rows(CUSTOM_FIELDS).rows))
        date, metadata = user.get("customArchiveDate"), user.get("metadata")
        applications = user.get("applicationIds")
        answers, by_name = try_parse_answers(user), {normalize_name(field.name): field for field in fields}
        is_repeatable = all(_is_repeatable(answer, by_name.get(answer.field)) for answer in answers or ())
        return cls(
            id=person,
            email=str(user.get("email") or person),
            archived=user.get("archivedAt") is not None,
            rights={right: bool(user.get(right)) for right in RIGHTS},
            applications=frozenset(map(str, applications if isinstance(applications, list) else ())),
            date=int(date) if isinstance(date, int | float) and date else None,
            metadata={key: str(value) for key, value in members(metadata).items()},
            answers=answers if is_repeatable else None,
            fields=fields,
        )

    @property
    def answered_types(self) -> list[str]:
        """The types of the fields that the person has answered."""
        return sorted({field.type for field in self.fields if normalize_name(field.name) in _answered(self)})

    def retake(self, client: TrialClient) -> PersonBackup:
        """Read the same person again."""
        return PersonBackup.take(client, self.id)

    def of_killed_probe(self, client: TrialClient, now: datetime) -> PersonBackup | None:
        """Return the state to restore after a probe that was killed some time ago; None if the person is deleted.

        What has changed since and was not lost is as it is now: somebody else may have changed it.
        """
        try:
            live = self.retake(client)
        except Rejected:
            return None
        is_changed = live.date is not None and live.date < (now + FAR - timedelta(days=365)).timestamp() * 1000
        lost = (answer for answer in self.answers or () if answer.field not in _answered(live))
        kept = (answer for answer in live.answers or () if not answer.field.startswith(PREFIX))
        return replace(
            live,
            rights=self.rights,
            applications=self.applications,
            date=live.date if is_changed else self.date,
            metadata={**self.metadata, **live.metadata},
            answers=None if live.answers is None else tuple(sorted([*kept, *lost], key=lambda one: one.field)),
            fields=tuple(field for field in live.fields if not field.name.startswith(PREFIX)),
        )

    def send_answers(
        self,
        client: TrialClient,
        trying: Trying,
        given: Iterable[tuple[FieldRow, Sequence[PickedChoice] | str | None]] = (),
    ) -> WriteResult:
        """Send answers to fields together with all earlier ones, which the service may otherwise clear."""
        behaviour = client.spec.with_values(trying).behaviour
        held = encode_live_answers(behaviour, self.fields, self.answers or ())
        new = {str(field.id): encode_answer(behaviour, field.type, answer) for field, answer in given}
        return client.send(ANSWERS, path={"userId": self.id}, fields=build_answers_body(behaviour, {**held, **new}))

    def send_date(self, client: TrialClient, date: int | None, trying: Trying) -> WriteResult:
        """Send an archive date."""
        return client.send(
            "users.set-custom-archived-date", path={"userId": self.id}, fields={"date": date}, trying=trying
        )

    def restore(self, client: TrialClient) -> list[str]:
        """Restore the person to this state. Returns a message for each part that had changed."""
        was, now = self.rights, self.retake(client)
        lost = [right for right in RIGHTS if now.rights[right] is not was[right]]
        undone = [f"{right} of {self.email} was {was[right]}, became {now.rights[right]}" for right in lost]
        for right in lost:
            client.send(f"user-access.make-{right}", path={"userId": self.id, "endow": str(was[right]).lower()})
        if lost:
            # A service may give applications with a right, and take them with it.
            now = self.retake(client)
        for part, is_changed, restore in (
            ("an application", now.applications != self.applications, self.restore_applications),
            ("the archive date", now.date != self.date, self.restore_date),
            ("the metadata", now.metadata != self.metadata, partial(self.send_metadata, metadata=self.metadata)),
            ("an answer", now.lacks_answers_of(self), self.restore_answers),
        ):
            if is_changed:
                restore(client)
                undone.append(f"{part} of {self.email} was changed")
        return [f"{change}, and is restored" for change in undone]

    def differences(self, client: TrialClient) -> list[str]:
        """A message for each part of the person that differs from this state."""
        now = self.retake(client)
        return [
            f"the {'archive date' if part == 'date' else part} of {self.email}: not as before"
            for part in ("rights", "applications", "date", "metadata", "answers")
            if getattr(now, part) != getattr(self, part)
        ]

    def clear_scratch_answers(self, client: TrialClient) -> bool:
        """Clear the person's answers to scratch fields, which may not be deletable before. Whether there were any."""
        now = self.retake(client)
        fields = [one for one in now.fields if one.name.startswith(PREFIX) and one.name in _answered(now)]
        for field in fields:
            self._clear_answer(client, field)
        return bool(fields)

    def lacks_answers_of(self, before: PersonBackup) -> bool:
        """Whether an earlier answer is missing or different."""
        return not set(before.answers or ()) <= set(self.answers or ())

    def restore_applications(self, client: TrialClient) -> None:
        """Give back the applications that are missing, and take those that came along with a right."""
        held = self.retake(client).applications
        for application in sorted(held ^ self.applications):
            client.send(
                "user-access.set",
                path={"userId": self.id, "action": "REMOVE" if application in held else "ADD"},
                fields={"applicationId": application},
            )

    def restore_date(self, client: TrialClient) -> None:
        """Restore the archive date. Tries all names, since an interrupted try may have used an unconfirmed one."""
        self._until(
            client,
            ({DATE: name} for name in candidate_values(DATE, client.spec.behaviour(DATE))),
            partial(self.send_date, client, self.date),
            lambda now: now.date == self.date,
        )

    def send_metadata(self, client: TrialClient, metadata: Mapping[str, str]) -> WriteResult:
        """Send metadata in place of all that the person has."""
        return client.send("users.update-metadata", path={"userId": self.id}, fields={"metadata": dict(metadata)})

    def restore_answers(self, client: TrialClient, tries: Iterable[Trying] = ()) -> Trying | None:
        """Send all answers, in every form until none is missing; return the form that was accepted.

        tries: the forms; default: the likeliest first.
        """
        keys = [WRAPPER, *map(answer_value_key, self.answered_types)]
        return self._until(
            client,
            tries or candidate_combinations(keys, client.likely_value),
            partial(self.send_answers, client),
            lambda now: not now.lacks_answers_of(self),
        )

    def _until(
        self,
        client: TrialClient,
        tries: Iterable[Trying],
        send: Callable[[Trying], WriteResult],
        done: Callable[[PersonBackup], bool],
    ) -> Trying | None:
        """Try one dialect after the other until the person is read back in the wanted state; return it."""
        return next((trying for trying in tries if send(trying).accepted and done(self.retake(client))), None)

    def _clear_answer(self, client: TrialClient, field: FieldRow) -> None:
        """Clear the answer to one field, trying up to 300 forms."""
        keys = [clear_answer_key(field.type), WRAPPER, *map(answer_value_key, self.answered_types)]
        self._until(
            client,
            islice(candidate_combinations(keys, client.likely_value), 300),
            partial(self.send_answers, client, given=[(field, None)]),
            lambda live: field.name not in _answered(live),
        )


def _answered(person: PersonBackup) -> set[str]:
    return {answer.field for answer in person.answers or ()}


def _is_repeatable(answer: AnswerRow, field: FieldRow | None) -> bool:
    """Whether an answer has a form that can be sent again: some services show names of choices in place of ids."""
    if field is None or field.type == "TEXT":
        return field is None or len(answer.choices) < 2
    return answer.picked <= {text for choice in field.choices for text in (str(choice.id), choice.name)}


class _KeptDocument(Struct, kw_only=True):
    """What is kept. words: the dialect as far as it was known."""

    format: Literal["lmsconf.probe-people/3"] = "lmsconf.probe-people/3"
    words: Mapping[str, Value]
    people: tuple[PersonBackup, ...]


class KeptPeople:
    """A file that is there while a probe runs on a workspace, and after one that was killed.

    It is not in the project, where a branch could add one that gives somebody a right.
    """

    def __init__(self, folder: Path | None, root: Path, url: str) -> None:
        """folder: the user's state folder; None: nothing is kept. root: the project's, for embedded ones."""
        place = url if "://" in url else f"{root.resolve()} {url}"
        self.file = None if folder is None else folder / f"probe-{sha256(place)[:16]}.json"

    def load(self) -> tuple[list[PersonBackup], dict[str, Value]]:
        """Return the people of a probe that was killed, and the dialect as far as it knew it. Raises LmsconfError."""
        content = None if self.file is None else read_own_file(self.file)
        if content is None:
            return [], {}
        try:
            kept = from_json(json.loads(content), _KeptDocument)
        except ValueError as error:
            raise LmsconfError(
                f"{self.file} is damaged",
                hint="It held what people had before a probe that was killed. Delete it if they are as they should be.",
            ) from error
        return list(kept.people), dict(kept.words)

    def save(self, people: Sequence[PersonBackup], words: Mapping[str, Value]) -> None:
        """Replace what is kept. Raises LmsconfError."""
        if self.file is not None and people:
            document = _KeptDocument(words=words, people=tuple(replace(person, fields=()) for person in people))
            write_own_file(self.file, json.dumps(to_builtins(document), indent=2) + "\n")

    def discard(self) -> None:
        """Delete the file: the people are as before."""
        if self.file is not None:
            self.file.unlink(missing_ok=True)
