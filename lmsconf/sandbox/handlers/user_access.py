"""User Access: applications one by one, and the admin and manager flags (API specification, User Access)."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Final

from lmsconf.sandbox.applications import encode_applications
from lmsconf.sandbox.request_context import Handler, Request, RequestContext


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


def flag_setter(flag: str) -> Callable[[RequestContext, Request], None]:
    """Grant or revoke a flag. A grant clears the custom archive date, which neither admins nor managers can have.

    The dialect decides whether somebody who loses the manager right keeps managing groups.
    """

    def grant(context: RequestContext, request: Request) -> None:
        person, endow = context.require_path_person(request), request.path["endow"] == "true"
        context.repository.execute(f"UPDATE people SET {flag} = ? WHERE id = ?", endow, person)  # noqa: S608  the names are ours
        if endow:
            context.repository.execute("UPDATE people SET custom_archive_at = NULL WHERE id = ?", person)
        elif flag == "manager" and context.behaviour("user-access.make-manager.managed-groups") == "lose":
            context.repository.execute("DELETE FROM managers WHERE person = ?", person)

    return grant


HANDLERS: Final[Mapping[str, Handler]] = {
    "user-access.set": set_application_access,
    "user-access.make-admin": flag_setter("admin"),
    "user-access.make-manager": flag_setter("manager"),
}
