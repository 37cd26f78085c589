"""Custom Fields: at most ten, replaced as a whole, 403 while in use (API specification, Custom Fields)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, cast

from lmsconf.sandbox.api_refusal import bad_request, forbidden, not_found
from lmsconf.sandbox.request_context import Entry, Handler, Json, Request, RequestContext
from lmsconf.sandbox.store import Value, ids_text

AT_MOST: Final = 10
_TEXT: Final = "TEXT"
_FLAGS: Final = ("isHidden", "isLocked", "isOptional")
_COLUMNS: Final = "id, name, type, description, hidden, locked, optional"
_ANY_ANSWER: Final = """
    UPDATE conditions SET any_answer = NOT EXISTS (
        SELECT 1 FROM condition_choices c WHERE c.grp = conditions.grp AND c.position = conditions.position
    ) WHERE field = ? AND system_condition = 'IS_ANY'
"""
_Choice = tuple[str | None, str]  # id, None for a new choice; name


def listing(desk: RequestContext, request: Request) -> Entry:
    """All fields with their choices, in creation order."""
    choices: dict[Value, list[Json]] = {}
    for field, id, name in desk.ledger.rows("SELECT field, id, name FROM choices ORDER BY field, position"):
        choices.setdefault(field, []).append({"choiceId": id, "name": name})
    rows = desk.ledger.rows(f"SELECT {_COLUMNS} FROM fields ORDER BY seq")  # noqa: S608  names of ours, values apart
    return {"customFields": [_entry(row, choices.get(row[0], [])) for row in rows]}


def create(desk: RequestContext, request: Request) -> Entry:
    """Create a field and its choices. Raises Refusal (400) for the eleventh field."""
    if desk.ledger.number("SELECT count(*) FROM fields") >= AT_MOST:
        raise bad_request(f"a workspace can have at most {AT_MOST} custom fields, and it has {AT_MOST}")
    choices = _choices(request)
    field = desk.ledger.new_id("f")
    desk.ledger.run(
        f"INSERT INTO fields ({_COLUMNS}) VALUES (?, ?, ?, ?, ?, ?, ?)",  # noqa: S608  names of ours, values apart
        field,
        request.text("name"),
        request.text("type"),
        *_details(request),
    )
    _write_choices(desk, field, choices)
    return _show(desk, field)


def replace(desk: RequestContext, request: Request) -> Entry:
    """Replace the whole field: omitted values are cleared, and answers to removed choices are deleted."""
    field = request.path["customFieldId"]
    type = _type(desk, field)
    if request.text("type") != type:
        raise bad_request(f"the type of a custom field cannot change: it is {type}")
    if request.body.get("description") == "" and desk.behaviour("custom-fields.clear-description") == "null":
        raise bad_request("description cannot be empty: null takes it away")
    choices = _choices(request)
    removed = _removed_choices(desk, field, choices)
    _refuse_if_in_use(desk, field, removed)
    desk.ledger.run(
        "UPDATE fields SET name = ?, description = ?, hidden = ?, locked = ?, optional = ? WHERE id = ?",
        request.text("name"),
        *_details(request),
        field,
    )
    _drop_choices(desk, field, removed)
    _write_choices(desk, field, choices)
    return _show(desk, field)


def delete(desk: RequestContext, request: Request) -> None:
    """Delete a field with its choices and all answers to it."""
    field = request.path["customFieldId"]
    _type(desk, field)
    _refuse_if_in_use(desk, field, None)
    groups = desk.ledger.column("SELECT DISTINCT grp FROM conditions WHERE field = ?", field)
    for table in ("choices", "answers", "conditions", "condition_choices"):
        desk.ledger.run(f"DELETE FROM {table} WHERE field = ?", field)  # noqa: S608  names of ours, values apart
    desk.ledger.run("DELETE FROM fields WHERE id = ?", field)
    for group in groups:
        _close_ranks(desk, group)


def _close_ranks(desk: RequestContext, group: str) -> None:
    """Renumber a group's remaining conditions from 0 without gaps, as membership queries expect."""
    left = desk.ledger.rows("SELECT position FROM conditions WHERE grp = ? ORDER BY position", group)
    for place, (position,) in enumerate(left):
        for table in ("conditions", "condition_choices"):
            step = f"UPDATE {table} SET position = ? WHERE grp = ? AND position = ?"  # noqa: S608  the names are ours
            desk.ledger.run(step, place, group, position)


def _type(desk: RequestContext, field: str) -> str:
    types = desk.ledger.column("SELECT type FROM fields WHERE id = ?", field)
    if not types:
        raise not_found("custom field", field)
    return types[0]


