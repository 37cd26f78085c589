"""Manual and smart groups: what both share, explicit lists of people, and members computed from conditions.

API specification, Manual Groups and Smart Groups. Members of a smart group are computed from people's answers on each
request: conditions are combined with AND, the choices within one with OR. What a system condition means, alone or
beside choices, is the dialect's: any answer to the field, true for everybody, or the choices only. Archived people are
in no smart group.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import reduce
from itertools import compress
from operator import or_
from typing import Final, TypeAlias, cast

from msgspec.structs import replace

from lmsconf.sandbox.request_context import (
    PAGE,
    SMART_GROUP,
    Handler,
    RequestContext,
    Sql,
    bad_request,
)
from lmsconf.sandbox.store import Json, Repository, Value, encode_ids, json_known, json_list

_Answer: TypeAlias = "tuple[Value, Value]"
"""A field and a choice; an empty choice represents any answer to the field."""

_DIALECT: Final = ("smart-groups.system-condition.with-choices", "smart-groups.system-condition.alone")
"""What a system condition means beside choices, and alone."""
_READINGS: Final = f"""
    SELECT c.grp, c.position, c.field, CASE WHEN c.system_condition IS NULL THEN 'choices' WHEN EXISTS (
        SELECT 1 FROM condition_choices p WHERE p.grp = c.grp AND p.position = c.position
    ) THEN $dialect({_DIALECT[0]}) ELSE $dialect({_DIALECT[1]}) END AS reading FROM conditions c
"""
"""Group, position, field and reading of each condition."""
_MET_BY: Final = f"""
    SELECT g.id, g.name, r.position, r.reading, r.field,
        CASE r.reading WHEN 'choices' THEN p.choice ELSE '' END
    FROM ({_READINGS}) r JOIN groups g ON g.id = r.grp
        LEFT JOIN condition_choices p ON r.reading = 'choices' AND p.grp = r.grp AND p.position = r.position
    ORDER BY g.seq
"""
"""Group, place, reading and field of each condition, for each choice that meets it.

An empty choice: any answer to the field does. NULL: none does, the condition has no choices left.
"""


def _people(table: str, id: str) -> str:
    """SQL for the user ids in one of a group's lists, `members` or `managers`. id: the name of the group's id."""
    return json_list(f"SELECT person FROM {table} WHERE grp = :{id} ORDER BY person", "person")


_PICKED: Final = json_list(
    "SELECT choice FROM condition_choices p WHERE p.grp = c.grp AND p.position = c.position ORDER BY place", "choice"
)
_CONDITION: Final = json_known(f"'customFieldId', field, 'choiceIds', {_PICKED}, 'systemCondition', system_condition")
_CONDITIONS: Final = json_list(
    f"SELECT {_CONDITION} AS item FROM conditions c WHERE grp = :smartGroupId ORDER BY position"
)


def _list(kind: str, rows: str, id: str) -> Sql:
    """A page of the ids and names of the groups whose name contains the filter, in creation order."""
    found = f"""
        SELECT id, name FROM groups WHERE kind = '{kind}'
            AND (coalesce(:filter, '') = '' OR instr(casefold(name), casefold(:filter))) ORDER BY seq {PAGE}
    """
    groups = json_list(found, f"json_object('{id}', id, 'name', name)")
    return Sql(answer=f"SELECT json_object('{rows}', {groups})")


def _create(kind: str, id: str, prefix: str, *parts: Sql) -> Sql:
    """Create a group with its parts. Names need not be unique."""
    return Sql(
        new_ids={id: prefix},
        refusals=dict.fromkeys((query for part in parts for query in part.refusals), bad_request),
        changes=[
            f"INSERT INTO groups (id, kind, name) VALUES (:{id}, '{kind}', :name)",
            *(change for part in parts for change in part.changes),
        ],
        answer=f"SELECT json_object('{id}', :{id})",
    )


def _delete(kind: str, id: str) -> Sql:
    """Delete a group with its members, managers, conditions and targets. A missing one is no error."""
    group = f"(SELECT id FROM groups WHERE id = :{id} AND kind = '{kind}')"
    return Sql(
        changes=[
            f"DELETE FROM members WHERE grp = {group}",
            f"DELETE FROM managers WHERE grp = {group}",
            f"DELETE FROM conditions WHERE grp = {group}",
            f"DELETE FROM condition_choices WHERE grp = {group}",
            f"DELETE FROM targets WHERE audience = :{id} AND kind = '{kind}'",
            f"DELETE FROM groups WHERE id = {group}",
        ]
    )


_REPLACES: Final = "$dialect(manual-groups.add.mode) = 'replace'"


def _add(table: str, id: str, people: str) -> Sql:
    """Add people to one of a group's lists. The dialect decides who stays in it, and who can be a manager."""
    manages = f"'{table}' = 'managers' AND $dialect(manual-groups.who-can-manage)"
    unknown = f"""
        SELECT 'there is no user ' || group_concat(quote(value), ', ') FROM (
            SELECT DISTINCT value FROM json_each(:{people}) WHERE value NOT IN (SELECT id FROM people) LIMIT 5
        )
    """
    without_right = f"""
        SELECT 'user ' || group_concat(quote(value), ', ') || ' cannot manage a group without the manager right'
        FROM (
            SELECT value FROM json_each(:{people}) WHERE {manages} = 'with-right'
                AND value NOT IN (SELECT id FROM people WHERE admin OR manager) LIMIT 5
        )
    """
    given = f"""
        UPDATE people SET manager = TRUE, custom_archive_at = NULL WHERE NOT (admin OR manager)
            AND {manages} = 'given' AND id IN (SELECT value FROM json_each(:{people}))
    """
    return Sql(
        refusals={unknown: bad_request, without_right: bad_request},
        changes=[
            given,
            f"DELETE FROM {table} WHERE grp = :{id} AND {_REPLACES}",
            f"INSERT OR IGNORE INTO {table} SELECT :{id}, value FROM json_each(:{people})",
        ],
    )


