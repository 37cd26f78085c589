"""What holds for every workspace and every manifest: apply settles, and what no manifest declares stays as it is."""

from __future__ import annotations

from typing import cast

from hypothesis import event, given

from laws.conftest import Open
from laws.hypothesis_profile import tried
from laws.random_manifests import ALL, RandomManifests, wishes
from laws.random_workspaces import RandomWorkspace
from laws.sandbox_project import Raw, SandboxProject
from lmsconf.apply.replanning import refuse_stale_plan
from lmsconf.errors import ExitCode
from lmsconf.model.calls import CallStatus
from lmsconf.model.plan import Plan

Both = tuple[RandomWorkspace, RandomManifests]


@tried(500)
@given(wishes())
def test_what_is_applied_settles_and_touches_nothing_else(opened: Open, both: Both) -> None:
    """After an apply the next plan is empty, and all that no manifest declares is byte for byte what it was."""
    stage = opened(both)
    before = stage.look()
    plan = stage.plan()
    if any(call.may_be_refused for call in plan.calls):
        _fails_only_as_foretold(stage, plan)
    else:
        _settles(stage, plan)
    assert_untouched(before, stage.look(), both[1])


def _settles(stage: SandboxProject, plan: Plan) -> None:
    event("applied" if plan.calls else "nothing to do")
    if plan.calls:
        report = stage.apply(plan)
        assert [str(one) for one in report.outcomes if one.status is not CallStatus.DONE] == []
        assert (report.converged, report.exit, report.problems) == (True, ExitCode.OK, ()), report.residue
    again = stage.plan()
    assert (again.changes, again.calls) == ((), ())
    assert not any(guard.tripped for guard in again.guards)


def _fails_only_as_foretold(stage: SandboxProject, plan: Plan) -> None:
    """A service that refuses what the plan said it may refuse makes nothing else fail."""
    event("refused")
    report = stage.apply(plan)
    risky = {call.id for call in plan.calls if call.may_be_refused}
    assert {one.call for one in report.outcomes if one.status is CallStatus.FAILED} <= risky
    left = {change.address for change in stage.plan().changes}
    assert left <= {one.address for one in report.outcomes if one.status is not CallStatus.DONE}


def assert_untouched(before: Raw, after: Raw, wish: RandomManifests) -> None:
    """Things that the wish does not speak of are there as they were, and so are the keys that it leaves out."""
    for (kind, id), said in before.items():
        spoken = wish.spoken.get((kind, id), frozenset())
        if spoken == ALL or (kind == "content_target" and _goes_along(id, before, wish)):
            continue
        now = after[kind, id]
        for key, value in said.items():
            if f"{key}-" in spoken:
                named = wish.named[kind, id, key]
                if key == "choices":
                    named |= _ids(now[key]) - _ids(value)  # new ones are of those that were named
                assert _others(value, named) == _others(now[key], named), (kind, id, key)
            elif key not in spoken:
                assert now[key] == value, (kind, id, key)
        if not spoken:
            assert now.keys() == said.keys()


def _others(value: object, named: frozenset[str]) -> list[object]:
    """What a list holds beside those that are named."""
    return [one for one in cast("list[object]", value) if _id(one) not in named]


def _ids(value: object) -> frozenset[str]:
    return frozenset(map(_id, cast("list[object]", value)))


def _id(one: object) -> str:
    return str(one["choiceId"] if isinstance(one, dict) else one)


def _goes_along(id: str, before: Raw, wish: RandomManifests) -> bool:
    """Whether an assignment goes because its group does, or because lmsconf owns it."""
    content, _, audience = id.partition("/")
    if any(wish.spoken.get((kind, audience)) == ALL for kind in ("group", "smart_group")):
        return True
    owned = wish.ownership.get("content_target")
    speaks = any(kind == "content_target" and one.startswith(f"{content}/") for kind, one in wish.spoken)
    return owned is not None and ("all" in owned or speaks)


@tried(60)
@given(wishes())
def test_planning_writes_nothing(opened: Open, both: Both) -> None:
    """A plan, and the question whether one is still fresh, send not one writing request."""
    stage = opened(both)
    plan = stage.plan()
    if plan.calls:
        refuse_stale_plan(stage.workspace, stage.consented(plan))
    assert stage.sandbox.log
    assert stage.writes() == 0
