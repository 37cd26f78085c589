"""Manual Groups: members and managers put in by hand."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

from lmsconf.sandbox.handlers import groups
from lmsconf.sandbox.request_context import GROUP, Entry, Handler, Request, RequestContext


def listing(desk: RequestContext, request: Request) -> Entry:
    """A page of the groups' ids and names."""
    return {"groups": groups.named(desk, GROUP, "groupId", desk.page(request))}


def create(desk: RequestContext, request: Request) -> Entry:
    """A new group, with its first members and managers if there are any."""
    id = groups.create(desk, GROUP, "g", request.text("name"))
    groups.add(desk, "members", id, request.texts("memberIds"))
    groups.add(desk, "managers", id, request.texts("managerIds"))
    return {"groupId": id}


def delete(desk: RequestContext, request: Request) -> None:
    """Takes the group away."""
    groups.delete(desk, _id(desk, request), GROUP)


def rename(desk: RequestContext, request: Request) -> None:
    """Gives the group another name."""
    groups.rename(desk, _id(desk, request), request.text("name"))


def people(table: str) -> Handler:
    """Answers who is in that list of the group."""
    return lambda desk, request: {"userIds": groups.people(desk, table, _id(desk, request))}


def add(table: str) -> Callable[[RequestContext, Request], None]:
    """Adds people to that list of the group. Refuses more ids than the dialect lets one call carry."""

    def added(desk: RequestContext, request: Request) -> None:
        groups.add(desk, table, _id(desk, request), groups.coming(desk, request))

    return added


def remove(table: str) -> Callable[[RequestContext, Request], None]:
    """Takes one person out of that list of the group."""
    return lambda desk, request: groups.remove(desk, table, _id(desk, request), request.path["userId"])


def _id(desk: RequestContext, request: Request) -> str:
    """The group's id, once it is known to exist."""
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
