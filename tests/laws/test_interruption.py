"""What holds for every run that goes wrong: run again, and it converges with no duplicates."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest
from hypothesis import assume, event, given
from hypothesis import strategies as st
from msgspec.structs import replace

from laws.hypothesis_profile import tried
from laws.random_manifests import RandomManifests, wishes
from laws.random_workspaces import RandomWorkspace
from laws.sandbox_project import Raw, open_stage
from lmsconf.model.calls import CallStatus
from lmsconf.sandbox.faults import Fault, FaultScript

MISHAPS = st.sampled_from(
    [
        Fault(status=500),
        Fault(status=403),
        Fault(status=401),
        Fault(status=409),
        Fault(status=503),
        Fault(status=503, times=2, headers={"retry-after": "0"}),
        Fault(cut=True),
        Fault(lose_answer=True),
    ]
)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("interruption")


@tried(80)
@given(wishes(), MISHAPS, st.integers(0, 60))
def test_a_run_cut_short_is_finished_by_the_next(
    folder: Path, both: tuple[RandomWorkspace, RandomManifests], mishap: Fault, place: int
) -> None:
    """Whichever call is refused, cut, or done without an answer: the next run ends where the first one would have."""
    stage = open_stage(folder, *both)
    plan = stage.plan()
    assume(plan.calls and not any(call.may_be_refused for call in plan.calls))
    stage.apply(plan)
    wanted = _shape(stage.look())
    stage.sandbox.close_workspace()

    struck = plan.calls[place % len(plan.calls)]
    earlier = [call for call in plan.calls[: place % len(plan.calls)] if call.operation == struck.operation]
    fault = replace(mishap, operation=struck.operation, after=len(earlier))
    stage = open_stage(folder, *both, faults=FaultScript(fault))
    report = stage.apply(stage.plan())
    event("failed" if any(one.status is CallStatus.FAILED for one in report.outcomes) else "recovered")
    again = stage.plan()
    if again.calls:
        assert stage.apply(again).converged is True
    assert stage.plan().changes == ()
    assert _shape(stage.look()) == wanted
    stage.sandbox.close_workspace()


def _shape(raw: Raw) -> Counter[tuple[str, object]]:
    """How often each name is live in each kind; how many assignments there are."""
    return Counter((kind, said.get("name")) for (kind, _), said in raw.items())
