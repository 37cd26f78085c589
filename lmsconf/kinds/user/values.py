"""People as values: the live row, what a manifest says of somebody, and what the service says of an administrator."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Final, NamedTuple, TypeAlias

from lmsconf.errors import BadAnswer
from lmsconf.kinds.shared.answers import an_object, label, text
from lmsconf.kinds.shared.people import People
from lmsconf.model.address import RemoteId
from lmsconf.model.names import email, normal
from lmsconf.model.values import Json

APPLICATIONS: Final = ("achievements", "analyse", "create", "learn", "follow-up")
TEXTS: Final = {"first_name": "firstName", "last_name": "lastName", "language": "language"}
RIGHTS: Final = ("admin", "manager")
_TOLD_BY: Final = ("choices", "choiceIds", "values", "choiceId", "text", "value")
"""Where an answer may stand within the object that it is; whatever else is there only describes it."""
Said: TypeAlias = "str | frozenset[str] | None"
"""What a manifest answers to a field: a choice or a text, several choices, or nothing."""


class AnswerRow(NamedTuple):
    """A live answer: the choices, or a text, which may be the name of a choice."""

    field: str
    choices: frozenset[str]
    text: str | None

    @property
    def picked(self) -> frozenset[str]:
        """What was chosen, in a field that has choices: ids, or names where the service shows no more than that."""
        return self.choices or frozenset({self.text} if self.text else ())

    @property
    def said(self) -> str:
        """What was said, in a field of text, which some services show as a list of one."""
        return self.text or (next(iter(self.choices)) if len(self.choices) == 1 else "")


@dataclass(frozen=True, slots=True)
class PersonRow:
    """A live person. Beyond the first three, a field is None where it was not read or is not set."""

    id: RemoteId
    email: str
    archived: bool = False
    first_name: str | None = None
    last_name: str | None = None
    language: str | None = None
    admin: bool | None = None
    manager: bool | None = None
    applications: frozenset[str] | None = None
    metadata: tuple[tuple[str, str], ...] | None = None
    answers: tuple[AnswerRow, ...] | None = None
    archive_date: int | None = None
    stand_in: bool | None = None
    """True: one of those whom a redacted snapshot only counts in some list. One person may stand behind several."""

    @property
    def name(self) -> str:
        """The e-mail in the form in which people are compared."""
        return email(self.email)


@dataclass(frozen=True, slots=True)
class AdminRow:
    """Somebody with administrator rights, as a list of everybody shows them."""

    id: RemoteId
    name: str


@dataclass(frozen=True, slots=True)
class HolderRow:
    """How many people picked a choice; `id` is that of the choice."""

    id: RemoteId
    people: int

    @property
    def name(self) -> str:
        """A choice goes by its field's name and its own; here only the id counts."""
        return self.id


@dataclass(frozen=True, slots=True)
class AnswersRow:
    """What somebody answered, by the names of the fields: None for what cannot be read, an answer or all of them.

    told: whether the list of people said anything about answers.
    """

    id: RemoteId
    answers: tuple[tuple[str, AnswerRow | None], ...] | None
    told: bool = True

    @property
    def name(self) -> str:
        """A person goes by the id here."""
        return self.id


@dataclass(frozen=True, slots=True)
class UnnamedRow:
    """The number of undeclared people in one list of a redacted snapshot.

    kind, of: whose list it is: a group's, a smart group's, a content's, or that of all admins, where `of` is empty.
    list: which one: members, managers, admins; for assignments of a content, the targetType. unknown: ids that no
    list of people explains.
    """

    kind: str
    of: RemoteId
    list: str
    active: int
    archived: int
    unknown: int

    @property
    def id(self) -> RemoteId:
        """What the list is told apart by."""
        return RemoteId(f"{self.kind}/{self.of}/{self.list}")

    @property
    def name(self) -> str:
        """A list has no other name."""
        return self.id


@dataclass(frozen=True, slots=True, kw_only=True)
class Person:
    """What a manifest says of a person. `said` holds its keys; a value that is not said is None."""

    said: frozenset[str]
    texts: Mapping[str, str] = field(default_factory=dict)
    flags: Mapping[str, bool] = field(default_factory=dict)
    applications: People | None = None
    metadata: Mapping[str, str | None] = field(default_factory=dict)
    answers: Mapping[str, Said] = field(default_factory=dict)
    archive_date: datetime | None = None

    def flag(self, key: str) -> bool | None:
        """`admin`, `manager` or `archived`; None where it is not said."""
        return self.flags.get(key)

    @property
    def needs_rights(self) -> bool:
        """Whether it matters who is admin or manager: to change that, and because either can forbid to archive."""
        return not self.said.isdisjoint(RIGHTS) or self.flag("archived") is True or self.archive_date is not None


