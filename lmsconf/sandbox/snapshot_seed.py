"""Fill an empty workspace from a snapshot file: the same people, fields, groups, contents and assignments, by id.

What a snapshot does not hold gets the values of a new workspace: times of creation, results and certificates, and
what the catalog says of a content beside its name and type.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from typing import Final, cast

from lmsconf.sandbox.handlers.content import USER
from lmsconf.sandbox.handlers.users import FIRST_LANGUAGE
from lmsconf.sandbox.request_context import (
    GROUP,
    SMART_GROUP,
    RequestContext,
    Sql,
    bad_request,
    default_applications,
    encode_applications,
    parse_time,
)
from lmsconf.sandbox.seed_rows import (
    Entry,
    InvalidSeedValue,
    Reader,
    Step,
    load_entries,
    read_flag,
    read_list,
    read_mapping,
    read_mappings,
    read_parts,
    read_text,
    read_texts,
)
from lmsconf.sandbox.store import Json

FORMAT: Final = "lmsconf.snapshot/1"
REDACTED: Final = "a redacted snapshot names too few people to make a workspace of"


def is_snapshot(values: Mapping[str, object]) -> bool:
    """Whether the values of a file are a snapshot and not a seed."""
    return values.get("format") == FORMAT


def _answers(entry: Entry, key: str) -> list[Json]:
    """Field, and the values of an answer to it: choices by id or by name, or one text."""
    return [
        {"field": read_text(one, "field"), "values": [*read_texts(one, "choices"), *([text] if text else [])]}
        for one in read_mappings(entry, key)
        for text in [read_text(one, "text", "")]
    ]


def _metadata(entry: Entry, key: str) -> dict[str, Json]:
    return dict(_pair(one) for one in read_list(entry, key))


def _pair(value: object) -> tuple[str, str]:
    """Return key and text of one pair of metadata. Raises InvalidSeedValue."""
    match value:
        case [str(key), str(text)]:
            return key, text
    raise InvalidSeedValue("metadata is not a list of pairs of texts")


def _instant(entry: Entry, key: str) -> int:
    text = read_text(entry, key)
    for format in ("iso", "epoch-ms"):
        with suppress(ValueError):
            return parse_time(text, format)
    raise InvalidSeedValue(f"{key}: {text!r} is not a time")


def _whole_number(entry: Entry, key: str) -> int | None:
    return value if isinstance(value := entry[key], int) else None


_NOT_KEPT: Final = "NOT :keeps AND"


def _unknown(noun: str, ids: str, table: str, rule: str = "") -> str:
    """A query of the message about an id that no row of a table has. ids: a query of them."""
    return f"""
        SELECT 'there is no {noun} with the id ' || quote(id) FROM (SELECT NULL AS id WHERE FALSE UNION ALL {ids})
        WHERE {rule} id NOT IN (SELECT id FROM {table}) LIMIT 1
    """


def _taken(table: str, rule: str = "TRUE") -> str:
    """A query of the message about the id of an entry that is empty or another's."""
    return f"""
        SELECT CASE :id WHEN '' THEN 'id is empty' ELSE 'id ' || quote(:id) || ' is a duplicate' END
        WHERE :id = '' OR EXISTS (SELECT 1 FROM {table} WHERE id = :id AND {rule})
    """


_NEW_CHOICES: Final = "(SELECT json_extract(value, '$.id') AS id FROM json_each(:choices))"
_FIELD: Final = Sql(
    refusals=dict.fromkeys(
        (
            _taken("fields"),
            f"SELECT 'id ' || quote(id) || ' is a duplicate' FROM {_NEW_CHOICES} "
            "GROUP BY id HAVING count(*) > 1 OR id IN (SELECT id FROM choices) LIMIT 1",
        ),
        bad_request,
    ),
    changes=[
        "INSERT INTO fields (id, name, type, description, hidden, locked, optional) "
        "VALUES (:id, :name, :type, :description, :hidden, :locked, :optional)",
        "INSERT INTO choices (id, field, position, name) SELECT json_extract(value, '$.id'), :id, key, "
        "json_extract(value, '$.name') FROM json_each(:choices)",
    ],
)
_OF_FIELD: Final = "SELECT {shown} FROM choices WHERE field = f.id"
_FITTING: Final = f"""
    (SELECT f.id FROM fields f WHERE nfc(f.name) = nfc(json_extract(a.value, '$.field')) AND CASE f.type
        WHEN 'TEXT' THEN json_array_length(a.value, '$.values') = 1
        ELSE NOT EXISTS (SELECT 1 FROM json_each(a.value, '$.values') v WHERE v.value NOT IN (
            {_OF_FIELD.format(shown="id")} UNION ALL {_OF_FIELD.format(shown="name")}
        )) END ORDER BY f.seq LIMIT 1)
"""
"""The id of the first field of the name that an answer has to which it is an answer."""
_ANSWERED: Final = f"""
    (SELECT f.id, f.type, v.value FROM json_each(:answers) a JOIN fields f ON f.id = {_FITTING},
        json_each(a.value, '$.values') v) f
"""
_PERSON: Final = Sql(
    refusals=dict.fromkeys(
        (
            _taken("people"),
            "SELECT 'the answer to ' || quote(json_extract(a.value, '$.field')) || "
            f"' fits no custom field of that name' FROM json_each(:answers) a WHERE {_FITTING} IS NULL LIMIT 1",
        ),
        bad_request,
    ),
    changes=[
        "INSERT INTO people (id, email, first_name, last_name, admin, manager, archived_at, created_at, "
        "custom_archive_at, language, metadata, applications) VALUES (:id, :email, coalesce(:first_name, ''), "
        "coalesce(:last_name, ''), coalesce(:admin, FALSE), coalesce(:manager, FALSE), "
        f"CASE WHEN :archived THEN :now END, :now, :archive_date, coalesce(:language, '{FIRST_LANGUAGE}'), "
        "coalesce(:metadata, '{}'), :held)",
        f"INSERT OR IGNORE INTO answers SELECT :id, id, '', value FROM {_ANSWERED} WHERE type = 'TEXT'",
        "INSERT OR IGNORE INTO answers SELECT :id, id, coalesce("
        f"({_OF_FIELD.format(shown='id')} AND id = f.value), "
        f"({_OF_FIELD.format(shown='id')} AND name = f.value ORDER BY position DESC LIMIT 1)), NULL "
        f"FROM {_ANSWERED} WHERE type != 'TEXT'",
    ],
)


