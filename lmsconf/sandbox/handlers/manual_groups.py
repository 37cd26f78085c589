"""Manual Groups: explicit members and managers (API specification, Manual Groups)."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

from lmsconf.sandbox.handlers import groups
from lmsconf.sandbox.request_context import GROUP, Entry, Handler, Request, RequestContext


def listing(desk: RequestContext, request: Request) -> Entry:
    """A page of the groups' ids and names."""
    return {"groups": groups.named(desk, GROUP, "groupId", desk.page(request))}


def create(desk: RequestContext, request: Request) -> Entry:
    """Create a group, with any initial members and managers."""
    id = groups.create(desk, GROUP, "g", request.text("name"))
    groups.add(desk, "members", id, request.texts("memberIds"))
    groups.add(desk, "managers", id, request.texts("managerIds"))
    return {"groupId": id}


def delete(desk: RequestContext, request: Request) -> None:
    """Delete the group."""
    groups.delete(desk, _id(desk, request), GROUP)


def rename(desk: RequestContext, request: Request) -> None:
    """Rename the group."""
    groups.rename(desk, _id(desk, request), request.text("name"))


def people(table: str) -> Handler:
    """Return a handler that lists the ids in `members` or `managers`."""
    return lambda desk, request: {"userIds": groups.people(desk, table, _id(desk, request))}


def add(table: str) -> Callable[[RequestContext, Request], None]:
    """Return a handler that adds people to that list. Raises Refusal (400) for more than the dialect's batch size."""

    def added(desk: RequestContext, request: Request) -> None:
        groups.add(desk, table, _id(desk, request), groups.user_ids_to_add(desk, request))

    return added


def remove(table: str) -> Callable[[RequestContext, Request], None]:
    """Return a handler that removes one person from that list."""
    return lambda desk, request: groups.remove(desk, table, _id(desk, request), request.path["userId"])


def _id(desk: RequestContext, request: Request) -> str:
    """The id of an existing group."""
    id = request.path["groupId"]
    desk.group(id, GROUP)
    return id


HANDLERS: Final[Mapping[str, Handler]] = {
    "manual-groups.list": listing,
    "manual-groups.create": create,
    "manual-groups.delete": delete,
    "manual-groups.rename": rename,
    "manual-groups.managers": people("managers"),
    "manual-groups.add-managers": add("managers"),
    "manual-groups.remove-manager": remove("managers"),
    "manual-groups.members": people("members"),
    "manual-groups.add-members": add("members"),
    "manual-groups.remove-member": remove("members"),
}
