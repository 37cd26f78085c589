"""Values for people: live rows, declared persons, and the parsing of user objects in responses."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Final, NamedTuple, TypeAlias

from lmsconf.errors import InvalidResponse
from lmsconf.kinds.shared.kind_names import ADMIN, ANSWERS, HOLDERS, USER
from lmsconf.kinds.shared.people_lists import PeopleList
from lmsconf.kinds.shared.response_json import optional_text, require_object, require_text
from lmsconf.model.address import RemoteId
from lmsconf.model.canonical_json import Json
from lmsconf.model.names import normalize_email, normalize_name

APPLICATIONS: Final = ("achievements", "analyse", "create", "learn", "follow-up")
TEXTS: Final = {"first_name": "firstName", "last_name": "lastName", "language": "language"}
RIGHTS: Final = ("admin", "manager")
_VALUE_KEYS: Final = ("choices", "choiceIds", "values", "choiceId", "text", "value")
"""Keys under which an answer object may hold its value; its other keys are descriptive."""
Answer: TypeAlias = "str | frozenset[str] | None"
"""A declared answer to a field: a choice or a text, several choices, or None for no answer."""


class AnswerRow(NamedTuple):
    """A live answer: choices, or a text, which may be the name of a choice. `field` is the field's normalized name."""

    field: str
    choices: frozenset[str]
    text: str | None

    @property
    def picked(self) -> frozenset[str]:
        """The choices, for a field that has choices: ids, or names if the service returns only names."""
        return self.choices or frozenset({self.text} if self.text else ())

    @property
    def as_text(self) -> str:
        """The text, for a TEXT field, which some services return as a list of one; "" without an answer."""
        return self.text or (next(iter(self.choices)) if len(self.choices) == 1 else "")


@dataclass(frozen=True, slots=True)
class PersonRow:
    """A live person. Beyond the first three, a field is None if it was not read or is not set.

    archive_date: the custom archive date, in epoch milliseconds.
    """

    listing = USER

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
    """True for a placeholder of a person who is only counted in some list of a redacted snapshot.

    Several placeholders may be the same person.
    """

    @property
    def name(self) -> str:
        """The e-mail, normalized for comparison."""
        return normalize_email(self.email)


@dataclass(frozen=True, slots=True)
class AdminRow:
    """A person with administrator rights, from the extended listing; `name` is the normalized e-mail."""

    listing = ADMIN

    id: RemoteId
    name: str


@dataclass(frozen=True, slots=True)
class HolderRow:
    """The number of people who hold a choice; `id` is that of the choice."""

    listing = HOLDERS

    id: RemoteId
    people: int

    @property
    def name(self) -> str:
        """The id: these rows are found by choice id only."""
        return self.id


@dataclass(frozen=True, slots=True)
class AnswersRow:
    """A person's answers, as pairs of field name and answer; None for an answer, or all, that cannot be parsed.

    told: whether the row of the listing had `customFields`.
    """

    listing = ANSWERS

    id: RemoteId
    answers: tuple[tuple[str, AnswerRow | None], ...] | None
    told: bool = True

    @property
    def name(self) -> str:
        """The id of the person."""
        return self.id


@dataclass(frozen=True, slots=True, kw_only=True)
class PersonSpec:
    """A declared person. `declared_keys` are those of the entry; an undeclared single value is None."""

    declared_keys: frozenset[str]
    texts: Mapping[str, str] = field(default_factory=dict)
    flags: Mapping[str, bool] = field(default_factory=dict)
    applications: PeopleList | None = None
    metadata: Mapping[str, str | None] = field(default_factory=dict)
    answers: Mapping[str, Answer] = field(default_factory=dict)
    archive_date: datetime | None = None

    def flag(self, key: str) -> bool | None:
        """Return `admin`, `manager` or `archived` as declared, or None if it is not."""
        return self.flags.get(key)

    @property
    def needs_live_rights(self) -> bool:
        """Whether the live rights must be read: they are declared, or may forbid archiving or an archive date."""
        return (
            not self.declared_keys.isdisjoint(RIGHTS) or self.flag("archived") is True or self.archive_date is not None
        )


def parse_person_row(data: Mapping[str, Json]) -> PersonRow:
    """Parse an entry of GET /users (API specification, User list entry): id, e-mail and whether archived.

    GET /users/extended-info does not show who is archived.
    """
    return PersonRow(RemoteId(require_text(data, "userId")), optional_text(data, "email"), bool(data.get("archivedAt")))


