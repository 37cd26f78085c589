"""Whatever a workspace loses by an apply stood in the plan, and nothing changes of which the plan did not speak."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Final, cast

import pytest
import yaml
from integrity.served_project import ServedProject, staged

from .random_workspaces import Dump, Fact, Json, RandomWorkspace, dump

SEEDS: Final = 200
EVERY_DAY: Final = 20
DONE: Final = 0
PARTLY: Final = 5
BLOCKED: Final = 4
LISTS: Final = ("members", "managers", "choices", "conditions")


@pytest.mark.sampled(gate=6)
@pytest.mark.parametrize(
    "seed", [*range(EVERY_DAY), *(pytest.param(seed, marks=pytest.mark.slow) for seed in range(EVERY_DAY, SEEDS))]
)
def test_losses_are_announced(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, seed: int) -> None:
    """Two dumps of the workspace differ only in what the plan names, resource by resource and item by item."""
    world = RandomWorkspace(seed)
    dialect = cast("dict[str, str | int]", world.options["dialect"])
    options = yaml.safe_dump(world.options)
    with staged(tmp_path, yaml.safe_dump(world.seed()), monkeypatch, options=options, dialect=dialect) as stage:
        stage.write(yaml.safe_dump(world.manifest()))
        before = dump(stage.sandbox)
        plan = _planned(stage)
        code = _applied(stage, plan)
        after = dump(stage.sandbox)
    if code == BLOCKED:
        assert after.facts == before.facts
        return
    # A service that refuses to change a field in use makes the run end in part, as the plan says.
    risky = any(call["may_be_refused"] for call in cast("list[Json]", plan["calls"]))
    assert code == DONE or (code == PARTLY and risky)
    said = _Announced(plan, before, after)
    assert [fact for fact in sorted(before.facts - after.facts) if not said.lost(fact)] == []
    assert [fact for fact in sorted(after.facts - before.facts) if not said.changed(fact)] == []
    robbed = len({fact.person for fact in _answers(before) - _answers(after)})
    assert said.guard("answers") == robbed if code == DONE else cast("int", said.guard("answers")) >= robbed


def test_most_of_them_lose_something() -> None:
    """The worlds are worth looking at: most manifests delete, narrow or shorten something."""
    assert (
        sum("groups" in cast("Json", RandomWorkspace(seed).manifest()["absent"]) for seed in range(SEEDS)) > SEEDS // 2
    )


class _Announced:
    """What a plan says of resources, found by their name before it or after it."""

    def __init__(self, plan: Json, before: Dump, after: Dump) -> None:
        self._plan, self._before, self._after = plan, before, after
        changes = cast("list[Json]", plan["changes"])
        self._changes = {(str(one["kind"]), str(one["name"])): one for one in changes}
        fields = [field for one in changes for field in cast("list[Json]", one["fields"])]
        renamed = [field for field in fields if str(field["path"]).startswith("choices.")]
        self._renamed = {str(field["before"]): str(field["after"]) for field in renamed}

    def guard(self, name: str) -> object:
        """What a guard counts."""
        return next(one["total"] for one in cast("list[Json]", self._plan["guards"]) if one["name"] == name)

    def changed(self, fact: Fact) -> bool:
        """Whether the plan changes the resource at all."""
        return any(True for _ in self._of(fact))

    def lost(self, fact: Fact) -> bool:
        """Whether the plan says that this goes."""
        return any(self._goes(change, fact) for change in self._of(fact))

    def _of(self, fact: Fact) -> Iterator[Json]:
        names = {name for side in (self._before, self._after) for name in self._names(side, fact)}
        if fact.key == "answers":
            yield from self._of(Fact("user", fact.person, "", ""))
        yield from (self._changes[fact.kind, name] for name in names if (fact.kind, name) in self._changes)

    def _names(self, dump: Dump, fact: Fact) -> Iterator[str]:
        if fact.kind == "content_target":
            content, audience = (self._before.assigned | self._after.assigned)[fact.id]
            yield f"{content} -> {dump.audience(audience)}"
        elif (fact.kind, fact.id) in dump.names:
            yield dump.names[fact.kind, fact.id]

    def _goes(self, change: Json, fact: Fact) -> bool:
        if change["action"] in ("delete", "replace"):
            listed = cast("Json", change["before"]).get(fact.key)
            return fact.key not in ("members", "managers") or fact.item in cast("list[str]", listed)
        fields = cast("list[Json]", change["fields"])
        if fact.key not in (*LISTS, "answers"):
            return any(one["path"] == fact.key for one in fields)
        path = "choices" if fact.key == "answers" else fact.key
        gone = [item for one in fields if one["path"] == path for item in cast("list[object]", one["removed"])]
        return any(item in gone for item in self._forms(fact))

    def _forms(self, fact: Fact) -> Iterator[object]:
        """How a plan may write an item: with the names of before, or with those of after."""
        for side in (self._before, self._after):
            if fact.key == "conditions":
                field, choices = json.loads(fact.item)
                names = [side.choices.get(choice) for choice in choices]
                if ("custom_field", field) in side.names and None not in names:
                    for told in (names, [self._renamed.get(str(name), name) for name in names]):
                        yield {"field": side.names["custom_field", field], "choices": sorted(map(str, told))}
            else:
                yield side.choices.get(fact.item, fact.item)


def _answers(dump: Dump) -> set[Fact]:
    return {fact for fact in dump.facts if fact.key == "answers"}


def _planned(stage: ServedProject) -> Json:
    ran = stage("plan", "--out", str(stage.root / "plan.json"))
    assert ran.code == DONE, ran.err
    return cast("Json", json.loads((stage.root / "plan.json").read_text(encoding="utf-8")))


def _applied(stage: ServedProject, plan: Json) -> int:
    """Applies the saved plan with the consents that it asks for; what is foretold to be refused stops it."""
    asked = [str(one["allow"]) for one in cast("list[Json]", plan["guards"]) if one["tripped"]]
    allowed = [word for consent in asked for word in ("--allow", consent)]
    return stage("apply", str(stage.root / "plan.json"), *allowed).code
