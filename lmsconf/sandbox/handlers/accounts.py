"""Users, writes: create, change, archive and delete accounts (API specification, Users)."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Final, cast

from lmsconf.sandbox.api_refusal import bad_request, conflict
from lmsconf.sandbox.applications import LEARNER, encode_applications
from lmsconf.sandbox.handlers.content_targets import USER
from lmsconf.sandbox.request_context import Entry, Handler, Request, RequestContext
from lmsconf.sandbox.store import Repository

FIRST_LANGUAGE: Final = "en"
_EMAIL: Final = re.compile(r"[^@\s]+@[^@\s.]+(\.[^@\s.]+)+")
_LANGUAGE: Final = re.compile(r"[a-z]{2,3}(-[a-z]{2,4})?")
# Rows that belong to one person only are deleted with the account.
_OF_A_PERSON: Final = ("answers", "members", "managers", "links", "orders", "certificates", "generations")


def create(context: RequestContext, request: Request) -> Entry:
    """Create an account; for an e-mail in use, return the existing account unchanged."""
    email = validate_email(request.body_text("email"))
    language = cast(str, request.body.get("language", FIRST_LANGUAGE))
    for known in find_by_email(context.repository, email):
        return {"userId": known, "newUser": False}
    id = context.repository.new_id("u")
    names = [cast(str, request.body.get(name, "")) for name in ("firstName", "lastName")]
    context.repository.execute(
        "INSERT INTO people (id, email, first_name, last_name, admin, manager, created_at, language, applications) "
        "VALUES (?, ?, ?, ?, FALSE, FALSE, ?, ?, ?)",
        *(id, email, *names),
        *(context.repository.now(), language, encode_applications(LEARNER)),
    )
    return {"userId": id, "newUser": True}


def delete(context: RequestContext, request: Request) -> None:
    """Delete an account and everything that belongs to it."""
    id = context.require_path_person(request)
    context.repository.execute(
        "DELETE FROM events WHERE participation IN (SELECT id FROM participations WHERE person = ?)", id
    )
    for table in (*_OF_A_PERSON, "participations"):
        context.repository.execute(f"DELETE FROM {table} WHERE person = ?", id)  # noqa: S608  the names stand above
    context.repository.execute("DELETE FROM targets WHERE audience = ? AND kind = ?", id, USER)
    context.repository.execute("DELETE FROM people WHERE id = ?", id)


def archive(context: RequestContext, request: Request) -> None:
    """Archive an account now; no change if it is archived. Raises Refusal (400) for an admin."""
    id = context.require_path_person(request)
    if context.repository.number("SELECT admin FROM people WHERE id = ?", id):
        raise bad_request("an admin cannot be archived: revoke administrator rights first")
    context.repository.execute(
        "UPDATE people SET archived_at = ? WHERE id = ? AND archived_at IS NULL", context.repository.now(), id
    )


def unarchive(context: RequestContext, request: Request) -> None:
    """Unarchive an account. Clears a custom archive date in the past, which would archive it again at once."""
    context.repository.execute(
        "UPDATE people SET archived_at = NULL, custom_archive_at = CASE WHEN custom_archive_at > ? "
        "THEN custom_archive_at END WHERE id = ?",
        context.repository.now(),
        context.require_path_person(request),
    )


def set_archive_date(context: RequestContext, request: Request) -> None:
    """Set the custom archive date, or clear it with null. Raises Refusal (400) for a date of an admin or manager."""
    id, date = context.require_path_person(request), request.body_instant("date")
    if date is not None and context.repository.number("SELECT admin OR manager FROM people WHERE id = ?", id):
        raise bad_request("an admin or manager cannot have a custom archive date")
    context.repository.execute("UPDATE people SET custom_archive_at = ? WHERE id = ?", date, id)


def is_archiving_due(repository: Repository) -> bool:
    """Whether a custom archive date is due."""
    due = "SELECT EXISTS (SELECT 1 FROM people WHERE archived_at IS NULL AND custom_archive_at <= ?)"
    return bool(repository.number(due, repository.now()))


def archive_due_accounts(repository: Repository) -> None:
    """Archive every account whose custom archive date is due, as of that date."""
    repository.execute(
        "UPDATE people SET archived_at = custom_archive_at WHERE archived_at IS NULL AND custom_archive_at <= ?",
        repository.now(),
    )


def update_email(context: RequestContext, request: Request) -> None:
    """Change the e-mail. Raises Refusal: 400 for an invalid one, 409 for one that another account has."""
    id, email = context.require_path_person(request), validate_email(request.body_text("email"))
    if set(find_by_email(context.repository, email)) - {id}:
        raise conflict(f"another user has the e-mail {email!r}")
    context.repository.execute("UPDATE people SET email = ? WHERE id = ?", email, id)


def update_fullname(context: RequestContext, request: Request) -> None:
    """Change first name, last name, or both; a missing one is kept."""
    id = context.require_path_person(request)
    context.repository.execute(
        "UPDATE people SET first_name = coalesce(?, first_name), last_name = coalesce(?, last_name) WHERE id = ?",
        *(cast("str | None", request.body.get(name)) for name in ("firstName", "lastName")),
        id,
    )


def update_language(context: RequestContext, request: Request) -> None:
    """Change the language."""
    context.repository.execute(
        "UPDATE people SET language = ? WHERE id = ?",
        request.body_text("language"),
        context.require_path_person(request),
    )


def update_metadata(context: RequestContext, request: Request) -> None:
    """Replace the metadata, or merge into it, according to the dialect."""
    id = context.require_path_person(request)
    metadata = cast("Mapping[str, str]", request.body["metadata"])
    if context.behaviour("users.update-metadata.mode") == "merge":
        metadata = json.loads(context.repository.column("SELECT metadata FROM people WHERE id = ?", id)[0]) | metadata
    context.repository.execute("UPDATE people SET metadata = ? WHERE id = ?", json.dumps(metadata), id)


def find_by_email(repository: Repository, email: str) -> list[str]:
    """The id of the account with this e-mail, ignoring case; empty if there is none."""
    return repository.column("SELECT id FROM people WHERE casefold(email) = casefold(?)", email)


def validate_email(email: str) -> str:
    """Return the e-mail. Raises Refusal (400) if its format is invalid."""
    if not _EMAIL.fullmatch(email):
        raise bad_request(f"{email!r} is not an e-mail")
    return email


def validate_language(language: str) -> str:
    """Return the language. Raises Refusal (400) if it is not a lowercase code."""
    if not _LANGUAGE.fullmatch(language):
        raise bad_request(f"{language!r} is not a lowercase language code")
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
