"""Manual and smart groups: what both share, explicit lists of people, and members computed from conditions.

API specification, Manual Groups and Smart Groups. Members of a smart group are computed from people's answers on each
request: conditions are combined with AND, the choices within one with OR. What a system condition means, alone or
beside choices, is the dialect's: any answer to the field, true for everybody, or the choices only. Archived people are
in no smart group.
"""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cache, partial
from itertools import compress
from typing import Final, NamedTuple, TypeAlias, cast

from lmsconf.sandbox.request_context import (
    GROUP,
    SMART_GROUP,
    Entry,
    Handler,
    Request,
    RequestContext,
    bad_request,
)
from lmsconf.sandbox.store import Json, Repository, Value, encode_ids


class _Kind(NamedTuple):
    """A kind of groups: its name in responses, the keys of its listing and of an id, and the prefix of new ids."""

    name: str
    rows: str
    id: str
    prefix: str

    def existing(self, context: RequestContext, request: Request) -> str:
        """Return the id in the path. Raises Refusal (404) if there is no such group."""
        context.require_group(request.path[self.id], self.name)
        return request.path[self.id]


_MANUAL: Final = _Kind(GROUP, "groups", "groupId", "g")
_SMART: Final = _Kind(SMART_GROUP, "smartGroups", "smartGroupId", "sg")

_Answer: TypeAlias = "tuple[Value, Value]"
"""A field and a choice; an empty choice represents any answer to the field."""

_CHOICES, _ANY_ANSWER, _ALWAYS = "choices", "any-answer", "always"
_READINGS: Final = """
    SELECT c.grp, c.position, c.field, CASE WHEN c.system_condition IS NULL THEN 'choices' WHEN EXISTS (
        SELECT 1 FROM condition_choices p WHERE p.grp = c.grp AND p.position = c.position
    ) THEN ? ELSE ? END FROM conditions c JOIN groups g ON g.id = c.grp
"""
"""Group, position, field and reading of each condition."""
# A person is in a group if the number of its conditions that they meet is the number of its conditions. CROSS JOIN
# fixes SQLite's join order: a group has few conditions and a person few answers, so the requested side is the outer
# one.
_OF_GROUP: Final = """
    SELECT p.id FROM (
        SELECT c.position, a.person FROM condition_choices c
            CROSS JOIN answers a ON a.field = c.field AND a.choice = c.choice
            WHERE c.grp = ? AND c.position IN (SELECT value FROM json_each(?))
        UNION
        SELECT c.position, a.person FROM conditions c
            CROSS JOIN answers a ON a.field = c.field
            WHERE c.grp = ? AND c.position IN (SELECT value FROM json_each(?))
    ) met JOIN people p ON p.id = met.person AND p.archived_at IS NULL
    GROUP BY p.id HAVING count(*) = ? ORDER BY p.seq
"""
_EVERYBODY: Final = "SELECT id FROM people WHERE archived_at IS NULL ORDER BY seq"
_CHOSEN: Final = "SELECT grp, position, field, choice FROM condition_choices"
_BITS: Final = bytes.maketrans(b"01", b"\0\1")
_SHOWN: Final = """
    SELECT json_object('customFieldId', field, 'choiceIds', json((SELECT json_group_array(choice) FROM (
        SELECT choice FROM condition_choices p WHERE p.grp = c.grp AND p.position = c.position ORDER BY place
    ))), 'systemCondition', system_condition) FROM conditions c WHERE grp = ? ORDER BY position
"""
_ANSWERS: Final = """
    SELECT p.id, a.field, a.choice FROM people p LEFT JOIN answers a ON a.person = p.id
    WHERE p.id IN (SELECT value FROM json_each(?)) AND p.archived_at IS NULL
"""


def list_groups(of: _Kind, context: RequestContext, request: Request) -> Entry:
    """A page of the ids and names of the groups whose name contains the filter, in creation order."""
    page = context.page(request.query)
    rows = context.repository.rows(
        "SELECT id, name FROM groups WHERE kind = ? AND (? = '' OR instr(casefold(name), ?)) "
        "ORDER BY seq LIMIT ? OFFSET ?",
        *(of.name, request.name_filter, request.name_filter.casefold(), page.limit, page.skip),
    )
    return {of.rows: [{of.id: id, "name": name} for id, name in rows]}


def rename(of: _Kind, context: RequestContext, request: Request) -> None:
    """Rename a group. Names need not be unique."""
    id = of.existing(context, request)
    context.repository.execute("UPDATE groups SET name = ? WHERE id = ?", request.body_text("name"), id)


def delete_manual(context: RequestContext, request: Request) -> None:
    """Delete a manual group. Raises Refusal (404) for a missing one."""
    _delete(context, _MANUAL.existing(context, request), GROUP)


def delete_smart(context: RequestContext, request: Request) -> None:
    """Delete a smart group; a missing one is no error."""
    _delete(context, request.path["smartGroupId"], SMART_GROUP)


def list_people(of: _Kind, table: str, context: RequestContext, request: Request) -> Entry:
    """The user ids in one of a group's lists, `members` or `managers`."""
    return {"userIds": _listed(context, table, of.existing(context, request))}


