"""Custom Fields: at most ten, replaced as a whole, 403 while in use; and the answers to them, in the dialect's shape.

API specification, Custom Fields and Users.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Final, cast

from lmsconf.sandbox.request_context import (
    Entry,
    Handler,
    Request,
    RequestContext,
    bad_request,
    forbidden,
)
from lmsconf.sandbox.store import Json, Value, encode_ids, json_flag

AT_MOST: Final = 10
_TEXT: Final = "TEXT"
_FLAGS: Final = ("isHidden", "isLocked", "isOptional")
_COLUMNS: Final = "id, name, type, description, hidden, locked, optional"
_SHOWN: Final = f"""
    SELECT json_object('customFieldId', id, 'id', id, 'type', type, 'name', name, 'choices', json(iif(
        type = 'TEXT', NULL, (SELECT json_group_array(json_object('choiceId', id, 'name', name)) FROM (
            SELECT id, name FROM choices WHERE field = fields.id ORDER BY position
        ))
    )), 'description', description, 'isHidden', {json_flag("hidden")}, 'isLocked', {json_flag("locked")},
    'isOptional', {json_flag("optional")}) FROM fields
"""  # noqa: S608  names of ours
_RENUMBER: Final = """
    UPDATE {table} SET position = (
        SELECT count(*) FROM conditions c WHERE c.grp = {table}.grp AND c.position < {table}.position
    ) WHERE grp IN (SELECT value FROM json_each(?))
"""
"""Number the conditions of groups from 0 without gaps, as membership queries expect."""
_WRITE_CHOICE: Final = """
    INSERT INTO choices (id, field, position, name) VALUES (?, ?, ?, ?)
    ON CONFLICT (id) DO UPDATE SET position = excluded.position, name = excluded.name
"""
_Choice = tuple[str | None, str]  # id, None for a new choice; name


def list_fields(context: RequestContext, request: Request) -> Entry:
    """All fields with their choices, in creation order."""
    return {"customFields": context.repository.objects(f"{_SHOWN} ORDER BY seq")}


def create(context: RequestContext, request: Request) -> Entry:
    """Create a field and its choices. Raises Refusal (400) for the eleventh field."""
    if context.repository.number("SELECT count(*) FROM fields") >= AT_MOST:
        raise bad_request(f"a workspace can have at most {AT_MOST} custom fields, and it has {AT_MOST}")
    choices = _choices(request)
    field = context.repository.new_id("f")
    context.repository.execute(
        f"INSERT INTO fields ({_COLUMNS}) VALUES (?, ?, ?, ?, ?, ?, ?)",  # noqa: S608  names of ours, values apart
        field,
        request.body_text("name"),
        request.body_text("type"),
        *_details(request),
    )
    _write_choices(context, field, choices)
    return _show(context, field)


def replace(context: RequestContext, request: Request) -> Entry:
    """Replace the whole field: omitted values are cleared, and answers to removed choices are deleted."""
    field = request.path["customFieldId"]
    type = _type(context, field)
    if request.body_text("type") != type:
        raise bad_request(f"the type of a custom field cannot change: it is {type}")
    if request.body.get("description") == "" and context.behaviour("custom-fields.clear-description") == "null":
        raise bad_request("description cannot be empty: null clears it")
    choices = _choices(request)
    removed = _removed_choices(context, field, choices)
    _refuse_if_in_use(context, field, removed)
    context.repository.execute(
        "UPDATE fields SET name = ?, description = ?, hidden = ?, locked = ?, optional = ? WHERE id = ?",
        request.body_text("name"),
        *_details(request),
        field,
    )
    _drop_choices(context, field, removed)
    _write_choices(context, field, choices)
    return _show(context, field)


def delete(context: RequestContext, request: Request) -> None:
    """Delete a field with its choices and all answers to it."""
    field = request.path["customFieldId"]
    _type(context, field)
    _refuse_if_in_use(context, field, None)
    groups = context.repository.column("SELECT DISTINCT grp FROM conditions WHERE field = ?", field)
    for table in ("choices", "answers", "conditions", "condition_choices"):
        context.repository.execute(f"DELETE FROM {table} WHERE field = ?", field)  # noqa: S608  names of ours, values apart
    context.repository.execute("DELETE FROM fields WHERE id = ?", field)
    for table in ("condition_choices", "conditions"):  # the positions of choices follow from those of conditions
        context.repository.execute(_RENUMBER.format(table=table), encode_ids(groups))


def _type(context: RequestContext, field: str) -> str:
    return str(context.require("custom field", "SELECT type FROM fields WHERE id = ?", field)[0])


def _choices(request: Request) -> list[_Choice]:
    """The choices of the body. A TEXT field has none; for other types they are required."""
    entries = request.body_objects("choices")
    if request.body_text("type") == _TEXT and entries:
        raise bad_request("a TEXT field has no choices")
    if request.body_text("type") != _TEXT and "choices" not in request.body:
        raise bad_request(f"choices are required for {request.body_text('type')}")
    return [(cast("str | None", entry.get("choiceId")), cast(str, entry["name"])) for entry in entries]


def _removed_choices(context: RequestContext, field: str, choices: list[_Choice]) -> list[str]:
    """The ids of the choices that the request omits. Raises Refusal (400) for unknown and duplicate ids."""
    live = context.repository.column("SELECT id FROM choices WHERE field = ? ORDER BY position", field)
    named = [id for id, _ in choices if id is not None]
    unknown = sorted(set(named) - set(live))
    if unknown:
        raise bad_request(f"custom field {field!r} has no choice {', '.join(map(repr, unknown))}")
    if len(set(named)) < len(named):
        raise bad_request("choices name the same choiceId twice")
    return [id for id in live if id not in named]


def _refuse_if_in_use(context: RequestContext, field: str, removed: list[str] | None) -> None:
    """Raise Refusal (403) if the field is in use by the dialect's rule. `removed`: removed choices; None: the field."""
    rule = context.behaviour("custom-fields.in-use")
    if rule == "never":
        return
    naming, values = "c.field = ?", [field]
    if rule == "removed-choice" and removed is not None:
        naming = "c.grp IN (SELECT grp FROM condition_choices WHERE choice IN (SELECT value FROM json_each(?)))"
        values = [encode_ids(removed)]
    query = f"SELECT DISTINCT g.name FROM conditions c JOIN groups g ON g.id = c.grp WHERE {naming}"  # noqa: S608  ours
    groups = context.repository.column(f"{query} ORDER BY g.seq", *values)
    if groups:
        raise forbidden(f"the custom field is in use by {', '.join(groups[:5])}")


