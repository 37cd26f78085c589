"""Load the entries of a seed into an empty workspace: each is read as a request is, and carried out by SQL.

The entries name each other, and SQL finds the ids. Custom fields, conditions and assignments are created as the API
creates them, so that both follow the same rules.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from types import MappingProxyType
from typing import Final, cast

from lmsconf.sandbox.handlers import custom_fields
from lmsconf.sandbox.handlers.analytics import STATES
from lmsconf.sandbox.handlers.content import EVERYONE, USER, assign_content
from lmsconf.sandbox.handlers.groups import WRITE_CONDITIONS
from lmsconf.sandbox.handlers.users import ADDRESS_KEYS, FIRST_LANGUAGE, KEYS, validate_language
from lmsconf.sandbox.request_context import (
    APPLICATIONS,
    GROUP,
    SMART_GROUP,
    Refusal,
    RequestContext,
    Sql,
    bad_request,
    default_applications,
    encode_applications,
)
from lmsconf.sandbox.seed_rows import (
    Entry,
    InvalidSeedValue,
    Reader,
    Step,
    read_flag,
    read_instant,
    read_list,
    read_mapping,
    read_parts,
    read_text,
    read_texts,
    read_whole_number,
    refuse_unknown,
)
from lmsconf.sandbox.store import Json, encode_ids, json_known, json_list

_SWITCHES: Final = ("companyPayment", "disablePayment")


def _language(entry: Entry, key: str) -> str:
    return validate_language(read_text(entry, key))


def _one_of(allowed: Sequence[str], entry: Entry, key: str) -> str:
    value = read_text(entry, key)
    if value not in allowed:
        raise InvalidSeedValue(f"{key} {value!r} is none of {', '.join(allowed)}")
    return value


def _audiences(entry: Entry, key: str) -> list[Json]:
    return cast("list[Json]", read_list(entry, key))


def _choices(entry: Entry, key: str) -> list[Json]:
    return [{"name": name} for name in read_texts(entry, key)]


def _answers(entry: Entry, key: str) -> dict[str, Json]:
    answers = read_mapping(entry, key)
    return {name: value if isinstance(value, str) else read_texts(answers, name) for name, value in answers.items()}


def _metadata(entry: Entry, key: str) -> dict[str, Json]:
    metadata = read_mapping(entry, key)
    return {key: read_text(metadata, key) for key in metadata}


def _order_details(entry: Entry, key: str) -> dict[str, Json]:
    """The order details of a person, with the API's names."""
    details = read_mapping(entry, key)
    known = {_snake(name): name for name in (*KEYS, "disablePayment")}
    refuse_unknown(key, details, known)
    return {known[key]: _detail(details, key, known[key]) for key in details}


def _detail(details: Entry, key: str, name: str) -> Json:
    """One of the order details: a boolean, an address, or a text."""
    if name in _SWITCHES:
        return read_flag(details, key)
    if name != "address":
        return read_text(details, key)
    address = read_mapping(details, key)
    refuse_unknown("address", address, ADDRESS_KEYS)
    return {part: read_text(address, part) for part in address}


def _snake(name: str) -> str:
    """The seed's name of an API field: `companyName` → `company_name`."""
    return "".join(f"_{letter.lower()}" if letter.isupper() else letter for letter in name)


