"""Every call of every reference apply, struck by every kind of mishap; every sixth by those that are like another."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Final

import pytest
from sampling import PARTS, of_today, schedules_of_today

from lmsconf.apply.run import execute
from lmsconf.journal.journal_reader import read_runs
from lmsconf.model.recorded_run import CallState

from .reference_apply import alone, scene
from .references import REFERENCES
from .request_faults import (
    KEPT,
    KILLED_UNRECORDED,
    KINDS,
    LIKE_ANOTHER,
    Calm,
    Killed,
    MortalJournal,
    ScriptedFaults,
    at_call,
)
from .run_schedule import PAIRS, STORMS, WHOLE, Schedule, ways

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


# Two mishaps in one schedule, and storms in which any request may be struck. SIMULATION=all plays the whole sample.


_BATCHES: Final = 4
_PAIRS: Final = (3000 if WHOLE else 144) // len(REFERENCES) // _BATCHES
_STORMS: Final = (1008 if WHOLE else 48) // len(REFERENCES) // _BATCHES


def _batch(reference: str, kind: str, batch: int, size: int) -> list[Schedule]:
    those = range(batch * size, (batch + 1) * size)
    chosen = of_today(range(_BATCHES * size), 3 * PARTS, f"{reference}-{kind}")
    return [Schedule(reference, kind, number) for number in chosen if number in those]


@pytest.mark.parametrize("batch", range(_BATCHES))
@pytest.mark.parametrize("reference", REFERENCES)
def test_two_mishaps_come_to_the_same(reference: str, batch: int, played: Played) -> None:
    """Two mishaps anywhere in a run and the one after it: the workspace converges, or twins are named."""
    played(_batch(reference, PAIRS, batch, _PAIRS))


@pytest.mark.parametrize("batch", range(_BATCHES))
@pytest.mark.parametrize("reference", REFERENCES)
def test_a_storm_comes_to_the_same(reference: str, batch: int, played: Played) -> None:
    """A run in which up to every fifth request is struck by anything: calm runs converge, or twins are named."""
    played(_batch(reference, STORMS, batch, _STORMS))


# A process that dies at any of three places around a call leaves a journal that names that call, and no other.


@pytest.mark.parametrize("kind", ["killed-before", "killed-after", KILLED_UNRECORDED])
def test_the_journal_tells_which_call_was_in_flight(tmp_path: Path, kind: str) -> None:
    """Wherever the process dies: all calls before are done, the one is in flight, and the run has no end."""
    stage = scene("mixed")
    for number in range(1, stage.calls + 1, 4):
        root = tmp_path / str(number)
        root.mkdir()
        stage.reset(Calm() if kind == KILLED_UNRECORDED else ScriptedFaults({number: at_call(kind, number)}))
        with alone(), MortalJournal.begin(root, stage.plan, meta={}, retention=KEPT) as journal:
            assert isinstance(journal, MortalJournal)
            journal.dies_at = number if kind == KILLED_UNRECORDED else None
            with pytest.raises(Killed):
                execute(stage.workspace, stage.plan, meta={}, journal=journal)
        [run] = read_runs(root)
        states = [call.state for call in run.calls]
        assert states == [*[CallState.DONE] * (number - 1), CallState.IN_FLIGHT]
        assert run.ending is None