def _drop_choices(context: RequestContext, field: str, removed: list[str]) -> None:
    ids = encode_ids(removed)
    context.repository.execute("DELETE FROM choices WHERE id IN (SELECT value FROM json_each(?))", ids)
    context.repository.execute(
        "DELETE FROM answers WHERE field = ? AND choice IN (SELECT value FROM json_each(?))", field, ids
    )
    context.repository.execute("DELETE FROM condition_choices WHERE choice IN (SELECT value FROM json_each(?))", ids)


def _write_choices(context: RequestContext, field: str, choices: list[_Choice]) -> None:
    """Store the choices in the given order, with ids for new ones."""
    for position, (id, name) in enumerate(choices):
        made = context.repository.new_id("ch") if id is None else id
        context.repository.execute(_WRITE_CHOICE, made, field, position, name)


def _details(request: Request) -> tuple[Value, ...]:
    """Description and flags as columns. A missing, null or empty description is NULL."""
    return cast("str | None", request.body.get("description")) or None, *(
        cast("bool | None", request.body.get(flag)) for flag in _FLAGS
    )


def _show(context: RequestContext, field: str) -> Entry:
    return context.repository.objects(f"{_SHOWN} WHERE id = ?", field)[0]


_KEY: Final = "users.update-custom-field-choice"
_TEXT_KEYS: Final = {"object": "text", "value": "value"}
"""Form of a text in an object → its key there."""
_CHOICE_KEYS: Final = {"object": "choiceId", "object-id": "id", "object-list": "choiceIds"}
"""Form of choices in an object → their key there."""
_LIST_FORMS: Final = ("list", "name-list", "list-of-objects", "object-list")


def update_answers(context: RequestContext, request: Request) -> None:
    """Set or clear the answers in the body. Omitted ones are kept or cleared, according to the dialect."""
    person = context.require_path_person(request)
    answers = _answers(context, request)
    types = dict(context.repository.pairs("SELECT id, type FROM fields"))
    if context.behaviour(f"{_KEY}.omitted") == "clear":
        context.repository.execute("DELETE FROM answers WHERE person = ?", person)
    for field, value in answers.items():
        if field not in types:
            raise bad_request(f"there is no custom field {field!r}")
        rows = list(_rows(context, field, str(types[field]), value))
        context.repository.execute("DELETE FROM answers WHERE person = ? AND field = ?", person, field)
        context.repository.execute_many(
            "INSERT INTO answers VALUES (?, ?, ?, ?)", [(person, field, *row) for row in rows]
        )