def add_people(of: _Kind, table: str, context: RequestContext, request: Request) -> None:
    """Add people to one of a group's lists. Raises Refusal (400) for more than the dialect's batch size.

    Where a call replaces the list, those who are in it already do not count.
    """
    id, named = of.existing(context, request), cast("list[str]", request.body["userIds"])
    replaces = context.behaviour("manual-groups.add.mode") == "replace"
    stay = set(_listed(context, table, id)) if replaces else set()
    limit, count = int(context.behaviour("manual-groups.add.batch")), sum(one not in stay for one in named)
    if count > limit:
        raise bad_request(f"one call adds at most {limit} users, not {count}")
    _add(context, table, id, request.body_texts("userIds"))


def remove_person(of: _Kind, table: str, context: RequestContext, request: Request) -> None:
    """Remove one person from one of a group's lists; a person who is not in it is not an error."""
    id, person = of.existing(context, request), context.require_path_person(request)
    context.repository.execute(f"DELETE FROM {table} WHERE grp = ? AND person = ?", id, person)  # noqa: S608  the names are ours


def create_manual(context: RequestContext, request: Request) -> Entry:
    """Create a group, with any initial members and managers."""
    id = _create(_MANUAL, context, request)
    _add(context, "members", id, request.body_texts("memberIds"))
    _add(context, "managers", id, request.body_texts("managerIds"))
    return {"groupId": id}


def create_smart(context: RequestContext, request: Request) -> Entry:
    """Create a group with its conditions and any managers."""
    id = _create(_SMART, context, request)
    write_conditions(context, id, request.body_objects("conditions"))
    _add(context, "managers", id, request.body_texts("managers"))
    return {"smartGroupId": id}


def get_smart(context: RequestContext, request: Request) -> Entry:
    """One group with conditions and managers, and its members on request."""
    id = request.path["smartGroupId"]
    entry: Entry = {"smartGroupId": id, "name": context.require_group(id, SMART_GROUP)}
    entry |= {"conditions": context.repository.objects(_SHOWN, id), "managers": _listed(context, "managers", id)}
    if request.query_flag("includeMembers"):
        entry["members"] = compute_members(context, id)
    return entry


def replace_conditions(context: RequestContext, request: Request) -> None:
    """Replace all conditions."""
    write_conditions(context, _SMART.existing(context, request), request.body_objects("conditions"))


def _create(of: _Kind, context: RequestContext, request: Request) -> str:
    """Create a group; return its id."""
    id, name = context.repository.new_id(of.prefix), request.body_text("name")
    context.repository.execute("INSERT INTO groups (id, kind, name) VALUES (?, ?, ?)", id, of.name, name)
    return id


def _delete(context: RequestContext, id: str, kind: str) -> None:
    """Delete a group with its members, managers, conditions and targets. A missing one is no error."""
    if not context.repository.execute("DELETE FROM groups WHERE id = ? AND kind = ?", id, kind):
        return
    for table in ("members", "managers", "conditions", "condition_choices"):
        context.repository.execute(f"DELETE FROM {table} WHERE grp = ?", id)  # noqa: S608  the names stand above
    context.repository.execute("DELETE FROM targets WHERE audience = ? AND kind = ?", id, kind)


def _listed(context: RequestContext, table: str, id: str) -> list[str]:
    return context.repository.column(f"SELECT person FROM {table} WHERE grp = ? ORDER BY person", id)  # noqa: S608  ours


def _add(context: RequestContext, table: str, id: str, people: list[str]) -> None:
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


def write_conditions(context: RequestContext, group: str, entries: Sequence[Mapping[str, Json]]) -> None:
    """Replace all conditions of a group, after checking each against its field."""
    if not entries:
        raise bad_request("a smart group needs at least one condition")
    context.repository.execute("DELETE FROM conditions WHERE grp = ?", group)
    context.repository.execute("DELETE FROM condition_choices WHERE grp = ?", group)
    for position, entry in enumerate(entries):
        field = cast(str, entry["customFieldId"])
        choices = list(dict.fromkeys(cast("list[str]", entry.get("choiceIds", []))))
        system = cast("str | None", entry.get("systemCondition"))
        _check(context, f"conditions[{position}]", field, choices, system)
        context.repository.execute("INSERT INTO conditions VALUES (?, ?, ?, ?)", group, position, field, system)
        context.repository.execute_many(
            "INSERT INTO condition_choices VALUES (?, ?, ?, ?, ?)",
            [(group, position, place, field, choice) for place, choice in enumerate(choices)],
        )


def _check(context: RequestContext, at: str, field: str, choices: list[str], system: str | None) -> None:
    """Raise Refusal (400) for a condition that does not match the custom fields."""
    if not context.repository.number("SELECT count(*) FROM fields WHERE id = ?", field):
        raise bad_request(f"{at}: there is no custom field {field!r}")
    if not choices and not system:
        raise bad_request(f"{at}: a condition needs choiceIds or a systemCondition")
    known = context.repository.column(
        "SELECT id FROM choices WHERE field = ? AND id IN (SELECT value FROM json_each(?))",
        field,
        encode_ids(choices),
    )
    unknown = [choice for choice in choices if choice not in known]
    if unknown:
        raise bad_request(f"{at}: custom field {field!r} has no choice {', '.join(map(repr, unknown))}")


