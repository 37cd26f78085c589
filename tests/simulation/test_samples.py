"""Two mishaps in one schedule, and storms in which any request may be struck. SIMULATION=all plays the whole sample."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

import pytest
from sampling import of_today

from .references import REFERENCES
from .results import PAIRS, STORMS, WHOLE, Schedule

Played = Callable[[list[Schedule]], None]
_BATCHES: Final = 4
_PAIRS: Final = (3000 if WHOLE else 144) // len(REFERENCES) // _BATCHES
_STORMS: Final = (1008 if WHOLE else 48) // len(REFERENCES) // _BATCHES


def _batch(reference: str, kind: str, batch: int, size: int) -> list[Schedule]:
    those = range(batch * size, (batch + 1) * size)
    return [Schedule(reference, kind, number) for number in of_today(range(_BATCHES * size)) if number in those]


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