def _people(table: str) -> tuple[str, str]:
    """The query about people of a group who are unknown, and what adds them."""
    return (
        _unknown("user", f"SELECT value FROM json_each(:{table})", "people", _NOT_KEPT),
        f"INSERT OR IGNORE INTO {table} SELECT :id, value FROM json_each(:{table})",
    )


def _insert_group(kind: str) -> str:
    return f"INSERT INTO groups (id, kind, name) VALUES (:id, '{kind}', :name)"


_MANAGERS, _MEMBERS = _people("managers"), _people("members")
_GROUP: Final = Sql(
    refusals=dict.fromkeys((_taken("groups"), _MANAGERS[0], _MEMBERS[0]), bad_request),
    changes=[_insert_group(GROUP), _MANAGERS[1], _MEMBERS[1]],
)
_CHOSEN: Final = "FROM json_each(:conditions) c, json_each(c.value, '$.choices') v"
_SMART_GROUP: Final = Sql(
    refusals=dict.fromkeys(
        (
            _taken("groups", f"kind = '{SMART_GROUP}'"),
            "SELECT 'a group has the same id ' || quote(id) || ', and the sandbox has one id for one group' "
            "FROM groups WHERE id = :id",
            _MANAGERS[0],
            _unknown("custom_field", "SELECT json_extract(value, '$.field') FROM json_each(:conditions)", "fields"),
            _unknown("choice", f"SELECT v.value {_CHOSEN}", "choices"),
        ),
        bad_request,
    ),
    changes=[
        _insert_group(SMART_GROUP),
        _MANAGERS[1],
        "INSERT INTO conditions SELECT :id, key, json_extract(value, '$.field'), "
        "json_extract(value, '$.system_condition') FROM json_each(:conditions)",
        "INSERT OR IGNORE INTO condition_choices SELECT :id, c.key, v.key, "
        f"(SELECT field FROM choices WHERE id = v.value), v.value {_CHOSEN}",
    ],
)
_CONTENT: Final = Sql(
    refusals={_taken("contents"): bad_request},
    changes=[
        "INSERT INTO contents (id, type, name, description, price, updated_at) VALUES (:id, :type, :name, '', 0, :now)"
    ],
)
_TARGET: Final = Sql(
    refusals=dict.fromkeys(
        (
            "SELECT 'it names the same twice' FROM targets WHERE content = :content AND kind = :kind "
            "AND audience = :target",
        ),
        bad_request,
    ),
    changes=[
        "INSERT INTO targets (content, kind, audience, mandatory, start, finish, created_at, updated_at, type) "
        "VALUES (:content, :kind, :target, coalesce(:mandatory, FALSE), :start, :finish, :now, :now, "
        "nullif(nullif(:type, ''), :kind))"
    ],
)


def _load_person(context: RequestContext) -> None:
    admin, manager = (context.body.get(right) is True for right in ("admin", "manager"))
    first = () if "applications" in context.body else default_applications(admin=admin, manager=manager)
    named = cast("Sequence[str]", context.body.get("applications", ()))
    context.values["held"] = encode_applications([*first, *named])
    _PERSON(context)


def _whole(load: Sql, *parts: str) -> Callable[[RequestContext], object]:
    """What loads a group of which these parts were read."""

    def load_whole(context: RequestContext) -> object:
        if unread := [part for part in parts if part not in context.body]:
            raise InvalidSeedValue(f"{unread[0]} were not read")
        return load(context)

    return load_whole


