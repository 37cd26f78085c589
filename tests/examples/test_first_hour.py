"""The way from a clone to the first reviewed change takes minutes, and nothing on it hangs."""

from __future__ import annotations

from pathlib import Path

import pytest

from .first_hour import MINUTES, PAGES, README, follow_on_terminal, reading_seconds, typing_seconds

INSTALLING = 60
"""Seconds that are left for installing, which takes a network; `first_hour --install` measures it."""


@pytest.mark.slow
@pytest.mark.parametrize("columns", [80, 120])
def test_the_first_reviewed_change_takes_eight_minutes(columns: int, tmp_path: Path) -> None:
    """Reading the README, typing what it shows, and waiting for it: from an import to a change that is applied."""
    typed = list(follow_on_terminal(README, columns, tmp_path))
    lines = [line for one in typed for line in one.lines]
    assert any(line.startswith("lmsconf export") for line in lines)
    assert any(line.startswith("lmsconf apply plan.json") for line in lines)
    ran = sum(one.seconds for one in typed)
    assert ran < 60
    assert INSTALLING + reading_seconds(README) + typing_seconds(typed) + ran <= 60 * MINUTES


def test_reading_takes_five_minutes() -> None:
    """The README takes at most five minutes at 200 words a minute, and getting started at most six."""
    readme, started = map(reading_seconds, PAGES)
    assert readme <= 300
    assert started <= 360
