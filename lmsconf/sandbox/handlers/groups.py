"""What manual and smart groups share: name, managers, and a deletion that includes their targets."""

from __future__ import annotations

from typing import cast

from lmsconf.sandbox.api_refusal import bad_request
from lmsconf.sandbox.request_context import Entry, PageRange, Request, RequestContext
from lmsconf.sandbox.store import Value, encode_ids


def list_groups(context: RequestContext, kind: str, id_key: str, page: PageRange, filter: str = "") -> list[Entry]:
    """Id and name of the groups of a kind, in creation order."""
    rows = context.repository.rows(
        "SELECT id, name FROM groups WHERE kind = ? AND (? = '' OR instr(casefold(name), ?)) "
        "ORDER BY seq LIMIT ? OFFSET ?",
        kind,
        filter,
        filter.casefold(),
        page.limit,
        page.skip,
    )
    return [{id_key: id, "name": name} for id, name in rows]


def create(context: RequestContext, kind: str, prefix: str, name: str) -> str:
    """Create a group; return its id. Names need not be unique."""
    id = context.repository.new_id(prefix)
    context.repository.execute("INSERT INTO groups (id, kind, name) VALUES (?, ?, ?)", id, kind, name)
    return id


def rename(context: RequestContext, id: str, name: str) -> None:
    """Rename a group."""
    context.repository.execute("UPDATE groups SET name = ? WHERE id = ?", name, id)


def delete(context: RequestContext, id: str, kind: str) -> None:
    """Delete a group with its members, managers, conditions and targets. A missing one is no error."""
    if not context.repository.execute("DELETE FROM groups WHERE id = ? AND kind = ?", id, kind):
        return
    for table in ("members", "managers", "conditions", "condition_choices"):
        context.repository.execute(f"DELETE FROM {table} WHERE grp = ?", id)  # noqa: S608  the names stand above
    context.repository.execute("DELETE FROM targets WHERE audience = ? AND kind = ?", id, kind)


def list_people(context: RequestContext, table: str, id: str) -> list[Value]:
    """The user ids in one of a group's lists, `members` or `managers`."""
    rows = context.repository.rows(f"SELECT person FROM {table} WHERE grp = ? ORDER BY person", id)  # noqa: S608  names of ours
    return [row[0] for row in rows]


def user_ids_to_add(context: RequestContext, request: Request, table: str, id: str) -> list[str]:
    """The user ids of a request that adds people. Raises Refusal (400) for more than the dialect's batch size.

    Where a call replaces the list, those who are in it already do not count.
    """
    named = cast("list[str]", request.body["userIds"])
    replaces = context.behaviour("manual-groups.add.mode") == "replace"
    stay = set(map(str, list_people(context, table, id))) if replaces else set()
    limit, count = int(context.behaviour("manual-groups.add.batch")), sum(one not in stay for one in named)
    if count > limit:
        raise bad_request(f"one call adds at most {limit} users, not {count}")
    return request.body_texts("userIds")


def add_people(context: RequestContext, table: str, id: str, people: list[str]) -> None:
    """Add people to one of a group's lists. The dialect decides who stays in it, and who can be a manager."""
    known, rule = context.require_people(people), context.behaviour("manual-groups.who-can-manage")
    if table == "managers" and rule == "with-right":
        _check_rights(context, known)
    if table == "managers" and rule == "given":
        given = "UPDATE people SET manager = TRUE, custom_archive_at = NULL WHERE NOT (admin OR manager) AND id = ?"
        context.repository.execute_many(given, [(id,) for id in known])
    if context.behaviour("manual-groups.add.mode") == "replace":
        context.repository.execute(f"DELETE FROM {table} WHERE grp = ?", id)  # noqa: S608  the names are ours
    rows = [(id, person) for person in known]
    context.repository.execute_many(f"INSERT OR IGNORE INTO {table} VALUES (?, ?)", rows)  # noqa: S608  the names are ours


def _check_rights(context: RequestContext, people: list[str]) -> None:
    listed = "SELECT id FROM people WHERE (admin OR manager) AND id IN (SELECT value FROM json_each(?))"
    able = set(context.repository.column(listed, encode_ids(people)))
    if unable := [id for id in people if id not in able]:
        raise bad_request(f"user {', '.join(map(repr, unable[:5]))} cannot manage a group without the manager right")


def remove_person(context: RequestContext, table: str, id: str, person: str) -> None:
    """Remove one person from one of a group's lists; a person who is not in it is not an error."""
    context.require_person(person)
    context.repository.execute(f"DELETE FROM {table} WHERE grp = ? AND person = ?", id, person)  # noqa: S608  the names are ours