_NAMED: Final[Mapping[str, Reader]] = {"name": read_text, "id": read_text}
_EVENTS: Final[Mapping[str, Reader]] = {
    "at": read_instant,
    "mandatory": read_flag,
    "manually": read_flag,
    "revision": read_whole_number,
    "status": partial(_one_of, STATES),
}
_PEOPLE: Final[Mapping[str, Reader]] = {
    **dict.fromkeys(("email", "first_name", "last_name", "id"), read_text),
    **dict.fromkeys(("admin", "manager", "archived"), read_flag),
    "language": _language,
    "answers": _answers,
    "metadata": _metadata,
    "applications": read_texts,
    "order_details": _order_details,
    "custom_archive_date": read_instant,
}
_CUSTOM_FIELDS: Final[Mapping[str, Reader]] = {
    "name": read_text,
    "type": partial(_one_of, ("CHOICE", "MULTI_SELECT", "TEXT")),
    "choices": _choices,
    "description": read_text,
    **dict.fromkeys(("hidden", "locked", "optional"), read_flag),
}
_GROUPS: Final[Mapping[str, Reader]] = {**_NAMED, "members": read_texts, "managers": read_texts}
_SMART_GROUPS: Final[Mapping[str, Reader]] = {
    **_NAMED,
    "conditions": read_parts({"field": read_text, "choices": read_texts, "system_condition": read_text}, "field"),
    "managers": read_texts,
}
_CONTENT_ITEMS: Final[Mapping[str, Reader]] = {
    **_NAMED,
    **dict.fromkeys(("type", "description", "link", "image"), read_text),
    "price": read_whole_number,
    "updated": read_instant,
    "programs": read_texts,
    "categories": read_texts,
    "metadata": _metadata,
    "occasions": read_parts({"starts": read_instant, "attending": read_whole_number}, "starts"),
}
_CONTENT_TARGETS: Final[Mapping[str, Reader]] = {
    "content": read_text,
    "assign_to": _audiences,
    "mandatory": read_flag,
    "visible_from": read_instant,
    "visible_until": read_instant,
}
_PARTICIPATIONS: Final[Mapping[str, Reader]] = {
    **dict.fromkeys(("user", "content", "id"), read_text),
    "state": partial(_one_of, STATES),
    "percentage": read_whole_number,
    "revision": read_whole_number,
    "enrolled": read_instant,
    "updated": read_instant,
    "events": read_parts(_EVENTS, "status"),
}
_CERTIFICATES: Final[Mapping[str, Reader]] = {
    **dict.fromkeys(("user", "content", "recertification", "id"), read_text),
    "issued": read_instant,
    "expires": read_instant,
    "notify": read_flag,
    "attachments": read_parts({"created": read_instant, "name": read_text, "url": read_text}, "url"),
}
SECTIONS: Final[Mapping[str, Mapping[str, Reader]]] = {
    "people": _PEOPLE,
    "custom_fields": _CUSTOM_FIELDS,
    "groups": _GROUPS,
    "smart_groups": _SMART_GROUPS,
    "content": _CONTENT_ITEMS,
    "content_targets": _CONTENT_TARGETS,
    "participations": _PARTICIPATIONS,
    "certificates": _CERTIFICATES,
}
"""Section → the keys of its entries, and what reads them."""
_UNKNOWN_PERSON: Final = """
    SELECT 'there is no person with the e-mail ' || value FROM json_each({emails})
    WHERE NOT EXISTS (SELECT 1 FROM people WHERE casefold(email) = casefold(value)) LIMIT 1
"""
_NOT_ONE_CONTENT: Final = """
    SELECT CASE found WHEN 0 THEN 'there is no' ELSE 'there are ' || found || ' of' END || ' content ' || quote(value)
    FROM (SELECT value, (SELECT count(*) FROM contents WHERE name = value) AS found FROM json_each({names}))
    WHERE value IS NOT NULL AND found != 1 LIMIT 1
"""
_USER: Final = "(SELECT id FROM people WHERE casefold(email) = casefold(:user))"
_CONTENT: Final = "(SELECT id FROM contents WHERE name = :content)"
_KNOWN_PAIR: Final = (
    _UNKNOWN_PERSON.format(emails="json_array(:user)"),
    _NOT_ONE_CONTENT.format(names="json_array(:content)"),
)
_TWICE: Final = f"""
    SELECT :user || ' with ' || :content || ' is a duplicate' FROM {{table}}
    WHERE person = {_USER} AND content = {_CONTENT}
"""
_FIELD: Final = "(SELECT id FROM fields WHERE name = {name} ORDER BY seq DESC LIMIT 1)"
"""Of two fields with one name the newer one."""
_CHOICE: Final = "(SELECT id FROM choices WHERE field = {field} AND name = {name} ORDER BY position DESC LIMIT 1)"
_PICKED: Final = f"""
    (SELECT a.key AS name, {_FIELD.format(name="a.key")} AS field, v.value AS choice FROM json_each(:answers) a,
        json_each(CASE a.type WHEN 'array' THEN a.value ELSE json_array(a.value) END) v
        WHERE a.type = 'array' OR EXISTS (SELECT 1 FROM choices WHERE field = {_FIELD.format(name="a.key")}))
"""
"""The name and id of the field, and the name of the choice, of each choice in the answers of a person."""
_NO_FIELD: Final = """
    SELECT 'there is no custom field ' || quote(name) FROM (SELECT {name} AS name FROM {rows})
    WHERE name NOT IN (SELECT name FROM fields) LIMIT 1
"""
_NO_CHOICE: Final = """
    SELECT 'custom field ' || quote(name) || ' has no choice ' || quote(choice) FROM {rows}
    WHERE choice NOT IN (SELECT c.name FROM choices c WHERE c.field = picked.field) LIMIT 1
"""
_UNKNOWN_APPLICATION: Final = f"""
    SELECT 'application ' || quote(value) || ' is none of {", ".join(APPLICATIONS)}' FROM json_each(:applications)
    WHERE value NOT IN ({", ".join(map(repr, APPLICATIONS))}) ORDER BY value LIMIT 1
"""
_PERSON: Final = Sql(
    refusals=dict.fromkeys(
        (
            "SELECT :email || ' is a duplicate' FROM people WHERE casefold(email) = casefold(:email)",
            "SELECT 'an admin or manager cannot have a custom archive date' "
            "WHERE :custom_archive_date IS NOT NULL AND (:admin OR :manager)",
            _UNKNOWN_APPLICATION,
            _NO_FIELD.format(name="key", rows="json_each(:answers)"),
            _NO_CHOICE.format(rows=f"{_PICKED} picked"),
        ),
        bad_request,
    ),
    changes=[
        "INSERT INTO people (id, email, first_name, last_name, admin, manager, archived_at, created_at, "
        "custom_archive_at, language, metadata, applications) VALUES (:id, :email, coalesce(:first_name, ''), "
        "coalesce(:last_name, ''), coalesce(:admin, FALSE), coalesce(:manager, FALSE), "
        f"CASE WHEN :archived THEN :now END, :now, :custom_archive_date, coalesce(:language, '{FIRST_LANGUAGE}'), "
        "coalesce(:metadata, '{}'), :held)",
        f"INSERT INTO answers SELECT :id, {_FIELD.format(name='key')}, '', value FROM json_each(:answers) "
        f"WHERE type = 'text' AND key NOT IN (SELECT name FROM {_PICKED})",
        f"INSERT OR IGNORE INTO answers SELECT :id, field, {_CHOICE.format(field='picked.field', name='choice')}, NULL "
        f"FROM {_PICKED} picked",
        "INSERT INTO orders SELECT :id, :order_details, :now, :now WHERE :order_details IS NOT NULL",
    ],
)
_LISTED: Final = """
    INSERT OR IGNORE INTO {table} SELECT :id, p.id FROM json_each(:{table})
        CROSS JOIN people p ON casefold(p.email) = casefold(value)
"""


