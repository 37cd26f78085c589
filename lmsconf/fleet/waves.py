"""Apply the plans of a fleet in waves: each wave is a selector of workspaces, and failures stop before the next one."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import replace
from pathlib import Path
from typing import Final, NamedTuple

from lmsconf.errors import ExitCode, Problem, ProblemsFound
from lmsconf.fleet.fleet_run import Engine, Listener, run_tasks, write_index
from lmsconf.fleet.label_selector import LabelSelector
from lmsconf.fleet.tasks import FleetTask
from lmsconf.model.fleet import STOPPED, FleetAction, FleetEntry, FleetIndex
from lmsconf.model.policy import Consent

APPLIED: Final = "apply.json"


class Wave(NamedTuple):
    """The workspaces of one wave. selector: what selects them, as text."""

    selector: str
    entries: tuple[FleetEntry, ...]


def make_waves(index: FleetIndex, selectors: Sequence[LabelSelector]) -> list[Wave]:
    """Divide the workspaces of an index into waves: each is in the first wave that selects it.

    Workspaces that no selector selects come in a last wave. A wave without workspaces is left out.
    """
    left = list(index.entries)
    waves: list[Wave] = []
    for selector in selectors:
        fitting = tuple(entry for entry in left if selector.fits(entry.workspace, entry.labels))
        left = [entry for entry in left if entry not in fitting]
        waves.append(Wave(selector.text, fitting))
    waves.append(Wave("*", tuple(left)))
    return [wave for wave in waves if wave.entries]


def refuse_fleet_guards(index: FleetIndex, limits: Mapping[str, int], consents: Sequence[Consent]) -> None:
    """Raise ProblemsFound with exit 4 if a guard's totals over all workspaces exceed its limit for the fleet.

    consents: what `--allow` lifts, if it names the exact total.
    """
    problems = []
    for name, limit in limits.items():
        totals = [entry.guards.get(name, 0) for entry in index.entries]
        total = None if None in totals else sum(number or 0 for number in totals)
        if any(consent.guard == name and consent.number == total for consent in consents):
            continue
        if total is None or total > limit:
            shown, allow = ("not known", "unknown") if total is None else (f"{total:,}", str(total))
            message = (
                f"guard {name} of the fleet: the total of {len(totals):,} plans is {shown}, and the limit is {limit:,}"
            )
            hint = f"To allow exactly this: --allow {name}={allow}"
            problems.append(Problem(code=f"guard/{name}", message=message, hint=hint))
    if problems:
        raise ProblemsFound(problems, exit=ExitCode.BLOCKED)


def apply_in_waves(
    folder: Path,
    planned: FleetIndex,
    waves: Sequence[Wave],
    engine: Engine,
    make_task: Callable[[FleetEntry], FleetTask],
    *,
    applied: FleetIndex | None,
    max_failures: int,
    created_at: str,
    listen: Callable[[str, int], AbstractContextManager[Listener]],
) -> FleetIndex:
    """Apply wave after wave, until one has more failures than `max_failures`; return the index of all results.

    applied: the results of an earlier run, whose successes are kept. The index is written after each wave, so that the
    next run does what is left. listen: called with each wave and how many of its plans are to be applied.
    """
    done = {} if applied is None else {entry.workspace: entry for entry in applied.entries if not entry.failed}
    results: dict[str, FleetEntry] = {}
    stopped: str | None = None
    for wave in waves:
        fresh = [entry for entry in wave.entries if not _is_done(entry, done)]
        results |= {entry.workspace: done[entry.workspace] for entry in wave.entries if entry not in fresh}
        if stopped is not None:
            results |= {entry.workspace: _not_attempted(entry, stopped) for entry in fresh}
            continue
        tasks = [make_task(entry) for entry in fresh if not entry.failed and entry.changes]
        results |= {entry.workspace: replace(entry, file=None) for entry in fresh if entry.failed}
        results |= {entry.workspace: _unchanged(entry) for entry in fresh if not entry.failed and not entry.changes}
        with listen(f"Wave {wave.selector}", len(tasks)) as tell:
            ran = run_tasks(tasks, engine, FleetAction.APPLY, created_at, tell)
        results |= {entry.workspace: entry for entry in ran.entries}
        write_index(folder, _index(results, created_at), APPLIED)
        failures = sum(results[entry.workspace].failed for entry in wave.entries)
        if failures > max_failures:
            noun = "workspace" if failures == 1 else "workspaces"
            stopped = f"{failures:,} {noun} of the wave {wave.selector} failed, and the limit is {max_failures:,}"
    index = _index(results, created_at)
    write_index(folder, index, APPLIED)
    return index


def _is_done(entry: FleetEntry, done: Mapping[str, FleetEntry]) -> bool:
    """Whether an earlier run applied this very plan."""
    before = done.get(entry.workspace)
    return before is not None and before.digest == entry.digest


def _unchanged(entry: FleetEntry) -> FleetEntry:
    return replace(entry, exit=ExitCode.OK, summary={"calls": 0, "done": 0}, file=None)


def _not_attempted(entry: FleetEntry, reason: str) -> FleetEntry:
    problem = Problem(code=STOPPED, message=f"not applied: {reason}", hint="Correct them, and apply again.")
    return replace(entry, exit=ExitCode.PARTIAL, summary={"calls": 0, "done": 0}, problems=(problem,), file=None)


def _index(results: Mapping[str, FleetEntry], created_at: str) -> FleetIndex:
    entries = tuple(results[name] for name in sorted(results))
    return FleetIndex(action=FleetAction.APPLY, created_at=created_at, entries=entries)


def describe_waves(waves: Sequence[Wave]) -> Iterator[str]:
    """Yield each wave in words: `ring=canary (3 workspaces)`."""
    for wave in waves:
        noun = "workspace" if len(wave.entries) == 1 else "workspaces"
        yield f"{wave.selector} ({len(wave.entries):,} {noun})"
