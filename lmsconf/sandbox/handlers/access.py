"""Access: pre-signed login links, applications one by one, the admin and manager flags.

API specification, Authentication group and User Access.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import partial
from typing import Final
from urllib.parse import urlencode

from lmsconf.sandbox.handlers.users import find_by_email
from lmsconf.sandbox.request_context import (
    Entry,
    Handler,
    Request,
    RequestContext,
    bad_request,
    encode_applications,
    not_found,
)

LASTS: Final = 15 * 60 * 1000
"""Milliseconds until a link expires."""
SIGN_IN: Final = "https://sandbox.invalid/sign-in"


def create_login_link(context: RequestContext, request: Request) -> Entry:
    """Create a login link with its expiry. Raises Refusal (400) for an archived person."""
    person, redirect = _person(context, request), str(request.query.get("redirectUri", ""))
    if context.repository.number("SELECT archived_at IS NOT NULL FROM people WHERE id = ?", person):
        raise bad_request("an archived user cannot sign in")
    secret, expires_at = context.repository.new_id("link"), context.repository.now() + LASTS
    context.repository.execute(
        "INSERT INTO links (id, person, redirect, expires_at) VALUES (?, ?, ?, ?)", secret, person, redirect, expires_at
    )
    query = {"secret": secret} | ({"redirectUri": redirect} if redirect else {})
    return {"preSignedInLink": f"{SIGN_IN}?{urlencode(query)}", "expiresAt": expires_at}


def _person(context: RequestContext, request: Request) -> str:
    """The person to sign in: `userId` takes precedence over `email`."""
    if "userId" in request.body:
        return context.require_person(request.body_text("userId"))
    email = str(request.body.get("email", ""))
    if not (ids := find_by_email(context.repository, email)):
        raise not_found("user", email)
    return ids[0]


def set_application_access(context: RequestContext, request: Request) -> None:
    """Add or remove one application; idempotent."""
    person, action, application = (
        context.require_path_person(request),
        request.path["action"],
        request.body_text("applicationId"),
    )
    held = set(json.loads(context.repository.column("SELECT applications FROM people WHERE id = ?", person)[0]))
    after = held | {application} if action == "ADD" else held - {application}
    context.repository.execute("UPDATE people SET applications = ? WHERE id = ?", encode_applications(after), person)


def set_flag(flag: str, context: RequestContext, request: Request) -> None:
    """Grant or revoke a flag. A grant clears the custom archive date, which neither admins nor managers can have.

    The dialect decides whether somebody who loses the manager right keeps managing groups.
    """
    person, endow = context.require_path_person(request), request.path["endow"] == "true"
    context.repository.execute(f"UPDATE people SET {flag} = ? WHERE id = ?", endow, person)  # noqa: S608  the names are ours
    if endow:
        context.repository.execute("UPDATE people SET custom_archive_at = NULL WHERE id = ?", person)
    elif flag == "manager" and context.behaviour("user-access.make-manager.managed-groups") == "lose":
        context.repository.execute("DELETE FROM managers WHERE person = ?", person)


HANDLERS: Final[Mapping[str, Handler]] = {
    "auth.create": create_login_link,
    "user-access.set": set_application_access,
    "user-access.make-admin": partial(set_flag, "admin"),
    "user-access.make-manager": partial(set_flag, "manager"),
}
