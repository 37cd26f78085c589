"""Whatever a workspace loses by an apply stood in the plan, and nothing changes of which the plan did not speak."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any, Final, NamedTuple, cast

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from laws.conftest import Open
from laws.random_manifests import RandomManifests, wishes
from laws.random_workspaces import Dice, RandomWorkspace, answer_all
from laws.sandbox_project import Raw, tried

from lmsconf.errors import ExitCode
from lmsconf.model.address import Address
from lmsconf.model.names import normalize_email, normalize_name
from lmsconf.model.plan import Action, Change, Plan

pytestmark = pytest.mark.sampled(day=4, gate=6)  # minutes in all

Both = tuple[RandomWorkspace, RandomManifests]
PEOPLE: Final = ("members", "managers")
SINGLE: Final = {
    "isHidden": "hidden",
    "isLocked": "locked",
    "isOptional": "optional",
    "description": "description",
    "mandatory": "mandatory",
    "startTime": "visible_from",
    "finishTime": "visible_until",
    "name": "name",
}
"""Keys of the API with a single value, and what a plan calls them."""


@st.composite
def answered(draw: st.DrawFn) -> Both:
    """A workspace in which people have answered, and manifests that declare no people."""
    both = draw(wishes())
    answer_all(Dice(draw), both[0])
    return both


@tried(200)
@given(answered())
def test_losses_are_announced(opened: Open, both: Both) -> None:
    """Two looks at the workspace differ only in what the plan names, resource by resource and item by item."""
    stage = opened(both)
    plan = stage.plan()
    assume(plan.calls)
    before = stage.look()
    report = stage.apply(plan)
    after = stage.look()
    said, old, new = Announced(plan, before, after), set(facts(before)), set(facts(after))
    assert [fact for fact in sorted(old - new) if not said.loses(fact)] == []
    assert [fact for fact in sorted(new - old) if not any(said.changes(fact))] == []
    # A service that refuses to change a field in use makes the run end in part, as the plan says.
    robbed = len({fact.person for fact in old - new if fact.key == "answers"})
    [answers] = [guard.total for guard in plan.guards if guard.name == "answers"]
    assert answers == robbed if report.exit is ExitCode.OK else cast("int", answers) >= robbed


class Fact(NamedTuple):
    """One thing that is so: kind and id of a resource, one of its keys, and one item of that key.

    An answer is a fact of its field: its item is a choice's id or a text, and `person` says whose it is.
    """

    kind: str
    id: str
    key: str
    item: str
    person: str = ""


def facts(raw: Raw) -> Iterator[Fact]:
    """All that a plan can speak of."""
    fields = {str(said["name"]): id for (kind, id), said in raw.items() if kind == "custom_field"}
    for (kind, id), said in cast("dict[tuple[str, str], dict[str, Any]]", raw).items():
        yield Fact(kind, id, "", "")
        yield from (Fact(kind, id, key, str(said[name])) for name, key in SINGLE.items() if said.get(name))
        yield from (Fact(kind, id, key, one) for key in PEOPLE for one in said.get(key) or ())
        yield from (Fact(kind, id, "choices", one["choiceId"]) for one in said.get("choices") or ())
        for one in said.get("conditions") or ():
            yield Fact(kind, id, "conditions", json.dumps([one["customFieldId"], sorted(one.get("choiceIds") or ())]))
        for field, answer in (said.get("customFields") or {}).items():
            parts = [one["choiceId"] for one in answer["choices"]] if "choices" in answer else [answer["text"]]
            yield from (Fact("custom_field", fields[field], "answers", str(part), id) for part in parts)


class Announced:
    """What a plan says of resources, found by their id, or by their name before it or after it."""

    def __init__(self, plan: Plan, before: Raw, after: Raw) -> None:
        self._changes = plan.changes
        self._sides = (before, after)
        fields = [field for one in plan.changes for field in one.fields if field.path.startswith("choices.")]
        self._renamed = {str(field.before): str(field.after) for field in fields}

    def loses(self, fact: Fact) -> bool:
        """Whether the plan says that this goes."""
        return any(self._goes(change, fact) for change in self.changes(fact))

    def changes(self, fact: Fact) -> Iterator[Change]:
        """The changes of the resource."""
        found = {one for raw in self._sides if (fact.kind, fact.id) in raw for one in self._addresses(raw, fact)}
        for change in self._changes:
            if change.address.kind == fact.kind and (change.id == fact.id or change.address in found):
                yield change

    def _addresses(self, raw: Raw, fact: Fact) -> Iterator[Address]:
        if fact.kind != "content_target":
            yield Address.of(fact.kind, _name(fact.kind, raw[fact.kind, fact.id]))
            return
        content, _, audience = fact.id.partition("/")
        name = Address.of("group", _name("content", raw["content", content])).text
        audiences = [
            str(Address.of(kind, _name(kind, said)))
            for side in self._sides
            for (kind, id), said in side.items()
            if id == audience and kind in ("group", "smart_group", "user")
        ]
        yield from (Address("content_target", f"{name} -> {one}") for one in audiences or ["everyone"])

    def _goes(self, change: Change, fact: Fact) -> bool:
        if change.action in (Action.DELETE, Action.REPLACE):
            listed = cast("dict[str, list[str]]", change.before).get(fact.key, [])
            return fact.key not in PEOPLE or self._person(fact.item) in map(normalize_email, listed)
        path = "choices" if fact.key == "answers" else fact.key
        if path not in (*PEOPLE, "choices", "conditions"):
            return any(field.path == path for field in change.fields)
        gone = [_bare(item) for field in change.fields if field.path == path for item in field.removed]
        return any(item in gone for raw in self._sides for item in self._forms(raw, fact))

    def _person(self, id: str) -> str:
        return normalize_email(str(self._sides[0]["user", id]["email"]))

    def _forms(self, raw: Raw, fact: Fact) -> Iterator[object]:
        """How a plan may write an item: with the names of one side, or with the new names of choices."""
        if fact.key in PEOPLE:
            yield self._sides[0]["user", fact.item]["email"]
            yield self._person(fact.item)
            return
        rows = cast("list[dict[str, str]]", [row for said in raw.values() for row in said.get("choices") or ()])
        choices = {row["choiceId"]: normalize_name(row["name"]) for row in rows}
        if fact.key != "conditions":
            yield choices.get(fact.item, fact.item)
            return
        field, ids = json.loads(fact.item)
        if ("custom_field", field) in raw and set(ids) <= set(choices):
            names = [choices[id] for id in ids]
            for told in (names, [self._renamed.get(name, name) for name in names]):
                yield {
                    "field": normalize_name(str(raw["custom_field", field]["name"])),
                    **({"choices": sorted(told)} if told else {}),
                }


def _bare(item: object) -> object:
    """A condition without its system condition, which may stand beside the same choices on both sides."""
    return {key: value for key, value in item.items() if key != "system_condition"} if isinstance(item, dict) else item


def _name(kind: str, said: dict[str, object]) -> str:
    return normalize_email(str(said["email"])) if kind == "user" else normalize_name(str(said["name"]))
