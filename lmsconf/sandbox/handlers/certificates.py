"""User Certificates and Certificate Management: listed by person or flat, issued and removed (API specification)."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Final

from lmsconf.sandbox.handlers.analytics import enrolment, read_members
from lmsconf.sandbox.request_context import Handler, RequestContext, Sql, bad_request, not_found
from lmsconf.sandbox.store import Json, json_flag, json_known, json_list, json_value


def _shown(e: str, more: str = "") -> str:
    """SQL for a certificate as the API shows it. e: the name of its row. more: further members."""
    return json_known(
        f"'contentId', {e}.content, 'contentType', (SELECT type FROM contents WHERE id = {e}.content), "
        f"'contentName', (SELECT name FROM contents WHERE id = {e}.content), 'certificateId', {e}.id, "
        f"'issued', {e}.issued, 'pdfUri', 'https://sandbox.invalid/certificates/' || {e}.id || '.pdf', "
        f"'status', CASE WHEN {e}.expires_at <= :now THEN 'EXPIRED' ELSE 'ACTIVE' END, "
        f"'certificateAttachments', json({e}.attachments), 'expiredNotificationEnabled', {json_flag(f'{e}.notify')}, "
        f"'expiresAt', {e}.expires_at, 'recertificationContentId', {e}.recertification, "
        f"'certificateAttachment', json_extract({e}.attachments, '$[0].url'){more}"
    )


_NEXT: Final = ", 'recertificationCertificate', " + json_value(
    f"SELECT {_shown('n')} FROM certificates n WHERE n.person = e.person AND n.content = e.recertification"
)
"""The certificate of the same person that follows, if there is one."""
_ASKED: Final = "(:userIds IS NULL OR e.person IN (SELECT value FROM json_each(:userIds)))"
_FLAT: Final = f"""
    SELECT {_shown("e", f"{_NEXT}, 'userId', e.person")} AS item FROM certificates e WHERE {_ASKED} ORDER BY e.seq
"""
_LATEST: Final = f"""
    SELECT json_group_object(person, json(item)) FROM (SELECT e.person, {_shown("e", _NEXT)} AS item
    FROM certificates e WHERE {_ASKED} AND e.seq = (
        SELECT seq FROM certificates l WHERE l.person = e.person ORDER BY issued DESC, seq DESC LIMIT 1
    ) ORDER BY e.person)
"""
_OF_USER: Final = f"SELECT {_shown('e', _NEXT)} AS item FROM certificates e WHERE e.person = :userId ORDER BY e.seq"
_ISSUE: Final = Sql(
    new_ids={"certificate": "cert", "participation": "p", "event": "e", "progress": "job"},
    refusals={
        "SELECT 'there is no user ' || quote(:userId) WHERE :userId NOT IN (SELECT id FROM people)": bad_request,
        "SELECT 'user ' || quote(id) || ' is archived' FROM people "
        "WHERE id = :userId AND archived_at IS NOT NULL": bad_request,
        "SELECT 'there is no content ' || quote(:contentId) "
        "WHERE :contentId NOT IN (SELECT id FROM contents)": bad_request,
        "SELECT 'content ' || quote(id) || ' is a ' || type || ', not a ' || :contentType FROM contents "
        "WHERE id = :contentId AND type != :contentType": bad_request,
        "SELECT 'issuedAt lies in the future' WHERE :issuedAt > :now": bad_request,
        "SELECT 'expiresAt is not after issuedAt' WHERE :expiresAt <= coalesce(:issuedAt, :now)": bad_request,
    },
    changes=[
        "INSERT OR REPLACE INTO certificates (id, person, content, issued, expires_at, notify, attachments) "
        "VALUES (:certificate, :userId, :contentId, coalesce(:issuedAt, :now), :expiresAt, FALSE, '[]')",
        "INSERT INTO participations (id, person, content, state, percentage, revision, enrolled_at, updated_at) "
        f"VALUES (:participation, :userId, :contentId, 'APPROVED', 100, 1, coalesce({enrolment('since')}, :now), :now) "
        "ON CONFLICT (person, content) DO UPDATE "
        "SET state = excluded.state, percentage = 100, updated_at = excluded.updated_at",
        "INSERT INTO events (id, participation, status, revision, at, mandatory, manually) "
        f"SELECT :event, id, state, revision, :now, coalesce({enrolment('mandatory')}, FALSE), TRUE "
        "FROM participations WHERE person = :userId AND content = :contentId",
        "INSERT INTO generations (id, person, content, created_at) VALUES (:progress, :userId, :contentId, :now)",
    ],
    answer="SELECT json_object('progressId', :progress)",
)
_NAMED: Final = "person = :userId AND content = :contentId"


def issue_certificate(context: RequestContext) -> Json:
    """Issue a certificate and record the participation as approved manually. Completes before the response."""
    context.values.update({f"{name}s": json.dumps([context.body[name]]) for name in ("userId", "contentId")})
    read_members(context)
    return _ISSUE(context)


HANDLERS: Final[Mapping[str, Handler]] = {
    "user-certificates.list": Sql(
        answer=f"SELECT CASE WHEN :flatView THEN json_object('certificates', {json_list(_FLAT)}) "
        f"ELSE json_object('usersWithCertificates', {json_value(_LATEST)}) END"
    ),
    "user-certificates.of-user": Sql(
        answer=f"SELECT json_object('userId', :userId, 'certificates', {json_list(_OF_USER)})"
    ),
    "certificates.start": issue_certificate,
    "certificates.invite": Sql(),
    "certificates.delete": Sql(
        refusals={
            "SELECT 'there is no certificate ' || quote(:userId || ' ' || :contentId) "
            f"WHERE NOT EXISTS (SELECT 1 FROM certificates WHERE {_NAMED})": not_found
        },
        changes=[f"DELETE FROM certificates WHERE {_NAMED}"],
    ),
    "certificates.status": Sql(answer="SELECT json_object('progressId', :progressId, 'status', 'DONE')"),
}
