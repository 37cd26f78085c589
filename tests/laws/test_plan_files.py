"""What holds for every plan that is kept: its file and a snapshot's file lose nothing on the way."""

from __future__ import annotations

import dataclasses
import json
from typing import Any, cast

import pytest
from hypothesis import given
from msgspec.structs import replace
from wire.second_dialect import second_dialect

from laws.conftest import Open
from laws.hypothesis_profile import tried
from laws.random_manifests import RandomManifests, wishes
from laws.random_workspaces import RandomWorkspace
from laws.sandbox_project import NOW, document_of
from lmsconf.documents import snapshot_file
from lmsconf.documents.plan_file import dumps, loads, plan_digest
from lmsconf.sandbox.seed import fill_workspace
from lmsconf.sandbox.service import Sandbox

Both = tuple[RandomWorkspace, RandomManifests]


@tried(80)
@given(wishes())
def test_a_plan_file_does_what_the_plan_does(opened: Open, both: Both) -> None:
    """A saved plan loads as it was, and applied it gives the same workspace, id for id."""
    stage = opened(both).one_by_one()
    plan = stage.plan()
    text = dumps(plan)
    assert loads(text) == plan
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
                fill_workspace(repository, json.loads(text), spec=twin.spec)
            again = stage.seen_through(twin).workspace.snapshot(manifests=stage.manifests())
            assert snapshot_file.dumps(again) == text
        finally:
            twin.close_workspace()

    holds()
