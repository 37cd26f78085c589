"""A plan file does what its plan does, wherever it is read; and what a rehearsal says comes true."""

import json
from contextlib import closing
from dataclasses import replace as with_values
from typing import Any, Final

import pytest
from hypothesis import event, example, given
from hypothesis import strategies as st
from laws.conftest import Both, Open
from laws.random_manifests import RandomManifests, wishes
from laws.random_workspaces import Field, Group, RandomWorkspace
from laws.sandbox_project import NOW, SandboxProject, document_of, in_names, tried
from msgspec.structs import replace
from wire.second_dialect import second_dialect

from lmsconf.apply.rehearse import open_twin, rehearse_on
from lmsconf.apply.run_plan import execute
from lmsconf.documents import snapshot_file
from lmsconf.documents.plan_file import dumps, loads, plan_digest
from lmsconf.kinds.custom_field.types import MOST_FIELDS
from lmsconf.model.calls import CallStatus
from lmsconf.model.outcomes import CallOutcome
from lmsconf.model.plan import Rehearsal, RehearsalOutcome
from lmsconf.model.snapshot import Snapshot
from lmsconf.sandbox.service import Sandbox
from lmsconf.workspace.fill_sandbox import fill_workspace

pytestmark = pytest.mark.sampled(day=4, gate=6)  # minutes in all

every_dialect = pytest.mark.parametrize("dialect", [{}, second_dialect()], ids=["assumed", "second"])


def with_dialect(both: Both, dialect: dict[str, str | int]) -> Both:
    """The same workspace, of which that is so."""
    world, wish = both
    return with_values(world, dialect={**world.dialect, **dialect}), wish


@tried(80)
@given(wishes())
def test_a_plan_file_does_what_the_plan_does(opened: Open, both: Both) -> None:
    """A saved plan loads as it was, but for people and hints, and applied it gives the same workspace, id for id."""
    stage = opened(both).one_by_one()
    plan = stage.plan()
    text = dumps(plan)
    assert loads(text) == replace(plan, renames=(), effects=replace(plan.effects, rows=None, unknown=()))
    assert dumps(loads(text)) == text
    if plan.calls:
        stage.apply(plan)
        from_memory = stage.look()
        again = opened(both).one_by_one()
        again.apply(loads(text))
        assert again.look() == from_memory


@tried(200)
@given(wishes(), st.sampled_from([{}, {"paging.limit": 1}]))
def test_a_snapshot_plans_as_the_workspace_does(opened: Open, both: Both, dialect: dict[str, str | int]) -> None:
    """A saved snapshot loads as it was, and the plan against it is the live one, except that it is offline.

    With a page for each person, people in lists are looked up wherever that is enough, and nothing else changes.
    """
    stage = opened(with_dialect(both, dialect))
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
    measures = [_taken(document.pop("measures"), known=known) for document in (live, seen)]
    assert measures[0] == measures[1]
    assert not known or _counted(effects[0]) == _counted(effects[1])
    assert {key for key in live if seen[key] != live[key]} <= {"seal", *(() if known else ("guards", "summary"))}


def _counted(effects: Any) -> Any:
    """Effects without what a snapshot lacks: members of smart groups, which say how sure others are, and results."""
    contents = [{**one, "progress": None, "certificates_expiring": None} for one in effects["contents"]]
    return {**effects, "contents": contents, "requests": 0, "calibration": None, "reasons": None}


def _taken(measures: list[dict[str, Any]], *, known: bool) -> list[dict[str, Any]]:
    """What the guards count, without the number of assignments that were read, and of people if that is not known."""
    counted = [one for one in measures if known or one["guard"] not in ("people", "mandatory")]
    return [{**one, "size": None} if one["of"] == "all assignments" else one for one in counted]


def _addresses(unmanaged: list[dict[str, list[str]]]) -> set[str]:
    return {address for group in unmanaged for address in group["addresses"]}


# A snapshot that is loaded into a sandbox makes a workspace that reads as the one that it was taken of.


@every_dialect
@tried(200)
@given(both=wishes())
def test_a_twin_reads_as_the_workspace(opened: Open, dialect: dict[str, str | int], both: Both) -> None:
    """What a snapshot holds is in the twin, by the same ids, whatever the dialect."""
    stage = opened(with_dialect(both, dialect))
    text = snapshot_file.dumps(stage.workspace.snapshot(manifests=stage.manifests()))
    twin = Sandbox(spec=stage.sandbox.spec, clock=lambda: NOW)
    with closing(twin.store):
        with twin.store.write_transaction() as repository:
            fill_workspace(repository, snapshot_file.loads(text), spec=twin.spec)
        assert snapshot_file.dumps(stage.seen_through(twin).workspace.snapshot(manifests=stage.manifests())) == text


# What a rehearsal says of a plan comes true: the same calls end the same way, and leave the same workspace.


WINDOW: Final = {"mandatory": False, "visible_from": "2024-02-29T00:00:00Z"}
LOCAL_TIMES: Final = RandomWorkspace(
    people={"anna@x.example": "p1"},
    contents={"c0": "Intro"},
    targets=[("Intro", {"user": "anna@x.example"}, WINDOW)],
    dialect={"content-targets.time-format": "iso-local"},
)


