"""Values for people: live rows and declared persons, parsed from user objects in responses and manifest entries."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from datetime import UTC, datetime
from functools import partial
from sys import intern
from typing import Any, Final, TypeAlias, cast

from msgspec import Struct, field
from msgspec.structs import replace

from lmsconf.errors import InvalidResponse
from lmsconf.kinds.shared.kind_names import ADMIN, ANSWERS, HOLDERS, USER
from lmsconf.kinds.shared.manifest_entry import (
    ManifestEntry,
    PeopleList,
    parse_list,
    parse_names,
    parse_time,
)
from lmsconf.kinds.shared.responses import (
    AnswerRow,
    object_list,
    optional_text,
    parse_answers,
    require_object,
    require_text,
)
from lmsconf.model.address import Address, Ref, RemoteId
from lmsconf.model.canonical_json import Json
from lmsconf.model.declarations import DesiredResource
from lmsconf.model.names import grouped, normalize_email, normalize_name
from lmsconf.model.plan import Change, FieldChange
from lmsconf.model.snapshot import IdAndName, SnapshotRow

APPLICATIONS: Final = ("achievements", "analyse", "create", "learn", "follow-up")
TEXTS: Final = {"first_name": "firstName", "last_name": "lastName", "language": "language"}
RIGHTS: Final = ("admin", "manager")
ARCHIVE_DATE: Final = "custom_archive_date"
KEYS: Final = (*TEXTS, *RIGHTS, "applications", "metadata", "answers", "archived", ARCHIVE_DATE)
"""Keys of a declared person without those common to all kinds."""
_ATTRIBUTES: Final = {
    **{key: key for key in (*TEXTS, *RIGHTS, "applications", "metadata", "answers")},
    "custom_archive_date": "archive_date",
}
"""Key of an entry → attribute of a row that is None unless it was read."""
Answer: TypeAlias = "str | frozenset[str] | None"
"""A declared answer to a field: a choice or a text, several choices, or None for no answer."""


def picked_choices(answer: Answer) -> frozenset[str]:
    """Return the choices of an answer to a CHOICE or MULTI_SELECT field, or its text, as a set."""
    return answer if isinstance(answer, frozenset) else frozenset({answer} if answer else ())


class PersonRow(SnapshotRow, frozen=True):
    """A live person. Beyond the first three, a field is None if it was not read or is not set.

    archive_date: the custom archive date, in epoch milliseconds. manages: the names of the groups that the person
    manages, read only of people who lose the manager right, where groups go with it.
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
    manages: tuple[str, ...] | None = None
    stand_in: bool | None = None
    """True for a placeholder of a person who is only counted in some list of a redacted snapshot.

    Several placeholders may be the same person.
    """
    unlisted: bool | None = None
    """True for a person that GET /users does not list, and GET /users/{userId} shows."""

    @property
    def name(self) -> str:
        """The e-mail, normalized for comparison."""
        return normalize_email(self.email)

    @property
    def archives_at(self) -> datetime | None:
        """The custom archive date, to the second."""
        return None if self.archive_date is None else datetime.fromtimestamp(self.archive_date // 1000, UTC)


class AdminRow(IdAndName, frozen=True):
    """A person with administrator rights, from the extended listing; `name` is the normalized e-mail."""

    listing = ADMIN


class HolderRow(SnapshotRow, frozen=True):
    """The number of people who hold a choice; `id` is that of the choice."""

    listing = HOLDERS

    id: RemoteId
    people: int


class AnswersRow(SnapshotRow, frozen=True):
    """A person's answers, as pairs of field name and answer; None for an answer, or all, that cannot be parsed.

    has_answers: whether the row of the listing had `customFields`.
    """

    listing = ANSWERS

    id: RemoteId
    answers: tuple[tuple[str, AnswerRow | None], ...] | None = None
    has_answers: bool = True
    email: str = ""
    archived: bool = False

    @property
    def all_answers(self) -> tuple[AnswerRow, ...] | None:
        """The answers alone; None if one of them cannot be parsed: the others would read as all that there are."""
        answers = tuple(answer for _, answer in self.answers or () if answer is not None)
        return answers if self.answers is not None and len(answers) == len(self.answers) else None


def answers_of(row: PersonRow) -> AnswersRow:
    """Return the answers of a person whose row holds them; None also stands for answers that could not be read."""
    return AnswersRow(
        row.id,
        None if row.answers is None else tuple((answer.field, answer) for answer in row.answers if answer.picked),
        email=row.email,
        archived=row.archived,
    )


class PersonSpec(Struct, frozen=True, kw_only=True):
    """A declared person. `declared_keys` are those of the entry; an undeclared single value is None.

    flags: `admin`, `manager` and `archived`, where declared.
    """

    declared_keys: frozenset[str]
    texts: Mapping[str, str] = field(default_factory=dict)
    flags: Mapping[str, bool] = field(default_factory=dict)
    applications: PeopleList | None = None
    metadata: Mapping[str, str | None] = field(default_factory=dict)
    answers: Mapping[str, Answer] = field(default_factory=dict)
    archive_date: datetime | None = None

    @property
    def needs_live_rights(self) -> bool:
        """Whether the live rights must be read: they are declared, or may forbid archiving or an archive date."""
        return (
            not self.declared_keys.isdisjoint(RIGHTS)
            or self.flags.get("archived", False)
            or self.archive_date is not None
        )


class PeopleDirectory(Struct, frozen=True):
    """All people of a workspace, indexed as they will be after the plan.

    by_email: normalized e-mail → row.
    emails: id → normalized e-mail, only where one person has that e-mail.
    ids: all ids.
    archived: e-mails of archived people; also of those who may be, and are not listed.
    twice: ambiguous e-mail → the ids of the active people who share it.
    new: e-mails of people to be created, who have no id yet.
    not_renamed: id → declared e-mail, of people whose rename is not in the plan; lists may name them by it.
    """

    by_email: Mapping[str, PersonRow]
    emails: Mapping[str, str]
    ids: frozenset[str]
    archived: frozenset[str]
    twice: Mapping[str, tuple[str, ...]]
    new: frozenset[str] = frozenset()
    not_renamed: Mapping[str, str] = field(default_factory=dict)

    @staticmethod
    def of(people: Iterable[PersonRow], new: frozenset[str] = frozenset()) -> PeopleDirectory:
        """Index people. For an e-mail an active person precedes an archived one; two active ones make it ambiguous."""
        ordered = sorted(people, key=lambda one: (one.archived, one.id))
        groups = grouped(ordered, lambda one: one.name)
        by_email = {email: same[0] for email, same in groups.items()}
        active = {email: tuple(one.id for one in same if not one.archived) for email, same in groups.items()}
        twice = {email: ids for email, ids in active.items() if len(ids) > 1}
        return PeopleDirectory(
            by_email=by_email,
            emails={one.id: email for email, one in by_email.items() if email not in twice},
            ids=frozenset(one.id for one in ordered),
            archived=frozenset(email for email, ids in active.items() if not ids),
            twice=twice,
            new=new,
        )

    def live_to_compare(self, ids: Iterable[str], declared: PeopleList) -> PeopleList:
        """Return a live list in the form of a declared one, without unknown people and undeclared archived ones."""
        named = declared.named_emails
        emails, not_renamed = self.emails, self.not_renamed
        live = frozenset(
            [later if (later := not_renamed.get(id)) in named else emails[id] for id in ids if id in emails]
        )
        return declared.live_to_compare(live - (self.archived - named) if self.archived else live)

    def ids_of(self, declared: DesiredResource[Any], workspace: str) -> list[RemoteId]:
        """Return the id that an entry pins, else those of who alone has its e-mail, or an earlier one."""
        pin = declared.pin(workspace)
        named = map(self.by_email.get, (declared.address.name, *declared.previously))
        return [row.id for row in named if row and row.id in self.emails] if pin is None else [pin]

    def unknown(self, ids: Iterable[str]) -> list[str]:
        """Return, sorted, the ids that are not in the listing of people."""
        return sorted([id for id in frozenset(ids) if id not in self.ids])

    def display_names(self, ids: Iterable[str]) -> frozenset[str]:
        """Return people for display: by e-mail, or by id if that is unknown or ambiguous."""
        return frozenset(self.emails.get(id, f"user id {id}") for id in ids)

    def id(self, person: str) -> RemoteId | Ref:
        """Return the id of a person accepted by `report_unknown_people`, or a Ref for one to be created."""
        return Ref(Address.of(USER, person)) if person in self.new else self.by_email[person].id


def planned_flag(spec: PersonSpec, row: PersonRow | None, key: str) -> bool:
    """Return the flag `admin`, `manager` or `archived` after the plan: the declared value, else the live one."""
    declared = spec.flags.get(key)
    return declared if declared is not None else bool(getattr(row, key, False))


def loses_manager_right(spec: PersonSpec, row: PersonRow | None) -> bool:
    """Return whether the entry takes the manager right away."""
    return spec.flags.get("manager") is False and row is not None and bool(row.manager)


def declared_row(row: PersonRow, spec: PersonSpec) -> PersonRow:
    """Return a row with the declared attributes alone: both rights if one is declared."""
    kept = {*spec.declared_keys, *(() if spec.declared_keys.isdisjoint(RIGHTS) else RIGHTS)}
    return replace(row, **{name: None for key, name in _ATTRIBUTES.items() if key not in kept})


def parse_person_row(data: Mapping[str, Json]) -> PersonRow:
    """Parse an entry of GET /users (User list entry); the extended listing does not show who is archived."""
    return PersonRow(
        RemoteId(intern(require_text(data, "userId"))), optional_text(data, "email"), bool(data.get("archivedAt"))
    )


def _metadata(data: Mapping[str, Json]) -> tuple[tuple[str, str], ...]:
    held = require_object(data.get("metadata") or {}, "the metadata of a user")
    return tuple(sorted((key, optional_text(held, key)) for key in held))


def _applications(data: Mapping[str, Json]) -> frozenset[str]:
    """Return the applications. Raises InvalidResponse without a list: read as empty, it would plan grants."""
    held = data.get("applicationIds")
    if not isinstance(held, list):
        raise InvalidResponse("an answer about a user is missing its list of applicationIds")
    return frozenset(map(str, held))


_PARSERS: Final[Mapping[str, Callable[[Mapping[str, Json]], object]]] = {
    **{key: partial(optional_text, key=name) for key, name in TEXTS.items()},
    "metadata": _metadata,
    "answers": parse_answers,
    ARCHIVE_DATE: lambda data: int(require_text(data, "customArchiveDate")) if data.get("customArchiveDate") else None,
    "applications": _applications,
}
"""Key of an entry → how its value is parsed from a user of a response."""
SINGLE_KEYS: Final = frozenset({"language", "applications"})
"""The keys that only GET /users/{userId} has. The listing of GET /users has the others, but no rights."""


def parse_values(data: Mapping[str, Json], keys: frozenset[str]) -> dict[str, object]:
    """Parse the values of these manifest keys, without rights, from a user of a response: attribute of a row → value.

    Raises InvalidResponse where one has another shape.
    """
    return {_ATTRIBUTES[key]: parse(data) for key, parse in _PARSERS.items() if key in keys}


def parse_managed_groups(data: Mapping[str, Json]) -> dict[str, object]:
    """Parse the names of the groups that a person manages, from GET /users/{userId}."""
    groups = object_list(data, "managerOfGroups") if data.get("managerOfGroups") else []
    return {"manages": tuple(sorted(optional_text(one, "name") or require_text(one, "groupId") for one in groups))}


def parse_rights(data: Mapping[str, Json]) -> dict[str, object]:
    """Parse the flags `admin` and `manager`; a missing one is false."""
    return {key: bool(data.get(key)) for key in RIGHTS}


_HELD: Final = {"answers": "the answer to", "metadata": "the metadata"}
"""Keys of values by name → what is taken away, for messages."""


def revoked_access(one: FieldChange) -> str | None:
    """Return what a changed value takes from a person, in words: all access, or a right; None for nothing."""
    # Access ends at that date, which may be past; a changed date may be earlier than the old one.
    if one.path in ("archived", ARCHIVE_DATE) and one.after:
        return "access"
    return f"{one.path} rights" if one.path in RIGHTS and one.before is True and one.after is not True else None


def revoked_rights(change: Change) -> Iterator[str]:
    """Yield what an update revokes from a person, in words; a value that is replaced is taken away, too."""
    for one in change.fields:
        if access := revoked_access(one):
            yield access
        key, _, name = one.path.partition(".")
        if name and key in _HELD and one.before not in (None, "", []) and not one.added and one.before != one.after:
            yield f"{_HELD[key]} {name}"


def parse_person(entry: ManifestEntry, address: Address) -> PersonSpec:
    """Parse what an entry declares of a person, and report contradictions in it; an invalid date becomes None."""
    body, date = entry.body, entry.body.get(ARCHIVE_DATE)
    spec = PersonSpec(
        declared_keys=frozenset(body.keys() & set(KEYS)),
        texts={key: normalize_name(str(body[key])) for key in TEXTS if key in body},
        flags={key: bool(body[key]) for key in (*RIGHTS, "archived") if key in body},
        applications=parse_list(body.get("applications"), str),
        metadata=dict(cast("Mapping[str, str | None]", body.get("metadata", {}))),
        answers={
            normalize_name(field): _answer(value)
            for field, value in cast("Mapping[str, Json]", body.get("answers", {})).items()
        },
        archive_date=None if date is None else parse_time(entry, date, (ARCHIVE_DATE,), end_of_day=False),
    )
    _report_contradictions(entry, address, spec)
    return spec


def report_deleted_person(entry: ManifestEntry, address: Address) -> None:
    """Report an error: deleting an account would destroy certificates and results, so manifests cannot do it."""
    entry.problem(
        "user/never-deleted",
        f"{address}: people are never deleted",
        hint="Declare the person under `users:` with `archived: true`.",
        address=address,
    )


def _answer(value: Json) -> Answer:
    if isinstance(value, list):
        return frozenset(parse_names(value))
    return None if value is None else normalize_name(str(value))


def _report_contradictions(entry: ManifestEntry, address: Address, spec: PersonSpec) -> None:
    """Report contradictions within the entry, and metadata keys that are not allowed."""
    for application in sorted(spec.applications.include & spec.applications.exclude if spec.applications else ()):
        entry.problem(
            "user/both",
            f"{address}: {application} is both included and excluded",
            hint="Keep it in one of the two lists.",
            source=entry.places.find(application, "applications", "exclude"),
            address=address,
        )
    if spec.flags.get("archived") and spec.flags.get("admin"):
        entry.problem(
            "user/archived-admin",
            f"{address}: an admin cannot be archived",
            "archived",
            hint="Set `admin: false` or `archived: false`.",
            address=address,
        )
    for right in [right for right in RIGHTS if spec.archive_date is not None and spec.flags.get(right)]:
        entry.problem(
            "user/archive-date",
            f"{address}: {'an admin' if right == 'admin' else 'a manager'} cannot have a custom archive date",
            ARCHIVE_DATE,
            hint=f"Set `{right}: false`, or remove the date.",
            address=address,
        )
    if "$ref" in spec.metadata:
        entry.problem(
            "user/metadata-key",
            f'{address}: metadata cannot have the key "$ref", which stands for an id in plans',
            "metadata",
            hint="Choose another key.",
            address=address,
        )
