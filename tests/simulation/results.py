"""Plays many schedules, and counts how they ended."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory
from typing import Final

from .reference_apply import scene
from .request_faults import KILLED_UNRECORDED, KINDS, MISHAPS, Calm, Script, ScriptedFaults, Storm, at_call
from .run_schedule import ScheduleOutcome, play

WHOLE: Final = os.environ.get("SIMULATION") == "all"
"""Whether every way of every kind is played, and all pairs and storms of the sample."""
PAIRS, STORMS = "pair", "storm"
_CHANCES: Final = (0.02, 0.05, 0.1, 0.2)


@dataclass(frozen=True, slots=True)
class Schedule:
    """What is played: a kind of mishap at one call of a reference, or the pair or storm of that number."""

    reference: str
    kind: str
    number: int

    @property
    def command(self) -> str:
        """The command that plays it again, request by request."""
        return f"python -m tests.simulation {self.reference} {self.kind} {self.number}"

    def play(self) -> tuple[ScheduleOutcome, bool]:
        """How it ended, and whether it may end in a stop that names twins."""
        if self.kind.startswith("killed"):
            return self._killed()
        if self.kind == PAIRS:
            return self._pair()
        if self.kind == STORMS:
            storm = Storm(self.number, _CHANCES[self.number % len(_CHANCES)])
            return play(scene(self.reference), storm, disturbed=3), True
        mishap = at_call(self.kind, self.number)
        return play(scene(self.reference), ScriptedFaults({self.number: mishap})), mishap.names_a_stop

    def _killed(self) -> tuple[ScheduleOutcome, bool]:
        """A process that dies. Every other time its journal is lost too, and nobody waits for what it has sent."""
        forgets = self.number % 2 == 1
        strikes = self.kind != KILLED_UNRECORDED
        script = ScriptedFaults({self.number: at_call(self.kind, self.number)}) if strikes else Calm()
        dies_at = None if strikes else self.number
        with TemporaryDirectory() as root:
            ending = play(scene(self.reference), script, root=Path(root), forgets=forgets, dies_at=dies_at)
        return ending, forgets and self.kind == "killed-late"

    def _pair(self) -> tuple[ScheduleOutcome, bool]:
        """Two mishaps, the second of which may strike what the first has led to, the next run too."""
        stage = scene(self.reference)
        dice = Random(f"{self.reference} {self.number}")  # noqa: S311  a sample is no secret
        first = dice.randint(1, stage.calls)
        second = first + (1 if dice.random() < 0.5 else dice.randint(1, stage.calls))
        both = [MISHAPS[dice.choice(sorted(MISHAPS))] for _ in range(2)]
        script: Script = ScriptedFaults(dict(zip((first, second), both, strict=True)))
        return play(stage, script, disturbed=2), True


def ways(kind: str) -> Iterator[str]:
    """Under which names a kind is played at each call: as one whose ways take turns, or as all of its ways."""
    yield from (one.name for one in KINDS[kind]) if WHOLE and kind in KINDS else [kind]


class ScheduleCounts:
    """Counts of endings, and the schedules that broke the law."""

    def __init__(self) -> None:
        self.counts: Counter[str] = Counter()
        self.broken: list[str] = []

    def play(self, schedules: Iterable[Schedule]) -> ScheduleCounts:
        """Plays them all."""
        for schedule in schedules:
            ending, may_stop = schedule.play()
            self.count(ending)
            if wrong := ending.breaks(may_stop=may_stop):
                self.broken.append(f"{wrong}\n  play it again: {schedule.command}")
        return self

    def count(self, ending: ScheduleOutcome) -> None:
        """Adds one ending."""
        self.counts["schedules"] += 1
        self.counts["converged"] += ending.reruns is not None and not ending.stopped
        self.counts["stops"] += ending.stopped
        for key in ("lost", "duplicated", "foreign"):
            self.counts[key] += bool(getattr(ending.difference, key))
        self.counts["duplicated"] += bool(ending.unnamed)
        self.counts["leaks"] += bool(ending.leaks)

    def assert_lawful(self) -> None:
        """Fails with the first few schedules that broke the law."""
        shown = "\n".join(self.broken[:3])
        assert not self.broken, f"{len(self.broken)} of {self.counts['schedules']} schedules:\n{shown}"
