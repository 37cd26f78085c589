"""Runs a schedule, runs again as the user is told to, and judges what the workspace has come to.

The law: after at most two more runs a fresh plan is empty, and the workspace is the one that an undisturbed run leaves
behind, name by name, with every id that it had before. What was done twice, or later than anybody waits, may instead
end in a stop that names both twins; then a person deletes the one that nobody uses, and the law holds from there.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from random import Random
from shutil import rmtree
from tempfile import TemporaryDirectory
from typing import Final

from lmsconf.apply.run_plan import execute
from lmsconf.documents.journal.journal_reader import wait_for_pending_writes
from lmsconf.errors import ExitCode, LmsconfError, Problem
from lmsconf.model.outcomes import ApplyReport, CallOutcome
from lmsconf.model.plan import Plan

from .references import ReferenceApply, alone, scene
from .request_faults import (
    CALM,
    KEPT,
    KILLED_UNRECORDED,
    MISHAPS,
    Killed,
    MortalJournal,
    Script,
    at_call,
    scripted,
    storm,
)
from .workspace_state import Duplicate, RunOutputs, compare, delete_idle, twins

RERUNS: Final = 2
_UNTIL_ALL_HAS_COME: Final = 1000.0


class SchedulePlay:
    """One schedule that is played, with or without journals in a folder, and what it came to.

    reruns      how many runs it took after the disturbed ones; None where two were not enough
    stopped     whether a run stopped because of twins, and a person had to choose
    unnamed     twins that no error has named
    hollow      whether the first run called itself whole, with fewer calls carried out than it has
    leaks       the canaries that stood in anything that was given away
    said        what the runs reported
    """

    def __init__(self, scene: ReferenceApply, root: Path | None = None) -> None:
        self.scene, self.root = scene, root
        self.said: list[str] = []
        self.paper = RunOutputs()
        self.stopped = self.whole = False

    def play(
        self, script: Script, *, disturbed: int = 1, forgets: bool = False, dies_at: int | None = None
    ) -> SchedulePlay:
        """Plays it with a script that strikes during the first run, or during the first few.

        forgets   whether the journals are deleted after the disturbed runs
        dies_at   the outcome before whose recording the first run dies
        """
        scene = self.scene
        scene.reset(script)
        with self.paper.listening():
            done = self.run(scene.plan, dies_at=dies_at)
            self.hollow = self.whole and scene.carried_out() < scene.calls
            for _ in range(disturbed - 1):
                done = done or self.run()
            scene.network.script = CALM
            if forgets and self.root is not None:
                rmtree(self.root / ".lmsconf")
            self.wait()
            self.reruns = self.run_again()
            if self.root is not None:
                self.let_all_come()
                more = self.run_again()
                ended = self.reruns is not None and more is not None and self.reruns + more <= RERUNS
                self.reruns = self.reruns + more if ended else None
            self.unnamed = self.choose()
            if self.stopped:
                self.reruns = self.run_again()
        self.difference = compare(scene.wanted, scene.portrait())
        self.leaks = self.paper.leaks(self.root)
        return self

    def breaks(self, *, may_stop: bool) -> str | None:
        """How it breaks the law; None where it does not."""
        if self.unnamed:
            return f"twins that nobody named: {self.unnamed}"
        if self.stopped and not may_stop:
            return "something was made twice"
        if self.hollow:
            return "a call was reported done that never was"
        if self.leaks:
            return f"it gave away {self.leaks}"
        if self.reruns is None:
            return "two more runs were not enough"
        return str(self.difference) if self.difference else None

    def run(self, plan: Plan | None = None, *, dies_at: int | None = None) -> bool:
        """One run of lmsconf, as far as it comes; whether there was nothing to do. `dies_at`: at which outcome."""
        try:
            with alone():
                plan = plan or self.scene.fresh_plan()
                if plan.calls:
                    if plan is not self.scene.plan:
                        self.paper.plan(plan)
                    report = self._applied(plan, dies_at)
        except Killed:
            self.said.append("the process dies")
        except LmsconfError as error:
            self.paper.problems(error.problems)
            self.paper.error(error)
            self._hear(f"{type(error).__name__}: {error.message}", error.problems)
        else:
            if not plan.calls:
                return True
            self.paper.outcome(report)
            self.whole = report.exit == ExitCode.OK
            self._hear(f"exit {report.exit}, converged: {report.converged}", report.problems, report.outcomes)
        self.scene.network.revive()
        return False

    def _applied(self, plan: Plan, dies_at: int | None) -> ApplyReport:
        if self.root is None:
            return execute(self.scene.workspace, plan, meta={})
        clock = self.scene.workspace.clock
        with MortalJournal.begin(self.root, plan, meta={}, **KEPT, clock=clock, sync=lambda _: None) as journal:
            assert isinstance(journal, MortalJournal)
            journal.dies_at = dies_at
            return execute(self.scene.workspace, plan, meta={}, journal=journal)

    def wait(self) -> None:
        """What may still come is let come: as long as the journals advise, or until nothing can come any more."""
        if self.root is None:
            self.let_all_come()
            return
        workspace, sleep = self.scene.workspace, self.scene.clock.sleep
        url, settle = workspace.connection.url, workspace.settings.policy.settle
        notify = self.said.append
        wait_for_pending_writes(self.root, url, settle, notify=notify, clock=workspace.clock, sleep=sleep)

    def let_all_come(self) -> None:
        self.scene.clock.sleep(_UNTIL_ALL_HAS_COME)
        self.scene.network.arrive()

    def _hear(self, how: str, problems: Sequence[Problem], outcomes: Sequence[CallOutcome] = ()) -> None:
        """What a user would read."""
        self.said.append(how)
        self.said.extend(f"  {one.operation} {one.address}: {one.reason}" for one in outcomes if one.reason)
        self.said.extend(f"  {one.code}: {one.message}" for one in problems)

    def run_again(self) -> int | None:
        """How many more runs it takes until there is nothing to do; None where there still is."""
        for count in range(RERUNS + 1):
            if self.run():
                return count
        return None

    def choose(self) -> tuple[Duplicate, ...]:
        """A person deletes the idle one of each pair of twins; the twins that nobody had told them of."""
        with self.scene.sandbox.store.write_transaction() as repository:
            found = twins(repository)
            for twin in found:
                delete_idle(repository, twin)
        self.stopped = self.stopped or bool(found)
        return tuple(twin for twin in found if not any(all(id in text for id in twin.ids) for text in self.said))


# Plays many schedules, and counts how they ended.


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
        return f"PYTHONPATH=tests python -m tests.simulation {self.reference} {self.kind} {self.number}"

    def play(self) -> tuple[SchedulePlay, bool]:
        """How it ended, and whether it may end in a stop that names twins."""
        stage = scene(self.reference)
        if self.kind.startswith("killed"):
            return self._killed(stage)
        if self.kind == STORMS:
            weather = storm(self.number, _CHANCES[self.number % len(_CHANCES)])
            return SchedulePlay(stage).play(weather, disturbed=3), True
        if self.kind == PAIRS:
            # The second mishap may strike what the first has led to, the next run too.
            dice = Random(f"{self.reference} {self.number}")  # noqa: S311  a sample is no secret
            first = dice.randint(1, stage.calls)
            second = first + (1 if dice.random() < 0.5 else dice.randint(1, stage.calls))
            both = {call: MISHAPS[dice.choice(sorted(MISHAPS))] for call in (first, second)}
            return SchedulePlay(stage).play(scripted(both), disturbed=2), True
        mishap = at_call(self.kind, self.number)
        return SchedulePlay(stage).play(scripted({self.number: mishap})), mishap.names_a_stop

    def _killed(self, stage: ReferenceApply) -> tuple[SchedulePlay, bool]:
        """A process that dies. Every other time its journal is lost too, and nobody waits for what it has sent."""
        forgets, recorded = self.number % 2 == 1, self.kind != KILLED_UNRECORDED
        script = scripted({self.number: at_call(self.kind, self.number)}) if recorded else CALM
        with TemporaryDirectory() as root:
            dies_at = None if recorded else self.number
            played = SchedulePlay(stage, Path(root)).play(script, forgets=forgets, dies_at=dies_at)
        return played, forgets and self.kind == "killed-late"


def play_all(schedules: Iterable[Schedule]) -> tuple[Counter[str], list[str]]:
    """Counts of how they ended, and how some broke the law."""
    counts: Counter[str] = Counter()
    broken = []
    for schedule in schedules:
        ending, may_stop = schedule.play()
        counts["converged"] += ending.reruns is not None and not ending.stopped
        counts["stops"] += ending.stopped
        for key in ("lost", "duplicated", "foreign"):
            counts[key] += bool(getattr(ending.difference, key))
        counts["duplicated"] += bool(ending.unnamed)
        counts["leaks"] += bool(ending.leaks)
        if wrong := ending.breaks(may_stop=may_stop):
            broken.append(f"{wrong}\n  play it again: {schedule.command}")
    return counts, broken
