"""Fill an empty workspace from a snapshot file: the same people, fields, groups, contents and assignments, by id.

What a snapshot does not hold gets the values of a new workspace: times of creation, results and certificates, and
what the catalog says of a content beside its name and type.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from functools import cached_property, partial
from typing import Final, NamedTuple, TypeAlias
from unicodedata import normalize

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
    CONTENT_COLUMNS,
    PERSON_COLUMNS,
    Entry,
    InvalidSeedValue,
    read_flag,
    read_list,
    read_mapping,
    read_mappings,
    read_text,
    read_texts,
    reserve_id,
)
from lmsconf.sandbox.store import Value

FORMAT: Final = "lmsconf.snapshot/1"
REDACTED: Final = "a redacted snapshot names too few people to make a workspace of"
GROUP_LISTING: Final = "group"
SMART_GROUP_LISTING: Final = "smart_group"
_READ: Final = ("user", "custom_field", GROUP_LISTING, SMART_GROUP_LISTING, "content", "content_target")
"""The listings that a workspace is made of."""
_GROUP_KINDS: Final = {GROUP_LISTING: GROUP, SMART_GROUP_LISTING: SMART_GROUP}
_AUDIENCES: Final = {"user": USER, **_GROUP_KINDS}
_TARGET_COLUMNS: Final = "targets (content, kind, audience, mandatory, start, finish, created_at, updated_at, type)"
_CONDITION_COLUMNS: Final = "conditions (grp, position, field, system_condition)"
_PICKED_COLUMNS: Final = "condition_choices (grp, position, choice, place, field)"
_DETAILS: Final = json.dumps({"partOfPrograms": [], "categories": [], "metadata": {}})
_Row: TypeAlias = "tuple[Value, ...]"


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
    try:
        incomplete = read_mapping(values, "incomplete")
    except InvalidSeedValue as wrong:
        return [str(wrong)]
    missing = [
        f"{listing}: it was not read completely: {incomplete[listing]}" for listing in _READ if listing in incomplete
    ]
    missing += [f"{name}: it was not read" for name in _READ if name not in values]
    if missing:
        return missing
    loader = _SnapshotLoader(context, values, keeps_unlisted=keeps_unlisted)
    loader.load()
    return loader.problems


class _SnapshotLoader:
    """One snapshot being loaded. Rows refer to each other by id. problems: of single rows; loading continues."""

    def __init__(self, context: RequestContext, values: Mapping[str, object], *, keeps_unlisted: bool) -> None:
        self.problems: list[str] = []
        self._keeps_unlisted = keeps_unlisted
        self._values, self._repository = values, context.repository
        self._now = self._repository.now()
        self._time_format = context.behaviour("content-targets.time-format")
        self._everyone = context.behaviour("content-targets.everyone")
        self._ids: dict[str, set[str]] = {}
        self._names: dict[tuple[str, str], str] = {}
        self._fields: dict[str, list[_Field]] = {}
        self._field_of: dict[str, str] = {}

    def load(self) -> None:
        """Insert all rows. A listing follows those that it refers to."""
        self._insert("fields (id, name, type, description, hidden, locked, optional)", "custom_field", self._field)
        self._insert("choices (id, field, position, name)", "custom_field", self._choices)
        self._insert(PERSON_COLUMNS, "user", self._person)
        self._insert("answers (person, field, choice, text)", "user", self._answers, unique=3)
        for listing in (GROUP_LISTING, SMART_GROUP_LISTING):
            self._insert("groups (id, kind, name)", listing, partial(self._group, listing))
            self._insert("managers (grp, person)", listing, partial(self._list, "managers"), unique=2)
        self._insert("members (grp, person)", GROUP_LISTING, partial(self._list, "members"), unique=2)
        self._insert(_CONDITION_COLUMNS, SMART_GROUP_LISTING, _conditions, unique=2)
        self._insert(_PICKED_COLUMNS, SMART_GROUP_LISTING, self._picked, unique=3)
        self._insert(CONTENT_COLUMNS, "content", self._content)
        self._insert(_TARGET_COLUMNS, "content_target", self._target, unique=3)

    def _insert(
        self, columns: str, listing: str, rows_of: Callable[[Entry], Iterable[_Row]], *, unique: int = 1
    ) -> None:
        """Insert the rows of a table that the entries of a listing make. unique: the columns that no two rows share."""
        rows: list[_Row] = []
        seen: set[_Row] = set()
        try:
            entries = read_mappings(self._values, listing)
        except InvalidSeedValue as wrong:
            self.problems.append(str(wrong))
            return
        for place, entry in enumerate(entries):
            try:
                for row in rows_of(entry):
                    if row[:unique] in seen:
                        raise InvalidSeedValue("it names the same twice")
                    seen.add(row[:unique])
                    rows.append(row)
            except InvalidSeedValue as wrong:
                self.problems.append(f"{listing}[{place}]: {wrong}")
        places = ", ".join("?" * (columns.count(",") + 1))
        try:
            self._repository.execute_many(f"INSERT INTO {columns} VALUES ({places})", rows)  # noqa: S608  names of ours
        except (UnicodeEncodeError, OverflowError) as wrong:
            self.problems.append(f"{listing}: a value cannot be stored: {wrong}")

    def _new_id(self, listing: str, entry: Entry) -> str:
        """Return the id of an entry. Raises InvalidSeedValue if it is empty or a duplicate."""
        return reserve_id(read_text(entry, "id"), self._ids.setdefault(listing, set()))

    def _known(self, listing: str, id: str) -> str:
        """Return the id of an entry that exists. Raises InvalidSeedValue."""
        if id not in self._ids.get(listing, ()):
            raise InvalidSeedValue(f"there is no {listing} with the id {id!r}")
        return id

    def _field(self, entry: Entry) -> Iterator[_Row]:
        id, name, type = self._new_id("custom_field", entry), read_text(entry, "name"), read_text(entry, "type")
        choices = {read_text(choice, "id"): read_text(choice, "name") for choice in read_mappings(entry, "choices")}
        self._fields.setdefault(normalize("NFC", name), []).append(_Field(id, type, choices))
        flags = (None if key not in entry else read_flag(entry, key) for key in ("hidden", "locked", "optional"))
        yield (id, name, type, None if "description" not in entry else read_text(entry, "description"), *flags)

    def _choices(self, entry: Entry) -> Iterator[_Row]:
        for position, choice in enumerate(read_mappings(entry, "choices")):
            id = self._new_id("choice", choice)
            self._field_of[id] = read_text(entry, "id")
            yield id, read_text(entry, "id"), position, read_text(choice, "name")

    def _person(self, entry: Entry) -> Iterator[_Row]:
        id = self._new_id("user", entry)
        admin, manager = read_flag(entry, "admin"), read_flag(entry, "manager")
        applications = (
            read_texts(entry, "applications")
            if "applications" in entry
            else default_applications(admin=admin, manager=manager)
        )
        metadata = dict(_pair(one) for one in read_list(entry, "metadata"))
        date = entry.get("archive_date")
        yield (
            *(id, read_text(entry, "email"), read_text(entry, "first_name", ""), read_text(entry, "last_name", "")),
            *(admin, manager, self._now if read_flag(entry, "archived") else None, self._now),
            *(date if isinstance(date, int) else None, read_text(entry, "language", FIRST_LANGUAGE)),
            *(json.dumps(metadata), encode_applications(applications)),
        )

    def _answers(self, entry: Entry) -> Iterator[_Row]:
        person = read_text(entry, "id")
        for answer in read_mappings(entry, "answers"):
            name, text = read_text(answer, "field"), answer.get("text")
            values = [*read_texts(answer, "choices"), *([text] if isinstance(text, str) else [])]
            for field in self._fields.get(normalize("NFC", name), ()):
                if (rows := field.answer_rows(person, values)) is not None:
                    yield from rows
                    break
            else:
                raise InvalidSeedValue(f"the answer to {name!r} fits no custom field of that name")

    def _group(self, listing: str, entry: Entry) -> Iterator[_Row]:
        id = self._new_id(listing, entry)
        if listing == SMART_GROUP_LISTING and id in self._ids.get(GROUP_LISTING, ()):
            raise InvalidSeedValue(f"a group has the same id {id!r}, and the sandbox has one id for one group")
        self._names[_GROUP_KINDS[listing], id] = read_text(entry, "name")
        yield id, _GROUP_KINDS[listing], read_text(entry, "name")

    def _list(self, key: str, entry: Entry) -> Iterator[_Row]:
        if key not in entry:
            raise InvalidSeedValue(f"{key} were not read")
        for person in read_texts(entry, key):
            yield read_text(entry, "id"), person if self._keeps_unlisted else self._known("user", person)

    def _picked(self, entry: Entry) -> Iterator[_Row]:
        for position, condition in enumerate(read_mappings(entry, "conditions")):
            self._known("custom_field", read_text(condition, "field"))
            for place, choice in enumerate(read_texts(condition, "choices")):
                field = self._field_of.get(self._known("choice", choice), "")
                yield read_text(entry, "id"), position, choice, place, field

    def _content(self, entry: Entry) -> Iterator[_Row]:
        yield (
            self._new_id("content", entry),
            read_text(entry, "type"),
            read_text(entry, "name"),
            "",
            0,
            self._now,
            _DETAILS,
        )

    def _target(self, entry: Entry) -> Iterator[_Row]:
        content, audience = self._known("content", read_text(entry, "content")), read_text(entry, "target")
        window = (self._instant(entry, "start"), self._instant(entry, "finish"))
        type = read_text(entry, "type", "")
        kind = self._audience_kind(entry)
        own_type = type if type and type != kind else None
        yield content, kind, audience, read_flag(entry, "mandatory"), *window, self._now, self._now, own_type

    def _audience_kind(self, entry: Entry) -> str:
        """Return what kind of audience a target has; its type, or its label, decides where kinds share an id."""
        id, type = read_text(entry, "target"), read_text(entry, "type", "")
        kinds = self._holders(id)
        if type in kinds:
            return type
        if len(kinds) > 1:
            kinds &= self._kinds_of_types.get(type, kinds)
        if len(kinds) > 1:
            label = read_text(entry, "label", "")
            kinds = {kind for kind in kinds if self._names.get((kind, id)) == label}
        if len(kinds) == 1:
            return next(iter(kinds))
        if self._keeps_unlisted and not self._holders(id):
            return type if type in _AUDIENCES.values() else USER
        raise InvalidSeedValue(f"the audience {id!r} is not a person, group or smart group of the snapshot")

    def _holders(self, id: str) -> set[str]:
        """Return the kinds of audiences of which one has this id."""
        kinds = {kind for listing, kind in _AUDIENCES.items() if id in self._ids.get(listing, ())}
        return kinds | ({EVERYONE} if id == self._everyone else set())

    @cached_property
    def _kinds_of_types(self) -> Mapping[str, set[str]]:
        """The type of a target → the kinds of the targets with that type whose id is that of one kind only."""
        types: dict[str, set[str]] = {}
        for entry in read_mappings(self._values, "content_target"):
            if len(holders := self._holders(read_text(entry, "target"))) == 1:
                types.setdefault(read_text(entry, "type", ""), set()).update(holders)
        return types

    def _instant(self, entry: Entry, key: str) -> int | None:
        if key not in entry:
            return None
        text = read_text(entry, key)
        for format in ("iso", "epoch-ms"):
            with suppress(ValueError):
                return parse_time(text, format)
        raise InvalidSeedValue(f"{key}: {text!r} is not a time")


def _pair(value: object) -> tuple[str, str]:
    """Return key and text of one pair of metadata. Raises InvalidSeedValue."""
    match value:
        case [str(key), str(text)]:
            return key, text
    raise InvalidSeedValue("metadata is not a list of pairs of texts")


class _Field(NamedTuple):
    """A custom field; choices: id → name."""

    id: str
    type: str
    choices: Mapping[str, str]

    def answer_rows(self, person: str, values: Sequence[str]) -> list[_Row] | None:
        """Return the rows of an answer, of choices by id or name; None if it is not an answer to this field."""
        if self.type == "TEXT":
            return [(person, self.id, "", values[0])] if len(values) == 1 else None
        by_name = {name: id for id, name in self.choices.items()}
        chosen = [value if value in self.choices else by_name.get(value) for value in values]
        return None if None in chosen else [(person, self.id, choice, None) for choice in chosen]


def _conditions(entry: Entry) -> Iterator[_Row]:
    if "conditions" not in entry:
        raise InvalidSeedValue("conditions were not read")
    for position, condition in enumerate(read_mappings(entry, "conditions")):
        system = read_text(condition, "system_condition") if "system_condition" in condition else None
        yield read_text(entry, "id"), position, read_text(condition, "field"), system