@pytest.mark.sampled(day=20, gate=6)
@every_dialect
@tried(200)
@given(both=wishes())
@example(both=(LOCAL_TIMES, RandomManifests()))
def test_what_is_rehearsed_comes_true(opened: Open, dialect: dict[str, str | int], both: Both) -> None:
    """Calls that the twin does are done, calls that it refuses are refused, and both end as the same workspace."""
    rehearsal, _ = comes_true(opened(with_dialect(both, dialect)).one_by_one())
    event(rehearsal.receipt.outcome)


def comes_true(stage: SandboxProject) -> tuple[Rehearsal, list[CallOutcome]]:
    """The rehearsal of a plan that is then carried out as was foretold, and the calls that are not done."""
    manifests, live = stage.manifests(), stage.plan()
    before = stage.workspace.snapshot(manifests=manifests)
    rehearsal, twin = rehearsed(stage, before)
    assert rehearsal.receipt.plan_digest == plan_digest(live)
    assert loads(dumps(replace(live, rehearsal=rehearsal))).rehearsal == rehearsal
    report = execute(stage.workspace, live, meta={}, made_from=manifests)
    left = [one for one in report.outcomes if one.status is not CallStatus.DONE]
    assert {one.call: one.status for one in rehearsal.failed} == {one.call: one.status for one in left}
    assert (rehearsal.receipt.outcome is RehearsalOutcome.SUCCESS) is (report.exit == 0)
    assert twin == by_name(before, stage.workspace.snapshot(manifests=manifests))
    return rehearsal, left


def rehearsed(stage: SandboxProject, before: Snapshot) -> tuple[Rehearsal, Any]:
    """A rehearsal, and what its twin holds at the end."""
    manifests, policy = stage.manifests(), stage.settings.policy
    plan = replace(stage.workspace.plan_offline(manifests, policy, before), offline=False)
    settings = replace(stage.settings, workspace=replace(stage.settings.workspace, url=before.url))
    with open_twin(before, settings, plan.created_at) as (service, twin):
        rehearsal = rehearse_on(service, twin, plan, manifests, policy, before)
        return rehearsal, by_name(before, twin.snapshot(manifests=manifests))


def by_name(before: Snapshot, after: Snapshot) -> Any:
    """All that a snapshot holds, where what was not there before goes by its name instead of its id."""
    known = _names(before).keys()
    names = {id: f"new {name}" for id, name in _names(after).items() if id not in known}
    return in_names(json.loads(snapshot_file.dumps(after)), names, {"taken_at"})


def _names(snapshot: Snapshot) -> dict[str, str]:
    """Id → name of everything in a snapshot that has an id."""
    found: dict[str, str] = {}

    def note(row: dict[str, str]) -> dict[str, str]:
        if "id" in row:
            found[row["id"]] = row.get("name", row["id"])
        return row

    json.loads(snapshot_file.dumps(snapshot), object_hook=note)
    return found


# Refusals that the specification gives are foretold by a rehearsal: the same calls, with the same words.


_FIELDS: Final = [f"Field {number}" for number in range(MOST_FIELDS)]
# Ten fields, of which the first two are in use by smart groups.
FULL: Final = RandomWorkspace(
    people={f"p{number}@x.example": f"p{number}" for number in range(6)},
    admins={"p0@x.example", "p1@x.example"},
    fields=[Field(id=name, name=name, type="CHOICE", choices=[(f"{name} A", "A")]) for name in _FIELDS],
    smart_groups=[
        Group(id=f"in {name}", name=f"In {name}", conditions=[{"field": name, "choices": ["A"]}])
        for name in _FIELDS[:2]
    ],
    groups=[Group(id="g1", name="Group", members=["p0@x.example", "p2@x.example", "p4@x.example"])],
    dialect={"custom-fields.in-use": "condition"},
)
MEMBERS: Final = [{"name": "Group", "members": ["p3@x.example", "p4@x.example"]}]
REFUSALS: Final = {
    "a field in use is deleted": RandomManifests({"groups": MEMBERS}, {"custom_fields": [{"name": "Field 0"}]}),
    "a field in use is changed": RandomManifests(
        {"groups": MEMBERS, "custom_fields": [{"name": "Field 1", "description": "New words"}]}
    ),
    "an eleventh field": RandomManifests({"groups": MEMBERS, "custom_fields": [{"name": "New", "type": "TEXT"}]}),
    "an administrator is archived": RandomManifests(
        {"groups": MEMBERS, "users": [{"email": "p1@x.example", "archived": True}]}
    ),
}


@every_dialect
@pytest.mark.parametrize("refusal", REFUSALS)
def test_refusals_are_foretold(opened: Open, refusal: str, dialect: dict[str, str | int]) -> None:
    """What the service refuses, the twin refuses too, for the same reason and with the same hint."""
    world, wish = with_dialect((FULL, REFUSALS[refusal]), {**dialect, **FULL.dialect})
    rehearsal, left = comes_true(opened((world, wish)).one_by_one())
    assert rehearsal.receipt.outcome is RehearsalOutcome.REFUSED
    assert any(call.status is CallStatus.FAILED for call in rehearsal.failed)
    foretold, live = ([(one.call, one.reason, one.hint) for one in calls] for calls in (rehearsal.failed, left))
    assert foretold == live
