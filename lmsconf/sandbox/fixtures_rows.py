"""Entries of a seed as table rows: the fields of people and contents that need no other entry."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Final

from lmsconf.sandbox.applications import APPLICATIONS, begins_with, stored
from lmsconf.sandbox.handlers import accounts, content, orders
from lmsconf.sandbox.request_context import Json
from lmsconf.sandbox.store import Value
from lmsconf.sandbox.validation import Entry, Wrong, flag, instant, mapping, mappings, text_of, texts, whole

INSERT_PERSON: Final = (
    "INSERT INTO people (id, email, first_name, last_name, admin, manager, archived_at, created_at, "
    "custom_archive_at, language, metadata, applications) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"
)
INSERT_CONTENT: Final = (
    "INSERT INTO contents (id, type, name, description, price, updated_at, details) VALUES (?, ?, ?, ?, ?, ?, ?)"
)
_FIRST_APPLICATIONS: Final = {
    (admin, manager): stored(begins_with(admin=admin, manager=manager))
    for admin in (True, False)
    for manager in (True, False)
}
_NO_METADATA: Final = "{}"
_SWITCHES: Final = ("companyPayment", "disablePayment")


def person_row(id: str, email: str, entry: Entry, now: int) -> Sequence[Value]:
    """The row of the table `people`. Raises Wrong or Refusal for an invalid entry."""
    admin, manager, archived = flag(entry, "admin"), flag(entry, "manager"), flag(entry, "archived")
    date = instant(entry, "custom_archive_date")
    if date is not None and (admin or manager):
        raise Wrong("an admin or manager cannot have a custom archive date")
    return (
        *(id, email, text_of(entry, "first_name", ""), text_of(entry, "last_name", ""), admin, manager),
        *(now if archived else None, now, date),
        accounts.checked_language(text_of(entry, "language", accounts.FIRST_LANGUAGE)),
        json.dumps(_metadata(entry)) if "metadata" in entry else _NO_METADATA,
        _applications(entry) if "applications" in entry else _FIRST_APPLICATIONS[admin, manager],
    )


def order_details(entry: Entry) -> dict[str, Json]:
    """The order details of a person, with the API's names. Raises Wrong."""
    details = mapping(entry, "order_details")
    known = {_snake(key): key for key in (*orders.KEYS, "disablePayment")}
    if unknown := sorted(details.keys() - known.keys()):
        raise Wrong(f"order_details: unknown key {unknown[0]!r}; there are {', '.join(known)}")
    return {known[key]: _detail(details, key, known[key]) for key in details}


def content_row(id: str, entry: Entry, programs: Sequence[str], now: int) -> Sequence[Value]:
    """The row of the table `contents`."""
    updated = instant(entry, "updated")
    details: dict[str, Json] = {"partOfPrograms": programs, "categories": texts(entry, "categories")}
    details["metadata"] = _metadata(entry)
    if "link" in entry:
        details["link"] = text_of(entry, "link")
    if "image" in entry:
        details["backgroundImageUrl"] = text_of(entry, "image")
    if "occasions" in entry:
        details[content.OCCASIONS] = [
            _occasion(f"{id}-{number}", one) for number, one in enumerate(mappings(entry, "occasions"), 1)
        ]
    return (
        *(id, text_of(entry, "type", "COURSE"), text_of(entry, "name"), text_of(entry, "description", "")),
        *(whole(entry, "price"), now if updated is None else updated, json.dumps(details)),
    )


def _detail(details: Entry, key: str, name: str) -> Json:
    """One of the order details: a boolean, an address, or a text."""
    if name in _SWITCHES:
        return flag(details, key)
    if name != "address":
        return text_of(details, key)
    address = mapping(details, key)
    if unknown := sorted(address.keys() - set(orders.ADDRESS_KEYS)):
        raise Wrong(f"address: unknown key {unknown[0]!r}; there are {', '.join(orders.ADDRESS_KEYS)}")
    return {part: text_of(address, part) for part in address}


def _occasion(id: str, entry: Entry) -> Mapping[str, Json]:
    """One date of a meetup, with the number of attendees."""
    if unknown := sorted(entry.keys() - {"starts", "attending"}):
        raise Wrong(f"occasions: unknown key {unknown[0]!r}; there are starts, attending")
    starts = instant(entry, "starts")
    if starts is None:
        raise Wrong("occasions: starts is missing")
    return {"occasionId": id, "startTime": starts, "attendanceCount": whole(entry, "attending")}


def _metadata(entry: Entry) -> dict[str, str]:
    metadata = mapping(entry, "metadata")
    return {key: text_of(metadata, key) for key in metadata}


def _applications(entry: Entry) -> str:
    named = texts(entry, "applications")
    if unknown := sorted(set(named) - set(APPLICATIONS)):
        raise Wrong(f"application {unknown[0]!r} is none of {', '.join(APPLICATIONS)}")
    return stored(named)


def _snake(name: str) -> str:
    """The seed's name of an API field: `companyName` → `company_name`."""
    return "".join(f"_{letter.lower()}" if letter.isupper() else letter for letter in name)
