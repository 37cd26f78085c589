"""User Certificates and Certificate Management: listed by person or flat, issued and removed (API specification)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final, cast

from lmsconf.sandbox.handlers.analytics import APPROVED, find_enrolment
from lmsconf.sandbox.request_context import Entry, Handler, Request, RequestContext, bad_request, not_found
from lmsconf.sandbox.store import Json, encode_ids, json_flag

ACTIVE: Final = "ACTIVE"
EXPIRED: Final = "EXPIRED"
PDF: Final = "https://sandbox.invalid/certificates/"
_SHOWN: Final = f"""
    SELECT json_object('userId', e.person, 'contentId', e.content, 'contentType', c.type, 'contentName', c.name,
        'certificateId', e.id, 'issued', e.issued, 'pdfUri', '{PDF}' || e.id || '.pdf',
        'status', iif(e.expires_at <= ?, '{EXPIRED}', '{ACTIVE}'), 'certificateAttachments', json(e.attachments),
        'expiredNotificationEnabled', {json_flag("e.notify")}, 'expiresAt', e.expires_at,
        'recertificationContentId', e.recertification, 'certificateAttachment',
        json_extract(e.attachments, '$[0].url'))
    FROM certificates e JOIN contents c ON c.id = e.content
"""  # noqa: S608  names of ours


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
    """Person and certificate as the API shows it, in creation order, with the one that follows. None: of all people."""
    where, values = ("", ()) if people is None else ("WHERE e.person IN (SELECT value FROM json_each(?))", [people])
    now = context.repository.now()
    found = context.repository.objects(f"{_SHOWN} {where} ORDER BY e.seq", now, *map(encode_ids, values))
    plain = {(str(one.pop("userId")), one["contentId"]): one for one in found}
    return [(key[0], one | _next(plain, key[0], one)) for key, one in plain.items()]


def _next(plain: Mapping[tuple[str, Json], Entry], person: str, certificate: Entry) -> Entry:
    """The recertification certificate of the same person, if there is one."""
    following = plain.get((person, certificate.get("recertificationContentId")))
    return {} if following is None else {"recertificationCertificate": following}


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
    context.require("progress record", "SELECT id FROM generations WHERE id = ?", id)
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
    context.repository.execute(
        "INSERT OR REPLACE INTO certificates (id, person, content, issued, expires_at, notify, attachments) "
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
