"""Smart Groups: membership computed from conditions on people's answers (API specification, Smart Groups)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final, cast

from lmsconf.sandbox.api_refusal import bad_request
from lmsconf.sandbox.handlers import groups
from lmsconf.sandbox.handlers.smart_group_membership import compute_members
from lmsconf.sandbox.request_context import SMART_GROUP, Entry, Handler, Json, Request, RequestContext
from lmsconf.sandbox.store import encode_ids


def list_groups(context: RequestContext, request: Request) -> Entry:
    """A page of the ids and names of the groups whose name contains the filter."""
    return {
        "smartGroups": groups.list_groups(
            context, SMART_GROUP, "smartGroupId", context.requested_page(request), request.name_filter
        )
    }


def create(context: RequestContext, request: Request) -> Entry:
    """Create a group with its conditions and any managers."""
    id = groups.create(context, SMART_GROUP, "sg", request.body_text("name"))
    write_conditions(context, id, request.body_objects("conditions"))
    groups.add_people(context, "managers", id, request.body_texts("managers"))
    return {"smartGroupId": id}


def get(context: RequestContext, request: Request) -> Entry:
    """One group with conditions and managers, and its members on request."""
    id = request.path["smartGroupId"]
    entry: Entry = {"smartGroupId": id, "name": context.require_group(id, SMART_GROUP)}
    entry |= {"conditions": read_conditions(context, id), "managers": groups.list_people(context, "managers", id)}
    if request.query_flag("includeMembers"):
        entry["members"] = compute_members(context, id)
    return entry


def delete(context: RequestContext, request: Request) -> None:
    """Delete the group; a missing one is no error."""
    groups.delete(context, request.path["smartGroupId"], SMART_GROUP)


def rename(context: RequestContext, request: Request) -> None:
    """Rename the group."""
    groups.rename(context, _id(context, request), request.body_text("name"))


def replace_conditions(context: RequestContext, request: Request) -> None:
    """Replace all conditions."""
    write_conditions(context, _id(context, request), request.body_objects("conditions"))


def list_managers(context: RequestContext, request: Request) -> Entry:
    """The user ids of the group's managers."""
    return {"userIds": groups.list_people(context, "managers", _id(context, request))}


def add_managers(context: RequestContext, request: Request) -> None:
    """Add managers to the group."""
    id = _id(context, request)
    groups.add_people(context, "managers", id, groups.user_ids_to_add(context, request, "managers", id))


def remove_manager(context: RequestContext, request: Request) -> None:
    """Remove one manager from the group."""
    groups.remove_person(context, "managers", _id(context, request), request.path["userId"])


def read_conditions(context: RequestContext, group: str) -> list[Json]:
    """The conditions of a group, in their given order."""
    choices: dict[object, list[Json]] = {}
    rows = context.repository.rows(
        "SELECT position, choice FROM condition_choices WHERE grp = ? ORDER BY position, place", group
    )
    for position, choice in rows:
        choices.setdefault(position, []).append(choice)
    entries: list[Json] = []
    for position, field, system in context.repository.rows(
        "SELECT position, field, system_condition FROM conditions WHERE grp = ? ORDER BY position", group
    ):
        entry: Entry = {"customFieldId": field, "choiceIds": choices.get(position, [])}
        entries.append(entry if system is None else entry | {"systemCondition": system})
    return entries


def write_conditions(context: RequestContext, group: str, entries: Sequence[Mapping[str, Json]]) -> None:
    """Replace all conditions of a group, after checking each against its field."""
    if not entries:
        raise bad_request("a smart group needs at least one condition")
    context.repository.execute("DELETE FROM conditions WHERE grp = ?", group)
    context.repository.execute("DELETE FROM condition_choices WHERE grp = ?", group)
    for position, entry in enumerate(entries):
        field = cast(str, entry["customFieldId"])
        choices = list(dict.fromkeys(cast("list[str]", entry.get("choiceIds", []))))
        system = cast("str | None", entry.get("systemCondition"))
        _check(context, f"conditions[{position}]", field, choices, system)
        context.repository.execute("INSERT INTO conditions VALUES (?, ?, ?, ?)", group, position, field, system)
        context.repository.execute_many(
            "INSERT INTO condition_choices VALUES (?, ?, ?, ?, ?)",
            [(group, position, place, field, choice) for place, choice in enumerate(choices)],
        )


def _check(context: RequestContext, at: str, field: str, choices: list[str], system: str | None) -> None:
    """Raise Refusal (400) for a condition that does not match the custom fields."""
    if not context.repository.number("SELECT count(*) FROM fields WHERE id = ?", field):
        raise bad_request(f"{at}: there is no custom field {field!r}")
    if not choices and not system:
        raise bad_request(f"{at}: a condition needs choiceIds or a systemCondition")
    known = context.repository.column(
        "SELECT id FROM choices WHERE field = ? AND id IN (SELECT value FROM json_each(?))",
        field,
        encode_ids(choices),
    )
    unknown = [choice for choice in choices if choice not in known]
    if unknown:
        raise bad_request(f"{at}: custom field {field!r} has no choice {', '.join(map(repr, unknown))}")


def _id(context: RequestContext, request: Request) -> str:
    """The id of an existing group."""
    id = request.path["smartGroupId"]
    context.require_group(id, SMART_GROUP)
    return id


HANDLERS: Final[Mapping[str, Handler]] = {
    "smart-groups.list": list_groups,
    "smart-groups.create": create,
    "smart-groups.get": get,
    "smart-groups.delete": delete,
    "smart-groups.rename": rename,
    "smart-groups.replace-conditions": replace_conditions,
    "smart-groups.managers": list_managers,
    "smart-groups.add-managers": add_managers,
    "smart-groups.remove-manager": remove_manager,
}
