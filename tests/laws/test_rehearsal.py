"""What a rehearsal says of a plan comes true: the same calls end the same way, and leave the same workspace."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Mapping
from typing import Any

import pytest
from hypothesis import event, given
from msgspec.structs import replace
from wire.second_dialect import second_dialect

from laws.conftest import Open
from laws.hypothesis_profile import tried
from laws.random_manifests import RandomManifests, wishes
from laws.random_workspaces import RandomWorkspace
from laws.sandbox_project import SandboxProject
from lmsconf.apply.rehearse import open_twin, rehearse_on
from lmsconf.apply.run import execute
from lmsconf.documents import snapshot_file
from lmsconf.documents.plan_file import dumps, loads, plan_digest
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
