"""Users, writes: create, change, archive and delete accounts (API specification, Users)."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Final, cast

from lmsconf.sandbox.api_refusal import bad_request, conflict
from lmsconf.sandbox.applications import LEARNER, stored
from lmsconf.sandbox.handlers.targets import USER
from lmsconf.sandbox.request_context import Entry, Handler, Request, RequestContext
from lmsconf.sandbox.store import Repository

FIRST_LANGUAGE: Final = "en"
_EMAIL: Final = re.compile(r"[^@\s]+@[^@\s.]+(\.[^@\s.]+)+")
_LANGUAGE: Final = re.compile(r"[a-z]{2,3}(-[a-z]{2,4})?")
# Rows that belong to one person only are deleted with the account.
_OF_A_PERSON: Final = ("answers", "members", "managers", "links", "orders", "certificates", "generations")


def create(desk: RequestContext, request: Request) -> Entry:
    """Create an account; for an e-mail in use, return the existing account unchanged."""
    email = checked_email(request.text("email"))
    language = cast(str, request.body.get("language", FIRST_LANGUAGE))
    for known in with_email(desk.ledger, email):
        return {"userId": known, "newUser": False}
    id = desk.ledger.new_id("u")
    names = [cast(str, request.body.get(name, "")) for name in ("firstName", "lastName")]
    desk.ledger.run(
        "INSERT INTO people (id, email, first_name, last_name, admin, manager, created_at, language, applications) "
        "VALUES (?, ?, ?, ?, FALSE, FALSE, ?, ?, ?)",
        *(id, email, *names),
        *(desk.ledger.now(), language, stored(LEARNER)),
    )
    return {"userId": id, "newUser": True}


def delete(desk: RequestContext, request: Request) -> None:
    """Delete an account and everything that belongs to it."""
    id = desk.person(request)
    desk.ledger.run("DELETE FROM events WHERE participation IN (SELECT id FROM participations WHERE person = ?)", id)
    for table in (*_OF_A_PERSON, "participations"):
        desk.ledger.run(f"DELETE FROM {table} WHERE person = ?", id)  # noqa: S608  the names stand above
    desk.ledger.run("DELETE FROM targets WHERE audience = ? AND kind = ?", id, USER)
    desk.ledger.run("DELETE FROM people WHERE id = ?", id)


def archive(desk: RequestContext, request: Request) -> None:
    """Archive an account now; no change if it is archived. Raises Refusal (400) for an admin."""
    id = desk.person(request)
    if desk.ledger.number("SELECT admin FROM people WHERE id = ?", id):
        raise bad_request("an admin cannot be archived: revoke administrator rights first")
    desk.ledger.run("UPDATE people SET archived_at = ? WHERE id = ? AND archived_at IS NULL", desk.ledger.now(), id)


def unarchive(desk: RequestContext, request: Request) -> None:
    """Unarchive an account. Clears a custom archive date in the past, which would archive it again at once."""
    desk.ledger.run(
        "UPDATE people SET archived_at = NULL, custom_archive_at = CASE WHEN custom_archive_at > ? "
        "THEN custom_archive_at END WHERE id = ?",
        desk.ledger.now(),
        desk.person(request),
    )


def set_archive_date(desk: RequestContext, request: Request) -> None:
    """Set the custom archive date, or clear it with null. Raises Refusal (400) for a date of an admin or manager."""
    id, date = desk.person(request), request.instant("date")
    if date is not None and desk.ledger.number("SELECT admin OR manager FROM people WHERE id = ?", id):
        raise bad_request("an admin or manager cannot have a custom archive date")
    desk.ledger.run("UPDATE people SET custom_archive_at = ? WHERE id = ?", date, id)


def is_archiving_due(ledger: Repository) -> bool:
    """Whether a custom archive date is due."""
    due = "SELECT EXISTS (SELECT 1 FROM people WHERE archived_at IS NULL AND custom_archive_at <= ?)"
    return bool(ledger.number(due, ledger.now()))


def archive_due(ledger: Repository) -> None:
    """Archive every account whose custom archive date is due, as of that date."""
    ledger.run(
        "UPDATE people SET archived_at = custom_archive_at WHERE archived_at IS NULL AND custom_archive_at <= ?",
        ledger.now(),
    )


def update_email(desk: RequestContext, request: Request) -> None:
    """Change the e-mail. Raises Refusal: 400 for an invalid one, 409 for one that another account has."""
    id, email = desk.person(request), checked_email(request.text("email"))
    if set(with_email(desk.ledger, email)) - {id}:
        raise conflict(f"another user has the e-mail {email!r}")
    desk.ledger.run("UPDATE people SET email = ? WHERE id = ?", email, id)


def update_fullname(desk: RequestContext, request: Request) -> None:
    """Change first name, last name, or both; a missing one is kept."""
    id = desk.person(request)
    desk.ledger.run(
        "UPDATE people SET first_name = coalesce(?, first_name), last_name = coalesce(?, last_name) WHERE id = ?",
        *(cast("str | None", request.body.get(name)) for name in ("firstName", "lastName")),
        id,
    )


def update_language(desk: RequestContext, request: Request) -> None:
    """Change the language."""
    desk.ledger.run("UPDATE people SET language = ? WHERE id = ?", request.text("language"), desk.person(request))


def update_metadata(desk: RequestContext, request: Request) -> None:
    """Replace the metadata, or merge into it, according to the dialect."""
    id = desk.person(request)
    metadata = cast("Mapping[str, str]", request.body["metadata"])
    if desk.behaviour("users.update-metadata.mode") == "merge":
        metadata = json.loads(desk.ledger.column("SELECT metadata FROM people WHERE id = ?", id)[0]) | metadata
    desk.ledger.run("UPDATE people SET metadata = ? WHERE id = ?", json.dumps(metadata), id)


def with_email(ledger: Repository, email: str) -> list[str]:
    """The id of the account with this e-mail, ignoring case; empty if there is none."""
    return ledger.column("SELECT id FROM people WHERE casefold(email) = casefold(?)", email)


def checked_email(email: str) -> str:
    """Return the e-mail. Raises Refusal (400) if its format is invalid."""
    if not _EMAIL.fullmatch(email):
        raise bad_request(f"{email!r} is no e-mail")
    return email


def checked_language(language: str) -> str:
    """Return the language. Raises Refusal (400) if it is not a lowercase code."""
    if not _LANGUAGE.fullmatch(language):
        raise bad_request(f"{language!r} is no lowercase language code")
    return language


HANDLERS: Final[Mapping[str, Handler]] = {
    "users.create": create,
    "users.delete": delete,
    "users.archive": archive,
    "users.unarchive": unarchive,
    "users.set-custom-archived-date": set_archive_date,
    "users.update-email": update_email,
    "users.update-fullname": update_fullname,
    "users.update-language": update_language,
    "users.update-metadata": update_metadata,
}
