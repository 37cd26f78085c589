"""How much is tried in a run: every day a sixtieth of the cases and of the examples, with TESTS=all all.

Of each test at least one case is played, unless it is marked `daily=False` because that takes too long.

Which one it is follows from the number of commits, so that sixty commits in a row play all; of schedules of one call
it is a part of 720, and with the number of a commit in SIMULATION, as .ci/run sets it, of 24. SIMULATION=all plays all.
TESTS=0 to TESTS=59 chooses one sixtieth.
"""

import os
import subprocess
import sys
import zlib
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Final, TypeVar

PARTS: Final = 60
GATES: Final = 24
"""So many runs of .ci/run in a row play all schedules."""
if {"--update-golden", "--update-examples"}.intersection(sys.argv):
    os.environ["TESTS"] = "all"  # files of cases that are not played would stay as they are; workers inherit it
_CHOSEN: Final = os.environ.get("TESTS", "")
_SIMULATION: Final = os.environ.get("SIMULATION", "")
T = TypeVar("T")


def number_of(folder: Path) -> int:
    """A number of the commit checked out there, the next one's is one more: 0 where git tells of none.

    A clone without the history counts no commits, and takes the number by the commit's hash.
    """
    whole = _git(folder, "rev-parse", "--is-shallow-repository") == "false"
    asked = ("rev-list", "--count", "--first-parent", "HEAD") if whole else ("rev-parse", "HEAD")
    return int(_git(folder, *asked) or "0", 10 if whole else 16)


def _git(folder: Path, *arguments: str) -> str:
    """What git says; nothing where it says nothing, or is not there."""
    try:
        ran = subprocess.run(["git", "-C", folder, *arguments], capture_output=True, text=True, check=False)
    except FileNotFoundError:
        return ""
    return ran.stdout.strip()


WHOLE: Final = _CHOSEN == "all" or _SIMULATION == "all"
NUMBER: Final = int(_CHOSEN) if _CHOSEN.isdecimal() else 0 if WHOLE else number_of(Path(__file__).parent)
PART: Final = None if WHOLE else NUMBER % PARTS
GATE: Final = int(_SIMULATION) if _SIMULATION.isdecimal() else None
"""The number of the commit in .ci/run."""


def examples(number: int) -> int:
    """How many examples are tried where all are so many."""
    return number if WHOLE else max(1, number // PARTS)


def of_today(cases: Iterable[T], parts: int = PARTS, name: str = "") -> list[T]:
    """Those of the cases that are played in this run, where so many commits in a row play all.

    name: of lists of cases with different names, a run does not play the first of each.
    """
    return list(cases) if WHOLE else _turn(list(cases), NUMBER, parts, name)


def schedules_of_today(cases: Sequence[T], name: str, parts: int = GATES) -> list[T]:
    """The same of schedules: every day a thirtieth of what .ci/run plays of them.

    parts: how many commits in a row play all of them in .ci/run.
    """
    if GATE is not None:
        return _turn(cases, GATE, parts, name)
    return of_today(cases, parts * PARTS // 2, name)


def is_of_today(position: int, name: str, size: int, day: int = PARTS, gate: int = 1, *, daily: bool = True) -> bool:
    """Whether the case at that position of so many is played: every day one of `day`, in .ci/run one of `gate`.

    daily: one at least, every day, unless .ci/run too plays a part.
    """
    if WHOLE:
        return GATE is None or position % gate == (GATE - first_part(name, gate)) % gate
    if daily and gate == 1:
        day = min(day, size)
    return position % day == (NUMBER - first_part(name, day)) % day


def _turn(cases: Sequence[T], number: int, parts: int, name: str) -> list[T]:
    """One part of the cases."""
    return list(cases[(number - first_part(name, parts)) % parts :: parts])


def first_part(name: str, parts: int = PARTS) -> int:
    """The part that has the first of the cases with that name."""
    return zlib.crc32(name.encode()) % parts
