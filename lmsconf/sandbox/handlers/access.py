"""Access: pre-signed login links, applications one by one, the admin and manager flags.

API specification, Authentication group and User Access.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Final
from urllib.parse import urlencode

from lmsconf.sandbox.handlers.users import find_by_email
from lmsconf.sandbox.request_context import APPLICATIONS, Entry, Handler, RequestContext, Sql, bad_request, not_found


def create_login_link(context: RequestContext) -> Entry:
    """Create a login link that lasts 15 minutes. Raises Refusal (400) for an archived person."""
    person, redirect = _person(context), context.query.get("redirectUri", "")
    if context.repository.number("SELECT archived_at IS NOT NULL FROM people WHERE id = ?", person):
        raise bad_request("an archived user cannot sign in")
    secret, expires_at = context.repository.new_id("link"), context.repository.now() + 15 * 60 * 1000
    context.values.update(secret=secret, person=person, expires=expires_at)
    context.repository.execute(
        "INSERT INTO links (id, person, redirect, expires_at) "
        "VALUES (:secret, :person, coalesce(:redirectUri, ''), :expires)"
    )
    query = {"secret": secret} | ({"redirectUri": redirect} if redirect else {})
    return {"preSignedInLink": f"https://sandbox.invalid/sign-in?{urlencode(query)}", "expiresAt": expires_at}


def _person(context: RequestContext) -> str:
    """The person to sign in: `userId` takes precedence over `email`."""
    if "userId" in context.body:
        ids = context.repository.column("SELECT id FROM people WHERE id = :userId")
    else:
        ids = find_by_email(context.repository, str(context.body["email"]))
    if not ids:
        raise not_found(f"there is no user {context.body.get('userId', context.body.get('email'))!r}")
    return ids[0]


_END_DATE: Final = "UPDATE people SET custom_archive_at = NULL WHERE :endow = 'true' AND id = :userId"
"""Neither an admin nor a manager can have a custom archive date."""

HANDLERS: Final[Mapping[str, Handler]] = {
    "auth.create": create_login_link,
    "user-access.set": Sql(
        changes=[
            f"""UPDATE people SET applications = (SELECT json_group_array(value) FROM (
                SELECT value FROM json_each('{json.dumps(APPLICATIONS)}') WHERE CASE value WHEN :applicationId
                THEN :action = 'ADD' ELSE value IN (SELECT value FROM json_each(people.applications)) END ORDER BY key
            )) WHERE id = :userId"""
        ]
    ),
    "user-access.make-admin": Sql(changes=["UPDATE people SET admin = :endow = 'true' WHERE id = :userId", _END_DATE]),
    "user-access.make-manager": Sql(
        changes=[
            "UPDATE people SET manager = :endow = 'true' WHERE id = :userId",
            _END_DATE,
            "DELETE FROM managers WHERE person = :userId AND :endow = 'false' "
            "AND $dialect(user-access.make-manager.managed-groups) = 'lose'",
        ]
    ),
}
