"""How much can be told where there is only so much room: all starts as a number, and climbs while there is room.

The rungs of an entry are the texts it can be told by, the shortest first. Round by round each entry climbs one rung,
those that come first going first, so that all are named before one is told in full. No text is cut.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple, TypeAlias

Rung: TypeAlias = Callable[[], str]


class SizeLimit(NamedTuple):
    """How long a comment may be at one place, in bytes; folds: whether it renders what can be folded up."""

    size: int | None
    folds: bool = True


BUDGETS = {
    "github": SizeLimit(65_536),
    "gitlab": SizeLimit(1_000_000),
    "azure": SizeLimit(150_000),
    "bitbucket": SizeLimit(32_767, folds=False),
    "summary": SizeLimit(1_048_576),
    "none": SizeLimit(None),
}
"""Place → its limit. They count characters in several ways; none counts more of them than a text has bytes."""

WHOLE = BUDGETS["none"]

LEAST = 8_000
"""What counts, guards and the frame around what is told need at most."""

_PATIENCE = 50
"""So many entries that find no room, one after the other, and the rest of a round is not tried."""


def budget(text: str) -> SizeLimit:
    """The budget that a word or a number of bytes names. Raises ValueError."""
    if text in BUDGETS:
        return BUDGETS[text]
    if not (text.isascii() and text.isdigit()):
        raise ValueError(f"{text!r} is neither a number of bytes nor one of {', '.join(BUDGETS)}")
    if int(text) < LEAST:
        raise ValueError(f"{text} bytes are too few for a summary; give {LEAST:,} or more")
    return SizeLimit(int(text))


def size(text: str) -> int:
    return len(text.encode("utf-8", "surrogatepass"))


def climb(entries: Sequence[Sequence[Rung]], room: int | None) -> tuple[list[str | None], bool]:
    """For each entry the longest text that fits beside the others', or None, and whether all is told in full."""
    if room is None:
        return [rungs[-1]() for rungs in entries], True
    told: list[str | None] = [None] * len(entries)
    whole = True
    for height in range(max(map(len, entries), default=0)):
        room, all_climbed = _round(entries, told, height, room)
        whole &= all_climbed
    return told, whole


def _round(entries: Sequence[Sequence[Rung]], told: list[str | None], height: int, room: int) -> tuple[int, bool]:
    """Lets each entry that was named climb one rung. Gives the room that is left, and whether all could climb."""
    missed, climbed = 0, True
    for position, rungs in enumerate(entries):
        before = told[position]
        if height >= len(rungs) or (height and before is None):
            continue
        text = rungs[height]()
        more = size(text) - size(before or "")
        if more <= room:
            told[position], room, missed = text, room - more, 0
        else:
            missed, climbed = missed + 1, False
            if missed == _PATIENCE:
                break
    return room, climbed
