"""What a stranger's workspace holds: plain dictionaries by kind and id, planted with a small company."""

from __future__ import annotations

import copy
import json
import random
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta, timezone
from typing import Any
from uuid import UUID

Row = dict[str, object]
"""Anything that is kept, sent or answered: plain dictionaries throughout."""

OUR_TYPES: Mapping[str, str] = {"group": "GROUP", "smart": "SMART_GROUP", "user": "USER", "everyone": "GROUP"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Choices:
    """One service's choices.

    ids             `text`, `number` (in JSON a number), `uuid`, `odd`, `shared` (each kind counts from 1, smart
                    groups from 501), `clashing` (smart groups as well)
    page_cap        the largest page it gives; page_most: a larger limit is refused; totals: `all`, `absent`, `null`,
                    `text`
    no_rows         a page behind the last row is `empty` or `null`
    shuffle         seed of the order in which it lists things; None: as they were made; -1: another one every time
    users           the people that /users lists: `all` or `active`; extended: `all`, `active` or `lacking` one person
    names           the wire names of what the specification does not show
    time            how targets show times: `z`, `ms+0000`, `msz`, `+02:00`, `+0000`, `local`, `epoch`, `number` (which
                    is no text); takes: `any`, `epoch` or `iso`
    existing        POST on a target that is there: `update`, `merge`, `conflict`, `double`, `ignore`
    clears          what opens an end of a window: `null`, `absent`, `blank`
    empty           an optional value that is not set is `null`, `absent` or `blank`; false_: `false` or `absent`
    field_ids       a field carries `both` its ids, `id` or `customFieldId`
    made, done      status of an answer with a new thing, and of one without content; done_body what it says anyway
    wrap            `extra` keys beside what POST and PUT answer, all of it `inside` another object, `mute`: another
                    object without it, or `nothing`
    in_use          a field is in use when a condition names it, or `answered`: always
    gone, again     status for deleting what is not there, and for adding who is there already
    errors          `json`, `text`, `html`, `empty` or `problem`
    system          the systemCondition of a condition that says none; backwards: conditions in the other order
    throttle        every so many requests one is refused with 429; stutter: a DELETE that was done says 503 at first
    keep_alive      whether a connection serves more than one request; packed: answers are compressed; chunked: and
                    come in pieces
    busy_first      so many requests are refused at the start, with a Retry-After of a second
    answers         what a person answers to custom fields: `choices`, `choice-ids`, `values`, `unlike` anything known,
                    `lists`, `null`, or `missing`
    group_lists     the groups of a person who has none: `empty`, `null` or `missing`
    editors         who changed an assignment: `text`, `object` with an epoch time, or `absent`
    trailing        live names of undeclared things end with a blank
    unique          a second thing of one name is refused with 409
    removed         a DELETE answers 200 and says what is gone
    """

    ids: str = "text"
    page_cap: int = 100
    page_most: int = 1000
    totals: str = "all"
    no_rows: str = "empty"
    shuffle: int | None = None
    users: str = "all"
    extended: str = "all"
    names: Mapping[str, str] = field(default_factory=dict)
    time: str = "z"
    takes: str = "any"
    existing: str = "update"
    clears: str = "null"
    everyone: str = "EVERYONE"
    types: Mapping[str, str] = field(default_factory=lambda: OUR_TYPES)
    named_targets: bool = True
    empty: str = "null"
    false_: str = "false"
    field_ids: str = "both"
    in_use: str = "named"
    made: int = 201
    done: int = 204
    done_body: bytes = b""
    wrap: str = ""
    gone: int = 404
    again: int = 200
    errors: str = "json"
    system: str | None = None
    backwards: bool = False
    extra: bool = False
    throttle: int | None = None
    stutter: bool = False
    keep_alive: bool = True
    packed: bool = False
    chunked: bool = False
    busy_first: int = 0
    answers: str = "choices"
    group_lists: str = "empty"
    editors: str = "absent"
    trailing: bool = False
    unique: bool = False
    removed: bool = False

    def name(self, key: str) -> str:
        """The wire name of a part of a body that the specification does not show."""
        return self.names.get(key, key.rpartition(".")[2])

    def shown_time(self, moment: datetime | None) -> str | int | None:
        """A moment as a target shows it."""
        if moment is None:
            return None
        match self.time:
            case "epoch":
                return str(int(moment.timestamp() * 1000))
            case "number":
                return int(moment.timestamp() * 1000)
            case "local":
                return moment.strftime("%Y-%m-%dT%H:%M:%S")
            case "+0000":
                return moment.isoformat()
            case "msz":
                return moment.strftime("%Y-%m-%dT%H:%M:%S.000Z")
            case "ms+0000":
                return moment.strftime("%Y-%m-%dT%H:%M:%S.000+0000")
            case "+02:00":
                return moment.astimezone(timezone(timedelta(hours=2))).isoformat()
        return moment.strftime("%Y-%m-%dT%H:%M:%SZ")

    def read_time(self, text: object) -> datetime:
        """The moment of a text in a body. Raises ValueError for a form that this service does not take."""
        said = str(text)
        if said.isdigit() and self.takes != "iso":
            return datetime.fromtimestamp(int(said) / 1000, UTC)
        if self.takes == "epoch":
            raise ValueError(f"unparseable date {said}")
        return datetime.fromisoformat(said).astimezone(UTC)

    def optional(self, **values: object) -> Row:
        """The values that are set, and what the others look like here."""
        out: Row = {}
        for key, value in values.items():
            if value is False and self.false_ == "absent":
                continue
            if value is not None:
                out[key] = value
            elif self.empty != "absent":
                out[key] = "" if self.empty == "blank" else None
        return out

    def dressed(self, row: Row) -> Row:
        """A row with whatever else this service tells of it."""
        return {**row, "_links": {"self": "/x"}, "tenant": 7, "tags": [], "etag": None} if self.extra else row

    def refusal(self, status: int, reason: str) -> tuple[str, bytes]:
        """The content type and the body of an error."""
        match self.errors:
            case "text":
                return "text/plain", reason.encode()
            case "html":
                return "text/html", f"<html><body><h1>{status}</h1><p>{reason}</p></body></html>".encode()
            case "empty":
                return "text/plain", b""
            case "problem":
                problem = {"type": "about:blank", "status": status, "detail": reason, "errors": [{"code": status}]}
                return "application/problem+json", json.dumps(problem).encode()
        return "application/json", json.dumps({"error": reason}).encode()


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
