"""What a workspace holds, read through the API alone, as facts that two dumps can be compared by."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Final, NamedTuple, cast

from lmsconf.sandbox.service import Sandbox

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
