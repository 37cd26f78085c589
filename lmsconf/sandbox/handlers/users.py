"""Users, reads: four views of people, none of them complete, as in the specification (API specification, Users)."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Final, cast

from lmsconf.sandbox.api_refusal import not_found
from lmsconf.sandbox.handlers.smart_group_membership import compute_memberships
from lmsconf.sandbox.request_context import Entry, Handler, Json, PageRange, Request, RequestContext
from lmsconf.sandbox.store import Repository, Value, encode_ids

_COLUMNS: Final = (
    "id, email, first_name, last_name, admin, manager, archived_at, created_at, custom_archive_at, language, metadata, "
    "applications"
)
_MATCHES: Final = "instr(casefold(first_name || ' ' || last_name || char(10) || email), casefold(?))"
_HOLDS: Final = (
    "(SELECT count(*) FROM json_each(?) wanted JOIN json_each(people.metadata) held "
    "ON held.key = wanted.key AND held.value = wanted.value) = ?"
)
_MANAGED: Final = """
    SELECT person, grp FROM managers JOIN groups g ON g.id = grp
    WHERE person IN (SELECT value FROM json_each(?)) ORDER BY g.seq
"""
_PUT_INTO: Final = """
    SELECT person, grp FROM members JOIN groups g ON g.id = grp
    WHERE person IN (SELECT value FROM json_each(?)) ORDER BY g.seq
"""
_NAMED_GROUPS: Final = "SELECT id, kind, name FROM groups"
_Person = tuple[Value, ...]


def list_users(context: RequestContext, request: Request) -> Entry:
    """A page of people with their answers; an archived one has `archivedAt`."""
    page = context.requested_page(request)
    people, count = _people(context, page, *_named(request.name_filter))
    answers = _answers(context, _ids(people))
    entries = [_names(person) | _fields_and_metadata(person, answers) | _archived(person) for person in people]
    return _listing(entries, page, request, count)


def list_users_with_groups(context: RequestContext, request: Request) -> Entry:
    """A page of people with their groups, the groups they manage, and their rights."""
    page = context.requested_page(request)
    people, count = _people(context, page, *_named(request.name_filter))
    groups = _groups(context, _ids(people))
    entries = [
        _names(person) | _flags(person) | _applications(person, "availableApplications") | groups(person[0])
        for person in people
    ]
    return _listing(entries, page, request, count)


def search_users(context: RequestContext, request: Request) -> Entry:
    """A page of people by name or e-mail and by metadata, with groups and applications on request."""
    body = request.body
    page = context.capped_page(cast(int, body.get("skip", 0)), cast(int, body.get("limit", 100)))
    people, count = _people(context, page, *_sought(request))
    answers, with_groups = _answers(context, _ids(people)), body.get("includeGroups") is True
    entries = [_names(person) | _fields_and_metadata(person, answers) | _flags(person) for person in people]
    if with_groups:
        groups = _groups(context, _ids(people))
        for person, entry in zip(people, entries, strict=True):
            entry |= groups(person[0]) | _applications(person, "availableApplications")
    return {"users": entries, "matchCount": count}


def get_user(context: RequestContext, request: Request) -> Entry:
    """One person with all fields."""
    id = request.path["userId"]
    rows = context.repository.rows(f"SELECT {_COLUMNS} FROM people WHERE id = ?", id)  # noqa: S608  the names are ours
    if not rows:
        raise not_found("user", id)
    person = rows[0]
    return (
        _names(person)
        | _fields_and_metadata(person, _answers(context, [id]))
        | {"language": person[9], "createdAt": person[7], "integrationIds": {}}
        | (_flags(person) | _applications(person, "applicationIds"))
        | _groups(context, [id])(id)
        | _archived(person)
    )


def _named(filter: str) -> tuple[str, list[Value]]:
    """SQL condition and values for a search in name and e-mail."""
    return (_MATCHES, [filter]) if filter else ("", [])


def _sought(request: Request) -> tuple[str, list[Value]]:
    """SQL condition and values for a search by text and by every pair of the metadata."""
    rule, values = _named(cast(str, request.body.get("text", "")))
    if metadata := cast("Mapping[str, str]", request.body.get("metadata", {})):
        return " AND ".join(filter(None, (rule, _HOLDS))), [*values, json.dumps(metadata), len(metadata)]
    return rule, values


def _people(context: RequestContext, page: PageRange, rule: str, values: list[Value]) -> tuple[list[_Person], int]:
    """A page of the people that match an SQL condition, in creation order, and the number of all matches."""
    where = f"WHERE {rule}" if rule else ""  # SQLite counts a whole table fast, but not with a condition
    # The page is selected first, so that skipping does not read whole rows.
    rows = context.repository.rows(
        f"SELECT {_COLUMNS} FROM people "  # noqa: S608  names of ours, values apart
        f"WHERE seq IN (SELECT seq FROM people {where} ORDER BY seq LIMIT ? OFFSET ?) ORDER BY seq",
        *(*values, page.limit, page.skip),
    )
    return rows, context.repository.number(f"SELECT count(*) FROM people {where}", *values)  # noqa: S608  the names are ours


def _listing(entries: list[Entry], page: PageRange, request: Request, count: int) -> Entry:
    return {
        "users": entries,
        "skip": page.skip,
        "limit": page.limit,
        "filter": request.name_filter,
        "matchCount": count,
    }


def _ids(people: Iterable[_Person]) -> list[str]:
    return [str(person[0]) for person in people]


def _names(person: _Person) -> Entry:
    return {"userId": person[0], "email": person[1], "firstName": person[2], "lastName": person[3]}


def _fields_and_metadata(person: _Person, answers: Mapping[Value, Entry]) -> Entry:
    """Custom fields and metadata."""
    return {"customFields": answers.get(person[0], {}), "metadata": json.loads(cast(str, person[10]))}


def _archived(person: _Person) -> Entry:
    """When an account was archived, and its custom archive date; each omitted if unset."""
    dates: Entry = {"archivedAt": person[6], "customArchiveDate": person[8]}
    return {key: date for key, date in dates.items() if date is not None}


def _flags(person: _Person) -> Entry:
    return {"admin": bool(person[4]), "manager": bool(person[5])}


def _applications(person: _Person, key: str) -> Entry:
    return {key: json.loads(cast(str, person[11]))}


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


def _groups(context: RequestContext, people: list[str]) -> Callable[[Value], Entry]:
    """Return a function from a person, one of `people`, to their groups and those they manage."""
    member_of, manager_of = _member_of(context, people), _manager_of(context, people)
    return lambda id: {"memberOfGroups": member_of.get(id, []), "managerOfGroups": manager_of.get(id, [])}


def _manager_of(context: RequestContext, people: list[str]) -> dict[Value, list[Json]]:
    """Person → the groups of both kinds that they manage."""
    return _group_refs(context, context.repository.rows(_MANAGED, encode_ids(people)), {})


def _member_of(context: RequestContext, people: list[str]) -> dict[Value, list[Json]]:
    """Person → their groups, manual groups first."""
    return _group_refs(
        context, context.repository.rows(_PUT_INTO, encode_ids(people)), compute_memberships(context, people)
    )


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


HANDLERS: Final[Mapping[str, Handler]] = {
    "users.list": list_users,
    "users.extended-info": list_users_with_groups,
    "users.get": get_user,
    "users.search": search_users,
}
