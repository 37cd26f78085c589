"""User Access: applications one by one, and the admin and manager flags (API specification, User Access)."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Final

from lmsconf.sandbox.applications import stored
from lmsconf.sandbox.request_context import Handler, Request, RequestContext


def set_access(desk: RequestContext, request: Request) -> None:
    """Add or remove one application; idempotent."""
    person, action, application = desk.person(request), request.path["action"], request.text("applicationId")
    held = set(json.loads(desk.ledger.column("SELECT applications FROM people WHERE id = ?", person)[0]))
    after = held | {application} if action == "ADD" else held - {application}
    desk.ledger.run("UPDATE people SET applications = ? WHERE id = ?", stored(after), person)


def make(flag: str) -> Callable[[RequestContext, Request], None]:
    """Grant or revoke a flag. A grant clears the custom archive date, which neither admins nor managers can have."""

    def grant(desk: RequestContext, request: Request) -> None:
        person, endow = desk.person(request), request.path["endow"] == "true"
        desk.ledger.run(f"UPDATE people SET {flag} = ? WHERE id = ?", endow, person)  # noqa: S608  the names are ours
        if endow:
            desk.ledger.run("UPDATE people SET custom_archive_at = NULL WHERE id = ?", person)

    return grant


HANDLERS: Final[Mapping[str, Handler]] = {
    "user-access.set": set_access,
    "user-access.make-admin": make("admin"),
    "user-access.make-manager": make("manager"),
}
