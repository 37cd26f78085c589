"""Certificate Management: issue and remove certificates (API specification, Certificate Management)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from lmsconf.sandbox.api_refusal import bad_request, not_found
from lmsconf.sandbox.handlers.enrollment import APPROVED, find_enrolment
from lmsconf.sandbox.request_context import Entry, Handler, Request, RequestContext

DONE: Final = "DONE"


def issue_certificate(context: RequestContext, request: Request) -> Entry:
    """Issue a certificate and record the participation as approved manually. Completes before the response."""
    person, content = _person(context, request), _content(context, request)
    now = context.repository.now()
    issued, expires_at = request.body_instant("issuedAt"), request.body_instant("expiresAt")
    issued = now if issued is None else issued
    if issued > now:
        raise bad_request("issuedAt lies in the future")
    if expires_at is not None and expires_at <= issued:
        raise bad_request("expiresAt is not after issuedAt")
    _issue(context, person, content, issued, expires_at)
    _approve(context, person, content, now)
    progress = context.repository.new_id("job")
    context.repository.execute(
        "INSERT INTO generations (id, person, content, created_at) VALUES (?, ?, ?, ?)", progress, person, content, now
    )
    return {"progressId": progress}


def invite(context: RequestContext, request: Request) -> None:
    """Do nothing: a placeholder in the specification."""


def delete_certificate(context: RequestContext, request: Request) -> None:
    """Delete a certificate; the participation is kept."""
    person, content = context.require_path_person(request), request.path["contentId"]
    if not context.repository.execute("DELETE FROM certificates WHERE person = ? AND content = ?", person, content):
        raise not_found("certificate", f"{person} {content}")


def get_generation_status(context: RequestContext, request: Request) -> Entry:
    """The status of a generation: always done."""
    id = request.path["progressId"]
    if not context.repository.number("SELECT count(*) FROM generations WHERE id = ?", id):
        raise not_found("progress record", id)
    return {"progressId": id, "status": DONE}


def _person(context: RequestContext, request: Request) -> str:
    """The certificate's person: an existing, active account."""
    id = context.require_people([request.body_text("userId")])[0]
    if context.repository.number("SELECT archived_at IS NOT NULL FROM people WHERE id = ?", id):
        raise bad_request(f"user {id!r} is archived")
    return id


def _content(context: RequestContext, request: Request) -> str:
    """The certificate's content: it exists and has the declared type."""
    id, type = request.body_text("contentId"), request.body_text("contentType")
    types = context.repository.column("SELECT type FROM contents WHERE id = ?", id)
    if not types:
        raise bad_request(f"there is no content {id!r}")
    if types[0] != type:
        raise bad_request(f"content {id!r} is a {types[0]}, not a {type}")
    return id


def _issue(context: RequestContext, person: str, content: str, issued: int, expires_at: int | None) -> None:
    """Create the certificate; replaces an existing one."""
    context.repository.execute("DELETE FROM certificates WHERE person = ? AND content = ?", person, content)
    context.repository.execute(
        "INSERT INTO certificates (id, person, content, issued, expires_at, notify, attachments) "
        "VALUES (?, ?, ?, ?, ?, FALSE, '[]')",
        *(context.repository.new_id("cert"), person, content, issued, expires_at),
    )


def _approve(context: RequestContext, person: str, content: str, now: int) -> None:
    """Record the participation as approved, with a manual event."""
    enrolment = find_enrolment(context, content, person)
    context.repository.execute(
        "INSERT INTO participations (id, person, content, state, percentage, revision, enrolled_at, updated_at) "
        "VALUES (?, ?, ?, ?, 100, 1, ?, ?) ON CONFLICT (person, content) DO UPDATE "
        "SET state = excluded.state, percentage = 100, updated_at = excluded.updated_at",
        *(context.repository.new_id("p"), person, content, APPROVED, enrolment.since if enrolment else now, now),
    )
    context.repository.execute(
        "INSERT INTO events (id, participation, status, revision, at, mandatory, manually) "
        "SELECT ?, id, state, revision, ?, ?, TRUE FROM participations WHERE person = ? AND content = ?",
        *(context.repository.new_id("e"), now, enrolment is not None and enrolment.mandatory, person, content),
    )


HANDLERS: Final[Mapping[str, Handler]] = {
    "certificates.start": issue_certificate,
    "certificates.invite": invite,
    "certificates.delete": delete_certificate,
    "certificates.status": get_generation_status,
}