def parse_listed_values(data: Mapping[str, Json], keys: frozenset[str]) -> dict[str, object]:
    """Parse the values of these manifest keys from an entry of GET /users, which has no language and no rights."""
    details: dict[str, object] = {
        key: optional_text(data, TEXTS[key]) for key in ("first_name", "last_name") if key in keys
    }
    if "metadata" in keys:
        held = require_object(data.get("metadata") or {}, "the metadata of a user")
        details["metadata"] = tuple(sorted((key, optional_text(held, key)) for key in held))
    if "answers" in keys:
        details["answers"] = parse_answers(data)
    if "custom_archive_date" in keys and (date := data.get("customArchiveDate")) is not None:
        details["archive_date"] = int(require_text(data, "customArchiveDate")) if date else None
    return details


def try_parse_answers(data: Mapping[str, Json]) -> tuple[AnswerRow, ...] | None:
    """Parse a person's answers; None if their shape, which the API specification leaves open, is not recognized.

    Unreadable answers must not fail the reading of all people: only declared ones are needed.
    """
    try:
        return parse_answers(data)
    except InvalidResponse:
        return None


def parse_answers(data: Mapping[str, Json]) -> tuple[AnswerRow, ...]:
    """Parse a person's answers, sorted by field name. Raises InvalidResponse for an unrecognized shape."""
    held = require_object(data.get("customFields") or {}, "the answers of a user")
    answers = (parse_answer(name, held[name]) for name in sorted(held))
    return tuple(answer for answer in answers if answer is not None)


def parse_answer(name: str, value: Json) -> AnswerRow | None:
    """Parse the answer to one field; None for null. Raises InvalidResponse for an unrecognized shape."""
    return None if value is None else _answer(name, value)


def parse_detail_values(data: Mapping[str, Json], keys: frozenset[str]) -> dict[str, object]:
    """Parse language and applications, if among `keys`, from GET /users/{userId}.

    Raises InvalidResponse without a list of applicationIds.
    """
    details: dict[str, object] = {}
    if "language" in keys:
        details["language"] = optional_text(data, "language")
    if "applications" in keys:
        held = data.get("applicationIds")
        if not isinstance(held, list):
            # Read as empty, it would plan a grant of every application, or hide removals.
            raise InvalidResponse("an answer about a user came without its list of applicationIds")
        details["applications"] = frozenset(map(str, held))
    return details


def parse_rights(data: Mapping[str, Json]) -> dict[str, object]:
    """Parse the flags `admin` and `manager`; a missing one is false."""
    return {key: bool(data.get(key)) for key in RIGHTS}


def _answer(name: str, value: Json) -> AnswerRow:
    """Parse an answer, whose shape the API leaves open: choices as objects, ids or names, one choice, or a text."""
    if isinstance(value, str):
        return AnswerRow(normalize_name(name), frozenset(), value)
    if isinstance(value, list):
        return _choices(name, value)
    body = require_object(value, f"the answer to {name}")
    parts = {key: part for key in _VALUE_KEYS if (part := body.get(key)) is not None and part != "" and part != []}
    for key, part in parts.items():
        if isinstance(part, list):
            return _choices(name, part)
        if key == "choiceId":
            return AnswerRow(normalize_name(name), frozenset({require_text(body, key)}), None)
        if key in ("text", "value") and isinstance(part, str):
            return AnswerRow(normalize_name(name), frozenset(), part)
    if not parts and (body.keys() & _VALUE_KEYS or not any(part is not None and part != "" for part in body.values())):
        return AnswerRow(normalize_name(name), frozenset(), None)
    raise InvalidResponse(f"the answer to {name} has a shape that cannot be read: {sorted(body)}")


def _choices(name: str, picked: list[Json]) -> AnswerRow:
    return AnswerRow(normalize_name(name), frozenset(_choice(name, one) for one in picked), None)


def _choice(name: str, value: Json) -> str:
    if isinstance(value, dict):
        return require_text(value, "choiceId" if value.get("choiceId") is not None else "name")
    if isinstance(value, str | int) and not isinstance(value, bool):
        return str(value)
    raise InvalidResponse(f"an answer to {name} holds {value!r:.60} where a choice should be")
