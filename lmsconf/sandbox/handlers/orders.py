"""Order details of a user: stored as a whole, with a separate flag that disables payment (API specification, Users)."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Final

from lmsconf.sandbox.handlers.times import show_time
from lmsconf.sandbox.request_context import Entry, Handler, Json, Request, RequestContext
from lmsconf.sandbox.store import Repository

KEYS: Final = (
    *("email", "firstName", "lastName", "companyName", "companyNumber", "companyEmail", "phone", "phoneCode"),
    *("address", "companyPayment", "note"),
)
ADDRESS_KEYS: Final = ("street", "city", "country", "phone", "zip")
_SWITCH: Final = "disablePayment"


def get(desk: RequestContext, request: Request) -> Entry:
    """The details; only that payment is not disabled if nothing is stored."""
    return _show(desk, desk.person(request))


def replace(desk: RequestContext, request: Request) -> Entry:
    """Replace the details; the flag is kept."""
    id = desk.person(request)
    switch = {key: value for key, value in _stored(desk, id).items() if key == _SWITCH}
    store(desk.ledger, id, dict(request.body) | switch)
    return _show(desk, id)


def disable_payment(desk: RequestContext, request: Request) -> Entry:
    """Set the flag; the details are kept."""
    id = desk.person(request)
    store(desk.ledger, id, _stored(desk, id) | {_SWITCH: request.body[_SWITCH]})
    return _show(desk, id)


def store(ledger: Repository, person: str, details: Mapping[str, Json]) -> None:
    """Store the details, with the time of the first and of the last change."""
    now = ledger.now()
    ledger.run(
        "INSERT INTO orders VALUES (?, ?, ?, ?) "
        "ON CONFLICT (person) DO UPDATE SET details = excluded.details, updated_at = excluded.updated_at",
        *(person, json.dumps(details), now, now),
    )


def _stored(desk: RequestContext, person: str) -> Entry:
    rows = desk.ledger.column("SELECT details FROM orders WHERE person = ?", person)
    details: Entry = json.loads(rows[0]) if rows else {}
    return details


def _show(desk: RequestContext, person: str) -> Entry:
    shown: Entry = {_SWITCH: False} | _stored(desk, person)
    for row in desk.ledger.rows("SELECT created_at, updated_at FROM orders WHERE person = ?", person):
        created_at, updated_at = (show_time(int(time or 0), "iso") for time in row)
        shown |= {"createdAt": created_at, "updatedAt": updated_at}
    return shown


HANDLERS: Final[Mapping[str, Handler]] = {
    "users.order-details": get,
    "users.set-order-details": replace,
    "users.disable-payment": disable_payment,
}