def _answers(context: RequestContext, request: Request) -> Mapping[str, Json]:
    """Field id → answer: the body itself, or its one wrapper key."""
    wrapper = context.behaviour(f"{_KEY}.wrapper")
    if wrapper == "none":
        return request.body
    wrapped = request.body.get(wrapper)
    if not isinstance(wrapped, Mapping) or len(request.body) > 1:
        raise bad_request(f"body must hold the answers under {wrapper}, and nothing else")
    return wrapped


def _rows(context: RequestContext, field: str, type: str, value: Json) -> Sequence[tuple[Value, Value]]:
    """Choice and text of each row of an answer. Raises Refusal (400) for a value that the type does not allow."""
    form = context.behaviour(f"{_KEY}.value" if type == "CHOICE" else f"{_KEY}.value-{_hyphenated(type)}")
    if _is_empty(value):
        clearing = context.behaviour(f"{_KEY}.clear-{_hyphenated(type)}")
        if clearing in ("omit", "refused") or value != _cleared(clearing, type, form):
            raise bad_request(f"{json.dumps(value)} does not clear custom field {field!r}")
        return []
    given = _given(form, _TEXT_KEYS if type == _TEXT else _CHOICE_KEYS, value)
    if type == _TEXT:
        if given is None or len(given) != 1:
            raise bad_request(f"custom field {field!r} takes a text, written as {form}")
        return [("", given[0])]
    if given is None:
        raise bad_request(f"the answer to custom field {field!r} must be written as {form}")
    choices = list(dict.fromkeys(given))
    if type == "CHOICE" and len(choices) > 1:
        raise bad_request(f"custom field {field!r} takes one choice")
    column = "name" if form.startswith("name") else "id"
    known = dict(
        context.repository.pairs(
            f"SELECT {column}, id FROM choices "  # noqa: S608  one of two names of ours
            f"WHERE field = ? AND {column} IN (SELECT value FROM json_each(?))",
            field,
            encode_ids(choices),
        )
    )
    if unknown := [choice for choice in choices if choice not in known]:
        raise bad_request(f"custom field {field!r} has no choice {', '.join(map(repr, unknown))}")
    return [(known[choice], None) for choice in choices]


def _is_empty(value: Json) -> bool:
    """Whether a value clears an answer: null, an empty text or list, or an object that holds only these."""
    inside = list(value.values()) if isinstance(value, Mapping) else [value]
    return all(one is None or one in ("", []) for one in inside)


def _cleared(clearing: str, type: str, form: str) -> Json:
    """The value that clears an answer of that type, which is otherwise written in that form."""
    if clearing.startswith("object"):
        key = _object_key(type, form)
        empty: Json = [] if key == "choiceIds" else ""
        return {key: None if clearing == "object-null" else empty}
    if clearing == "null":
        return None
    return [] if clearing == "list" or form in ("list", "list-of-objects", "name-list") else ""


def _object_key(type: str, form: str) -> str:
    if type == "TEXT":
        return _TEXT_KEYS.get(form, "text")
    if form == "object-id":
        return "id"
    return "choiceIds" if type == "MULTI_SELECT" or form == "object-list" else "choiceId"


def _hyphenated(type: str) -> str:
    return type.lower().replace("_", "-")


def _given(form: str, keys: Mapping[str, str], value: Json) -> list[str] | None:
    """The texts of an answer in that form, or the ids or names of its choices; None for another form."""
    held = _inside(value, keys[form]) if form in keys else value
    found: Json = held if form in _LIST_FORMS else [held]
    if form == "list-of-objects" and isinstance(found, list):
        found = [_inside(one, "choiceId") for one in found]
    if not isinstance(found, list) or not all(isinstance(one, str) for one in found):
        return None
    return [str(one) for one in found]


def _inside(value: Json, key: str) -> Json:
    """The one value of an object; None if it is another object, or none."""
    return value[key] if isinstance(value, Mapping) and value.keys() == {key} else None


HANDLERS: Final[Mapping[str, Handler]] = {
    "custom-fields.list": list_fields,
    "custom-fields.create": create,
    "custom-fields.replace": replace,
    "custom-fields.delete": delete,
    "users.update-custom-field-choice": update_answers,
    "users.custom-field-choice": list_fields,
}
