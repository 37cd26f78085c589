"""Smart group members: computed from people's answers on each request.

Conditions are combined with AND, the choices within one with OR. What a system condition means, alone or beside
choices, is the dialect's: any answer to the field, true for everybody, or the choices only. Archived people are in no
smart group.
"""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator
from functools import cache
from itertools import compress
from typing import Final, TypeAlias

from lmsconf.sandbox.request_context import RequestContext
from lmsconf.sandbox.store import Repository, Value, encode_ids

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
_ANSWERS: Final = """
    SELECT p.id, a.field, a.choice FROM people p LEFT JOIN answers a ON a.person = p.id
    WHERE p.id IN (SELECT value FROM json_each(?)) AND p.archived_at IS NULL
"""


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
