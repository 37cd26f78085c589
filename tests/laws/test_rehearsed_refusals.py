"""Refusals that the specification gives are foretold by a rehearsal: the same calls, with the same words."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from sampling import of_today
from wire.second_dialect import second_dialect

from laws.random_manifests import RandomManifests
from laws.random_workspaces import Field, Group, RandomWorkspace
from laws.sandbox_project import open_stage
from laws.test_rehearsal import by_name, rehearsed
from lmsconf.apply.run import execute
from lmsconf.kinds.custom_field.types import MOST_FIELDS
from lmsconf.model.calls import CallStatus
from lmsconf.model.plan import RehearsalOutcome

Entry = dict[str, Any]
CASES: Final = 50


@dataclass(slots=True, kw_only=True)
class WorkspaceWithAdmins(RandomWorkspace):
    """A workspace in which some people are administrators."""

    admins: set[str] = field(default_factory=set)

    def seed(self) -> dict[str, object]:
        values: Any = RandomWorkspace.seed(self)
        for person in values["people"]:
            person["admin"] = person["email"] in self.admins
        return values


def workspace(dice: random.Random, fields: int, dialect: dict[str, str | int]) -> WorkspaceWithAdmins:
    """Fields, of which the first two are in use by smart groups, and six people, two of them administrators."""
    people = {f"p{n}@x.example": f"p{n}" for n in range(1, 7)}
    choices = [
        Field(
            id=f"f-{n}", name=f"Field {n}", type="CHOICE", choices=[(f"ch-{n}-1", "A"), (f"ch-{n}-2", "B")], details={}
        )
        for n in range(1, fields + 1)
    ]
    smart = [
        Group(id=f"s{n}", name=f"Smart {n}", managers=[], conditions=[{"field": f"Field {n}", "choices": ["A"]}])
        for n in (1, 2)
    ]
    return WorkspaceWithAdmins(
        people=people,
        fields=choices,
        smart_groups=smart,
        groups=[Group(id="g1", name="Group 1", managers=[], members=dice.sample(sorted(people), 3))],
        admins=set(dice.sample(sorted(people), 2)),
        dialect={**dialect, "custom-fields.in-use": "condition"},
    )


def _delete_in_use(dice: random.Random, world: WorkspaceWithAdmins, wish: RandomManifests) -> None:
    wish.absent["custom_fields"] = [{"name": f"Field {dice.choice((1, 2))}"}]


def _change_in_use(dice: random.Random, world: WorkspaceWithAdmins, wish: RandomManifests) -> None:
    wish.sections["custom_fields"] = [{"name": f"Field {dice.choice((1, 2))}", "description": "New words"}]


def _one_field_more(dice: random.Random, world: WorkspaceWithAdmins, wish: RandomManifests) -> None:
    new: list[Entry] = [{"name": f"New {n}", "type": "TEXT"} for n in range(dice.choice((1, 2)))]
    wish.sections["custom_fields"] = new


def _archived_admin(dice: random.Random, world: WorkspaceWithAdmins, wish: RandomManifests) -> None:
    archived = dice.choice(sorted(world.admins))
    wish.sections["users"] = [{"email": archived, "archived": True}]


REFUSALS: Final[tuple[tuple[int, Callable[..., None]], ...]] = (
    (4, _delete_in_use),
    (4, _change_in_use),
    (MOST_FIELDS, _one_field_more),
    (4, _archived_admin),
)


def test_refusals_are_foretold(tmp_path: Path) -> None:
    """A field in use, an eleventh field, an archived administrator: what the service refuses, the twin refuses too."""
    for number in of_today(range(CASES)):
        dice = random.Random(number)  # noqa: S311  the same cases in each run
        fields, refusal = REFUSALS[number % len(REFUSALS)]
        world = workspace(dice, fields, second_dialect() if number % 3 == 2 else {})
        wish = RandomManifests(
            sections={"groups": [{"name": "Group 1", "members": dice.sample(sorted(world.people), 2)}]}
        )
        refusal(dice, world, wish)
        stage = open_stage(tmp_path, world, wish).one_by_one()
        try:
            before = stage.workspace.snapshot(manifests=stage.manifests())
            rehearsal, twin = rehearsed(stage, before)
            report = execute(stage.workspace, stage.plan(), meta={}, made_from=stage.manifests())
            assert rehearsal.receipt.outcome is RehearsalOutcome.REFUSED, number
            assert any(call.status is CallStatus.FAILED for call in rehearsal.failed)
            refused = [(one.call, one.status, one.reason, one.hint) for one in rehearsal.failed]
            live = [one for one in report.outcomes if one.status is not CallStatus.DONE]
            assert refused == [(one.call, one.status, one.reason, one.hint) for one in live]
            assert twin == by_name(before, stage.workspace.snapshot(manifests=stage.manifests()))
        finally:
            stage.sandbox.close_workspace()
