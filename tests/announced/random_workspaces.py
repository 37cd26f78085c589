"""Random workspaces and random manifests for them, from a seed number. Names are plain, so that a dump can be read."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from random import Random
from typing import Final, NamedTuple, cast

from lmsconf.sandbox.service import Sandbox

Entry = dict[str, object]
PEOPLE: Final = tuple(f"p{number:02}@x.example" for number in range(24))
CONTENTS: Final = ("Intro", "Safety", "Privacy", "Forklift")
TYPES: Final = ("CHOICE", "MULTI_SELECT", "TEXT")
WINDOWS: Final = (None, "2025-03-01T00:00:00Z", "2026-02-03T10:00:00Z", "2027-12-31T22:59:59Z")


class RandomWorkspace:
    """A workspace as the words of a seed file, and a project's wish for it as the words of a manifest."""

    def __init__(self, seed: int) -> None:
        self._dice = Random(f"announced {seed}")  # noqa: S311  # no secret
        self.active = [one for number, one in enumerate(PEOPLE) if number < 8 or self._dice.random() < 0.9]
        self.fields = {f"F{number}": self._field() for number in range(self._dice.randint(1, 4))}
        self.groups = {f"G{number}": self._group() for number in range(self._dice.randint(1, 4))}
        self.smart = {f"S{number}": self._smart() for number in range(self._dice.randint(0, 3)) if self._choices()}
        self.targets = self._targets()
        self.options = self._options()

    # The workspace

    def seed(self) -> Entry:
        """The workspace, as a seed file says it."""
        return {
            "custom_fields": [{"name": name, **said} for name, said in self.fields.items()],
            "people": [self._person(number, email) for number, email in enumerate(PEOPLE)],
            "groups": [{"name": name, **said} for name, said in self.groups.items()],
            "smart_groups": [{"name": name, **said} for name, said in self.smart.items()],
            "content": [{"name": name, "id": f"c-{name}"} for name in CONTENTS],
            "content_targets": [
                {"content": content, "assign_to": [audience], **said} for content, audience, said in self.targets
            ],
        }

    def _person(self, number: int, email: str) -> Entry:
        answers = {name: self._answer(said) for name, said in self.fields.items() if self._dice.random() < 0.6}
        return {"email": email, "answers": answers, "admin": number < 3, "archived": email not in self.active}

    def _answer(self, field: Entry) -> object:
        choices = field.get("choices")
        if not isinstance(choices, list):
            return self._dice.choice(["blue", "green", "42 A"])
        some = self._dice.sample(choices, self._dice.randint(1, len(choices)))
        return some if field["type"] == "MULTI_SELECT" else some[0]

    def _field(self) -> Entry:
        said: Entry = {"type": self._dice.choice(TYPES)}
        if said["type"] != "TEXT":
            said["choices"] = [f"k{number}" for number in range(self._dice.randint(2, 5))]
        if self._dice.random() < 0.5:
            said["description"] = self._dice.choice(["one", "two"])
        return said | {flag: True for flag in ("hidden", "locked", "optional") if self._dice.random() < 0.3}

    def _group(self) -> Entry:
        return {"members": self._some(), "managers": self._some(most=3)}

    def _some(self, most: int = 12) -> list[str]:
        return self._dice.sample(self.active, self._dice.randint(0, most))

    def _choices(self) -> dict[str, list[str]]:
        """The fields that a condition can name choices of."""
        return {name: said["choices"] for name, said in self.fields.items() if isinstance(said.get("choices"), list)}

    def _condition(self, choices: dict[str, list[str]]) -> Entry:
        field = self._dice.choice(sorted(choices))
        some = self._dice.sample(choices[field], self._dice.randint(1, len(choices[field])))
        return {"field": field, "choices": sorted(some)}

    def _smart(self) -> Entry:
        conditions = [self._condition(self._choices()) for _ in range(self._dice.randint(1, 2))]
        return {"conditions": conditions, "managers": self._some(most=2)}

    def _targets(self) -> list[tuple[str, Entry | str, Entry]]:
        pairs = [(content, audience) for content in CONTENTS for audience in self._audiences()]
        chosen = self._dice.sample(pairs, min(len(pairs), self._dice.randint(0, 8)))
        return [(content, audience, self._value()) for content, audience in chosen]

    def _audiences(self) -> list[Entry | str]:
        named = [("group", self.groups), ("smart_group", self.smart)]
        return [
            "everyone",
            *({key: name} for key, groups in named for name in groups),
            *({"user": email} for email in PEOPLE[4:8]),
        ]

    def _value(self) -> Entry:
        start, end = self._dice.choice(WINDOWS[:3]), self._dice.choice((None, WINDOWS[3]))
        value: Entry = {"mandatory": self._dice.random() < 0.5}
        return value | ({"visible_from": start} if start else {}) | ({"visible_until": end} if end else {})

    # The project

    def _options(self) -> dict[str, Entry | str]:
        ownership: Entry = {}
        for kind in ("custom_fields", "groups", "smart_groups"):
            if self._dice.random() < 0.15:
                ownership[kind] = "all"
        if self._dice.random() < 0.4:
            ownership["content_targets"] = self._dice.choice(("declared_content", "all"))
        in_use = self._dice.choice(("condition", "removed-choice", "never"))
        on_existing = self._dice.choice(("update", "recreate"))
        return {
            "timezone": "UTC",
            "ownership": ownership,
            "dialect": {"custom-fields.in-use": in_use, "content-targets.on-existing": on_existing},
        }

    def manifest(self) -> Entry:
        """What the project wants: some of the workspace as it is, some of it otherwise, some gone, some new."""
        fields = {name: self._wanted_field(said) for name, said in self.fields.items() if self._dice.random() < 0.7}
        absent: dict[str, list[object]] = {
            "custom_fields": [name for name in self.fields if name not in fields and self._dice.random() < 0.5],
            "groups": [],
            "smart_groups": [],
            "content_targets": [],
        }
        choices = {name: _names(fields.get(name, {}).get("choices", live)) for name, live in self._choices().items()}
        if "custom_fields" in self.options["ownership"]:
            choices = {name: choices[name] for name in choices if name in fields}
        choices = {name: said for name, said in choices.items() if name not in absent["custom_fields"]}
        sections: dict[str, list[Entry]] = {
            "custom_fields": [{"name": name, **said} for name, said in fields.items()],
            "groups": self._wanted(self.groups, absent["groups"], choices),
            "smart_groups": self._wanted(self.smart, absent["smart_groups"], choices),
            "content_targets": self._wanted_targets(absent),
        }
        if self._dice.random() < 0.3:
            sections["groups"].append({"name": "Brand new", "managers": [PEOPLE[0]], "members": [PEOPLE[9]]})
        named: Entry = {key: entries for key, entries in sections.items() if entries}
        return {**named, "absent": {key: names for key, names in absent.items() if names} or {"groups": ["None"]}}

    def _wanted_field(self, live: Entry) -> Entry:
        said: Entry = {}
        choices = live.get("choices")
        if isinstance(choices, list) and self._dice.random() < 0.5:
            kept = self._dice.sample(choices, self._dice.randint(1, len(choices)))
            fresh = [f"n{number}" for number in range(self._dice.randint(0, 1))]
            renamed = [{"name": f"{kept[-1]} bis", "previously": [kept.pop()]}] if self._dice.random() < 0.2 else []
            said["choices"] = [*kept, *fresh, *renamed]
        if self._dice.random() < 0.3:
            said["description"] = self._dice.choice(["one", "two", None])
        return said | {flag: False for flag in ("hidden", "optional") if self._dice.random() < 0.3}

    def _wanted(self, live: dict[str, Entry], absent: list[object], choices: dict[str, list[str]]) -> list[Entry]:
        wanted: list[Entry] = []
        for name, said in live.items():
            fate = self._dice.random()
            if fate < 0.2:
                absent.append(name)
            elif fate < 0.8:
                entry: Entry = {"name": name}
                if self._dice.random() < 0.2:
                    entry |= {"name": f"{name} bis", "previously": [name]}
                for key in said:
                    if key != "conditions" and self._dice.random() < 0.5:
                        entry[key] = self._people(said[key])
                if "conditions" in said and choices and self._dice.random() < 0.5:
                    entry["conditions"] = [self._condition(choices)]
                wanted.append(entry)
        return wanted

    def _people(self, live: object) -> object:
        assert isinstance(live, list)
        if self._dice.random() < 0.3:
            out = self._dice.sample(live, min(len(live), 2))
            return {"include": [one for one in self._some(most=3) if one not in out], "exclude": out}
        return sorted({*self._dice.sample(live, self._dice.randint(0, len(live))), *self._some(most=2)})

    def _wanted_targets(self, absent: dict[str, list[object]]) -> list[Entry]:
        gone = {str(name) for key in ("groups", "smart_groups") for name in absent[key]}
        wanted: list[Entry] = []
        for content, audience, said in self.targets:
            names = {} if isinstance(audience, str) else audience
            if gone & set(names.values()) or "group" in names or "smart_group" in names:
                continue  # a renamed audience would have to be named by its new name
            fate = self._dice.random()
            if fate < 0.25:
                absent["content_targets"].append({"content": content, "assign_to": [audience]})
            elif fate < 0.75:
                value = self._dice.choice((said, self._value()))
                wanted.append({"content": content, "assign_to": [audience], **value})
        return wanted


