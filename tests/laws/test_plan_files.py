"""A plan file does what its plan does, wherever it is read; and what a rehearsal says comes true."""

import dataclasses
import json
import random
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, cast

import pytest
from hypothesis import event, example, given
from laws.conftest import Open
from laws.random_manifests import RandomManifests, wishes
from laws.random_workspaces import Field, Group, RandomWorkspace
from laws.sandbox_project import NOW, SandboxProject, document_of, open_stage, tried
from msgspec.structs import replace
from sampling import of_today
from wire.second_dialect import second_dialect

from lmsconf.apply.rehearse import open_twin, rehearse_on
from lmsconf.apply.run_plan import execute
from lmsconf.documents import snapshot_file
from lmsconf.documents.plan_file import dumps, loads, plan_digest
from lmsconf.kinds.custom_field.types import MOST_FIELDS
from lmsconf.model.calls import CallStatus
from lmsconf.model.outcomes import ApplyReport
from lmsconf.model.plan import Rehearsal, RehearsalOutcome
from lmsconf.model.snapshot import Snapshot
from lmsconf.sandbox.service import Sandbox
from lmsconf.workspace.fill_sandbox import fill_workspace

pytestmark = pytest.mark.sampled(day=4, gate=6)  # minutes in all

Both = tuple[RandomWorkspace, RandomManifests]


@tried(80)
@given(wishes())
def test_a_plan_file_does_what_the_plan_does(opened: Open, both: Both) -> None:
    """A saved plan loads as it was, but for people and hints, and applied it gives the same workspace, id for id."""
    stage = opened(both).one_by_one()
    plan = stage.plan()
    text = dumps(plan)
    unnamed = replace(plan.effects, rows=None, unknown=())
    assert loads(text) == replace(plan, renames=(), effects=unnamed)
    assert dumps(loads(text)) == text
    if plan.calls:
        stage.apply(plan)
        from_memory = stage.look()
        again = opened(both).one_by_one()
        again.apply(loads(text))
        assert again.look() == from_memory


@tried(80)
@given(wishes())
def test_a_snapshot_plans_as_the_workspace_does(opened: Open, both: Both) -> None:
    """A saved snapshot loads as it was, and the plan against it is the live one, except that it is offline."""
    stage = opened(both)
    snapshot = stage.workspace.snapshot()
    kept = snapshot_file.loads(snapshot_file.dumps(snapshot))
    assert kept == snapshot
    offline = stage.workspace.plan_offline(stage.manifests(), stage.settings.policy, kept)
    assert offline.offline
    seen, live = document_of(replace(offline, offline=False)), document_of(stage.plan())
    # A live plan reads no more than it needs, so it may know less of what nobody manages, and of how much there is.
    assert _addresses(live.pop("unmanaged")) <= _addresses(seen.pop("unmanaged"))
    for document in (live, seen):
        document.pop("predicted_members", None)  # of the groups in effects, which are compared below
    effects = [document.pop("effects") for document in (live, seen)]
    known = effects[1]["basis"] != "unknown"
    measures = [_taken(document.pop("measures")) for document in (live, seen)]
    for taken in () if known else measures:
        taken[:] = [one for one in taken if one["guard"] not in ("people", "mandatory")]
    assert measures[0] == measures[1]
    assert not known or _counted(effects[0]) == _counted(effects[1])
    assert {key for key in live if seen[key] != live[key]} <= {"seal", *(() if known else ("guards", "summary"))}


def _counted(effects: Any) -> Any:
    """Effects without what a snapshot lacks: members of smart groups, which say how sure others are, and results."""
    contents = [{**one, "progress": None, "certificates_expiring": None} for one in effects["contents"]]
    return {**effects, "contents": contents, "requests": 0, "calibration": None, "reasons": None}


@tried(200)
@given(wishes())
def test_a_plan_that_looks_few_people_up_is_the_one_that_lists_all(opened: Open, both: Both) -> None:
    """With a page for each person, people in lists are looked up wherever that is enough, and nothing else changes."""
    world, wish = both
    stage = opened((dataclasses.replace(world, dialect={**world.dialect, "paging.limit": 1}), wish))
    whole = stage.workspace.plan_offline(stage.manifests(), stage.settings.policy, stage.workspace.snapshot())
    live = stage.plan()
    assert plan_digest(replace(whole, offline=False)) == plan_digest(live)
    assert {(one.code, one.address) for one in live.all_problems} == {
        (one.code, one.address) for one in whole.all_problems
    }


def _taken(measures: object) -> list[dict[str, object]]:
    """What the guards count, without the number of assignments that were read."""
    rows = cast("list[dict[str, object]]", measures)
    return [{**row, "size": None} if row["of"] == "all assignments" else row for row in rows]


def _addresses(unmanaged: object) -> set[str]:
    return {address for group in cast("list[dict[str, list[str]]]", unmanaged) for address in group["addresses"]}


# A snapshot that is loaded into a sandbox makes a workspace that reads as the one that it was taken of.


@pytest.mark.parametrize("second", [False, True], ids=["assumed", "second"])
def test_a_twin_reads_as_the_workspace(opened: Open, second: bool) -> None:
    """What a snapshot holds is in the twin, by the same ids, whatever the dialect."""

    @tried(200)
    @given(wishes())
    def holds(both: Both) -> None:
        world, wish = both
        stage = opened((dataclasses.replace(world, dialect=second_dialect()) if second else world, wish))
        text = snapshot_file.dumps(stage.workspace.snapshot(manifests=stage.manifests()))
        twin = Sandbox(spec=stage.sandbox.spec, clock=lambda: NOW)
        try:
            with twin.store.write_transaction() as repository:
                fill_workspace(repository, snapshot_file.loads(text), spec=twin.spec)
            again = stage.seen_through(twin).workspace.snapshot(manifests=stage.manifests())
            assert snapshot_file.dumps(again) == text
        finally:
            twin.close_workspace()

    holds()


# What a rehearsal says of a plan comes true: the same calls end the same way, and leave the same workspace.


WINDOW: Final = {"mandatory": False, "visible_from": "2024-02-29T00:00:00Z"}
LOCAL_TIMES: Final = RandomWorkspace(
    people={"anna@x.example": "p1"},
    contents={"c0": "Intro"},
    targets=[("Intro", {"user": "anna@x.example"}, WINDOW)],
    dialect={"content-targets.time-format": "iso-local"},
)


@pytest.mark.sampled(day=20, gate=6)
@pytest.mark.parametrize("second", [False, True], ids=["assumed", "second"])
def test_what_is_rehearsed_comes_true(opened: Open, second: bool) -> None:
    """Calls that the twin does are done, calls that it refuses are refused, and both end as the same workspace."""

    @tried(200)
    @given(wishes())
    @example((LOCAL_TIMES, RandomManifests()))
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
    with open_twin(before, settings, plan.created_at) as (service, twin):
        rehearsal = rehearse_on(service, twin, plan, manifests, policy, before)
        return rehearsal, by_name(before, twin.snapshot(manifests=manifests))


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
