"""User Certificates: all by person, all as a flat list, or one person's (API specification, User Certificates)."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Final, cast

from lmsconf.sandbox.handlers.enrollment import has_expired
from lmsconf.sandbox.request_context import Entry, Handler, Json, Request, RequestContext
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
        "status": EXPIRED if has_expired(cast("int | None", expires_at), now) else ACTIVE,
        "certificateAttachments": attached,
        "expiredNotificationEnabled": bool(notify),
    } | {key: value for key, value in optional.items() if value is not None}


HANDLERS: Final[Mapping[str, Handler]] = {
    "user-certificates.list": list_certificates,
    "user-certificates.of-user": list_user_certificates,
}
