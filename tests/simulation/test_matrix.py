"""Every call of every reference apply, struck by every kind of mishap."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from .mishaps import KILLED_UNRECORDED, KINDS
from .references import REFERENCES
from .scene import scene
from .tally import Schedule, ways

Played = Callable[[list[Schedule]], None]


@pytest.mark.parametrize("kind", [*KINDS, KILLED_UNRECORDED])
@pytest.mark.parametrize("reference", REFERENCES)
def test_whatever_strikes_one_call_the_next_runs_converge(reference: str, kind: str, played: Played) -> None:
    """Wherever it strikes: run again, and nothing is lost, doubled, or touched that no manifest names."""
    calls = range(1, scene(reference).calls + 1)
    played([Schedule(reference, way, call) for way in ways(kind) for call in calls])


def test_the_readme_tells_how_many_there_are() -> None:
    """Its number of calls, kinds and schedules is the one that is played."""
    calls, kinds = sum(scene(name).calls for name in REFERENCES), len(KINDS) + 1
    readme = (Path(__file__).parent.parent.parent / "README.md").read_text(encoding="utf-8")
    assert f"the {calls} calls of six applies with {kinds} kinds of mishap" in readme
    assert f"All {calls * kinds:,} schedules converge" in readme