def person_row(data: Mapping[str, Json]) -> PersonRow:
    """A person as the listing shows them; only that listing says who is archived."""
    return PersonRow(RemoteId(text(data, "userId")), label(data, "email"), bool(data.get("archivedAt")))


def listed_details(data: Mapping[str, Json], keys: frozenset[str]) -> dict[str, object]:
    """What an entry of the listing says under these manifest keys; it has no language and no rights."""
    found: dict[str, object] = {key: label(data, TEXTS[key]) for key in ("first_name", "last_name") if key in keys}
    if "metadata" in keys:
        held = an_object(data.get("metadata") or {}, "the metadata of a user")
        found["metadata"] = tuple(sorted((key, label(held, key)) for key in held))
    if "answers" in keys:
        found["answers"] = live_answers_of(data)
    if "custom_archive_date" in keys and (date := data.get("customArchiveDate")) is not None:
        found["archive_date"] = int(text(data, "customArchiveDate")) if date else None
    return found


def readable_answers(data: Mapping[str, Json]) -> tuple[AnswerRow, ...] | None:
    """The answers of a person; None where their inner shape, which is not documented, cannot be read.

    Nobody's answers may keep everybody from being read: only who declares them has to know them.
    """
    try:
        return live_answers_of(data)
    except BadAnswer:
        return None


def live_answers_of(data: Mapping[str, Json]) -> tuple[AnswerRow, ...]:
    """The answers of a person, by the names of the fields. Raises BadAnswer where they cannot be read."""
    held = an_object(data.get("customFields") or {}, "the answers of a user")
    found = (live_answer(name, held[name]) for name in sorted(held))
    return tuple(answer for answer in found if answer is not None)


def live_answer(name: str, value: Json) -> AnswerRow | None:
    """The answer to one field; None where there is none. Raises BadAnswer where it cannot be read."""
    return None if value is None else _answer(name, value)


def single_details(data: Mapping[str, Json], keys: frozenset[str]) -> dict[str, object]:
    """What the answer about one person says under the keys that no listing has."""
    found: dict[str, object] = {}
    if "language" in keys:
        found["language"] = label(data, "language")
    if "applications" in keys:
        held = data.get("applicationIds")
        if not isinstance(held, list):
            # Taken for none, all of them would be granted or seem gone.
            raise BadAnswer("an answer about a user came without its list of applicationIds")
        found["applications"] = frozenset(map(str, held))
    return found


def rights(data: Mapping[str, Json]) -> dict[str, object]:
    """Who is admin and who is manager; a flag that is not there is false."""
    return {key: bool(data.get(key)) for key in RIGHTS}


def _answer(name: str, value: Json) -> AnswerRow:
    """An answer, whose inner shape is not documented: choices as objects, ids or names, one choice, or a text."""
    if isinstance(value, str):
        return AnswerRow(normal(name), frozenset(), value)
    if isinstance(value, list):
        return _choices(name, value)
    said = an_object(value, f"the answer to {name}")
    told = {key: part for key in _TOLD_BY if (part := said.get(key)) is not None and part != "" and part != []}
    for key, part in told.items():
        if isinstance(part, list):
            return _choices(name, part)
        if key == "choiceId":
            return AnswerRow(normal(name), frozenset({text(said, key)}), None)
        if key in ("text", "value") and isinstance(part, str):
            return AnswerRow(normal(name), frozenset(), part)
    if not told and (said.keys() & _TOLD_BY or not any(part is not None and part != "" for part in said.values())):
        return AnswerRow(normal(name), frozenset(), None)
    raise BadAnswer(f"the answer to {name} has a shape that cannot be read: {sorted(said)}")


def _choices(name: str, picked: list[Json]) -> AnswerRow:
    return AnswerRow(normal(name), frozenset(_choice(name, one) for one in picked), None)


def _choice(name: str, value: Json) -> str:
    if isinstance(value, dict):
        return text(value, "choiceId" if value.get("choiceId") is not None else "name")
    if isinstance(value, str | int) and not isinstance(value, bool):
        return str(value)
    raise BadAnswer(f"an answer to {name} holds {value!r:.60} where a choice should be")
