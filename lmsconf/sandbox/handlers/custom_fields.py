"""Custom Fields: at most ten, replaced as a whole, 403 while in use; and the answers to them, in the dialect's shape.

API specification, Custom Fields and Users.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Final, TypeAlias, cast

from lmsconf.sandbox.request_context import Entry, Handler, RequestContext, Sql, bad_request, forbidden
from lmsconf.sandbox.store import Json, Value, json_flag, json_known, json_list

AT_MOST: Final = 10
_CHOICES: Final = json_list(
    "SELECT id, name FROM choices WHERE field = fields.id ORDER BY position",
    "json_object('choiceId', id, 'name', name)",
)
_FIELD: Final = json_known(
    "'customFieldId', id, 'id', id, 'type', type, 'name', name, "
    f"'choices', json(CASE WHEN type != 'TEXT' THEN {_CHOICES} END), 'description', description, "
    f"'isHidden', {json_flag('hidden')}, 'isLocked', {json_flag('locked')}, 'isOptional', {json_flag('optional')}"
)
_LIST: Final = Sql(
    answer=f"SELECT json_object('customFields', {json_list(f'SELECT {_FIELD} AS item FROM fields ORDER BY seq')})"
)
_SHOW: Final = f"SELECT {_FIELD} FROM fields WHERE id = :customFieldId"
_REMOVED: Final = (
    "(SELECT id FROM choices WHERE field = :customFieldId AND id NOT IN (SELECT value FROM json_each(:kept)))"
)
"""SQL for the choices that a field has and the body does not name."""
_WRITE_CHOICES: Final = """
    INSERT INTO choices (id, field, position, name) SELECT json_extract(value, '$.choiceId'), :customFieldId, key,
        json_extract(value, '$.name') FROM json_each(:choices) WHERE TRUE
    ON CONFLICT (id) DO UPDATE SET position = excluded.position, name = excluded.name
