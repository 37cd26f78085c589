"""What a rehearsal says of a plan comes true: the same calls end the same way, and leave the same workspace."""

from __future__ import annotations

import dataclasses
import json
import random
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import pytest
from hypothesis import event, given
from msgspec.structs import replace
from sampling import of_today
from wire.second_dialect import second_dialect

from laws.conftest import Open
from laws.hypothesis_profile import tried
from laws.random_manifests import RandomManifests, wishes
from laws.random_workspaces import Field, Group, RandomWorkspace
from laws.sandbox_project import SandboxProject, open_stage
from lmsconf.apply.rehearse import open_twin, rehearse_on
from lmsconf.apply.run import execute
from lmsconf.documents import snapshot_file
from lmsconf.documents.plan_file import dumps, loads, plan_digest
from lmsconf.kinds.custom_field.types import MOST_FIELDS
from lmsconf.model.calls import CallStatus
from lmsconf.model.outcomes import ApplyReport
from lmsconf.model.plan import Rehearsal, RehearsalOutcome
from lmsconf.model.snapshot import Snapshot

Both = tuple[RandomWorkspace, RandomManifests]


@pytest.mark.sampled
@pytest.mark.parametrize("second", [False, True], ids=["assumed", "second"])
def test_what_is_rehearsed_comes_true(opened: Open, second: bool) -> None:
    """Calls that the twin does are done, calls that it refuses are refused, and both end as the same workspace."""

    @tried(200)
    @given(wishes())
    def holds(both: Both) -> None:
        world, wish = both
        stage = opened((dataclasses.replace(world, dialect=second_dialect()) if second else world, wish)).one_by_one()
        before = stage.workspace.snapshot(manifests=stage.manifests())
        rehearsal, twin = rehearsed(stage, before)
        live = stage.plan()
        assert rehearsal.receipt.plan_digest == plan_digest(live)
        assert loads(dumps(replace(live, rehearsal=rehearsal))).rehearsal == rehearsal
        report = execute(stage.workspace, live, meta={}, made_from=stage.manifests())
        event(rehearsal.receipt.outcome)
        assert {one.call: one.status for one in rehearsal.failed} == not_done(report)
        assert (rehearsal.receipt.outcome is RehearsalOutcome.SUCCESS) is (report.exit == 0)
        assert twin == by_name(before, stage.workspace.snapshot(manifests=stage.manifests()))

    holds()


def rehearsed(stage: SandboxProject, before: Snapshot) -> tuple[Rehearsal, Any]:
    """A rehearsal, and what its twin holds at the end."""
    manifests, policy = stage.manifests(), stage.settings.policy
    plan = replace(stage.workspace.plan_offline(manifests, policy, before), offline=False)
    settings = replace(stage.settings, workspace=replace(stage.settings.workspace, url=before.url))
    with open_twin(before, settings, plan.created_at) as twin:
        rehearsal = rehearse_on(twin, plan, manifests, policy, before)
        return rehearsal, by_name(before, twin.workspace.snapshot(manifests=manifests))


def not_done(report: ApplyReport) -> Mapping[str, CallStatus]:
    """The calls of a run that were not done, and why."""
    return {one.call: one.status for one in report.outcomes if one.status is not CallStatus.DONE}


def by_name(before: Snapshot, after: Snapshot) -> Any:
    """All that a snapshot holds, where what was not there before goes by its name instead of its id."""
    known = set(_ids(json.loads(snapshot_file.dumps(before))))
    document = json.loads(snapshot_file.dumps(after))
    names = {id: f"new {name}" for id, name in _ids(document).items() if id not in known}
    return _named({**document, "taken_at": ""}, names)


def _ids(value: Any) -> dict[str, str]:
    if isinstance(value, list):
        return {id: name for one in value for id, name in _ids(one).items()}
    if not isinstance(value, dict):
        return {}
    own = {value["id"]: str(value.get("name", value["id"]))} if "id" in value else {}
    return own | {id: name for one in value.values() for id, name in _ids(one).items()}


def _named(value: Any, names: Mapping[str, str]) -> Any:
    if isinstance(value, dict):
        return {key: _named(item, names) for key, item in value.items()}
    if isinstance(value, list):
        return sorted((_named(item, names) for item in value), key=lambda one: json.dumps(one, sort_keys=True))
    return names.get(value, value) if isinstance(value, str) else value


# Refusals that the specification gives are foretold by a rehearsal: the same calls, with the same words.


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
