"""Users: three views of the same people, none of them complete, as the specification has it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final, cast

from lmsconf.sandbox.desk import Desk, Entry, Handler, Json, Page, Request
from lmsconf.sandbox.handlers.membership import memberships
from lmsconf.sandbox.refusal import not_found
from lmsconf.sandbox.store import Value, ids_text

_COLUMNS: Final = "id, email, first_name, last_name, admin, manager, archived_at, created_at"
_MATCHES: Final = "instr(casefold(first_name || ' ' || last_name || char(10) || email), casefold(?))"
_APPLICATIONS: Final = ("achievements", "analyse", "create", "learn", "follow-up")
_Person = tuple[Value, ...]


def listing(desk: Desk, request: Request) -> Entry:
    """A page of people with their answers; who is archived has `archivedAt`."""
    page, (people, count) = desk.page(request), _people(desk, request)
    answers = _answers(desk, _ids(people))
    entries = [
        _names(person) | {"customFields": answers.get(person[0], {}), "metadata": {}} | _archived(person)
        for person in people
    ]
    return _listing(entries, page, request, count)


def extended(desk: Desk, request: Request) -> Entry:
    """A page of people with the groups they are in, those they manage, and their rights."""
    page, (people, count) = desk.page(request), _people(desk, request)
    ids = _ids(people)
    member_of, manager_of = _member_of(desk, ids), _manager_of(desk, ids)
    entries = [
        _names(person)
        | _rights(person, "availableApplications")
        | {"memberOfGroups": member_of.get(person[0], []), "managerOfGroups": manager_of.get(person[0], [])}
        for person in people
    ]
    return _listing(entries, page, request, count)


def get(desk: Desk, request: Request) -> Entry:
    """One person with everything there is to say."""
    id = request.path["userId"]
    rows = desk.ledger.rows(f"SELECT {_COLUMNS} FROM people WHERE id = ?", id)  # noqa: S608
    if not rows:
        raise not_found("user", id)
    return (
        _names(rows[0])
        | _rights(rows[0], "applicationIds")
        | {"customFields": _answers(desk, [id]).get(id, {}), "metadata": {}, "integrationIds": {}, "language": "en"}
        | {"createdAt": rows[0][7]}
        | {"memberOfGroups": _member_of(desk, [id]).get(id, []), "managerOfGroups": _manager_of(desk, [id]).get(id, [])}
        | _archived(rows[0])
    )


def _people(desk: Desk, request: Request) -> tuple[list[_Person], int]:
    """The people of the page that is asked for, in the order they came, and how many match in all."""
    page = desk.page(request)
    values: list[Value] = [request.filter] if request.filter else []
    where = f"WHERE {_MATCHES}" if values else ""
    # The page is found first, so that skipping does not read whole rows.
    rows = desk.ledger.rows(
        f"SELECT {_COLUMNS} FROM people WHERE seq IN (SELECT seq FROM people {where} ORDER BY seq LIMIT ? OFFSET ?) "  # noqa: S608
        "ORDER BY seq",
        *(*values, page.limit, page.skip),
    )
    return rows, desk.ledger.number(f"SELECT count(*) FROM people {where}", *values)  # noqa: S608


def _listing(entries: list[Entry], page: Page, request: Request, count: int) -> Entry:
    return {"users": entries, "skip": page.skip, "limit": page.limit, "filter": request.filter, "matchCount": count}


def _ids(people: Iterable[_Person]) -> list[str]:
    return [str(person[0]) for person in people]


def _names(person: _Person) -> Entry:
    return {"userId": person[0], "email": person[1], "firstName": person[2], "lastName": person[3]}


def _archived(person: _Person) -> Entry:
    return {} if person[6] is None else {"archivedAt": person[6]}


def _rights(person: _Person, applications: str) -> Entry:
    """The two flags and the applications that come with them: everybody learns, managers follow up, admins do all."""
    admin, manager = bool(person[4]), bool(person[5])
    allowed = _APPLICATIONS if admin else ("learn", "follow-up") if manager else ("learn",)
    return {"admin": admin, "manager": manager, applications: list(allowed)}


def _answers(desk: Desk, people: list[str]) -> dict[Value, Entry]:
    """Person → field name → answer."""
    found: dict[Value, Entry] = {}
    for person, field, type, choice, name, text in desk.ledger.rows(
        "SELECT a.person, f.name, f.type, a.choice, c.name, a.text FROM answers a JOIN fields f ON f.id = a.field "
        "LEFT JOIN choices c ON c.id = a.choice WHERE a.person IN (SELECT value FROM json_each(?)) "
        "ORDER BY a.person, f.seq, c.position",
        ids_text(people),
    ):
        mine = found.setdefault(person, {})
        if type == "TEXT":
            mine[str(field)] = {"text": text}
        else:
            answer = cast("dict[str, list[Json]]", mine.setdefault(str(field), {"choices": []}))
            answer["choices"].append({"choiceId": choice, "name": name})
    return found


def _manager_of(desk: Desk, people: list[str]) -> dict[Value, list[Json]]:
    """Person → the groups of both kinds that they manage."""
    managed = "SELECT person, grp FROM managers WHERE person IN (SELECT value FROM json_each(?))"
    return _group_refs(desk, desk.ledger.rows(managed, ids_text(people)))


def _member_of(desk: Desk, people: list[str]) -> dict[Value, list[Json]]:
    """Person → the groups of both kinds that they are in."""
    manual = "SELECT person, grp FROM members WHERE person IN (SELECT value FROM json_each(?))"
    return _group_refs(desk, [*desk.ledger.rows(manual, ids_text(people)), *memberships(desk, people)])


def _group_refs(desk: Desk, pairs: list[tuple[Value, ...]]) -> dict[Value, list[Json]]:
    """Pairs of person and group → the groups as the API refers to them, in the order they were made."""
    refs: dict[Value, tuple[Value, Json]] = {
        id: (seq, {"groupId": id, "groupType": kind, "name": name})
        for seq, id, kind, name in desk.ledger.rows(
            "SELECT seq, id, kind, name FROM groups WHERE id IN (SELECT value FROM json_each(?))",
            ids_text({str(group) for _, group in pairs}),
        )
    }
    found: dict[Value, list[Json]] = {}
    for person, group in sorted(pairs, key=lambda pair: cast(int, refs[pair[1]][0])):
        found.setdefault(person, []).append(refs[group][1])
    return found


HANDLERS: Final[Mapping[str, Handler]] = {
    "users.list": listing,
    "users.extended-info": extended,
    "users.get": get,
}