def _group(kind: str, refusals: Mapping[str, Callable[[str], Refusal]] = MappingProxyType({})) -> Sql:
    """A group with its members and managers."""
    lists = ("members", "managers")
    return Sql(
        refusals={**{_UNKNOWN_PERSON.format(emails=f":{name}"): bad_request for name in lists}, **refusals},
        changes=[
            f"INSERT INTO groups (id, kind, name) VALUES (:id, '{kind}', :name)",
            *(_LISTED.format(table=name) for name in lists),
        ],
    )


_OF_CONDITION: Final = "json_extract(c.value, '$.field')"
_CHOSEN: Final = f"""
    (SELECT {_OF_CONDITION} AS name, {_FIELD.format(name=_OF_CONDITION)} AS field, v.value AS choice
        FROM json_each(:conditions) c, json_each(c.value, '$.choices') v)
"""
"""As _PICKED, of the choices of conditions."""
_SMART_GROUP: Final = _group(
    SMART_GROUP,
    {
        _NO_FIELD.format(name=_OF_CONDITION, rows="json_each(:conditions) c"): bad_request,
        _NO_CHOICE.format(rows=f"{_CHOSEN} picked"): bad_request,
    },
)
_CHOICE_IDS: Final = json_list(
    f"SELECT {_CHOICE.format(field=_FIELD.format(name=_OF_CONDITION), name='v.value')} AS id "
    "FROM json_each(c.value, '$.choices') v ORDER BY v.key",
    "id",
)
_CONDITION: Final = json_known(
    f"'customFieldId', {_FIELD.format(name=_OF_CONDITION)}, 'choiceIds', "
    f"json(CASE WHEN json_type(c.value, '$.choices') IS NOT NULL THEN {_CHOICE_IDS} END), "
    "'systemCondition', json_extract(c.value, '$.system_condition')"
)
_CONDITIONS: Final = f"SELECT {json_list(f'SELECT {_CONDITION} AS item FROM json_each(:conditions) c ORDER BY c.key')}"
_OCCASIONS: Final = json_list(
    "SELECT json_object('occasionId', :id || '-' || (key + 1), 'startTime', json_extract(value, '$.starts'), "
    "'attendanceCount', coalesce(json_extract(value, '$.attending'), 0)) AS item "
    "FROM json_each(:occasions) ORDER BY key"
)
_DETAILS: Final = json_known(
    "'categories', json(:categories), 'metadata', json(:metadata), 'link', :link, 'backgroundImageUrl', :image, "
    f"'occasions', json(CASE WHEN :occasions IS NOT NULL THEN {_OCCASIONS} END)"
)
_CONTENT_ROW: Final = Sql(
    changes=[
        "INSERT INTO contents (id, type, name, description, price, updated_at, details) VALUES (:id, "
        "coalesce(:type, 'COURSE'), :name, coalesce(:description, ''), coalesce(:price, 0), coalesce(:updated, :now), "
        f"{_DETAILS})"
    ]
)
_PROGRAM_IDS: Final = json_list(
    "SELECT c.id FROM json_each(:programs) JOIN contents c ON c.name = value ORDER BY key", "id"
)
_PROGRAMS: Final = Sql(
    refusals={_NOT_ONE_CONTENT.format(names=":programs"): bad_request},
    changes=[
        f"UPDATE contents SET details = json_set(details, '$.partOfPrograms', json({_PROGRAM_IDS})) "
        "WHERE id = :id AND :programs IS NOT NULL"
    ],
)
"""A content may name its programs, listed before or after itself."""
_PARTICIPATION: Final = Sql(
    refusals=dict.fromkeys((*_KNOWN_PAIR, _TWICE.format(table="participations")), bad_request),
    changes=[
        "INSERT INTO participations (id, person, content, state, percentage, revision, enrolled_at, updated_at) "
        f"VALUES (:id, {_USER}, {_CONTENT}, :state, coalesce(:percentage, 100 * (:state = 'APPROVED')), "
        "coalesce(nullif(:revision, 0), 1), coalesce(:enrolled, :updated, :now), coalesce(:updated, :now))",
        "INSERT INTO events (id, participation, status, revision, at, mandatory, manually) "
        "SELECT json_extract(:eventIds, '$[' || key || ']'), :id, json_extract(value, '$.status'), "
        "coalesce(nullif(json_extract(value, '$.revision'), 0), 1), "
        "coalesce(json_extract(value, '$.at'), :updated, :now), coalesce(json_extract(value, '$.mandatory'), FALSE), "
        "coalesce(json_extract(value, '$.manually'), FALSE) "
        "FROM json_each(coalesce(:events, json_array(json_object('status', :state))))",
    ],
)
"""A participation with its declared events, or one event for its state."""
_ATTACHMENTS: Final = json_list(
    "SELECT json_object('url', json_extract(value, '$.url'), 'name', coalesce(json_extract(value, '$.name'), ''), "
    "'createdAt', coalesce(json_extract(value, '$.created'), :issued, :now)) AS item FROM json_each(:attachments)"
)
_CERTIFICATE: Final = Sql(
    refusals=dict.fromkeys(
        (
            *_KNOWN_PAIR,
            _TWICE.format(table="certificates"),
            "SELECT 'expires is not after issued' WHERE :expires <= coalesce(:issued, :now)",
            _NOT_ONE_CONTENT.format(names="json_array(:recertification)"),
        ),
        bad_request,
    ),
    changes=[
        "INSERT INTO certificates (id, person, content, issued, expires_at, recertification, notify, attachments) "
        f"VALUES (:id, {_USER}, {_CONTENT}, coalesce(:issued, :now), :expires, "
        f"(SELECT id FROM contents WHERE name = :recertification), coalesce(:notify, FALSE), {_ATTACHMENTS})"
    ],
)