def _people_handlers(operations: str, table: str, id: str) -> dict[str, Handler]:
    """The handlers of one of a group's lists, whose operations begin so. Removing nobody is no error."""
    adding = _add(table, id, "userIds")
    # Where a call replaces the list, those who are in it already do not count.
    too_many = f"""
        SELECT printf('one call adds at most %d users, not %d', most, added) FROM (
            SELECT CAST($dialect(manual-groups.add.batch) AS INTEGER) AS most, (
                SELECT count(*) FROM json_each(:userIds) WHERE NOT ({_REPLACES} AND value IN (
                    SELECT person FROM {table} WHERE grp = :{id}
                ))
            ) AS added
        ) WHERE added > most
    """
    return {
        f"{operations}.{table}": Sql(answer=f"SELECT json_object('userIds', {_people(table, id)})"),
        f"{operations}.add-{table}": replace(adding, refusals={too_many: bad_request, **adding.refusals}),
        f"{operations}.remove-{table.removesuffix('s')}": Sql(
            changes=[f"DELETE FROM {table} WHERE grp = :{id} AND person = :userId"]
        ),
    }


_GIVEN: Final = """
    SELECT key, json_extract(value, '$.customFieldId') AS field, json_extract(value, '$.choiceIds') AS picked,
        json_extract(value, '$.systemCondition') AS system FROM json_each(:conditions)
"""
"""The conditions in a body, in their order."""
REPLACE_CONDITIONS: Final = Sql(
    refusals={
        "SELECT 'a smart group needs at least one condition' WHERE json_array_length(:conditions) = 0": bad_request,
        f"""
            SELECT 'conditions[' || key || ']: there is no custom field ' || quote(field)
            FROM ({_GIVEN}) WHERE field NOT IN (SELECT id FROM fields) ORDER BY key
        """: bad_request,
        f"""
            SELECT 'conditions[' || key || ']: a condition needs choiceIds or a systemCondition' FROM ({_GIVEN})
            WHERE coalesce(json_array_length(picked), 0) = 0 AND coalesce(system, '') = '' ORDER BY key
        """: bad_request,
        f"""
            SELECT 'conditions[' || given.key || ']: custom field ' || quote(given.field) || ' has no choice '
                || group_concat(quote(choice.value), ', ')
            FROM ({_GIVEN}) given, json_each(given.picked) choice
            WHERE choice.value NOT IN (SELECT id FROM choices WHERE choices.field = given.field)
            GROUP BY given.key ORDER BY given.key
        """: bad_request,
    },
    changes=[
        "DELETE FROM conditions WHERE grp = :smartGroupId",
        "DELETE FROM condition_choices WHERE grp = :smartGroupId",
        f"INSERT INTO conditions SELECT :smartGroupId, key, field, system FROM ({_GIVEN})",
        "INSERT OR IGNORE INTO condition_choices "
        f"SELECT :smartGroupId, c.key, one.key, c.field, one.value FROM ({_GIVEN}) c, json_each(c.picked) one",
    ],
)
"""Replace all conditions of a smart group, after checking each against its field."""


