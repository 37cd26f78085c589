"""Smart group members: computed from people's answers on each request.

Conditions are combined with AND, the choices within one with OR. Archived people are in no smart group.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator
from itertools import compress
from typing import Final, TypeAlias

from lmsconf.sandbox.request_context import RequestContext
from lmsconf.sandbox.store import Repository, Value, encode_ids

_Answer: TypeAlias = "tuple[Value, Value]"
"""A field and a choice; an empty choice represents any answer to the field."""

# A person is in a group if the number of its conditions that they meet is the number of its conditions. CROSS JOIN
# fixes SQLite's join order: a group has few conditions and a person few answers, so the requested side is the outer
# one.
_OF_GROUP: Final = """
    SELECT p.id FROM (
        SELECT c.position, a.person FROM condition_choices c
            CROSS JOIN answers a ON a.field = c.field AND a.choice = c.choice WHERE c.grp = ?
        UNION
        SELECT c.position, a.person FROM conditions c
            CROSS JOIN answers a ON a.field = c.field WHERE c.grp = ? AND c.any_answer
    ) met JOIN people p ON p.id = met.person AND p.archived_at IS NULL
    GROUP BY p.id HAVING count(*) = (SELECT count(*) FROM conditions WHERE grp = ?) ORDER BY p.seq
"""
_MEETING: Final = """
    SELECT field, choice, grp, position FROM condition_choices
    UNION ALL SELECT field, '', grp, position FROM conditions WHERE any_answer
"""
_BITS: Final = bytes.maketrans(b"01", b"\0\1")
_HOW_MANY: Final = """
    SELECT c.grp, count(*) FROM conditions c JOIN groups g ON g.id = c.grp GROUP BY c.grp ORDER BY g.seq
"""
_ANSWERS: Final = """
    SELECT a.person, a.field, a.choice FROM people p CROSS JOIN answers a ON a.person = p.id
    WHERE p.id IN (SELECT value FROM json_each(?)) AND p.archived_at IS NULL
"""


def compute_members(context: RequestContext, group: str) -> list[str]:
    """The ids of the people in a smart group."""
    return context.repository.column(_OF_GROUP, group, group, group)


def compute_memberships(context: RequestContext, people: Iterable[str]) -> dict[Value, list[Value]]:
    """Person → their smart groups in creation order, for those of `people` who have answers."""
    conditions = context.repository.cache_until_write(_Conditions)
    given: defaultdict[Value, list[_Answer]] = defaultdict(list)
    for person, field, choice in context.repository.rows(_ANSWERS, encode_ids(people)):
        given[person].append((field, choice))
    return {person: list(conditions.met_by(answers)) for person, answers in given.items()}


class _Conditions:
    """The conditions of all smart groups as bit sets: one integer per condition position, with one bit per group.

    A page of people can be in thousands of groups: three operations on long integers per person take a tenth of the
    time of counting met conditions one by one.
    """

    def __init__(self, repository: Repository) -> None:
        counts = repository.pairs(_HOW_MANY)
        self._groups = [group for group, _ in counts]
        number = {group: place for place, group in enumerate(self._groups)}
        depth = max((int(count or 0) for _, count in counts), default=0)
        # A group without a condition at some position always meets it.
        self._free = [sum(1 << number[group] for group, count in counts if int(count or 0) <= p) for p in range(depth)]
        self._meeting: dict[_Answer, list[int]] = {}
        for field, choice, group, position in repository.rows(_MEETING):
            planes = self._meeting.setdefault((field, choice), [0] * depth)
            planes[int(position or 0)] |= 1 << number[group]

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