_HOLDERS: Final = """
    SELECT 'USER' AS kind FROM people WHERE id = {id} UNION ALL SELECT kind FROM groups WHERE id = {id}
    UNION ALL SELECT 'EVERYONE' WHERE {id} = $dialect(content-targets.everyone)
"""
"""The kinds of audiences of which one has an id."""
_ALIKE: Final = f"""
    SELECT ({_HOLDERS.format(id="t.id")}) FROM (
        SELECT json_extract(value, '$.target') AS id FROM json_each(:targets)
        WHERE coalesce(json_extract(value, '$.type'), '') = coalesce(:type, '')
    ) t WHERE (SELECT count(*) FROM ({_HOLDERS.format(id="t.id")})) = 1
"""
"""The kinds of the targets with the same type whose id is that of one kind only."""


def _load_target(context: RequestContext) -> None:
    context.refuse({_unknown("content", "SELECT :content", "contents"): bad_request})
    context.values["kind"] = _audience_kind(context)
    _TARGET(context)


def _audience_kind(context: RequestContext) -> str:
    """Return what kind of audience a target has; its type, or its label, decides where kinds share an id."""
    holders = set(context.repository.column(_HOLDERS.format(id=":target")))
    kinds, type = holders, str(context.body.get("type", ""))
    if type in kinds:
        return type
    if len(kinds) > 1:
        kinds = kinds & set(context.repository.column(_ALIKE)) or kinds
    if len(kinds) > 1:
        kinds &= set(context.repository.column("SELECT kind FROM groups WHERE id = :target AND name = :label"))
    if len(kinds) == 1:
        return next(iter(kinds))
    if context.values["keeps"] and not holders:
        return type if type in (USER, GROUP, SMART_GROUP) else USER
    raise InvalidSeedValue(
        f"the audience {context.body['target']!r} is not a person, group or smart group of the snapshot"
    )


_CHOICES: Final = read_parts({"id": read_text, "name": read_text}, "id", "name", is_strict=False)
_CONDITIONS: Final = read_parts(
    {"field": read_text, "choices": read_texts, "system_condition": read_text}, "field", is_strict=False
)
_NAMED: Final[Mapping[str, Reader]] = {"id": read_text, "name": read_text}
_FIELD_KEYS: Final[Mapping[str, Reader]] = {
    **_NAMED,
    **dict.fromkeys(("type", "description"), read_text),
    **dict.fromkeys(("hidden", "locked", "optional"), read_flag),
    "choices": _CHOICES,
}
_PERSON_KEYS: Final[Mapping[str, Reader]] = {
    **dict.fromkeys(("id", "email", "first_name", "last_name", "language"), read_text),
    **dict.fromkeys(("admin", "manager", "archived"), read_flag),
    "applications": read_texts,
    "metadata": _metadata,
    "archive_date": _whole_number,
    "answers": _answers,
}
_GROUP_KEYS: Final[Mapping[str, Reader]] = {**_NAMED, "managers": read_texts, "members": read_texts}
_TARGET_KEYS: Final[Mapping[str, Reader]] = {
    **dict.fromkeys(("content", "target", "type", "label"), read_text),
    "mandatory": read_flag,
    **dict.fromkeys(("start", "finish"), _instant),
}
_STEPS: Final = (
    Step("custom_field", _FIELD_KEYS, ("id", "name", "type"), _FIELD),
    Step("user", _PERSON_KEYS, ("id", "email"), _load_person),
    Step("group", _GROUP_KEYS, ("id", "name"), _whole(_GROUP, "managers", "members")),
    Step(
        "smart_group",
        {**_GROUP_KEYS, "conditions": _CONDITIONS},
        ("id", "name"),
        _whole(_SMART_GROUP, "managers", "conditions"),
    ),
    Step("content", {**_NAMED, "type": read_text}, ("id", "type", "name"), _CONTENT),
    Step("content_target", _TARGET_KEYS, ("content", "target"), _load_target),
)


def fill_from_snapshot(
    context: RequestContext, values: Mapping[str, object], *, keeps_unlisted: bool = False
) -> list[str]:
    """Insert the rows of a snapshot; return the problems of what cannot be inserted.

    keeps_unlisted: whether ids of people and audiences that no listing has stay in lists and assignments, as in the
    workspace: some services list only active people. Else each is a problem.
    """
    if "pseudonyms" in values:
        return [REDACTED]
    names = [step.section for step in _STEPS]
    try:
        incomplete = read_mapping(values, "incomplete")
        entries = {name: read_mappings(values, name) for name in names}
    except InvalidSeedValue as wrong:
        return [str(wrong)]
    missing = [f"{name}: it was not read completely: {incomplete[name]}" for name in names if name in incomplete]
    missing += [f"{name}: it was not read" for name in names if name not in values]
    more: dict[str, Json] = {"keeps": keeps_unlisted, "targets": json.dumps(entries["content_target"])}
    return missing or load_entries(context, entries, _STEPS, more, is_strict=False)
