"""Fill an empty workspace from a snapshot file: the same people, fields, groups, contents and assignments, by id.

What a snapshot does not hold gets the values of a new workspace: times of creation, results and certificates, and
what the catalog says of a content beside its name and type.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from typing import Final, TypeVar, cast
from unicodedata import normalize

from msgspec import Struct
from msgspec.json import encode

from lmsconf.sandbox.handlers.content import EVERYONE, USER
from lmsconf.sandbox.handlers.users import FIRST_LANGUAGE
from lmsconf.sandbox.request_context import (
    GROUP,
    SMART_GROUP,
    RequestContext,
    default_applications,
    encode_applications,
    parse_time,
)
from lmsconf.sandbox.seed_rows import (
    ANSWERS,
    CONTENTS,
    GROUPS,
    MANAGERS,
    MEMBERS,
    PEOPLE,
    EntryLoader,
    InvalidSeedValue,
    reserve_id,
)

T = TypeVar("T")
FORMAT: Final = "lmsconf.snapshot/1"
REDACTED: Final = "a redacted snapshot names too few people to make a workspace of"
LISTINGS: Final = ("custom_field", "user", "group", "smart_group", "content", "content_target")
"""The listings that a workspace is made of, each after those that it refers to."""
_KINDS: Final = {"user": USER, "group": GROUP, "smart_group": SMART_GROUP}
"""Listing → kind of audience."""


class _Row(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A row of a listing, or a part of one. None: it was not read, or is not set."""


class SnapshotChoice(_Row, frozen=True, kw_only=True):
    """A choice of a custom field."""

    id: str
    name: str


class SnapshotField(_Row, frozen=True, kw_only=True):
    """A custom field."""

    id: str
    name: str
    type: str
    choices: tuple[SnapshotChoice, ...] = ()
    description: str | None = None
    hidden: bool | None = None
    locked: bool | None = None
    optional: bool | None = None


class SnapshotAnswer(_Row, frozen=True, kw_only=True):
    """An answer. field: the name of the field, in NFC. choices: ids, or names where a service has only these."""

    field: str
    choices: tuple[str, ...] = ()
    text: str | None = None


class SnapshotPerson(_Row, frozen=True, kw_only=True):
    """A person. archive_date: in epoch milliseconds. manages, stand_in: of no use here."""

    id: str
    email: str
    archived: bool = False
    first_name: str = ""
    last_name: str = ""
    language: str = FIRST_LANGUAGE
    admin: bool = False
    manager: bool = False
    applications: tuple[str, ...] | None = None
    metadata: tuple[tuple[str, str], ...] = ()
    answers: tuple[SnapshotAnswer, ...] = ()
    archive_date: int | None = None
    manages: tuple[str, ...] | None = None
    stand_in: bool | None = None


class SnapshotGroup(_Row, frozen=True, kw_only=True):
    """A manual group. members, managers: ids."""

    id: str
    name: str
    members: tuple[str, ...] | None = None
    managers: tuple[str, ...] | None = None


class SnapshotCondition(_Row, frozen=True, kw_only=True):
    """A condition of a smart group. field, choices: ids."""

    field: str
    choices: tuple[str, ...] = ()
    system_condition: str | None = None


class SnapshotSmartGroup(_Row, frozen=True, kw_only=True):
    """A smart group. managers: ids."""

    id: str
    name: str
    conditions: tuple[SnapshotCondition, ...] | None = None
    managers: tuple[str, ...] | None = None


class SnapshotContent(_Row, frozen=True, kw_only=True):
    """A content."""

    id: str
    name: str
    type: str


class SnapshotTarget(_Row, frozen=True, kw_only=True):
    """An assignment. content, target: ids. type, label: what the service calls the kind and the name of the target.

    start, finish: as the service writes times.
    """

    content: str
    target: str
    type: str = ""
    mandatory: bool = False
    start: str | None = None
    finish: str | None = None
    label: str = ""


def is_snapshot(values: Mapping[str, object]) -> bool:
    """Whether the values of a file are a snapshot and not a seed."""
    return values.get("format") == FORMAT


def fill_from_snapshot(
    context: RequestContext, values: Mapping[str, object], *, keeps_unlisted: bool = False
) -> list[str]:
    """Insert the rows of a snapshot; return the problems of what cannot be inserted.

    keeps_unlisted: whether ids of people and audiences that no listing has stay in lists and assignments, as in the
    workspace: some services list only active people. Else each is a problem.
    """
    if "pseudonyms" in values:
        return [REDACTED]
    incomplete = values.get("incomplete") or {}
    if not isinstance(incomplete, dict):
        return ["incomplete is not a mapping"]
    problems = [f"{name}: it was not read completely: {incomplete[name]}" for name in LISTINGS if name in incomplete]
    problems += [f"{name}: it was not read" for name in LISTINGS if name not in values]
    problems += [f"{name} is not a list" for name in LISTINGS if not isinstance(values.get(name, []), list)]
    if problems:
        return problems
    loader = SnapshotLoader(context, cast("Mapping[str, Sequence[object]]", values), keeps_unlisted=keeps_unlisted)
    loader.load_listings()
    return loader.problems


