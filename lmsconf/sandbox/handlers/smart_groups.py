"""Smart Groups: membership computed from conditions on people's answers (API specification, Smart Groups)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final, cast

from lmsconf.sandbox.api_refusal import bad_request
from lmsconf.sandbox.handlers import groups
from lmsconf.sandbox.handlers.membership import members
from lmsconf.sandbox.request_context import SMART_GROUP, Entry, Handler, Json, Request, RequestContext
from lmsconf.sandbox.store import ids_text

IS_ANY: Final = "IS_ANY"


def listing(desk: RequestContext, request: Request) -> Entry:
    """A page of the ids and names of the groups whose name contains the filter."""
    return {"smartGroups": groups.named(desk, SMART_GROUP, "smartGroupId", desk.page(request), request.filter)}


def create(desk: RequestContext, request: Request) -> Entry:
    """Create a group with its conditions and any managers."""
    id = groups.create(desk, SMART_GROUP, "sg", request.text("name"))
    write_conditions(desk, id, request.entries("conditions"))
    groups.add(desk, "managers", id, request.texts("managers"))
    return {"smartGroupId": id}


def get(desk: RequestContext, request: Request) -> Entry:
    """One group with conditions and managers, and its members on request."""
    id = request.path["smartGroupId"]
    entry: Entry = {"smartGroupId": id, "name": desk.group(id, SMART_GROUP)}
    entry |= {"conditions": conditions(desk, id), "managers": groups.people(desk, "managers", id)}
    if request.flag("includeMembers"):
        entry["members"] = members(desk, id)
    return entry


def delete(desk: RequestContext, request: Request) -> None:
    """Delete the group; a missing one is no error."""
    groups.delete(desk, request.path["smartGroupId"], SMART_GROUP)


def rename(desk: RequestContext, request: Request) -> None:
    """Rename the group."""
    groups.rename(desk, _id(desk, request), request.text("name"))


def replace_conditions(desk: RequestContext, request: Request) -> None:
    """Replace all conditions."""
    write_conditions(desk, _id(desk, request), request.entries("conditions"))


def managers(desk: RequestContext, request: Request) -> Entry:
    """The user ids of the group's managers."""
    return {"userIds": groups.people(desk, "managers", _id(desk, request))}


def add_managers(desk: RequestContext, request: Request) -> None:
    """Add managers to the group."""
    groups.add(desk, "managers", _id(desk, request), groups.user_ids_to_add(desk, request))


def remove_manager(desk: RequestContext, request: Request) -> None:
    """Remove one manager from the group."""
    groups.remove(desk, "managers", _id(desk, request), request.path["userId"])


def conditions(desk: RequestContext, group: str) -> list[Json]:
    """The conditions of a group, in their given order."""
    choices: dict[object, list[Json]] = {}
    rows = desk.ledger.rows(
        "SELECT position, choice FROM condition_choices WHERE grp = ? ORDER BY position, place", group
    )
    for position, choice in rows:
        choices.setdefault(position, []).append(choice)
    entries: list[Json] = []
    for position, field, system in desk.ledger.rows(
        "SELECT position, field, system_condition FROM conditions WHERE grp = ? ORDER BY position", group
    ):
        entry: Entry = {"customFieldId": field, "choiceIds": choices.get(position, [])}
        entries.append(entry if system is None else entry | {"systemCondition": system})
    return entries


def write_conditions(desk: RequestContext, group: str, entries: Sequence[Mapping[str, Json]]) -> None:
    """Replace all conditions of a group, after checking each against its field."""
    if not entries:
        raise bad_request("a smart group needs at least one condition")
    desk.ledger.run("DELETE FROM conditions WHERE grp = ?", group)
    desk.ledger.run("DELETE FROM condition_choices WHERE grp = ?", group)
    for position, entry in enumerate(entries):
        field = cast(str, entry["customFieldId"])
        choices = list(dict.fromkeys(cast("list[str]", entry.get("choiceIds", []))))
        system = cast("str | None", entry.get("systemCondition"))
        _check(desk, f"conditions[{position}]", field, choices, system)
        any_answer = system == IS_ANY and not choices
        desk.ledger.run("INSERT INTO conditions VALUES (?, ?, ?, ?, ?)", group, position, field, system, any_answer)
        desk.ledger.add(
            "INSERT INTO condition_choices VALUES (?, ?, ?, ?, ?)",
            [(group, position, place, field, choice) for place, choice in enumerate(choices)],
        )


def _check(desk: RequestContext, at: str, field: str, choices: list[str], system: str | None) -> None:
    """Raise Refusal (400) for a condition that does not match the custom fields."""
    if not desk.ledger.number("SELECT count(*) FROM fields WHERE id = ?", field):
        raise bad_request(f"{at}: there is no custom field {field!r}")
    if not choices and not system:
        raise bad_request(f"{at}: a condition needs choiceIds or a systemCondition")
    known = desk.ledger.column(
        "SELECT id FROM choices WHERE field = ? AND id IN (SELECT value FROM json_each(?))",
        field,
        ids_text(choices),
    )
    unknown = [choice for choice in choices if choice not in known]
    if unknown:
        raise bad_request(f"{at}: custom field {field!r} has no choice {', '.join(map(repr, unknown))}")


def _id(desk: RequestContext, request: Request) -> str:
    """The id of an existing group."""
    id = request.path["smartGroupId"]
    desk.group(id, SMART_GROUP)
    return id


HANDLERS: Final[Mapping[str, Handler]] = {
    "smart-groups.list": listing,
    "smart-groups.create": create,
    "smart-groups.get": get,
    "smart-groups.delete": delete,
    "smart-groups.rename": rename,
    "smart-groups.replace-conditions": replace_conditions,
    "smart-groups.managers": managers,
    "smart-groups.add-managers": add_managers,
    "smart-groups.remove-manager": remove_manager,
}
