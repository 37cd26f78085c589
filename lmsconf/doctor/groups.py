"""Lessons on a scratch group: the names of renaming it and of adding people."""

from __future__ import annotations

from collections.abc import Callable
from itertools import count
from typing import Final, cast

from lmsconf.core.values import Json
from lmsconf.doctor.findings import Value
from lmsconf.doctor.lab import Lab
from lmsconf.doctor.scratch import Scratch
from lmsconf.kinds.names import GROUP

RENAME: Final = "manual-groups.rename.name"
MEMBERS: Final = "manual-groups.add-members.userIds"
MANAGERS: Final = "manual-groups.add-managers.userIds"
_LISTS: Final = {
    MEMBERS: ("manual-groups.members", "manual-groups.add-members", "manual-groups.remove-member"),
    MANAGERS: ("manual-groups.managers", "manual-groups.add-managers", "manual-groups.remove-manager"),
}
"""Key → the operations that read the list of people, add to it and take from it."""


def learn_rename(lab: Lab, scratch: Scratch, group: str) -> None:
    """The name of a new name: each try gives another one, so that nothing is mistaken for the effect of a later try."""
    number = count(1)

    def works(value: Value) -> bool:
        name = scratch.name(f"renamed-{next(number)}")
        lab.send("manual-groups.rename", path={"groupId": group}, said={"name": name}, trying={RENAME: value})
        return scratch.row(GROUP, group).get("name") == name

    lab.learn(RENAME, works)


def learn_people(lab: Lab, group: str, person: str) -> None:
    """The names of lists of user ids: the one person is added, seen, and taken out again."""
    for key in _LISTS:
        lab.learn(key, _adds(lab, key, group, person))
        _take_out(lab, key, group, person)


def _adds(lab: Lab, key: str, group: str, person: str) -> Callable[[Value], bool]:
    """Whether a call with that name puts the person into the list."""
    addition = _LISTS[key][1]

    def works(value: Value) -> bool:
        lab.send(addition, path={"groupId": group}, said={"userIds": [person]}, trying={key: value})
        return person in _people(lab, key, group)

    return works


def _take_out(lab: Lab, key: str, group: str, person: str) -> None:
    if person in _people(lab, key, group):
        lab.send(_LISTS[key][2], path={"groupId": group, "userId": person})


def _people(lab: Lab, key: str, group: str) -> list[str]:
    answer = cast("dict[str, Json]", lab.reader.get(_LISTS[key][0], path={"groupId": group}))
    return [str(id) for id in cast("list[Json]", answer.get("userIds") or [])]
