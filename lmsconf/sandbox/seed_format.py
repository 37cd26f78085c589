"""The format of seeds: what the sections hold, entry by entry.

A content of the type MEETUP is a meetup. A missing time is the current time.
"""

from __future__ import annotations

from typing import Annotated, Final, Literal, TypeAlias

from msgspec import Meta, Struct

from lmsconf.sandbox.handlers.users import FIRST_LANGUAGE
from lmsconf.sandbox.request_context import Application
from lmsconf.sandbox.seed_rows import Instant

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
