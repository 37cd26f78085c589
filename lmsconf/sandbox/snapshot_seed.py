"""Fill an empty workspace from a snapshot file: the same people, fields, groups, contents and assignments, by id.

What a snapshot does not hold gets the values of a new workspace: times of creation, results and certificates, and
what the catalog says of a content beside its name and type.
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Mapping, Sequence
from contextlib import suppress
from functools import cached_property, partial
from typing import Final, NamedTuple
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
    ANSWERS,
    CONTENTS,
    GROUPS,
    MANAGERS,
    MEMBERS,
    PEOPLE,
    TWICE,
    Entry,
    EntryLoader,
    InvalidSeedValue,
    Row,
    Rows,
    Table,
    read_flag,
    read_list,
    read_mapping,
    read_mappings,
    read_text,
    read_texts,
    reserve_id,
)

FORMAT: Final = "lmsconf.snapshot/1"
REDACTED: Final = "a redacted snapshot names too few people to make a workspace of"
GROUP_LISTING: Final = "group"
SMART_GROUP_LISTING: Final = "smart_group"
_READ: Final = ("user", "custom_field", GROUP_LISTING, SMART_GROUP_LISTING, "content", "content_target")
"""The listings that a workspace is made of."""
_GROUP_KINDS: Final = {GROUP_LISTING: GROUP, SMART_GROUP_LISTING: SMART_GROUP}
_AUDIENCES: Final = {"user": USER, **_GROUP_KINDS}
_FIELDS: Final = Table("fields (id, name, type, description, hidden, locked, optional)")
_CHOICES: Final = Table("choices (id, field, position, name)")
_CONDITIONS: Final = Table("conditions (grp, position, field, system_condition)", 2)
_PICKED: Final = Table("condition_choices (grp, position, choice, place, field)", 3)
_TARGETS: Final = Table("targets (content, kind, audience, mandatory, start, finish, created_at, updated_at, type)")
_DETAILS: Final = json.dumps({"partOfPrograms": [], "categories": [], "metadata": {}})


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
    loader.load_listings()
    return loader.problems


class _SnapshotLoader(EntryLoader):
    """One snapshot being loaded. Rows refer to each other by id."""

    def __init__(self, context: RequestContext, values: Mapping[str, object], *, keeps_unlisted: bool) -> None:
        super().__init__(context)
        self._values, self._keeps_unlisted = values, keeps_unlisted
        self._ids: defaultdict[str, set[str]] = defaultdict(set)
        self._names: dict[tuple[str, str], str] = {}
        self._fields: defaultdict[str, list[_Field]] = defaultdict(list)
        self._field_of: dict[str, str] = {}
        self._assigned: set[tuple[str, str, str]] = set()

    def load_listings(self) -> None:
        """Insert all rows. A listing follows those that it refers to."""
        for listing, rows_of in (
            ("custom_field", self._field),
            ("user", self._person),
            (GROUP_LISTING, partial(self._group, GROUP_LISTING)),
            (SMART_GROUP_LISTING, partial(self._group, SMART_GROUP_LISTING)),
            ("content", self._content),
            ("content_target", self._target),
        ):
            try:
                self.load(listing, read_mappings(self._values, listing), rows_of)
            except InvalidSeedValue as wrong:
                self.problems.append(str(wrong))

    def _new_id(self, listing: str, entry: Entry) -> str:
        """Return the id of an entry. Raises InvalidSeedValue if it is empty or a duplicate."""
        return reserve_id(read_text(entry, "id"), self._ids[listing])

    def _known(self, listing: str, id: str) -> str:
        """Return the id of an entry that exists. Raises InvalidSeedValue."""
        if id not in self._ids[listing]:
            raise InvalidSeedValue(f"there is no {listing} with the id {id!r}")
        return id

    def _field(self, entry: Entry) -> Rows:
        id, name, type = self._new_id("custom_field", entry), read_text(entry, "name"), read_text(entry, "type")
        field = _Field(id, type, {})
        self._fields[normalize("NFC", name)].append(field)
        flags = (None if key not in entry else read_flag(entry, key) for key in ("hidden", "locked", "optional"))
        yield _FIELDS, (id, name, type, None if "description" not in entry else read_text(entry, "description"), *flags)
        for position, choice in enumerate(read_mappings(entry, "choices")):
            choice_name, choice_id = read_text(choice, "name"), self._new_id("choice", choice)
            field.choices[choice_id], self._field_of[choice_id] = choice_name, id
            yield _CHOICES, (choice_id, id, position, choice_name)

    def _person(self, entry: Entry) -> Rows:
        id = self._new_id("user", entry)
        admin, manager = read_flag(entry, "admin"), read_flag(entry, "manager")
        first = () if "applications" in entry else default_applications(admin=admin, manager=manager)
        metadata = dict(_pair(one) for one in read_list(entry, "metadata"))
        date = entry.get("archive_date")
        row: Row = (
            *(id, read_text(entry, "email"), read_text(entry, "first_name", ""), read_text(entry, "last_name", "")),
            *(admin, manager, self.now if read_flag(entry, "archived") else None, self.now),
            *(date if isinstance(date, int) else None, read_text(entry, "language", FIRST_LANGUAGE)),
            *(json.dumps(metadata), encode_applications([*first, *read_texts(entry, "applications")])),
        )
        yield PEOPLE, row
        for answer in read_mappings(entry, "answers"):
            name, text = read_text(answer, "field"), answer.get("text")
            values = [*read_texts(answer, "choices"), *([text] if isinstance(text, str) else [])]
            rows = (field.answer_rows(id, values) for field in self._fields[normalize("NFC", name)])
            if (fitting := next((some for some in rows if some is not None), None)) is None:
                raise InvalidSeedValue(f"the answer to {name!r} fits no custom field of that name")
            yield from ((ANSWERS, answered) for answered in fitting)

    def _group(self, listing: str, entry: Entry) -> Rows:
        id, name = self._new_id(listing, entry), read_text(entry, "name")
        if listing == SMART_GROUP_LISTING and id in self._ids[GROUP_LISTING]:
            raise InvalidSeedValue(f"a group has the same id {id!r}, and the sandbox has one id for one group")
        self._names[_GROUP_KINDS[listing], id] = name
        yield GROUPS, (id, _GROUP_KINDS[listing], name)
        parts = ("managers", "members") if listing == GROUP_LISTING else ("managers", "conditions")
        if unread := [key for key in parts if key not in entry]:
            raise InvalidSeedValue(f"{unread[0]} were not read")
        for table, key in ((MANAGERS, "managers"), (MEMBERS, "members")):
            for person in read_texts(entry, key) if key in parts else ():
                yield table, (id, person if self._keeps_unlisted else self._known("user", person))
        for position, condition in enumerate(read_mappings(entry, "conditions") if "conditions" in parts else ()):
            system = read_text(condition, "system_condition") if "system_condition" in condition else None
            yield _CONDITIONS, (id, position, self._known("custom_field", read_text(condition, "field")), system)
            for place, choice in enumerate(read_texts(condition, "choices")):
                field = self._field_of[self._known("choice", choice)]
                yield _PICKED, (id, position, choice, place, field)

    def _content(self, entry: Entry) -> Rows:
        id, type, name = self._new_id("content", entry), read_text(entry, "type"), read_text(entry, "name")
        yield CONTENTS, (id, type, name, "", 0, self.now, _DETAILS)

    def _target(self, entry: Entry) -> Rows:
        content, audience = self._known("content", read_text(entry, "content")), read_text(entry, "target")
        window = (_instant(entry, "start"), _instant(entry, "finish"))
        type, kind = read_text(entry, "type", ""), self._audience_kind(entry)
        own_type = type if type and type != kind else None
        if (content, kind, audience) in self._assigned:
            raise InvalidSeedValue(TWICE)
        self._assigned.add((content, kind, audience))
        yield _TARGETS, (content, kind, audience, read_flag(entry, "mandatory"), *window, self.now, self.now, own_type)

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
        kinds = {kind for listing, kind in _AUDIENCES.items() if id in self._ids[listing]}
        return kinds | ({EVERYONE} if id == self.context.behaviour("content-targets.everyone") else set())

    @cached_property
    def _kinds_of_types(self) -> Mapping[str, set[str]]:
        """The type of a target → the kinds of the targets with that type whose id is that of one kind only."""
        types: dict[str, set[str]] = {}
        for entry in read_mappings(self._values, "content_target"):
            if len(holders := self._holders(read_text(entry, "target"))) == 1:
                types.setdefault(read_text(entry, "type", ""), set()).update(holders)
        return types


def _instant(entry: Entry, key: str) -> int | None:
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
    choices: dict[str, str]

    def answer_rows(self, person: str, values: Sequence[str]) -> list[Row] | None:
        """Return the rows of an answer, of choices by id or name; None if it is not an answer to this field."""
        if self.type == "TEXT":
            return [(person, self.id, "", values[0])] if len(values) == 1 else None
        by_name = {name: id for id, name in self.choices.items()}
        chosen = [value if value in self.choices else by_name.get(value) for value in values]
        return None if None in chosen else [(person, self.id, choice, None) for choice in chosen]
