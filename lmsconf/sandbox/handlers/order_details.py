"""Order details of a user: stored as a whole, with a separate flag that disables payment (API specification, Users)."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Final

from lmsconf.sandbox.handlers.time_format import format_time
from lmsconf.sandbox.request_context import Entry, Handler, Json, Request, RequestContext
from lmsconf.sandbox.store import Repository

KEYS: Final = (
    *("email", "firstName", "lastName", "companyName", "companyNumber", "companyEmail", "phone", "phoneCode"),
    *("address", "companyPayment", "note"),
)
ADDRESS_KEYS: Final = ("street", "city", "country", "phone", "zip")
_SWITCH: Final = "disablePayment"


def get_details(context: RequestContext, request: Request) -> Entry:
    """The details; only that payment is not disabled if nothing is stored."""
    return _show(context, context.require_path_person(request))


def replace_details(context: RequestContext, request: Request) -> Entry:
    """Replace the details; the flag is kept."""
    id = context.require_path_person(request)
    switch = {key: value for key, value in _stored(context, id).items() if key == _SWITCH}
    store_details(context.repository, id, dict(request.body) | switch)
    return _show(context, id)


def disable_payment(context: RequestContext, request: Request) -> Entry:
    """Set the flag; the details are kept."""
    id = context.require_path_person(request)
    store_details(context.repository, id, _stored(context, id) | {_SWITCH: request.body[_SWITCH]})
    return _show(context, id)


def store_details(repository: Repository, person: str, details: Mapping[str, Json]) -> None:
    """Store the details, with the time of the first and of the last change."""
    now = repository.now()
    repository.execute(
        "INSERT INTO orders VALUES (?, ?, ?, ?) "
        "ON CONFLICT (person) DO UPDATE SET details = excluded.details, updated_at = excluded.updated_at",
        *(person, json.dumps(details), now, now),
    )


def _stored(context: RequestContext, person: str) -> Entry:
    rows = context.repository.column("SELECT details FROM orders WHERE person = ?", person)
    details: Entry = json.loads(rows[0]) if rows else {}
    return details


def _show(context: RequestContext, person: str) -> Entry:
    shown: Entry = {_SWITCH: False} | _stored(context, person)
    for row in context.repository.rows("SELECT created_at, updated_at FROM orders WHERE person = ?", person):
        created_at, updated_at = (format_time(int(time or 0), "iso") for time in row)
        shown |= {"createdAt": created_at, "updatedAt": updated_at}
    return shown


HANDLERS: Final[Mapping[str, Handler]] = {
    "users.order-details": get_details,
    "users.set-order-details": replace_details,
    "users.disable-payment": disable_payment,
}
