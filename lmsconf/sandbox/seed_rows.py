"""Entries of a seed as table rows: the fields of people and contents that need no other entry."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Final

from lmsconf.sandbox.applications import APPLICATIONS, default_applications, encode_applications
from lmsconf.sandbox.handlers import accounts
from lmsconf.sandbox.handlers.content_catalog import OCCASIONS
from lmsconf.sandbox.handlers.order_details import ADDRESS_KEYS, KEYS
from lmsconf.sandbox.request_context import Json
from lmsconf.sandbox.seed_entry import (
    Entry,
    InvalidSeedValue,
    read_flag,
    read_instant,
    read_mapping,
    read_mappings,
    read_text,
    read_texts,
    read_whole_number,
)
from lmsconf.sandbox.store import Value

PERSON_COLUMNS: Final = (
    "people (id, email, first_name, last_name, admin, manager, archived_at, created_at, custom_archive_at, language, "
    "metadata, applications)"
)
CONTENT_COLUMNS: Final = "contents (id, type, name, description, price, updated_at, details)"
INSERT_PERSON: Final = f"INSERT INTO {PERSON_COLUMNS} VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"  # noqa: S608  names of ours
INSERT_CONTENT: Final = f"INSERT INTO {CONTENT_COLUMNS} VALUES (?, ?, ?, ?, ?, ?, ?)"  # noqa: S608  names of ours
_FIRST_APPLICATIONS: Final = {
    (admin, manager): encode_applications(default_applications(admin=admin, manager=manager))
    for admin in (True, False)
    for manager in (True, False)
}
_NO_METADATA: Final = "{}"
_SWITCHES: Final = ("companyPayment", "disablePayment")


def person_row(id: str, email: str, entry: Entry, now: int) -> Sequence[Value]:
    """The row of the table `people`. Raises InvalidSeedValue or Refusal for an invalid entry."""
    admin, manager, archived = read_flag(entry, "admin"), read_flag(entry, "manager"), read_flag(entry, "archived")
    date = read_instant(entry, "custom_archive_date")
    if date is not None and (admin or manager):
        raise InvalidSeedValue("an admin or manager cannot have a custom archive date")
    return (
        *(id, email, read_text(entry, "first_name", ""), read_text(entry, "last_name", ""), admin, manager),
        *(now if archived else None, now, date),
        accounts.validate_language(read_text(entry, "language", accounts.FIRST_LANGUAGE)),
        json.dumps(_metadata(entry)) if "metadata" in entry else _NO_METADATA,
        _applications(entry) if "applications" in entry else _FIRST_APPLICATIONS[admin, manager],
    )


def read_order_details(entry: Entry) -> dict[str, Json]:
    """The order details of a person, with the API's names. Raises InvalidSeedValue."""
    details = read_mapping(entry, "order_details")
    known = {_snake(key): key for key in (*KEYS, "disablePayment")}
    if unknown := sorted(details.keys() - known.keys()):
        raise InvalidSeedValue(f"order_details: unknown key {unknown[0]!r}; there are {', '.join(known)}")
    return {known[key]: _detail(details, key, known[key]) for key in details}


def content_row(id: str, entry: Entry, programs: Sequence[str], now: int) -> Sequence[Value]:
    """The row of the table `contents`."""
    updated = read_instant(entry, "updated")
    details: dict[str, Json] = {"partOfPrograms": programs, "categories": read_texts(entry, "categories")}
    details["metadata"] = _metadata(entry)
    if "link" in entry:
        details["link"] = read_text(entry, "link")
    if "image" in entry:
        details["backgroundImageUrl"] = read_text(entry, "image")
    if "occasions" in entry:
        details[OCCASIONS] = [
            _occasion(f"{id}-{number}", one) for number, one in enumerate(read_mappings(entry, "occasions"), 1)
        ]
    return (
        *(id, read_text(entry, "type", "COURSE"), read_text(entry, "name"), read_text(entry, "description", "")),
        *(read_whole_number(entry, "price"), now if updated is None else updated, json.dumps(details)),
    )


def _detail(details: Entry, key: str, name: str) -> Json:
    """One of the order details: a boolean, an address, or a text."""
    if name in _SWITCHES:
        return read_flag(details, key)
    if name != "address":
        return read_text(details, key)
    address = read_mapping(details, key)
    if unknown := sorted(address.keys() - set(ADDRESS_KEYS)):
        raise InvalidSeedValue(f"address: unknown key {unknown[0]!r}; there are {', '.join(ADDRESS_KEYS)}")
    return {part: read_text(address, part) for part in address}


def _occasion(id: str, entry: Entry) -> Mapping[str, Json]:
    """One date of a meetup, with the number of attendees."""
    if unknown := sorted(entry.keys() - {"starts", "attending"}):
        raise InvalidSeedValue(f"occasions: unknown key {unknown[0]!r}; there are starts, attending")
    starts = read_instant(entry, "starts")
    if starts is None:
        raise InvalidSeedValue("occasions: starts is missing")
    return {"occasionId": id, "startTime": starts, "attendanceCount": read_whole_number(entry, "attending")}


def _metadata(entry: Entry) -> dict[str, str]:
    metadata = read_mapping(entry, "metadata")
    return {key: read_text(metadata, key) for key in metadata}


def _applications(entry: Entry) -> str:
    named = read_texts(entry, "applications")
    if unknown := sorted(set(named) - set(APPLICATIONS)):
        raise InvalidSeedValue(f"application {unknown[0]!r} is none of {', '.join(APPLICATIONS)}")
    return encode_applications(named)


def _snake(name: str) -> str:
    """The seed's name of an API field: `companyName` → `company_name`."""
    return "".join(f"_{letter.lower()}" if letter.isupper() else letter for letter in name)
