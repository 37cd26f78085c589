"""The way from a clone to the first reviewed change takes minutes, and nothing on it hangs."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

from .clone import Terminal, cloned
from .conftest import REPOSITORY
from .test_pages import GUIDE, parts_of, pastes

README = REPOSITORY / "README.md"
PAGES = (README, GUIDE / "getting-started.md")
WORDS_A_MINUTE = 200
LETTERS_A_MINUTE = 200
MINUTES = 8


class Typed(NamedTuple):
    """Command lines that were typed at once, the seconds until the prompt was back, and whether a reader sees them."""

    lines: list[str]
    seconds: float
    is_shown: bool


def follow_on_terminal(page: Path, columns: int, folder: Path) -> Iterator[Typed]:
    """Types the commands of a page that reach a served workspace, in order; raises Hung where one waits."""
    for number, part in enumerate(parts_of(page)):
        if part.serves is None:
            continue
        with cloned(part, folder / str(number)) as clone, Terminal(clone, columns) as terminal:
            for code, steps in pastes(part):
                lines = [clone.really(step.line) for step in steps]
                began = time.perf_counter()
                found = terminal.paste(lines)
                assert found == (code, len(lines)), (lines, found)
                yield Typed([step.line for step in steps], time.perf_counter() - began, steps[0].block is not None)


def reading_seconds(page: Path) -> float:
    """The time to read a whole page, shown outputs and tables among it."""
    return 60 * len(page.read_text(encoding="utf-8").split()) / WORDS_A_MINUTE


def typing_seconds(typed: list[Typed]) -> float:
    """The time to type what the page shows, without pasting."""
    return 60 * sum(len(line) for one in typed if one.is_shown for line in one.lines) / LETTERS_A_MINUTE


INSTALLING = 60
"""Seconds that are left for installing, which takes a network."""


@pytest.mark.slow
@pytest.mark.sampled(gate=2)
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
