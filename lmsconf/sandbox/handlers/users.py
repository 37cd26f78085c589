"""Users: four views of people, none of them complete, and every change of an account (API specification, Users).

Order details are stored as a whole, with a separate flag that disables payment.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Final, cast

from lmsconf.sandbox.handlers.content import USER
from lmsconf.sandbox.handlers.groups import compute_memberships
from lmsconf.sandbox.request_context import (
    LEARNER,
    Entry,
    Handler,
    PageRange,
    Request,
    RequestContext,
    bad_request,
    conflict,
    encode_applications,
    format_time,
)
from lmsconf.sandbox.store import Json, Repository, Value, encode_ids, json_flag

_NAMES: Final = "'userId', id, 'email', email, 'firstName', first_name, 'lastName', last_name"
_FLAGS: Final = f"'admin', {json_flag('admin')}, 'manager', {json_flag('manager')}"
_DATES: Final = "'archivedAt', archived_at, 'customArchiveDate', custom_archive_at"
_METADATA: Final = "'metadata', json(metadata)"
_AVAILABLE: Final = "'availableApplications', json(applications)"
_MATCHES: Final = "instr(casefold(first_name || ' ' || last_name || char(10) || email), casefold(?))"
_HOLDS: Final = (
    "(SELECT count(*) FROM json_each(?) wanted JOIN json_each(people.metadata) held "
    "ON held.key = wanted.key AND held.value = wanted.value) = ?"
)
_IN_LISTS: Final = """
    SELECT person, grp FROM {table} JOIN groups g ON g.id = grp
    WHERE person IN (SELECT value FROM json_each(?)) ORDER BY g.seq
"""
_NAMED_GROUPS: Final = "SELECT id, kind, name FROM groups"


def list_users(context: RequestContext, request: Request) -> Entry:
    """A page of people with their answers; an archived one has `archivedAt`."""
    page = context.page(request.query)
    people, count = _people(context, page, f"{_NAMES}, {_METADATA}, {_DATES}", *_named(request.name_filter))
    return _listing(_with_answers(context, people), page, request, count)


def list_users_with_groups(context: RequestContext, request: Request) -> Entry:
    """A page of people with their groups, the groups they manage, and their rights."""
    page = context.page(request.query)
    people, count = _people(context, page, f"{_NAMES}, {_FLAGS}, {_AVAILABLE}", *_named(request.name_filter))
    return _listing(_with_groups(context, people), page, request, count)


def search_users(context: RequestContext, request: Request) -> Entry:
    """A page of people by name or e-mail and by metadata, with groups and applications on request."""
    shown, has_groups = f"{_NAMES}, {_METADATA}, {_FLAGS}", request.body.get("includeGroups") is True
    shown = f"{shown}, {_AVAILABLE}" if has_groups else shown
    found, count = _people(context, context.page(request.body), shown, *_sought(request))
    people = _with_answers(context, found)
    return {"users": _with_groups(context, people) if has_groups else people, "matchCount": count}


def get_user(context: RequestContext, request: Request) -> Entry:
    """One person with all fields."""
    id, more = context.require_path_person(request), "'language', language, 'createdAt', created_at"
    shown = f"{_NAMES}, {_METADATA}, {more}, {_FLAGS}, 'applicationIds', json(applications), {_DATES}"
    person = context.repository.objects(f"SELECT json_object({shown}) FROM people WHERE id = ?", id)  # noqa: S608  ours
    return _with_groups(context, _with_answers(context, person))[0] | {"integrationIds": {}}


def _named(filter: str) -> tuple[str, list[Value]]:
    """SQL condition and values for a search in name and e-mail."""
    return (_MATCHES, [filter]) if filter else ("", [])


def _sought(request: Request) -> tuple[str, list[Value]]:
    """SQL condition and values for a search by text and by every pair of the metadata."""
    rule, values = _named(cast(str, request.body.get("text", "")))
    if metadata := cast("Mapping[str, str]", request.body.get("metadata", {})):
        return " AND ".join(filter(None, (rule, _HOLDS))), [*values, json.dumps(metadata), len(metadata)]
    return rule, values


def _people(
    context: RequestContext, page: PageRange, shown: str, rule: str, values: list[Value]
) -> tuple[list[Entry], int]:
    """A page of the people that match an SQL condition, in creation order, and the number of all matches.

    shown: the members of the JSON object of each.
    """
    where = f"WHERE {rule}" if rule else ""  # SQLite counts a whole table fast, but not with a condition
    # The page is selected first, so that skipping does not read whole rows.
    people = context.repository.objects(
        f"SELECT json_object({shown}) FROM people "  # noqa: S608  names of ours, values apart
        f"WHERE seq IN (SELECT seq FROM people {where} ORDER BY seq LIMIT ? OFFSET ?) ORDER BY seq",
        *(*values, page.limit, page.skip),
    )
    return people, context.repository.number(f"SELECT count(*) FROM people {where}", *values)  # noqa: S608  names of ours


def _listing(entries: list[Entry], page: PageRange, request: Request, count: int) -> Entry:
    return {
        "users": entries,
        "skip": page.skip,
        "limit": page.limit,
        "filter": request.name_filter,
        "matchCount": count,
    }


def _ids(people: Iterable[Entry]) -> list[str]:
    return [str(person["userId"]) for person in people]


def _with_answers(context: RequestContext, people: list[Entry]) -> list[Entry]:
    answers = _answers(context, _ids(people))
    return [person | {"customFields": answers.get(cast(str, person["userId"]), {})} for person in people]


def _answers(context: RequestContext, people: list[str]) -> dict[Value, Entry]:
    """Person → field name → answer. Of two fields with one name, the newer one's: a map has one value per name."""
    answers: dict[Value, Entry] = {}
    last: tuple[Value, Value] | None = None
    for person, id, field, type, choice, name, text in context.repository.rows(
        "SELECT a.person, f.id, f.name, f.type, a.choice, c.name, a.text FROM answers a "
        "JOIN fields f ON f.id = a.field LEFT JOIN choices c ON c.id = a.choice "
        "WHERE a.person IN (SELECT value FROM json_each(?)) ORDER BY a.person, f.seq, c.position",
        encode_ids(people),
    ):
        by_field = answers.setdefault(person, {})
        if last != (person, id):
            by_field[str(field)] = {"text": text} if type == "TEXT" else {"choices": []}
            last = (person, id)
        if type != "TEXT":
            cast("dict[str, list[Json]]", by_field[str(field)])["choices"].append({"choiceId": choice, "name": name})
    return answers


