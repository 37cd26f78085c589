"""What holds for every run that is undone: all is as it was but for what the plan announced, and no more is touched."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any, cast

import pytest
from hypothesis import assume, event, given
from hypothesis import strategies as st
from laws.conftest import Open
from laws.hand_edits import EDITS, HandEdits
from laws.random_manifests import RandomManifests, answered_wishes
from laws.random_workspaces import RandomWorkspace
from laws.sandbox_project import Raw, SandboxProject, open_stage, tried
from simulation.request_faults import Killed, MortalJournal

from lmsconf.apply.replanning import refuse_stale_plan
from lmsconf.apply.run_plan import execute
from lmsconf.documents.journal.journal_reader import Retention, find_run
from lmsconf.model.calls import CallStatus
from lmsconf.model.names import normalize_name
from lmsconf.model.outcomes import ApplyReport
from lmsconf.model.plan import Change, Plan, UndoLevel
from lmsconf.planner.undo.kept_state import pre_image
from lmsconf.sandbox.faults import Fault, FaultScript
from lmsconf.workspace.plan_with_base import load_run, plan_undo

pytestmark = pytest.mark.sampled(day=4, gate=6)  # minutes in all

Both = tuple[RandomWorkspace, RandomManifests]


def kept_run(stage: SandboxProject, plan: Plan, dies_at: int | None = None) -> ApplyReport | None:
    """Applies a plan as the command does: with a journal, and what was before beside it.

    dies_at: the call after which the process dies, before its outcome is recorded.
    """
    plan = stage.consented(plan)
    live = refuse_stale_plan(stage.workspace, plan)
    before, retention = pre_image(plan, live), Retention(keep=50, settle=0)
    with MortalJournal.begin(stage.folder, plan, meta={}, retention=retention, pre_image=before) as journal:
        assert isinstance(journal, MortalJournal)
        journal.dies_at = dies_at
        try:
            return execute(stage.workspace, plan, meta={}, journal=journal)
        except Killed:
            return None


_IDS_ALONE = "another id|other ids|new id"
"""In the reason of a change that is undone but for ids, which these laws do not compare."""


def assert_done(report: ApplyReport | None) -> None:
    assert report is not None
    failed = [(one.call, one.operation, one.reason) for one in report.outcomes if one.status is not CallStatus.DONE]
    assert report.exit == 0, [*failed, *report.residue, *report.problems]


class LaterFaults(FaultScript):
    """A fault script that is written once the undo is planned."""

    script = FaultScript()

    def take_fault(self, operation: str, *, writes: bool = False) -> Fault | None:
        return self.script.take_fault(operation, writes=writes)


def undo_of(stage: SandboxProject, name: str) -> Plan:
    run = load_run(stage.workspace, find_run(stage.folder, name))
    return plan_undo(stage.workspace, run, stage.settings.policy)


def undo_of_latest(stage: SandboxProject) -> Plan:
    return undo_of(stage, "latest")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("undo")


@pytest.mark.sampled(day=20, gate=6)
@tried(200)
@given(answered_wishes())
def test_an_undone_run_leaves_only_what_the_plan_announced(opened: Open, both: Both) -> None:
    """Applied and undone, the workspace holds what it held, but for ids and what the plan said cannot come back."""
    stage = opened(both)
    plan = stage.plan()
    assume(plan.calls and not any(call.may_be_refused for call in plan.calls))
    before = shape(stage.look())
    assert_done(kept_run(stage, plan))
    undo = undo_of_latest(stage)
    announced = [one for one in plan.changes if one.undo.level is not UndoLevel.FULL]
    told = {problem.address for problem in undo.problems if problem.code == "undo/conflict"}
    assert told <= {str(one.address) for one in announced}, [f"{one} {one.hint}" for one in undo.problems]
    if undo.calls:
        assume(not any(call.may_be_refused for call in undo.calls))
        assert_done(kept_run(stage, undo))
    # What comes back with another id is compared by name. Of the rest, the plan has named what stays as it is.
    excused = [one for one in announced if not re.search(_IDS_ALONE, str(one.undo.reason))]
    event("; ".join(sorted({f"{one.action} {one.undo.level} {one.undo.reason}"[:60] for one in excused})) or "whole")
    after, names = (
        shape(stage.look()),
        {json.dumps(name, ensure_ascii=False) for one in excused for name in _names(one)},
    )
    differing = [text for text in ((before - after) + (after - before)) if not any(name in text for name in names)]
    assert not differing, "\n".join(map(str, [*differing, *plan.changes, "UNDO", *undo.changes, *undo.problems]))


@pytest.mark.sampled(day=20, gate=6)
@tried(100)
@given(answered_wishes(), st.lists(st.tuples(st.sampled_from(EDITS), st.integers(0, 9), st.integers(0, 9)), max_size=4))
def test_what_others_have_done_since_is_left_alone(opened: Open, both: Both, edits: list[tuple[str, int, int]]) -> None:
    """Whatever is edited by hand between a run and its undo: the undo neither overwrites nor deletes it."""
    stage = opened(both)
    plan = stage.plan()
    assume(plan.calls and not any(call.may_be_refused for call in plan.calls))
    assert_done(kept_run(stage, plan))
    by_hand = HandEdits(stage)
    for kind, which, what in edits:
        by_hand.edit(kind, which, what)
    undo = undo_of_latest(stage)
    if undo.calls and not any(call.may_be_refused for call in undo.calls):
        assert_done(kept_run(stage, undo))
    by_hand.check(stage.look(), undo)


@pytest.mark.sampled(day=20, gate=6)
@tried(80)
@given(answered_wishes(), st.integers(0, 60))
def test_a_run_that_was_cut_short_is_undone_as_far_as_it_went(opened: Open, both: Both, place: int) -> None:
    """Whichever call the process dies after: what was done until then is undone, that call with it."""
    stage = opened(both).one_by_one()
    plan = stage.plan()
    assume(plan.calls and not any(call.may_be_refused for call in plan.calls))
    assume(all(one.undo.reason is None or re.search(_IDS_ALONE, one.undo.reason) for one in plan.changes))
    before = shape(stage.look())
    assert kept_run(stage, plan, place % len(plan.calls) + 1) is None
    undo = undo_of_latest(stage)
    if undo.calls:
        assume(not any(call.may_be_refused for call in undo.calls))
        assert_done(kept_run(stage, undo))
    after = shape(stage.look())
    assert after == before, "\n".join(
        map(str, ["", before - after, after - before, *plan.changes, "UNDO", *undo.changes, *undo.problems])
    )


@pytest.mark.slow
@tried(80)
@given(
    answered_wishes(), st.integers(0, 60), st.sampled_from([{}, {"status": 500}, {"cut": True}, {"lose_answer": True}])
)
def test_an_undo_that_is_cut_short_is_finished_by_the_next(
    folder: Path, both: Both, place: int, mishap: dict[str, Any]
) -> None:
    """Whichever call of an undo fails, is cut, or loses its answer: `--undo` of the run again ends at the same."""
    wanted: Counter[str] | None = None
    for fault in (None, mishap):
        faults = LaterFaults()
        stage = open_stage(folder, *both, faults=faults).one_by_one()
        plan = stage.plan()
        assume(plan.calls and not any(call.may_be_refused for call in plan.calls))
        assert_done(kept_run(stage, plan))
        name = find_run(stage.folder, "latest").name
        undo = undo_of(stage, name)
        assume(undo.calls and not any(call.may_be_refused for call in undo.calls))
        if fault:
            struck = undo.calls[place % len(undo.calls)]
            earlier = [call for call in undo.calls[: place % len(undo.calls)] if call.operation == struck.operation]
            faults.script = FaultScript(Fault(operation=struck.operation, after=len(earlier), **fault))
        kept_run(stage, undo, place % len(undo.calls) + 1 if fault == {} else None)
        again = undo_of(stage, name)
        if again.calls:
            assert fault is not None, [*undo.changes, "AGAIN", *again.changes, *again.problems]
            assert_done(kept_run(stage, again))
        assert undo_of(stage, name).calls == ()
        wanted = wanted or shape(stage.look())
        assert shape(stage.look()) == wanted, "\n".join(
            map(str, [*plan.changes, "UNDO", *undo.changes, "AGAIN", *again.changes, *again.problems])
        )
        stage.sandbox.close_workspace()


def _names(change: Change) -> Iterator[str]:
    """The names of a resource before and after a change, and that of an assignment's content."""
    for form in (change.before, change.after):
        if isinstance(form, dict):
            yield str(form.get("name", form.get("content")))


def shape(raw: Raw) -> Counter[str]:
    """The workspace with names for ids, and lists in order: how often each thing is there."""
    names = {id: normalize_name(str(said.get("name", said.get("email")))) for (_, id), said in raw.items()}
    for (kind, _), said in raw.items():
        for choice in cast("list[dict[str, Any]]", said.get("choices") or []) if kind == "custom_field" else []:
            names[str(choice["choiceId"])] = normalize_name(str(choice["name"]))
    return Counter(
        json.dumps([kind, _named(said, names)], sort_keys=True, ensure_ascii=False) for (kind, _), said in raw.items()
    )


_IDS = frozenset({"id", "customFieldId", "choiceId", "createdAt", "updatedAt", "updatedBy"})


def _named(value: object, names: dict[str, str]) -> object:
    if isinstance(value, dict):
        return {
            normalize_name(key): _named(item, names)
            for key, item in value.items()
            if (key not in _IDS or (key == "customFieldId" and "name" not in value)) and item not in (None, "", False)
        }
    if isinstance(value, list):
        return sorted((_named(item, names) for item in value), key=lambda item: json.dumps(item, sort_keys=True))
    return names.get(value, normalize_name(value)) if isinstance(value, str) else value
