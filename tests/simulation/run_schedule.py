"""Runs a schedule, runs again as the user is told to, and judges what the workspace has come to.

The law: after at most two more runs a fresh plan is empty, and the workspace is the one that an undisturbed run leaves
behind, name by name, with every id that it had before. What was done twice, or later than anybody waits, may instead
end in a stop that names both twins; then a person deletes the one that nobody uses, and the law holds from there.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from shutil import rmtree
from typing import Final

from lmsconf.errors import ExitCode, LmsconfError, Problem
from lmsconf.journal.pending_writes import wait_for_pending_writes
from lmsconf.model.outcomes import ApplyReport, CallOutcome
from lmsconf.model.plan import Plan

from .canaries import RunOutputs
from .network import LoggedRequest
from .reference_apply import ReferenceApply, alone
from .request_faults import KEPT, Killed, MortalJournal, Script
from .workspace_state import Difference, Duplicate, compare, delete_idle, twins

RERUNS: Final = 2
_UNTIL_ALL_HAS_COME: Final = 1000.0


@dataclass(frozen=True, slots=True, kw_only=True)
class ScheduleOutcome:
    """What a schedule came to.

    reruns      how many runs it took after the disturbed ones; None where two were not enough
    stopped     whether a run stopped because of twins, and a person had to choose
    unnamed     twins that no error has named
    hollow      whether the first run called itself whole, with fewer calls carried out than it has
    leaks       the canaries that stood in anything that was given away
    log, said   all requests, and what the runs reported
    """

    reruns: int | None
    stopped: bool
    unnamed: tuple[Duplicate, ...]
    hollow: bool
    difference: Difference
    leaks: tuple[str, ...]
    log: Sequence[LoggedRequest]
    said: Sequence[str]

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


class _Play:
    """One schedule under way, with or without journals in a folder."""

    def __init__(self, scene: ReferenceApply, root: Path | None) -> None:
        self.scene, self.root = scene, root
        self.said: list[str] = []
        self.paper = RunOutputs()
        self.stopped = self.whole = False

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
            return self.scene.workspace.execute(plan, meta={})
        clock = self.scene.workspace.clock
        with MortalJournal.begin(
            self.root, plan, meta={}, retention=KEPT, clock=clock, sync=lambda descriptor: None
        ) as journal:
            assert isinstance(journal, MortalJournal)
            journal.dies_at = dies_at
            return self.scene.workspace.execute(plan, meta={}, journal=journal)

    def wait(self) -> None:
        """What may still come is let come: as long as the journals advise, or until nothing can come any more."""
        if self.root is None:
            self.let_all_come()
            return
        clock, workspace = self.scene.clock, self.scene.workspace
        wait_for_pending_writes(
            self.root,
            workspace.connection.url,
            workspace.settings.settle,
            notify=self.said.append,
            clock=workspace.clock,
            sleep=clock.sleep,
        )

    def let_all_come(self) -> None:
        self.scene.clock.sleep(_UNTIL_ALL_HAS_COME)
        self.scene.network.arrive()

    def _hear(self, how: str, problems: Sequence[Problem], outcomes: Sequence[CallOutcome] = ()) -> None:
        """What a user would read."""
        self.said.append(how)
        self.said.extend(f"  {one.operation} {one.address}: {one.reason}" for one in outcomes if one.reason)
        self.said.extend(f"  {one.code}: {one.message}" for one in problems)

    def reruns(self) -> int | None:
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
        return tuple(twin for twin in found if not any(_names(text, twin) for text in self.said))


def _names(text: str, twin: Duplicate) -> bool:
    return all(id in text for id in twin.ids)


def play(
    scene: ReferenceApply,
    script: Script,
    *,
    disturbed: int = 1,
    root: Path | None = None,
    forgets: bool = False,
    dies_at: int | None = None,
) -> ScheduleOutcome:
    """The ending of a schedule whose script strikes during the first run, or during the first few.

    root      a folder in which the runs keep journals, if they shall
    forgets   whether the journals are deleted after the disturbed runs
    dies_at   the outcome before whose recording the first run dies
    """
    scene.reset(script)
    playing = _Play(scene, root)
    with playing.paper.listening():
        reruns, hollow, unnamed = _ended(playing, disturbed, forgets, dies_at)
    return ScheduleOutcome(
        reruns=reruns,
        stopped=playing.stopped,
        unnamed=unnamed,
        hollow=hollow,
        difference=compare(scene.wanted, scene.portrait()),
        leaks=playing.paper.leaks(root),
        log=tuple(scene.network.log),
        said=tuple(playing.said),
    )


def _ended(
    playing: _Play, disturbed: int, forgets: bool, dies_at: int | None
) -> tuple[int | None, bool, tuple[Duplicate, ...]]:
    """How many reruns it took, whether the first run called itself whole and was not, and twins nobody had named."""
    scene, root = playing.scene, playing.root
    done = playing.run(scene.plan, dies_at=dies_at)
    hollow = playing.whole and scene.carried_out() < scene.calls
    for _ in range(disturbed - 1):
        done = done or playing.run()
    scene.network.calm()
    if forgets and root is not None:
        rmtree(root / ".lmsconf")
    playing.wait()
    reruns = playing.reruns()
    if root is not None:
        playing.let_all_come()
        reruns = _both(reruns, playing.reruns())
    unnamed = playing.choose()
    return (playing.reruns() if playing.stopped else reruns), hollow, unnamed


def _both(first: int | None, then: int | None) -> int | None:
    """So many reruns in all, where both came to an end."""
    return None if first is None or then is None or first + then > RERUNS else first + then