def _load_field(context: RequestContext) -> None:
    custom_fields.create(context.with_body({_FLAGS.get(key, key): value for key, value in context.body.items()}))


def _load_person(context: RequestContext) -> None:
    admin, manager = (context.body.get(right) is True for right in ("admin", "manager"))
    first = default_applications(admin=admin, manager=manager)
    context.values["held"] = encode_applications(cast("list[str]", context.body.get("applications", first)))
    _PERSON(context)


def _load_smart_group(context: RequestContext) -> None:
    _SMART_GROUP(context)
    context.values.update(smartGroupId=context.values["id"], conditions=context.repository.column(_CONDITIONS)[0])
    WRITE_CONDITIONS(context)


def _load_target(context: RequestContext) -> None:
    """Assign content."""
    context.refuse({_NOT_ONE_CONTENT.format(names="json_array(:content)"): bad_request})
    (content,) = context.repository.column("SELECT id FROM contents WHERE name = :content")
    window = {"startTime": context.values["visible_from"], "finishTime": context.values["visible_until"]}
    context.values.update(contentId=content, **window)
    for audience in cast("list[object]", context.body.get("assign_to", [])):
        context.values["kind"], context.values["audience"] = _audience(context, audience)
        assign_content(context, replaces=False)


def _audience(context: RequestContext, target: object) -> tuple[str, str]:
    """Kind and id of an assignment's target."""
    if target in ("everyone", {"everyone": "true"}, {"everyone": True}):
        return EVERYONE, context.behaviour("content-targets.everyone")
    if isinstance(target, dict) and len(target) == 1:
        [(key, name)] = target.items()
        if key == "user":
            context.values["user"] = str(name)
            context.refuse({_UNKNOWN_PERSON.format(emails="json_array(:user)"): bad_request})
            return USER, context.repository.column(f"SELECT {_USER}")[0]
        if kind := {"group": GROUP, "smart_group": SMART_GROUP}.get(key):
            return kind, _group_id(context, key, kind, str(name))
    raise InvalidSeedValue(f"{target!r} is none of everyone, {{group: …}}, {{smart_group: …}}, {{user: …}}")