"""
_CHOICES_FIT: Final = {
    "SELECT 'a TEXT field has no choices' WHERE :type = 'TEXT' AND json_array_length(:choices)": bad_request,
    "SELECT 'choices are required for ' || :type WHERE :type != 'TEXT' AND :choices IS NULL": bad_request,
}


def _in_use(by_choices: str = "c.field = :customFieldId") -> str:
    """A query of the message about a field that is in use by the dialect's rule.

    by_choices: which conditions use it where only removed choices count; all conditions on it if it is deleted.
    """
    return f"""
        SELECT 'the custom field is in use by ' || group_concat(name, ', ') FROM (
            SELECT DISTINCT g.name FROM conditions c JOIN groups g ON g.id = c.grp
            WHERE CASE $dialect(custom-fields.in-use) WHEN 'never' THEN FALSE WHEN 'removed-choice' THEN {by_choices}
                ELSE c.field = :customFieldId END ORDER BY g.seq LIMIT 5
        )
    """


_CREATE: Final = Sql(
    new_ids={"customFieldId": "f"},
    refusals={
        f"SELECT printf('a workspace can have at most %d custom fields, and it has %d', {AT_MOST}, {AT_MOST}) "
        f"WHERE (SELECT count(*) FROM fields) >= {AT_MOST}": bad_request,
        **_CHOICES_FIT,
    },
    changes=[
        "INSERT INTO fields (id, name, type, description, hidden, locked, optional) VALUES "
        "(:customFieldId, :name, :type, nullif(:description, ''), :isHidden, :isLocked, :isOptional)",
        _WRITE_CHOICES,
    ],
    answer=_SHOW,
)
_REPLACE: Final = Sql(
    refusals={
        "SELECT 'the type of a custom field cannot change: it is ' || type FROM fields "
        "WHERE id = :customFieldId AND type != :type": bad_request,
        "SELECT 'description cannot be empty: null clears it' "
        "WHERE :description = '' AND $dialect(custom-fields.clear-description) = 'null'": bad_request,
        **_CHOICES_FIT,
        """
            SELECT 'custom field ' || quote(:customFieldId) || ' has no choice ' || group_concat(quote(value), ', ')
            FROM (SELECT DISTINCT value FROM json_each(:kept)
                WHERE value NOT IN (SELECT id FROM choices WHERE field = :customFieldId) ORDER BY value)
        """: bad_request,
        "SELECT 'choices name the same choiceId twice' "
        "FROM json_each(:kept) GROUP BY value HAVING count(*) > 1": bad_request,
        _in_use(f"c.grp IN (SELECT grp FROM condition_choices WHERE choice IN {_REMOVED})"): forbidden,
    },
    changes=[
        "UPDATE fields SET name = :name, description = nullif(:description, ''), hidden = :isHidden, "
        "locked = :isLocked, optional = :isOptional WHERE id = :customFieldId",
        f"DELETE FROM answers WHERE field = :customFieldId AND choice IN {_REMOVED}",
        f"DELETE FROM condition_choices WHERE choice IN {_REMOVED}",
        f"DELETE FROM choices WHERE id IN {_REMOVED}",
        _WRITE_CHOICES,
    ],
    answer=_SHOW,
)


def _store(sql: Sql, context: RequestContext) -> Entry:
    """Create or replace a field and its choices. Those that the body gives no id get one."""
    if "choices" in context.body:
        choices = cast("list[Mapping[str, Json]]", context.body["choices"])
        context.values["kept"] = json.dumps([one["choiceId"] for one in choices if "choiceId" in one])
        context.values["choices"] = json.dumps(
            [one if "choiceId" in one else {**one, "choiceId": context.repository.new_id("ch")} for one in choices]
        )
    return cast(Entry, sql(context))


create: Final = partial(_store, _CREATE)
"""Create a field. Raises Refusal (400) for the eleventh one."""


_KEY: Final = "users.update-custom-field-choice"
Form: TypeAlias = "Callable[[Sequence[str]], Json]"
"""How texts are written, at least one of them."""
_TEXTS: Final[Mapping[str, Form]] = {
    "text": lambda texts: texts[0],
    "object": lambda texts: {"text": texts[0]},
    "value": lambda texts: {"value": texts[0]},
    "list": list,
}
_PICKED: Final[Mapping[str, Form]] = {
    "id": lambda choices: choices[0],
    "name": lambda choices: choices[0],
    "list": list,
    "name-list": list,
    "object": lambda choices: {"choiceId": choices[0]},
    "object-id": lambda choices: {"id": choices[0]},
    "object-list": lambda choices: {"choiceIds": list(choices)},
    "list-of-objects": lambda choices: [{"choiceId": choice} for choice in choices],
}
"""Form of a text, and of choices, by its name in the dialect."""


def update_answers(context: RequestContext) -> None:
    """Set or clear the answers in the body. Omitted ones are kept or cleared, according to the dialect."""
    person, answers = context.path["userId"], _answers(context)
    types = dict(cast("list[tuple[Value, Value]]", context.repository.rows("SELECT id, type FROM fields")))
    if context.behaviour(f"{_KEY}.omitted") == "clear":
        context.repository.execute("DELETE FROM answers WHERE person = ?", person)
    for field, value in answers.items():
        if field not in types:
            raise bad_request(f"there is no custom field {field!r}")
        rows = _rows(context, field, str(types[field]), value)
        context.repository.execute("DELETE FROM answers WHERE person = ? AND field = ?", person, field)
        context.repository.execute_many(
            "INSERT INTO answers VALUES (?, ?, ?, ?)", [(person, field, *row) for row in rows]
        )


def _answers(context: RequestContext) -> Mapping[str, Json]:
    """Field id → answer: the body itself, or its one wrapper key."""
    wrapper = context.behaviour(f"{_KEY}.wrapper")
    if wrapper == "none":
        return context.body
    wrapped = context.body.get(wrapper)
    if not isinstance(wrapped, Mapping) or len(context.body) > 1:
        raise bad_request(f"body must hold the answers under {wrapper}, and nothing else")
    return wrapped


def _rows(context: RequestContext, field: str, type: str, value: Json) -> list[tuple[Value, Value]]:
    """Choice and text of each row of an answer. Raises Refusal (400) for a value that the type does not allow."""
    hyphenated = type.lower().replace("_", "-")
    name = context.behaviour(f"{_KEY}.value" if type == "CHOICE" else f"{_KEY}.value-{hyphenated}")
    forms = _TEXTS if type == "TEXT" else _PICKED
    inside = list(value.values()) if isinstance(value, Mapping) else [value]
    if all(one in (None, "", []) for one in inside):
        clearing = context.behaviour(f"{_KEY}.clear-{hyphenated}")
        in_object = forms["object-list" if type == "MULTI_SELECT" else "object"](("",))
        if clearing in ("omit", "refused") or value != _cleared(clearing, forms[name](("",)), in_object):
            raise bad_request(f"{json.dumps(value)} does not clear custom field {field!r}")
        return []
    given = context.repository.column("SELECT atom FROM json_tree(?) WHERE type = 'text'", json.dumps(value))
    if not given or value != forms[name](given):
        raise bad_request(f"the answer to custom field {field!r} must be written as {name}")
    given = given if type == "TEXT" else list(dict.fromkeys(given))
    if type != "MULTI_SELECT" and len(given) > 1:
        raise bad_request(f"custom field {field!r} takes one {'text' if type == 'TEXT' else 'choice'}")
    return [("", given[0])] if type == "TEXT" else _choice_rows(context, field, name, given)


def _choice_rows(context: RequestContext, field: str, form: str, choices: list[str]) -> list[tuple[Value, Value]]:
    """The rows of the choices of an answer, which are ids or, in some forms, names."""
    key = "name" if form.startswith("name") else "id"
    rows = context.repository.rows(f"SELECT {key}, id FROM choices WHERE field = ?", field)
    known = dict(cast("list[tuple[Value, Value]]", rows))
    if unknown := [choice for choice in choices if choice not in known]:
        raise bad_request(f"custom field {field!r} has no choice {', '.join(map(repr, unknown))}")
    return [(known[choice], None) for choice in choices]


def _cleared(clearing: str, written: Json, in_object: Json) -> Json:
    """The value that clears an answer. written: any answer as it is written otherwise.

    in_object: the same in the object that clears it, where answers are written without an object.
    """
    [(key, inner)] = cast("Mapping[str, Json]", written if isinstance(written, Mapping) else in_object).items()
    empty: Json = [] if isinstance(inner, list) else ""
    cleared: dict[str, Json] = {"object": {key: empty}, "object-null": {key: None}, "null": None, "list": []}
    return cleared.get(clearing, [] if isinstance(written, list) else "")


HANDLERS: Final[Mapping[str, Handler]] = {
    "custom-fields.list": _LIST,
    "custom-fields.create": create,
    # What the body leaves out is cleared, and answers to the choices that it leaves out are deleted.
    "custom-fields.replace": partial(_store, _REPLACE),
    # With a field go its choices, the conditions on it, and all answers to it.
    "custom-fields.delete": Sql(
        refusals={_in_use(): forbidden},
        changes=[
            *(
                f"DELETE FROM {table} WHERE field = :customFieldId"
                for table in ("choices", "answers", "conditions", "condition_choices")
            ),
            "DELETE FROM fields WHERE id = :customFieldId",
            # The conditions of each group are numbered from 0 without gaps, as membership queries expect. The positions
            # of choices follow from those of conditions.
            *(
                f"UPDATE {table} SET position = (SELECT count(*) FROM conditions c "
                f"WHERE c.grp = {table}.grp AND c.position < {table}.position)"
                for table in ("condition_choices", "conditions")
            ),
        ],
    ),
    "users.update-custom-field-choice": update_answers,
    "users.custom-field-choice": _LIST,
}