def compute_members(context: RequestContext, group: str) -> list[str]:
    """The ids of the people in a smart group."""
    positions: defaultdict[Value, list[Value]] = defaultdict(list)
    for _, position, _, reading in context.repository.rows(f"{_READINGS} WHERE c.grp = ?", *_dialect(context), group):
        positions[reading].append(position)
    if positions.keys() == {_ALWAYS}:
        return context.repository.column(_EVERYBODY)
    chosen, answered = positions[_CHOICES], positions[_ANY_ANSWER]
    return context.repository.column(
        _OF_GROUP, group, json.dumps(chosen), group, json.dumps(answered), len(chosen) + len(answered)
    )


def compute_memberships(context: RequestContext, people: Iterable[str]) -> dict[Value, list[Value]]:
    """Person → their smart groups in creation order, for those of `people` who are active."""
    conditions = context.repository.cache_until_write(_reader(*_dialect(context)))
    given: defaultdict[Value, list[_Answer]] = defaultdict(list)
    for person, field, choice in context.repository.rows(_ANSWERS, encode_ids(people)):
        given[person].append((field, choice))
    return {person: list(conditions.met_by(answers)) for person, answers in given.items()}


def _dialect(context: RequestContext) -> tuple[str, str]:
    """What a system condition means beside choices, and alone."""
    return (
        context.behaviour("smart-groups.system-condition.with-choices"),
        context.behaviour("smart-groups.system-condition.alone"),
    )


@cache
def _reader(with_choices: str, alone: str) -> Callable[[Repository], _Conditions]:
    """What reads the conditions in a dialect; the same function each time, so that its result can be cached."""
    return lambda repository: _Conditions(repository, with_choices, alone)


class _Conditions:
    """The conditions of all smart groups as bit sets: one integer per condition position, with one bit per group.

    A page of people can be in thousands of groups: three operations on long integers per person take a tenth of the
    time of counting met conditions one by one.
    """

    def __init__(self, repository: Repository, with_choices: str, alone: str) -> None:
        conditions = repository.rows(f"{_READINGS} ORDER BY g.seq", with_choices, alone)
        counts = Counter(group for group, *_ in conditions)
        self._groups = list(counts)
        number = {group: place for place, group in enumerate(self._groups)}
        depth = max(counts.values(), default=0)
        # A group without a condition at some position always meets it.
        self._free = [sum(1 << number[group] for group, count in counts.items() if count <= p) for p in range(depth)]
        self._meeting: dict[_Answer, list[int]] = {}
        chosen: set[tuple[Value, Value]] = set()
        for group, position, field, reading in conditions:
            if reading == _ALWAYS:
                self._free[int(position or 0)] |= 1 << number[group]
            elif reading == _ANY_ANSWER:
                self._add((field, ""), position, number[group])
            else:
                chosen.add((group, position))
        for group, position, field, choice in repository.rows(_CHOSEN):
            if (group, position) in chosen:
                self._add((field, choice), position, number[group])

    def _add(self, answer: _Answer, position: Value, group: int) -> None:
        planes = self._meeting.setdefault(answer, [0] * len(self._free))
        planes[int(position or 0)] |= 1 << group

    def met_by(self, answers: Iterable[_Answer]) -> Iterator[Value]:
        """The groups whose every condition is met by one of these answers."""
        met = self._free
        for field, choice in answers:
            for planes in (self._meeting.get((field, choice)), self._meeting.get((field, ""))):
                if planes is not None:
                    met = [so_far | more for so_far, more in zip(met, planes, strict=True)]
        left = (1 << len(self._groups)) - 1 if met else 0
        for plane in met:
            left &= plane
        return compress(self._groups, f"{left:b}".encode()[::-1].translate(_BITS))


def _people_handlers(of: _Kind, operations: str, table: str) -> dict[str, Handler]:
    """Return the handlers of one of a group's lists, whose operations begin so."""
    one = f"{operations}.remove-{table.removesuffix('s')}"
    handlers = {f"{operations}.{table}": list_people, f"{operations}.add-{table}": add_people, one: remove_person}
    return {operation: partial(handler, of, table) for operation, handler in handlers.items()}


HANDLERS: Final[Mapping[str, Handler]] = {
    "manual-groups.list": partial(list_groups, _MANUAL),
    "manual-groups.create": create_manual,
    "manual-groups.delete": delete_manual,
    "manual-groups.rename": partial(rename, _MANUAL),
    **_people_handlers(_MANUAL, "manual-groups", "members"),
    **_people_handlers(_MANUAL, "manual-groups", "managers"),
    "smart-groups.list": partial(list_groups, _SMART),
    "smart-groups.create": create_smart,
    "smart-groups.get": get_smart,
    "smart-groups.delete": delete_smart,
    "smart-groups.rename": partial(rename, _SMART),
    "smart-groups.replace-conditions": replace_conditions,
    **_people_handlers(_SMART, "smart-groups", "managers"),
}
