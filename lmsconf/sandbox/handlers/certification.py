"""Certificate Management: issue and remove certificates (API specification, Certificate Management)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from lmsconf.sandbox.api_refusal import bad_request, not_found
from lmsconf.sandbox.handlers.enrollment import APPROVED, enrolled
from lmsconf.sandbox.request_context import Entry, Handler, Request, RequestContext

DONE: Final = "DONE"


def start(desk: RequestContext, request: Request) -> Entry:
    """Issue a certificate and record the participation as approved manually. Completes before the response."""
    person, content = _person(desk, request), _content(desk, request)
    now = desk.ledger.now()
    issued, expires_at = request.instant("issuedAt"), request.instant("expiresAt")
    issued = now if issued is None else issued
    if issued > now:
        raise bad_request("issuedAt lies in the future")
    if expires_at is not None and expires_at <= issued:
        raise bad_request("expiresAt is not after issuedAt")
    _issue(desk, person, content, issued, expires_at)
    _approve(desk, person, content, now)
    progress = desk.ledger.new_id("job")
    desk.ledger.run(
        "INSERT INTO generations (id, person, content, created_at) VALUES (?, ?, ?, ?)", progress, person, content, now
    )
    return {"progressId": progress}


def invite(desk: RequestContext, request: Request) -> None:
    """Do nothing: a placeholder in the specification."""


def delete(desk: RequestContext, request: Request) -> None:
    """Delete a certificate; the participation is kept."""
    person, content = desk.person(request), request.path["contentId"]
    if not desk.ledger.run("DELETE FROM certificates WHERE person = ? AND content = ?", person, content):
        raise not_found("certificate", f"{person} {content}")


def status(desk: RequestContext, request: Request) -> Entry:
    """The status of a generation: always done."""
    id = request.path["progressId"]
    if not desk.ledger.number("SELECT count(*) FROM generations WHERE id = ?", id):
        raise not_found("progress record", id)
    return {"progressId": id, "status": DONE}


def _person(desk: RequestContext, request: Request) -> str:
    """The certificate's person: an existing, active account."""
    id = desk.known_people([request.text("userId")])[0]
    if desk.ledger.number("SELECT archived_at IS NOT NULL FROM people WHERE id = ?", id):
        raise bad_request(f"user {id!r} is archived")
    return id


def _content(desk: RequestContext, request: Request) -> str:
    """The certificate's content: it exists and has the declared type."""
    id, type = request.text("contentId"), request.text("contentType")
    types = desk.ledger.column("SELECT type FROM contents WHERE id = ?", id)
    if not types:
        raise bad_request(f"there is no content {id!r}")
    if types[0] != type:
        raise bad_request(f"content {id!r} is a {types[0]}, not a {type}")
    return id


def _issue(desk: RequestContext, person: str, content: str, issued: int, expires_at: int | None) -> None:
    """Create the certificate; replaces an existing one."""
    desk.ledger.run("DELETE FROM certificates WHERE person = ? AND content = ?", person, content)
    desk.ledger.run(
        "INSERT INTO certificates (id, person, content, issued, expires_at, notify, attachments) "
        "VALUES (?, ?, ?, ?, ?, FALSE, '[]')",
        *(desk.ledger.new_id("cert"), person, content, issued, expires_at),
    )


def _approve(desk: RequestContext, person: str, content: str, now: int) -> None:
    """Record the participation as approved, with a manual event."""
    enrolment = enrolled(desk, content, person)
    desk.ledger.run(
        "INSERT INTO participations (id, person, content, state, percentage, revision, enrolled_at, updated_at) "
        "VALUES (?, ?, ?, ?, 100, 1, ?, ?) ON CONFLICT (person, content) DO UPDATE "
        "SET state = excluded.state, percentage = 100, updated_at = excluded.updated_at",
        *(desk.ledger.new_id("p"), person, content, APPROVED, enrolment.since if enrolment else now, now),
    )
    desk.ledger.run(
        "INSERT INTO events (id, participation, status, revision, at, mandatory, manually) "
        "SELECT ?, id, state, revision, ?, ?, TRUE FROM participations WHERE person = ? AND content = ?",
        *(desk.ledger.new_id("e"), now, enrolment is not None and enrolment.mandatory, person, content),
    )


HANDLERS: Final[Mapping[str, Handler]] = {
    "certificates.start": start,
    "certificates.invite": invite,
    "certificates.delete": delete,
    "certificates.status": status,
}