_FIELDS: Final = (
    "INSERT INTO fields (id, name, type, description, hidden, locked, optional) VALUES (?, ?, ?, ?, ?, ?, ?)"
)
_CHOICES: Final = "INSERT INTO choices (id, field, position, name) VALUES (?, ?, ?, ?)"
_CONDITIONS: Final = "INSERT INTO conditions (grp, position, field, system_condition) VALUES (?, ?, ?, ?)"
_CONDITION_CHOICES: Final = (
    "INSERT OR IGNORE INTO condition_choices (grp, position, place, field, choice) VALUES (?, ?, ?, ?, ?)"
)
_TARGETS: Final = (
    "INSERT INTO targets (content, kind, audience, mandatory, start, finish, created_at, updated_at, type) "
    "VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)"
)


class _Field(Struct, frozen=True):
    """A custom field to which people have answers. choices: id or name → id."""

    id: str
    type: str
    choices: Mapping[str, str]

    def takes(self, values: Sequence[str]) -> bool:
        """Whether these values are an answer to it."""
        return len(values) == 1 if self.type == "TEXT" else all(value in self.choices for value in values)


class SnapshotLoader(EntryLoader):
    """A workspace that is being filled from a snapshot, whose rows refer to each other by id."""

    def __init__(
        self, context: RequestContext, listings: Mapping[str, Sequence[object]], *, keeps_unlisted: bool
    ) -> None:
        super().__init__(context, listings)
        self._keeps_unlisted = keeps_unlisted
        self._ids: defaultdict[str, set[str]] = defaultdict(set)
        self._fields_by_name: defaultdict[str, list[_Field]] = defaultdict(list)
        self._field_of_choice: dict[str, str] = {}
        self._group_names: dict[tuple[str, str], str] = {}
        self._kinds_of_type: defaultdict[str, set[str]] = defaultdict(set)
        self._targets: set[tuple[str, str, str]] = set()

    def load_listings(self) -> None:
        """Insert all rows."""
        self.load("custom_field", self.read("custom_field", SnapshotField), self._load_field)
        self.load("user", self.read("user", SnapshotPerson), self._load_person)
        self.load("group", self.read("group", SnapshotGroup), self._load_group)
        self.load("smart_group", self.read("smart_group", SnapshotSmartGroup), self._load_smart_group)
        self.load("content", self.read("content", SnapshotContent), self._load_content)
        targets = self.read("content_target", SnapshotTarget)
        for target in targets.values():
            kinds = self._kinds_with_id(target.target)
            if len(kinds) == 1:
                self._kinds_of_type[target.type] |= kinds
        self.load("content_target", targets, self._load_target)

    def _known(self, listing: str, id: str) -> str:
        """Return an id that a listing has. Raises InvalidSeedValue."""
        if id not in self._ids[listing]:
            raise InvalidSeedValue(f"there is no {listing} with the id {id!r}")
        return id

    def _load_field(self, field: SnapshotField) -> None:
        reserve_id(field.id, self._ids["custom_field"])
        flags = (field.hidden, field.locked, field.optional)
        self.rows[_FIELDS].append((field.id, field.name, field.type, field.description, *flags))
        for position, choice in enumerate(field.choices):
            reserve_id(choice.id, self._ids["choice"])
            self._field_of_choice[choice.id] = field.id
            self.rows[_CHOICES].append((choice.id, field.id, position, choice.name))
        by_name = {choice.name: choice.id for choice in field.choices}
        by_id = {choice.id: choice.id for choice in field.choices}
        named = self._fields_by_name[normalize("NFC", field.name)]
        named.append(_Field(field.id, field.type, {**by_name, **by_id}))

    def _load_person(self, person: SnapshotPerson) -> None:
        reserve_id(person.id, self._ids["user"])
        applications = person.applications
        if applications is None:
            applications = default_applications(admin=person.admin, manager=person.manager)
        row = (
            *(person.id, person.email, person.first_name, person.last_name, person.admin, person.manager),
            *(self.now if person.archived else None, self.now, person.archive_date),
            *(person.language, encode(dict(person.metadata)).decode(), encode_applications(applications)),
        )
        self.rows[PEOPLE].append(row)
        for answer in person.answers:
            self.rows[ANSWERS].extend(self._answer(person.id, answer))

    def _answer(self, person: str, answer: SnapshotAnswer) -> Iterator[tuple[str, str, str, str | None]]:
        """The rows of an answer: to the first field of that name to which it is one."""
        values = [*answer.choices, *([answer.text] if answer.text else [])]
        named = self._fields_by_name[normalize("NFC", answer.field)]
        field = next((field for field in named if field.takes(values)), None)
        if field is None:
            raise InvalidSeedValue(f"the answer to {answer.field!r} fits no custom field of that name")
        for value in values:
            choice, text = ("", value) if field.type == "TEXT" else (field.choices[value], None)
            yield person, field.id, choice, text

    def _load_group(self, group: SnapshotGroup) -> None:
        managers, members = _were_read(group.managers, "managers"), _were_read(group.members, "members")
        reserve_id(group.id, self._ids["group"])
        self._add_group(GROUP, group.id, group.name)
        self._add_people(MANAGERS, group.id, managers)
        self._add_people(MEMBERS, group.id, members)

    def _load_smart_group(self, group: SnapshotSmartGroup) -> None:
        managers, conditions = _were_read(group.managers, "managers"), _were_read(group.conditions, "conditions")
        reserve_id(group.id, self._ids["smart_group"])
        if group.id in self._ids["group"]:
            raise InvalidSeedValue(f"a group has the same id {group.id!r}, and the sandbox has one id for one group")
        self._add_group(SMART_GROUP, group.id, group.name)
        self._add_people(MANAGERS, group.id, managers)
        for position, condition in enumerate(conditions):
            field = self._known("custom_field", condition.field)
            self.rows[_CONDITIONS].append((group.id, position, field, condition.system_condition))
            for place, choice in enumerate(condition.choices):
                field = self._field_of_choice[self._known("choice", choice)]
                self.rows[_CONDITION_CHOICES].append((group.id, position, place, field, choice))

    def _add_group(self, kind: str, id: str, name: str) -> None:
        self._group_names[kind, id] = name
        self.rows[GROUPS].append((id, kind, name))

    def _add_people(self, statement: str, group: str, people: Sequence[str]) -> None:
        """Add the members or the managers of a group."""
        for person in people:
            self.rows[statement].append((group, person if self._keeps_unlisted else self._known("user", person)))

    def _load_content(self, content: SnapshotContent) -> None:
        reserve_id(content.id, self._ids["content"])
        self.rows[CONTENTS].append((content.id, content.type, content.name, "", 0, self.now, "{}"))

    def _load_target(self, target: SnapshotTarget) -> None:
        assigned = (self._known("content", target.content), self._audience_kind(target), target.target)
        if assigned in self._targets:
            raise InvalidSeedValue("it names the same twice")
        self._targets.add(assigned)
        window = (_instant("start", target.start), _instant("finish", target.finish))
        own_type = None if target.type in ("", assigned[1]) else target.type
        self.rows[_TARGETS].append((*assigned, target.mandatory, *window, self.now, self.now, own_type))

    def _audience_kind(self, target: SnapshotTarget) -> str:
        """Return what kind of audience a target has; its type, or its label, decides where kinds share an id."""
        kinds = self._kinds_with_id(target.target)
        if target.type in kinds:
            return target.type
        if not kinds and self._keeps_unlisted:
            return target.type if target.type in _KINDS.values() else USER
        if len(kinds) > 1:
            kinds = kinds & self._kinds_of_type[target.type] or kinds
        if len(kinds) > 1:
            kinds = {kind for kind in kinds if self._group_names.get((kind, target.target)) == target.label}
        if len(kinds) != 1:
            what = "is not a person, group or smart group of the snapshot"
            raise InvalidSeedValue(f"the audience {target.target!r} {what}")
        return next(iter(kinds))

    def _kinds_with_id(self, id: str) -> set[str]:
        """The kinds of audiences of which one has this id."""
        kinds = {kind for listing, kind in _KINDS.items() if id in self._ids[listing]}
        return kinds | ({EVERYONE} if id == self.context.behaviour("content-targets.everyone") else set())


def _were_read(values: tuple[T, ...] | None, part: str) -> tuple[T, ...]:
    """The values of a part of a group. Raises InvalidSeedValue if it was not read."""
    if values is None:
        raise InvalidSeedValue(f"{part} were not read")
    return values


def _instant(key: str, text: str | None) -> int | None:
    for format in ("iso", "epoch-ms"):
        with suppress(ValueError):
            return None if text is None else parse_time(text, format)
    raise InvalidSeedValue(f"{key}: {text!r} is not a time")
