"""Access: pre-signed login links, applications one by one, the admin and manager flags.

API specification, Authentication group and User Access.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Final, cast
from urllib.parse import urlencode

from lmsconf.sandbox.request_context import APPLICATIONS, Entry, Handler, RequestContext, Sql, bad_request, not_found

_ASKED: Final = "CASE WHEN :userId IS NULL THEN casefold(email) = casefold(:email) ELSE id = :userId END"
"""The person to sign in: `userId` takes precedence over `email`."""
_LINK: Final = Sql(
    new_ids={"secret": "link"},
    refusals={
        "SELECT 'there is no user ' || quote(coalesce(:userId, :email)) "
        f"WHERE NOT EXISTS (SELECT 1 FROM people WHERE {_ASKED})": not_found,
        f"SELECT 'an archived user cannot sign in' FROM people WHERE {_ASKED} AND archived_at IS NOT NULL": bad_request,
    },
    changes=[
        "INSERT INTO links (id, person, redirect, expires_at) SELECT :secret, id, coalesce(:redirectUri, ''), "
        f":now + 15 * 60 * 1000 FROM people WHERE {_ASKED} LIMIT 1"
    ],
    answer="SELECT json_object('expiresAt', expires_at) FROM links WHERE id = :secret",
)


def create_login_link(context: RequestContext) -> Entry:
    """Create a login link that lasts 15 minutes. Raises Refusal (400) for an archived person."""
    made, redirect = cast(Entry, _LINK(context)), context.query.get("redirectUri", "")
    query = {"secret": context.values["secret"]} | ({"redirectUri": redirect} if redirect else {})
    return {"preSignedInLink": f"https://sandbox.invalid/sign-in?{urlencode(query)}", **made}


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
