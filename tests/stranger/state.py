"""What a stranger's workspace holds: plain dictionaries by kind and id, planted with a small company."""

from __future__ import annotations

import copy
import random
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from typing import Any
from uuid import UUID

from .choices import Choices

Kept = dict[str, dict[str, Any]]
PEOPLE = ("anna", "bo", "cy", "di", "ed", "fay", "gus", "hal", "ida", "jon", "kim", "liv")
ADMINS = ("anna", "jon")
CONTENTS = ("GDPR basics", "Fire safety", "Old intro", "Untouched course", "Leading well", "Meetup in May", "First aid",
            "Export rules", "Cash desk")  # fmt: skip
_FROM, _UNTIL = datetime(2026, 1, 4, 23, tzinfo=UTC), datetime(2026, 12, 31, 22, 59, 59, tzinfo=UTC)
_FIRST = {"users": 1, "groups": 1, "smart": 501, "fields": 1, "choices": 1, "contents": 1}


class WorkspaceState:
    """Everything a workspace holds. Ids are kept as text; how they look outside is for the answers."""

    def __init__(self, choices: Choices) -> None:
        self._choices = choices
        self._counts = dict(_FIRST)
        self._random = random.Random(choices.shuffle or 0)  # noqa: S311  # an order, no secret
        self._ranks: dict[str, float] = {}
        self.users: Kept = {}
        self.fields: Kept = {}
        self.groups: Kept = {}
        self.smart: Kept = {}
        self.contents: Kept = {}
        self.targets: list[dict[str, Any]] = []
        self._plant()

    def new_id(self, kind: str) -> str:
        """An id as this service makes them."""
        number = self._counts[kind]
        self._counts[kind] += 1
        match self._choices.ids:
            case "shared":
                return str(number)
            case "clashing":
                return str(number % 500)
            case "number":
                return str(number + 100_000 * (1 + list(_FIRST).index(kind)))
            case "uuid":
                return str(UUID(int=self._random.getrandbits(128), version=4))
            case "odd":
                return f"{kind[0]}/{number}:~ü %2F+{{x}}@"
        return f"{kind[:2]}-{number}"

    def listed(self, kept: Kept) -> list[tuple[str, dict[str, Any]]]:
        """All of a kind in the order of this service, which stays the same."""
        return self.ordered(kept.items(), lambda pair: pair[0])

    def ordered(self, items: Iterable[Any], key: Any) -> list[Any]:
        """Items in the order of this service."""
        found = list(items)
        if self._choices.shuffle is None:
            return found
        if self._choices.shuffle == -1:
            return self._random.sample(found, len(found))
        return sorted(found, key=lambda one: self._ranks.setdefault(str(key(one)), self._random.random()))

    def named(self, kept: Kept, name: str) -> str:
        """The id of what goes by that name, or e-mail."""
        return next(id for id, one in kept.items() if name in (one.get("name"), one.get("email")))

    def photo(self) -> dict[str, Any]:
        """A copy of all that is held."""
        kinds = ("users", "fields", "groups", "smart", "contents", "targets")
        return {kind: copy.deepcopy(getattr(self, kind)) for kind in kinds}

    def _plant(self) -> None:
        for person in PEOPLE:
            self.users[self.new_id("users")] = {
                "email": f"{person}@acme.example", "archived": person in ("di", "liv"), "admin": person in ADMINS,
                "manager": person == "ida", "firstName": person.title(), "lastName": "Ek", "language": "sv",
                "applications": ["learn"], "metadata": {"cost": "100"}, "answers": {}, "date": None,
            }  # fmt: skip
        self._field("Department", "CHOICE", ["Sales", "Engineering", "HR"], description="Where the person works")
        self._field("Shirt", "CHOICE", ["S", "M", "L"], isOptional=True)
        self._field("Hobby", "MULTI_SELECT", ["Chess", "Skiing"])
        self._field("Badge", "TEXT", [], isHidden=True)
        self._answer("bo", "Department", "Sales")
        self._answer("cy", "Hobby", "Skiing")
        self._answer("cy", "Badge", "17")
        if self._choices.trailing:
            self._group("UI Ruby ", ["hal"], [])
        self._group("Coaches", ["bo", "cy", "di"], ["anna"])
        self._group("Leaders", ["ed"], [])
        self._group("Summer interns", ["fay", "gus"], [])
        self._group("UI Book club", ["hal", "liv"], ["ida"])
        self._smart("Sales people", "Department", ["Sales"], [], ["bo", "ed"])
        self._smart("UI Chess players", "Hobby", ["Chess"], ["kim"], ["hal", "kim"])
        for position, content in enumerate(CONTENTS):
            types = ("COURSE", "PROGRAM", "SCORM", "MEETUP")
            self.contents[self.new_id("contents")] = {"name": content, "contentType": types[position % 4]}
        self._target("GDPR basics", "group", self.named(self.groups, "Coaches"), True, _FROM, _UNTIL)
        self._target("GDPR basics", "everyone", self._choices.everyone)
        self._target("Fire safety", "group", self.named(self.groups, "Summer interns"), True)
        self._target("Untouched course", "group", self.named(self.groups, "Summer interns"))
        self._target("Untouched course", "group", self.named(self.groups, "UI Book club"), True, None, _UNTIL)
        self._target("Old intro", "user", self.named(self.users, "ed@acme.example"))

    def _answer(self, person: str, field: str, said: str) -> None:
        id = self.named(self.fields, field)
        choices = [one["choiceId"] for one in self.fields[id]["choices"] if one["name"] == said]
        self.users[self.named(self.users, f"{person}@acme.example")]["answers"][id] = choices or said

    def _field(self, name: str, type: str, choices: Sequence[str], **more: object) -> None:
        made = [{"choiceId": self.new_id("choices"), "name": choice} for choice in choices]
        self.fields[self.new_id("fields")] = {"name": name, "type": type, "choices": made, **more}

    def _group(self, name: str, members: Sequence[str], managers: Sequence[str]) -> None:
        self.groups[self.new_id("groups")] = {
            "name": name,
            "members": [self.named(self.users, f"{one}@acme.example") for one in members],
            "managers": [self.named(self.users, f"{one}@acme.example") for one in managers],
        }

    def _smart(
        self, name: str, field: str, choices: Sequence[str], managers: Sequence[str], members: Sequence[str]
    ) -> None:
        id = self.named(self.fields, field)
        named = [one["choiceId"] for one in self.fields[id]["choices"] if one["name"] in choices]
        self.smart[self.new_id("smart")] = {
            "name": name,
            "conditions": [{"field": id, "choices": named, "system": self._choices.system}],
            "managers": [self.named(self.users, f"{one}@acme.example") for one in managers],
            "members": [self.named(self.users, f"{one}@acme.example") for one in members],
        }

    def _target(self, content: str, kind: str, to: str, mandatory: bool = False, start: datetime | None = None,
                finish: datetime | None = None) -> None:  # fmt: skip
        self.targets.append({"content": self.named(self.contents, content), "kind": kind, "to": to,
                             "mandatory": mandatory, "start": start, "finish": finish})  # fmt: skip