def _names(choices: object) -> list[str]:
    """The names that choices will have."""
    assert isinstance(choices, list)
    return [str(one["name"]) if isinstance(one, dict) else str(one) for one in choices]


# What a workspace holds, read through the API alone, as facts that two dumps can be compared by.


Json = dict[str, object]
_GRANTED: Final = {"authorization": "Bearer sandbox"}
_FLAGS: Final = {"isHidden": "hidden", "isLocked": "locked", "isOptional": "optional", "description": "description"}
_TARGET: Final = {"mandatory": "mandatory", "startTime": "visible_from", "finishTime": "visible_until"}
_LISTING: Final = "limit=100"


class Fact(NamedTuple):
    """One thing that is so: kind and id of a resource, one of its keys, and one item of that key.

    An answer is a fact of its field: its item is a choice's id or a text, and `person` says whose it is.
    """

    kind: str
    id: str
    key: str
    item: str
    person: str = ""


@dataclass(slots=True)
class Dump:
    """All facts of a workspace. names: kind and id → name. choices: id → name. assigned: content and audience's id."""

    facts: set[Fact] = field(default_factory=set)
    names: dict[tuple[str, str], str] = field(default_factory=dict)
    choices: dict[str, str] = field(default_factory=dict)
    assigned: dict[str, tuple[str, str]] = field(default_factory=dict)

    def audience(self, id: str) -> str:
        """The audience of an assignment as addresses say it."""
        return next((f"{kind}/{name}" for (kind, other), name in self.names.items() if other == id), "everyone")