def _with_groups(context: RequestContext, people: list[Entry]) -> list[Entry]:
    """People with their groups, manual ones first, and those they manage."""
    ids = encode_ids(_ids(people))
    computed = compute_memberships(context, _ids(people))
    member_of = _group_refs(context, context.repository.rows(_IN_LISTS.format(table="members"), ids), computed)
    manager_of = _group_refs(context, context.repository.rows(_IN_LISTS.format(table="managers"), ids), {})
    return [
        person | {"memberOfGroups": member_of.get(id, []), "managerOfGroups": manager_of.get(id, [])}
        for id, person in zip(_ids(people), people, strict=True)
    ]


def _group_refs(
    context: RequestContext, pairs: Iterable[tuple[Value, ...]], computed: Mapping[Value, Sequence[Value]]
) -> dict[Value, list[Json]]:
    """Pairs of person and group, then more groups by person → the API's group references, in that order."""
    groups: dict[Value, list[Value]] = {}
    for person, group in pairs:
        groups.setdefault(person, []).append(group)
    for person, more in computed.items():
        groups.setdefault(person, []).extend(more)
    refs = context.repository.cache_until_write(_every_group)
    return {person: [refs[id] for id in ids] for person, ids in groups.items()}


def _every_group(repository: Repository) -> dict[Value, Json]:
    """The groups of both kinds by id, as the API's group references."""
    return {id: {"groupId": id, "groupType": kind, "name": name} for id, kind, name in repository.rows(_NAMED_GROUPS)}


FIRST_LANGUAGE: Final = "en"
_EMAIL: Final = re.compile(r"[^@\s]+@[^@\s.]+(\.[^@\s.]+)+")
_LANGUAGE: Final = re.compile(r"[a-z]{2,3}(-[a-z]{2,4})?")
# Rows that belong to one person only are deleted with the account.
_OF_A_PERSON: Final = ("answers", "members", "managers", "links", "orders", "certificates", "generations")


