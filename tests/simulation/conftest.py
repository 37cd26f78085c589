"""Plays schedules and has them counted; `tests/conftest.py` tells the count at the end of a run."""

from collections.abc import Callable

import pytest

from .run_schedule import Schedule, ScheduleCounts

COUNTS = "simulation"


@pytest.fixture
def played(record_property: Callable[[str, object], None]) -> Callable[[list[Schedule]], None]:
    """Plays schedules, has them counted for the end of the run, and fails where one breaks the law."""

    def played(schedules: list[Schedule]) -> None:
        tally = ScheduleCounts().play(schedules)
        record_property(COUNTS, dict(tally.counts))
        tally.assert_lawful()

    return played