def _group_id(context: RequestContext, key: str, kind: str, name: str) -> str:
    ids = context.repository.column("SELECT id FROM groups WHERE kind = ? AND name = ?", kind, name)
    if len(ids) != 1:
        raise InvalidSeedValue(f"there is no {key} {name!r}" if not ids else f"there are {len(ids)} of {key} {name!r}")
    return ids[0]


def _load_participation(context: RequestContext) -> None:
    events = cast("list[Json]", context.body.get("events", [None]))
    context.values["eventIds"] = encode_ids([context.repository.new_id("e") for _ in events])
    _PARTICIPATION(context)


_FLAGS: Final = {"hidden": "isHidden", "locked": "isLocked", "optional": "isOptional"}
STEPS: Final = (
    Step("custom_fields", _CUSTOM_FIELDS, ("name", "type"), _load_field),
    Step("people", _PEOPLE, ("email",), _load_person, "u"),
    Step("groups", _GROUPS, ("name",), _group(GROUP), "g"),
    Step("smart_groups", _SMART_GROUPS, ("name",), _load_smart_group, "sg"),
    Step("content", _CONTENT_ITEMS, ("name",), _CONTENT_ROW, "c"),
    Step("content", _CONTENT_ITEMS, ("name",), _PROGRAMS, "c"),
    Step("content_targets", _CONTENT_TARGETS, ("content",), _load_target),
    Step("participations", _PARTICIPATIONS, ("user", "content", "state"), _load_participation, "p"),
    Step("certificates", _CERTIFICATES, ("user", "content"), _CERTIFICATE, "cert"),
)