def create(context: RequestContext, request: Request) -> Entry:
    """Create an account; for an e-mail in use, return the existing account unchanged."""
    email = validate_email(request.body_text("email"))
    language = cast(str, request.body.get("language", FIRST_LANGUAGE))
    for known in find_by_email(context.repository, email):
        return {"userId": known, "newUser": False}
    id = context.repository.new_id("u")
    names = [cast(str, request.body.get(name, "")) for name in ("firstName", "lastName")]
    context.repository.execute(
        "INSERT INTO people (id, email, first_name, last_name, admin, manager, created_at, language, applications) "
        "VALUES (?, ?, ?, ?, FALSE, FALSE, ?, ?, ?)",
        *(id, email, *names),
        *(context.repository.now(), language, encode_applications(LEARNER)),
    )
    return {"userId": id, "newUser": True}


def delete(context: RequestContext, request: Request) -> None:
    """Delete an account and everything that belongs to it."""
    id = context.require_path_person(request)
    context.repository.execute(
        "DELETE FROM events WHERE participation IN (SELECT id FROM participations WHERE person = ?)", id
    )
    for table in (*_OF_A_PERSON, "participations"):
        context.repository.execute(f"DELETE FROM {table} WHERE person = ?", id)  # noqa: S608  the names stand above
    context.repository.execute("DELETE FROM targets WHERE audience = ? AND kind = ?", id, USER)
    context.repository.execute("DELETE FROM people WHERE id = ?", id)


def archive(context: RequestContext, request: Request) -> None:
    """Archive an account now; no change if it is archived. Raises Refusal (400) for an admin."""
    id = context.require_path_person(request)
    if context.repository.number("SELECT admin FROM people WHERE id = ?", id):
        raise bad_request("an admin cannot be archived: revoke administrator rights first")
    context.repository.execute(
        "UPDATE people SET archived_at = ? WHERE id = ? AND archived_at IS NULL", context.repository.now(), id
    )


def unarchive(context: RequestContext, request: Request) -> None:
    """Unarchive an account. Clears a custom archive date in the past, which would archive it again at once."""
    context.repository.execute(
        "UPDATE people SET archived_at = NULL, custom_archive_at = CASE WHEN custom_archive_at > ? "
        "THEN custom_archive_at END WHERE id = ?",
        context.repository.now(),
        context.require_path_person(request),
    )


def set_archive_date(context: RequestContext, request: Request) -> None:
    """Set the custom archive date, or clear it with null. Raises Refusal (400) for a date of an admin or manager."""
    id, date = context.require_path_person(request), request.body_instant("date")
    if date is not None and context.repository.number("SELECT admin OR manager FROM people WHERE id = ?", id):
        raise bad_request("an admin or manager cannot have a custom archive date")
    context.repository.execute("UPDATE people SET custom_archive_at = ? WHERE id = ?", date, id)


def is_archiving_due(repository: Repository) -> bool:
    """Whether a custom archive date is due."""
    due = "SELECT EXISTS (SELECT 1 FROM people WHERE archived_at IS NULL AND custom_archive_at <= ?)"
    return bool(repository.number(due, repository.now()))


def archive_due_accounts(repository: Repository) -> None:
    """Archive every account whose custom archive date is due, as of that date."""
    repository.execute(
        "UPDATE people SET archived_at = custom_archive_at WHERE archived_at IS NULL AND custom_archive_at <= ?",
        repository.now(),
    )


def update_email(context: RequestContext, request: Request) -> None:
    """Change the e-mail. Raises Refusal: 400 for an invalid one, 409 for one that another account has."""
    id, email = context.require_path_person(request), validate_email(request.body_text("email"))
    if set(find_by_email(context.repository, email)) - {id}:
        raise conflict(f"another user has the e-mail {email!r}")
    context.repository.execute("UPDATE people SET email = ? WHERE id = ?", email, id)


def update_fullname(context: RequestContext, request: Request) -> None:
    """Change first name, last name, or both; a missing one is kept."""
    id = context.require_path_person(request)
    context.repository.execute(
        "UPDATE people SET first_name = coalesce(?, first_name), last_name = coalesce(?, last_name) WHERE id = ?",
        *(cast("str | None", request.body.get(name)) for name in ("firstName", "lastName")),
        id,
    )


