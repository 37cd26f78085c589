"""Authentication: pre-signed login links (API specification, Authentication group)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final
from urllib.parse import urlencode

from lmsconf.sandbox.api_refusal import bad_request, not_found
from lmsconf.sandbox.handlers.accounts import find_by_email
from lmsconf.sandbox.request_context import Entry, Handler, Request, RequestContext

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
        id = request.body_text("userId")
        context.require_person(id)
        return id
    email = str(request.body.get("email", ""))
    if not (ids := find_by_email(context.repository, email)):
        raise not_found("user", email)
    return ids[0]


HANDLERS: Final[Mapping[str, Handler]] = {"auth.create": create_login_link}