def _choices(request: Request) -> list[_Choice]:
    """The choices of the body. A TEXT field has none; for other types they are required."""
    entries = request.entries("choices")
    if request.text("type") == _TEXT and entries:
        raise bad_request("a TEXT field has no choices")
    if request.text("type") != _TEXT and "choices" not in request.body:
        raise bad_request(f"choices are required for {request.text('type')}")
    return [(cast("str | None", entry.get("choiceId")), cast(str, entry["name"])) for entry in entries]


def _removed_choices(desk: RequestContext, field: str, choices: list[_Choice]) -> list[str]:
    """The ids of the choices that the request omits. Raises Refusal (400) for unknown and duplicate ids."""
    live = desk.ledger.column("SELECT id FROM choices WHERE field = ? ORDER BY position", field)
    named = [id for id, _ in choices if id is not None]
    unknown = sorted(set(named) - set(live))
    if unknown:
        raise bad_request(f"custom field {field!r} has no choice {', '.join(map(repr, unknown))}")
    if len(set(named)) < len(named):
        raise bad_request("choices name the same choiceId twice")
    return [id for id in live if id not in named]


def _refuse_if_in_use(desk: RequestContext, field: str, removed: list[str] | None) -> None:
    """Raise Refusal (403) if the field is in use by the dialect's rule. `removed`: removed choices; None: the field."""
    rule = desk.behaviour("custom-fields.in-use")
    if rule == "never":
        return
    naming, values = "c.field = ?", [field]
    if rule == "removed-choice" and removed is not None:
        naming = "c.grp IN (SELECT grp FROM condition_choices WHERE choice IN (SELECT value FROM json_each(?)))"
        values = [ids_text(removed)]
    query = f"SELECT DISTINCT g.name FROM conditions c JOIN groups g ON g.id = c.grp WHERE {naming}"  # noqa: S608  ours
    groups = desk.ledger.column(f"{query} ORDER BY g.seq", *values)
    if groups:
        raise forbidden(f"the custom field is in use by {', '.join(groups[:5])}")


def _drop_choices(desk: RequestContext, field: str, removed: list[str]) -> None:
    ids = ids_text(removed)
    desk.ledger.run("DELETE FROM choices WHERE id IN (SELECT value FROM json_each(?))", ids)
    desk.ledger.run("DELETE FROM answers WHERE field = ? AND choice IN (SELECT value FROM json_each(?))", field, ids)
    desk.ledger.run("DELETE FROM condition_choices WHERE choice IN (SELECT value FROM json_each(?))", ids)
    desk.ledger.run(_ANY_ANSWER, field)


def _write_choices(desk: RequestContext, field: str, choices: list[_Choice]) -> None:
    """Store the choices in the given order, with ids for new ones."""
    for position, (id, name) in enumerate(choices):
        if id is None:
            values = (desk.ledger.new_id("ch"), field, position, name)
            desk.ledger.run("INSERT INTO choices (id, field, position, name) VALUES (?, ?, ?, ?)", *values)
        else:
            desk.ledger.run("UPDATE choices SET position = ?, name = ? WHERE id = ?", position, name, id)


def _details(request: Request) -> tuple[Value, ...]:
    """Description and flags as columns. A missing, null or empty description is NULL."""
    return cast("str | None", request.body.get("description")) or None, *(
        cast("bool | None", request.body.get(flag)) for flag in _FLAGS
    )


def _show(desk: RequestContext, field: str) -> Entry:
    row = desk.ledger.rows(f"SELECT {_COLUMNS} FROM fields WHERE id = ?", field)[0]  # noqa: S608  the names are ours
    choices = desk.ledger.rows("SELECT id, name FROM choices WHERE field = ? ORDER BY position", field)
    return _entry(row, [{"choiceId": id, "name": name} for id, name in choices])


def _entry(row: tuple[Value, ...], choices: list[Json]) -> Entry:
    """A field as the API shows it. Unset values are omitted."""
    id, name, type, description, *flags = row
    entry: Entry = {"customFieldId": id, "id": id, "type": type, "name": name}
    if type != _TEXT:
        entry["choices"] = choices
    if description is not None:
        entry["description"] = description
    return entry | {key: bool(value) for key, value in zip(_FLAGS, flags, strict=True) if value is not None}


HANDLERS: Final[Mapping[str, Handler]] = {
    "custom-fields.list": listing,
    "custom-fields.create": create,
    "custom-fields.replace": replace,
    "custom-fields.delete": delete,
}