def dump(sandbox: Sandbox) -> Dump:
    """The workspace of a sandbox."""

    def get(path: str, query: str = "") -> Json:
        answer = sandbox.answer("GET", path, query, _GRANTED, b"")
        assert answer.status == 200, answer
        return cast("Json", json.loads(answer.body))

    made = Dump()
    for read in (_fields, _people, _groups, _smart_groups, _targets):
        made.facts.update(read(get, made))
    return made


Get = Callable[..., Json]


def _rows(holder: Json, key: str) -> list[Json]:
    return cast("list[Json]", holder[key])


def _texts(holder: Json, key: str) -> list[str]:
    return cast("list[str]", holder.get(key) or [])


def _fields(get: Get, made: Dump) -> Iterator[Fact]:
    for row in _rows(get("/custom-fields"), "customFields"):
        id = str(row["id"])
        made.names["custom_field", id] = str(row["name"])
        yield Fact("custom_field", id, "name", str(row["name"]))
        yield from (Fact("custom_field", id, key, str(row[name])) for name, key in _FLAGS.items() if row.get(name))
        for choice in cast("list[Json]", row.get("choices") or []):
            made.choices[str(choice["choiceId"])] = str(choice["name"])
            yield Fact("custom_field", id, "choices", str(choice["choiceId"]))


def _people(get: Get, made: Dump) -> Iterator[Fact]:
    fields = {name: id for (kind, id), name in made.names.items() if kind == "custom_field"}
    for row in _rows(get("/users", _LISTING), "users"):
        id = str(row["userId"])
        made.names["user", id] = str(row["email"])
        yield Fact("user", id, "email", str(row["email"]))
        yield Fact("user", id, "archived", str(row.get("archivedAt") is not None))
        for name, answer in cast("Json", row.get("customFields") or {}).items():
            yield from (Fact("custom_field", fields[name], "answers", part, id) for part in _parts(answer))


def _parts(answer: object) -> list[str]:
    """The choice ids of an answer, or its text."""
    said = cast("Json", answer)
    return [str(one["choiceId"]) for one in _rows(said, "choices")] if "choices" in said else [str(said)]


def _groups(get: Get, made: Dump) -> Iterator[Fact]:
    for row in _rows(get("/groups", _LISTING), "groups"):
        id = str(row["groupId"])
        made.names["group", id] = str(row["name"])
        yield Fact("group", id, "name", str(row["name"]))
        for key in ("members", "managers"):
            people = _texts(get(f"/groups/{id}/{key}"), "userIds")
            yield from (Fact("group", id, key, made.names["user", one]) for one in people)


def _smart_groups(get: Get, made: Dump) -> Iterator[Fact]:
    for row in _rows(get("/smart-groups", _LISTING), "smartGroups"):
        id = str(row["smartGroupId"])
        whole = get(f"/smart-groups/{id}")
        made.names["smart_group", id] = str(row["name"])
        yield Fact("smart_group", id, "name", str(row["name"]))
        yield from (Fact("smart_group", id, "managers", made.names["user", one]) for one in _texts(whole, "managers"))
        for one in _rows(whole, "conditions"):
            said = [str(one["customFieldId"]), sorted(_texts(one, "choiceIds"))]
            yield Fact("smart_group", id, "conditions", json.dumps(said))


def _targets(get: Get, made: Dump) -> Iterator[Fact]:
    for content in _rows(get("/content/all", _LISTING), "courses"):
        for row in _rows(get("/content/targets", f"contentId={content['courseId']}"), "targets"):
            id = f"{content['courseId']} {row['targetId']}"
            made.assigned[id] = str(content["name"]), str(row["targetId"])
            yield Fact("content_target", id, "exists", "")
            yield from (
                Fact("content_target", id, key, str(row[name])) for name, key in _TARGET.items() if row.get(name)
            )