def update_language(context: RequestContext, request: Request) -> None:
    """Change the language."""
    context.repository.execute(
        "UPDATE people SET language = ? WHERE id = ?",
        request.body_text("language"),
        context.require_path_person(request),
    )


def update_metadata(context: RequestContext, request: Request) -> None:
    """Replace the metadata, or merge into it, according to the dialect."""
    id = context.require_path_person(request)
    metadata = cast("Mapping[str, str]", request.body["metadata"])
    if context.behaviour("users.update-metadata.mode") == "merge":
        metadata = json.loads(context.repository.column("SELECT metadata FROM people WHERE id = ?", id)[0]) | metadata
    context.repository.execute("UPDATE people SET metadata = ? WHERE id = ?", json.dumps(metadata), id)


def find_by_email(repository: Repository, email: str) -> list[str]:
    """The id of the account with this e-mail, ignoring case; empty if there is none."""
    return repository.column("SELECT id FROM people WHERE casefold(email) = casefold(?)", email)


def validate_email(email: str) -> str:
    """Return the e-mail. Raises Refusal (400) if its format is invalid."""
    if not _EMAIL.fullmatch(email):
        raise bad_request(f"{email!r} is not an e-mail")
    return email


def validate_language(language: str) -> str:
    """Return the language. Raises Refusal (400) if it is not a lowercase code."""
    if not _LANGUAGE.fullmatch(language):
        raise bad_request(f"{language!r} is not a lowercase language code")
    return language


KEYS: Final = (
    *("email", "firstName", "lastName", "companyName", "companyNumber", "companyEmail", "phone", "phoneCode"),
    *("address", "companyPayment", "note"),
)
ADDRESS_KEYS: Final = ("street", "city", "country", "phone", "zip")
_SWITCH: Final = "disablePayment"
_ORDER_TIMES: Final = (
    "SELECT json_object('createdAt', created_at, 'updatedAt', updated_at) FROM orders WHERE person = ?"
)


def get_details(context: RequestContext, request: Request) -> Entry:
    """The details; only that payment is not disabled if nothing is stored."""
    return _show(context, context.require_path_person(request))


def replace_details(context: RequestContext, request: Request) -> Entry:
    """Replace the details; the flag is kept."""
    id = context.require_path_person(request)
    switch = {key: value for key, value in _stored(context, id).items() if key == _SWITCH}
    store_details(context.repository, id, dict(request.body) | switch)
    return _show(context, id)


def disable_payment(context: RequestContext, request: Request) -> Entry:
    """Set the flag; the details are kept."""
    id = context.require_path_person(request)
    store_details(context.repository, id, _stored(context, id) | {_SWITCH: request.body[_SWITCH]})
    return _show(context, id)


def store_details(repository: Repository, person: str, details: Mapping[str, Json]) -> None:
    """Store the details, with the time of the first and of the last change."""
    now = repository.now()
    repository.execute(
        "INSERT INTO orders VALUES (?, ?, ?, ?) "
        "ON CONFLICT (person) DO UPDATE SET details = excluded.details, updated_at = excluded.updated_at",
        *(person, json.dumps(details), now, now),
    )


def _stored(context: RequestContext, person: str) -> Entry:
    rows = context.repository.column("SELECT details FROM orders WHERE person = ?", person)
    details: Entry = json.loads(rows[0]) if rows else {}
    return details


def _show(context: RequestContext, person: str) -> Entry:
    times = context.repository.objects(_ORDER_TIMES, person)
    shown = {key: format_time(cast(int, time), "iso") for one in times for key, time in one.items()}
    return {_SWITCH: False} | _stored(context, person) | shown


HANDLERS: Final[Mapping[str, Handler]] = {
    "users.list": list_users,
    "users.extended-info": list_users_with_groups,
    "users.get": get_user,
    "users.search": search_users,
    "users.create": create,
    "users.delete": delete,
    "users.archive": archive,
    "users.unarchive": unarchive,
    "users.set-custom-archived-date": set_archive_date,
    "users.update-email": update_email,
    "users.update-fullname": update_fullname,
    "users.update-language": update_language,
    "users.update-metadata": update_metadata,
    "users.order-details": get_details,
    "users.set-order-details": replace_details,
    "users.disable-payment": disable_payment,
}
