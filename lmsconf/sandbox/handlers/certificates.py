"""User Certificates and Certificate Management: listed by person or flat, issued and removed (API specification)."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Final, cast

from lmsconf.sandbox.handlers.analytics import APPROVED, find_enrolment
from lmsconf.sandbox.request_context import Entry, Handler, Json, Request, RequestContext, bad_request, not_found
from lmsconf.sandbox.store import Value, encode_ids

ACTIVE: Final = "ACTIVE"
EXPIRED: Final = "EXPIRED"
PDF: Final = "https://sandbox.invalid/certificates/"
_ROWS: Final = """
    SELECT e.person, e.content, e.id, c.type, c.name, e.issued, e.expires_at, e.recertification, e.notify, e.attachments
    FROM certificates e JOIN contents c ON c.id = e.content
"""
_Row = tuple[Value, ...]


def list_certificates(context: RequestContext, request: Request) -> Entry:
    """The certificates of the given people, or of all: the latest by user id, or all in the flat view."""
    people = request.query.get("userIds[]")
    shown = _shown(context, None if people is None else cast("list[str]", people))
    if request.query_flag("flatView"):
        return {"certificates": [one | {"userId": person} for person, one in shown]}
    shown.sort(key=lambda pair: cast(int, pair[1]["issued"]))
    latest = dict(shown)
    return {"usersWithCertificates": {person: latest[person] for person in sorted(latest)}}


def list_user_certificates(context: RequestContext, request: Request) -> Entry:
    """All certificates of one person."""
    id = context.require_path_person(request)
    return {"userId": id, "certificates": [one for _, one in _shown(context, [id])]}


def _shown(context: RequestContext, people: Iterable[str] | None) -> list[tuple[str, Entry]]:
    """Person and certificate as the API shows it, in creation order. None: of all people."""
    where, values = ("", ()) if people is None else ("WHERE e.person IN (SELECT value FROM json_each(?))", [people])
    rows = context.repository.rows(f"{_ROWS} {where} ORDER BY e.seq", *map(encode_ids, values))
    now = context.repository.now()
    plain = {(row[0], row[1]): _entry(row, now) for row in rows}
    return [(str(row[0]), _with_next(plain[row[0], row[1]], plain.get((row[0], row[7])))) for row in rows]


def _with_next(certificate: Entry, following: Entry | None) -> Entry:
    """A certificate with the same person's recertification certificate, if there is one."""
    return dict(certificate) if following is None else certificate | {"recertificationCertificate": following}


def _entry(row: _Row, now: int) -> Entry:
    """A certificate as the API shows it, without the recertification certificate. Unset fields are omitted."""
    _, content, id, type, name, issued, expires_at, recertification, notify, attachments = row
    attached = cast("list[Mapping[str, Json]]", json.loads(cast(str, attachments)))
    optional: Entry = {
        "expiresAt": expires_at,
        "recertificationContentId": recertification,
        "certificateAttachment": attached[0]["url"] if attached else None,
    }
    return {
        "contentId": content,
        "contentType": type,
        "contentName": name,
        "certificateId": id,
        "issued": issued,
        "pdfUri": f"{PDF}{id}.pdf",
        "status": EXPIRED if expires_at is not None and cast(int, expires_at) <= now else ACTIVE,
        "certificateAttachments": attached,
        "expiredNotificationEnabled": bool(notify),
    } | {key: value for key, value in optional.items() if value is not None}


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
    since, is_mandatory = find_enrolment(context, content, person) or (now, False)
    context.repository.execute(
        "INSERT INTO participations (id, person, content, state, percentage, revision, enrolled_at, updated_at) "
        "VALUES (?, ?, ?, ?, 100, 1, ?, ?) ON CONFLICT (person, content) DO UPDATE "
        "SET state = excluded.state, percentage = 100, updated_at = excluded.updated_at",
        *(context.repository.new_id("p"), person, content, APPROVED, since, now),
    )
    context.repository.execute(
        "INSERT INTO events (id, participation, status, revision, at, mandatory, manually) "
        "SELECT ?, id, state, revision, ?, ?, TRUE FROM participations WHERE person = ? AND content = ?",
        *(context.repository.new_id("e"), now, is_mandatory, person, content),
    )


HANDLERS: Final[Mapping[str, Handler]] = {
    "user-certificates.list": list_certificates,
    "user-certificates.of-user": list_user_certificates,
    "certificates.start": issue_certificate,
    "certificates.invite": invite,
    "certificates.delete": delete_certificate,
    "certificates.status": get_generation_status,
}
