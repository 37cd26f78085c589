"""The format of seeds, entry by entry, and how entries become structs and rows, section by section.

A content of the type MEETUP is a meetup. A missing time is the current time.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from operator import itemgetter
from typing import Annotated, Any, Final, Literal, TypeAlias, TypeVar, cast, get_args, get_origin, get_type_hints

from msgspec import Meta, Struct, ValidationError, convert
from msgspec.json import encode

from lmsconf.sandbox.handlers.users import FIRST_LANGUAGE
from lmsconf.sandbox.request_context import Application, Refusal, RequestContext, parse_time, without_nul
from lmsconf.sandbox.store import Json, Value

Texts: TypeAlias = tuple[str, ...]
Number: TypeAlias = Annotated[int, Meta(ge=0)]
"""A whole number, not negative."""
State: TypeAlias = Literal["APPROVED", "IN_PROGRESS", "NOT_STARTED", "EXPIRED", "FAILED"]


class _Entry(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """An entry of a seed, or a part of one. None: left out, where that differs from an empty value."""


class SeedEntryWithId(_Entry, frozen=True, kw_only=True):
    """id: its id; None: a new one."""

    id: str | None = None


class SeedNamedEntry(SeedEntryWithId, frozen=True, kw_only=True):
    """An entry that others name."""

    name: str


class SeedPerson(SeedEntryWithId, frozen=True, kw_only=True):
    """A person. answers: name of the field → a choice, choices, or a text. applications: by default those of a role."""

    email: str
    first_name: str = ""
    last_name: str = ""
    language: Annotated[str, Meta(pattern=r"^[a-z]{2,3}(-[a-z]{2,4})?\Z")] = FIRST_LANGUAGE
    admin: bool = False
    manager: bool = False
    archived: bool = False
    custom_archive_date: Instant | None = None
    answers: dict[str, str | Texts | None] = {}
    metadata: dict[str, str] = {}
    applications: tuple[Application, ...] | None = None


class SeedCustomField(_Entry, frozen=True, kw_only=True):
    """A custom field. choices: their names; a TEXT field has none."""

    name: str
    type: Literal["CHOICE", "MULTI_SELECT", "TEXT"]
    choices: Texts | None = None
    description: str | None = None
    hidden: bool | None = None
    locked: bool | None = None
    optional: bool | None = None


class SeedGroup(SeedNamedEntry, frozen=True, kw_only=True):
    """A manual group. members, managers: e-mails."""

    members: Texts = ()
    managers: Texts = ()


class SeedCondition(_Entry, frozen=True, kw_only=True):
    """A condition of a smart group. field, choices: their names."""

    field: str
    choices: Texts = ()
    system_condition: str | None = None


class SeedSmartGroup(SeedNamedEntry, frozen=True, kw_only=True):
    """A smart group. managers: e-mails."""

    conditions: tuple[SeedCondition, ...] = ()
    managers: Texts = ()


class SeedOccasion(_Entry, frozen=True, kw_only=True):
    """An occasion of a meetup. attending: the number of people."""

    starts: Instant
    attending: Number = 0


class SeedContent(SeedNamedEntry, frozen=True, kw_only=True):
    """A content; one of the type MEETUP is a meetup. programs: the names of those that it is part of."""

    type: str = "COURSE"
    description: str = ""
    price: Number = 0
    updated: Instant | None = None
    programs: Texts = ()
    categories: Texts = ()
    metadata: dict[str, str] = {}
    link: str = ""
    image: str = ""
    occasions: tuple[SeedOccasion, ...] = ()


class SeedContentTarget(_Entry, frozen=True, kw_only=True):
    """Assignments of a content.

    assign_to: for each audience everyone, {group: name}, {smart_group: name} or {user: e-mail}.
    """

    content: str
    assign_to: tuple[str | dict[str, str | bool], ...] = ()
    mandatory: bool = False
    visible_from: Instant | None = None
    visible_until: Instant | None = None


class SeedEvent(_Entry, frozen=True, kw_only=True):
    """An event of a participation. at: by default when the participation was updated."""

    at: Instant | None = None
    mandatory: bool = False
    manually: bool = False
    revision: Number = 1
    status: State


class SeedParticipation(SeedEntryWithId, frozen=True, kw_only=True):
    """What a person did in a content. user: e-mail. events: by default one, of the state."""

    user: str
    content: str
    state: State
    percentage: Number | None = None
    revision: Number = 1
    enrolled: Instant | None = None
    updated: Instant | None = None
    events: tuple[SeedEvent, ...] | None = None


class SeedAttachment(_Entry, frozen=True, kw_only=True):
    """A file of a certificate. created: by default when the certificate was issued."""

    created: Instant | None = None
    name: str = ""
    url: str


class SeedCertificate(SeedEntryWithId, frozen=True, kw_only=True):
    """A certificate. user: e-mail. recertification: the name of the content that renews it."""

    user: str
    content: str
    issued: Instant | None = None
    expires: Instant | None = None
    recertification: str | None = None
    notify: bool = False
    attachments: tuple[SeedAttachment, ...] = ()


SECTIONS: Final = (
    "people",
    "custom_fields",
    "groups",
    "smart_groups",
    "content",
    "content_targets",
    "participations",
    "certificates",
)


S = TypeVar("S", bound=Struct)
Entry = TypeVar("Entry")
Made = TypeVar("Made")


class InvalidSeedValue(Exception):
    """An invalid value in one entry of a seed."""


class Instant(int):
    """An instant in epoch milliseconds; an entry has it in ISO 8601 with an offset."""


def read_entry(entry: object, kind: type[S]) -> S:
    """Return an entry as the struct that describes it, a text as a number or boolean where that is wanted.

    Raises InvalidSeedValue, and UnicodeEncodeError for half of a surrogate pair.
    """
    try:
        # Before anything looks into its parts: an entry made of aliases of aliases would never end.
        read = convert(entry, kind, strict=False, dec_hook=lambda _, text: Instant(parse_time(text, "iso")))
        # Few have a NUL, and this is ten times as fast.
        return read_entry(without_nul(cast(Json, entry)), kind) if b"\\u0000" in encode(entry) else read
    except ValidationError as error:
        raise InvalidSeedValue(f"{error}{_known(str(error), kind)}") from error


def _known(error: str, type: Any) -> str:
    """The values of an enumeration, or the keys of an entry or a part of it, whichever an error of msgspec is about."""
    for name in re.findall(r"\.(\w+)", error.rpartition(" - at `$")[2]):
        type = get_type_hints(type)[name] if name in getattr(type, "__struct_fields__", ()) else None
        while get_origin(type) not in (Literal, None):  # a list or an optional value: the type of what it holds
            type = get_args(type)[0]
    known = get_args(type) or sorted(getattr(type, "__struct_fields__", ()))
    return f"; known: {', '.join(known)}" if known else ""


def reserve_id(id: str, taken: set[str]) -> str:
    """Return an id, and add it to those that are taken. Raises InvalidSeedValue if it is one of them, or empty."""
    if not id or id in taken:
        raise InvalidSeedValue(f"id {id!r} is a duplicate" if id else "id is empty")
    taken.add(id)
    return id


class EntryLoader:
    """An empty workspace that is being filled. Loading continues after each problem, so that all are reported."""

    def __init__(self, context: RequestContext) -> None:
        self.context, self.repository, self.now = context, context.repository, context.repository.now()
        self._rows: defaultdict[tuple[str, tuple[str, ...]], list[tuple[Value, ...]]] = defaultdict(list)
        self._problems: defaultdict[str, list[tuple[int, str]]] = defaultdict(list)

    @property
    def problems(self) -> list[str]:
        """The problems of all sections, each in the order of its entries."""
        return [message for found in self._problems.values() for _, message in sorted(found, key=itemgetter(0))]

    def add(self, table: str, **values: Value) -> None:
        """Add a row to those that are inserted with the entries of a section."""
        self._rows[table, tuple(values)].append(tuple(values.values()))

    def load(self, section: str, entries: Mapping[int, Entry], load: Callable[[Entry], None]) -> None:
        """Load entries one after the other, and insert the rows that this added."""
        self.each(section, entries, load)
        self.each(section, {len(entries): self._rows}, self._insert)
        self._rows.clear()

    def each(self, section: str, entries: Mapping[int, Entry], make: Callable[[Entry], Made]) -> dict[int, Made]:
        """Return what is made of each entry, by its place; where that fails, it is a problem of the entry."""
        made: dict[int, Made] = {}
        for place, entry in entries.items():
            try:
                made[place] = make(entry)
            except (InvalidSeedValue, Refusal) as wrong:
                self._problems[section].append((place, f"{section}[{place}]: {wrong}"))
            except (UnicodeEncodeError, OverflowError, RecursionError) as wrong:
                self._problems[section].append((place, f"{section}: a value cannot be stored: {wrong}"))
        return made

    def _insert(self, rows_by_table: Mapping[tuple[str, tuple[str, ...]], Sequence[tuple[Value, ...]]]) -> None:
        for (table, columns), rows in rows_by_table.items():
            # A list may name a person or a choice twice.
            lists = ("answers", "members", "managers", "condition_choices")
            insert = "INSERT OR IGNORE" if table in lists else "INSERT"
            places = ", ".join("?" * len(columns))
            self.repository.execute_many(f"{insert} INTO {table} ({', '.join(columns)}) VALUES ({places})", rows)