def _members(group: str) -> str:
    """SQL for the ids of the active people who meet all conditions of a group. group: the name of its id."""
    # CROSS JOIN fixes SQLite's join order: a group has few conditions and a person few answers.
    return f"""
        WITH asked AS (SELECT * FROM ({_READINGS}) WHERE grp = :{group}),
        met AS (
            SELECT asked.position, a.person FROM asked
                CROSS JOIN condition_choices c ON c.grp = asked.grp AND c.position = asked.position
                CROSS JOIN answers a ON a.field = c.field AND a.choice = c.choice WHERE reading = 'choices'
            UNION SELECT asked.position, a.person FROM asked
                CROSS JOIN answers a ON a.field = asked.field WHERE reading = 'any-answer'
            UNION SELECT asked.position, p.id FROM asked CROSS JOIN people p WHERE reading = 'always'
        )
        SELECT p.id FROM met CROSS JOIN people p ON p.id = met.person AND p.archived_at IS NULL
        GROUP BY p.id HAVING count(*) = (SELECT count(*) FROM asked) ORDER BY p.seq
    """


_SMART_GROUP: Final = json_known(
    f"'smartGroupId', id, 'name', name, 'conditions', {_CONDITIONS}, "
    f"'managers', {_people('managers', 'smartGroupId')}, "
    f"'members', json(CASE WHEN :includeMembers THEN {json_list(_members('smartGroupId'), 'id')} END)"
)
"""A smart group as the API shows it, with its members on request."""


def compute_members(context: RequestContext, group: str) -> list[str]:
    """The ids of the people in a smart group."""
    context.values["group"] = group
    return context.repository.column(_members("group"))


def compute_memberships(context: RequestContext, people: Iterable[str]) -> dict[Value, list[Json]]:
    """Person → references to their smart groups in creation order, for those of `people` who are active."""
    groups, asked, met_by = context.repository.cache_until_write(_conditions, *map(context.behaviour, _DIALECT))
    met: defaultdict[Value, int] = defaultdict(int)
    query = """
        SELECT p.id, a.field, a.choice FROM people p LEFT JOIN answers a ON a.person = p.id
        WHERE p.id IN (SELECT value FROM json_each(?)) AND p.archived_at IS NULL
    """
    for person, field, choice in context.repository.rows(query, encode_ids(people)):
        met[person] |= met_by.get((field, choice), 0) | met_by.get((field, ""), 0)
    return {person: list(_without_unmet(groups, asked & ~bits)) for person, bits in met.items()}


def _conditions(repository: Repository) -> tuple[list[Json], int, Mapping[_Answer, int]]:
    """References to all smart groups, the bits of their conditions, and the bits of those that each answer meets.

    A page of people can be in thousands of groups: some operations on long integers per person take far less time than
    a look at each group. So there is a bit for each place of a condition and each group, those of one place side by
    side. A condition that everybody meets has none: it is not asked for.
    """
    rows = repository.rows(_MET_BY)
    numbers = {group: number for number, group in enumerate(dict.fromkeys(row[:2] for row in rows))}
    met_by: defaultdict[_Answer, int] = defaultdict(int)
    for group, name, place, reading, field, choice in rows:
        if reading != "always":
            met_by[field, choice] |= 1 << cast(int, place) * len(numbers) + numbers[group, name]
    return (
        [{"groupId": group, "groupType": SMART_GROUP, "name": name} for group, name in numbers],
        reduce(or_, met_by.values(), 0),
        met_by,
    )


def _without_unmet(groups: Sequence[Json], unmet: int) -> Iterator[Json]:
    """The groups without a bit at any place."""
    missed = reduce(or_, (unmet >> place for place in range(0, unmet.bit_length(), len(groups) or 1)), 0)
    flags = f"{missed & (1 << len(groups)) - 1:0{len(groups)}b}"[::-1]  # the last group is written first
    return compress(groups, flags.encode().translate(bytes.maketrans(b"01", b"\1\0")))


HANDLERS: Final[Mapping[str, Handler]] = {
    "manual-groups.list": _list("GROUP", "groups", "groupId"),
    "manual-groups.create": _create(
        "GROUP", "groupId", "g", _add("members", "groupId", "memberIds"), _add("managers", "groupId", "managerIds")
    ),
    "manual-groups.delete": _delete("GROUP", "groupId"),
    "manual-groups.rename": Sql(changes=["UPDATE groups SET name = :name WHERE id = :groupId"]),
    **_people_handlers("manual-groups", "members", "groupId"),
    **_people_handlers("manual-groups", "managers", "groupId"),
    "smart-groups.list": _list("SMART_GROUP", "smartGroups", "smartGroupId"),
    "smart-groups.create": _create(
        "SMART_GROUP", "smartGroupId", "sg", REPLACE_CONDITIONS, _add("managers", "smartGroupId", "managers")
    ),
    "smart-groups.get": Sql(answer=f"SELECT {_SMART_GROUP} FROM groups WHERE id = :smartGroupId"),
    "smart-groups.delete": _delete("SMART_GROUP", "smartGroupId"),
    "smart-groups.rename": Sql(changes=["UPDATE groups SET name = :name WHERE id = :smartGroupId"]),
    "smart-groups.replace-conditions": REPLACE_CONDITIONS,
    **_people_handlers("smart-groups", "managers", "smartGroupId"),
}
