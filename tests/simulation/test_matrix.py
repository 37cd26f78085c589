"""Every call of every reference apply, struck by every kind of mishap; every sixth by those that are like another."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from sampling import schedules_of_today

from .reference_apply import scene
from .references import REFERENCES
from .request_faults import KILLED_UNRECORDED, KINDS, LIKE_ANOTHER
from .results import WHOLE, Schedule, ways

Played = Callable[[list[Schedule]], None]


def struck(kind: str, calls: int) -> range:
    """The numbers of the calls that a kind strikes."""
    return range(1, calls + 1, 6 if kind in LIKE_ANOTHER and not WHOLE else 1)


@pytest.mark.parametrize("kind", [*KINDS, KILLED_UNRECORDED])
@pytest.mark.parametrize("reference", REFERENCES)
def test_whatever_strikes_one_call_the_next_runs_converge(reference: str, kind: str, played: Played) -> None:
    """Wherever it strikes: run again, and nothing is lost, doubled, or touched that no manifest names."""
    calls = struck(kind, scene(reference).calls)
    schedules = [Schedule(reference, way, call) for way in ways(kind) for call in calls]
    played(schedules_of_today(schedules, f"{reference}-{kind}"))


def test_the_developers_guide_says_how_many_there_are() -> None:
    """Its number of calls, kinds and schedules is the one that is played."""
    counts = [scene(name).calls for name in REFERENCES]
    kinds = [*KINDS, KILLED_UNRECORDED]
    played = sum(len(range(1, calls + 1, 6 if kind in LIKE_ANOTHER else 1)) for kind in kinds for calls in counts)
    page = (Path(__file__).parent.parent.parent / "CONTRIBUTING.md").read_text(encoding="utf-8")
    often = len(kinds) - len(LIKE_ANOTHER)
    assert f"each of the {sum(counts)} calls of six applies with {often} kinds of mishap" in page
    assert f"every sixth with {len(LIKE_ANOTHER)} more" in page
    assert f"All {played:,} schedules converge" in page
