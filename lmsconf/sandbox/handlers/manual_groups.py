"""Manual Groups: explicit members and managers (API specification, Manual Groups)."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

from lmsconf.sandbox.handlers import groups
from lmsconf.sandbox.request_context import GROUP, Entry, Handler, Request, RequestContext


def list_groups(context: RequestContext, request: Request) -> Entry:
    """A page of the groups' ids and names."""
    return {"groups": groups.list_groups(context, GROUP, "groupId", context.requested_page(request))}


def create(context: RequestContext, request: Request) -> Entry:
    """Create a group, with any initial members and managers."""
    id = groups.create(context, GROUP, "g", request.body_text("name"))
    groups.add_people(context, "members", id, request.body_texts("memberIds"))
    groups.add_people(context, "managers", id, request.body_texts("managerIds"))
    return {"groupId": id}


def delete(context: RequestContext, request: Request) -> None:
    """Delete the group."""
    groups.delete(context, _id(context, request), GROUP)


def rename(context: RequestContext, request: Request) -> None:
    """Rename the group."""
    groups.rename(context, _id(context, request), request.body_text("name"))


def people_list_handler(table: str) -> Handler:
    """Return a handler that lists the ids in `members` or `managers`."""
    return lambda context, request: {"userIds": groups.list_people(context, table, _id(context, request))}


def add_people_handler(table: str) -> Callable[[RequestContext, Request], None]:
    """Return a handler that adds people to that list. Raises Refusal (400) for more than the dialect's batch size."""

    def added(context: RequestContext, request: Request) -> None:
        id = _id(context, request)
        groups.add_people(context, table, id, groups.user_ids_to_add(context, request, table, id))

    return added


def remove_person_handler(table: str) -> Callable[[RequestContext, Request], None]:
    """Return a handler that removes one person from that list."""
    return lambda context, request: groups.remove_person(context, table, _id(context, request), request.path["userId"])


def _id(context: RequestContext, request: Request) -> str:
    """The id of an existing group."""
    id = request.path["groupId"]
    context.require_group(id, GROUP)
    return id


HANDLERS: Final[Mapping[str, Handler]] = {
    "manual-groups.list": list_groups,
    "manual-groups.create": create,
    "manual-groups.delete": delete,
    "manual-groups.rename": rename,
    "manual-groups.managers": people_list_handler("managers"),
    "manual-groups.add-managers": add_people_handler("managers"),
    "manual-groups.remove-manager": remove_person_handler("managers"),
    "manual-groups.members": people_list_handler("members"),
    "manual-groups.add-members": add_people_handler("members"),
    "manual-groups.remove-member": remove_person_handler("members"),
}
