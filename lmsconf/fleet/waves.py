"""Apply the plans of a fleet in waves: each wave is a selector of workspaces, and failures stop before the next one."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Final

from msgspec.structs import replace

from lmsconf.errors import ExitCode, LmsconfError, Problem, raise_found, refuse_if
from lmsconf.fleet.fleet_run import (
    EVERY,
    Engine,
    LabelSelector,
    Listener,
    fleet_index,
    read_index,
    run_tasks,
    write_index,
)
from lmsconf.fleet.tasks import FleetTask
from lmsconf.model.fleet import INTERRUPTIONS, STOPPED, FleetAction, FleetEntry, FleetIndex
from lmsconf.model.guards import UNKNOWN, Consent
from lmsconf.model.names import count_noun, grouped
from lmsconf.planner.check_guards import counted_words
from lmsconf.render.resource_wording import name_list
from lmsconf.support.files import is_writable

APPLIED: Final = "apply.json"


def make_waves(index: FleetIndex, selectors: Sequence[LabelSelector]) -> dict[str, list[FleetEntry]]:
    """Return the waves of an index by their selectors: each workspace is in the first wave that selects it.

    Workspaces that no selector selects come in a last wave. A wave without workspaces is left out.
    """
    every = dict.fromkeys([*selectors, LabelSelector(EVERY, ())])
    chosen = grouped(index.entries, lambda entry: next(one for one in every if one.fits(entry.workspace, entry.labels)))
    return {one.text: chosen[one] for one in every if one in chosen}


def read_applied(folder: Path, key: bytes | None) -> FleetIndex | None:
    """Return the results of an earlier apply of the plans in a folder; None if there was none.

    Raises LmsconfError, also if the results of the next one cannot be written there.
    """
    refuse_if(
        (
            not is_writable(folder / APPLIED),
            f"{folder / APPLIED} cannot be written, so the results cannot be saved",
            "Check that the folder is writable, or copy it to one that is. Nothing was applied.",
        ),
        error=LmsconfError,
    )
    if not (folder / APPLIED).exists():
        return None
    index = read_index(folder, key, APPLIED)
    refuse_if(
        (
            index.action is not FleetAction.APPLY,
            f"{folder / APPLIED} has the results of lmsconf fleet {index.action.value}, not of an apply",
            "Delete it: nothing in it was applied.",
        ),
        error=LmsconfError,
    )
    return index


def refuse_fleet_guards(index: FleetIndex, limits: Mapping[str, int], consents: Sequence[Consent]) -> None:
    """Raise ProblemsFound with exit 4 if a guard's totals over all workspaces exceed its limit for the fleet.

    consents: what `--allow` lifts, if it names the exact total.
    """
    problems = []
    for name, limit in limits.items():
        totals = {entry.workspace: entry.guards.get(name) for entry in index.entries if not entry.failed}
        unknown = [workspace for workspace, number in totals.items() if number is None]
        total = None if unknown else sum(number or 0 for number in totals.values())
        is_allowed = any(consent.guard == name and consent.number == total for consent in consents)
        if not is_allowed and (total is None or total > limit):
            plans = "the plan" if len(totals) == 1 else f"all {len(totals):,} plans together"
            counted = (
                f"the total is not known without the number of {name_list(unknown, 3)}"
                if total is None
                else counted_words(name, total)
            )
            problems.append(
                Problem(
                    code=f"guard/{name}",
                    message=f"guard {name} of the fleet: in {plans}, {counted}, and the limit is {limit:,}",
                    hint=f"To allow exactly this: --allow {name}={UNKNOWN if total is None else total}",
                )
            )
    raise_found(problems, exit=ExitCode.BLOCKED)


def apply_waves(
    waves: Mapping[str, Sequence[FleetEntry]],
    applied: FleetIndex | None,
    folder: Path,
    key: bytes | None,
    *,
    engine: Engine,
    make_task: Callable[[FleetEntry], FleetTask],
    listen: Callable[[str, int], AbstractContextManager[Listener]],
    max_failures: int,
    created_at: str,
) -> FleetIndex:
    """Apply wave after wave, until one has more failures than `max_failures`, or until an interruption.

    Returns the index of all results. applied: the results of an earlier run, whose successes are kept. The index in the
    folder, signed with the key, is written after each wave, with the earlier results of workspaces that are in none, so
    that the next run does what is left. make_task: makes the task for a workspace. listen: called with each wave and
    how many of its plans are to be applied.
    """
    earlier = {} if applied is None else {entry.workspace: entry for entry in applied.entries}
    results: dict[str, FleetEntry] = {}
    stopped: str | None = None
    for selector, wave in waves.items():
        known = (_result_without_task(entry, earlier.get(entry.workspace), stopped) for entry in wave)
        results |= {entry.workspace: entry for entry in known if entry is not None}
        tasks = [make_task(entry) for entry in wave if entry.workspace not in results]
        try:
            if tasks:
                with listen(f"Wave {selector}", len(tasks)) as tell:
                    run_tasks(tasks, engine, results, tell)
        finally:  # the engine may fail after some results
            write_index(folder, fleet_index(earlier | results, FleetAction.APPLY, created_at), key, APPLIED)
        stopped = stopped or _why_stopped(selector, [results[entry.workspace] for entry in wave], max_failures)
    return fleet_index(results, FleetAction.APPLY, created_at)


def _result_without_task(planned: FleetEntry, before: FleetEntry | None, stopped: str | None) -> FleetEntry | None:
    """Return the result of a workspace in which nothing is to be done now; None for a plan to apply.

    before: its result in an earlier run. stopped: why the waves have stopped.
    """
    nothing_done = {"calls": 0, "done": 0}
    if before is not None and not before.failed and before.digest == planned.digest:
        return before
    if stopped is not None:
        problem = Problem(code=STOPPED, message=f"not applied: {stopped}", hint="Apply again once that is corrected.")
        return replace(planned, exit=ExitCode.PARTIAL, summary=nothing_done, problems=(problem,), file=None)
    if planned.failed:
        no_plan = Problem(
            code="fleet/no-plan",
            message="there is no plan to apply, because planning failed",
            hint="Correct what follows, then plan again.",
        )
        return replace(
            planned,
            exit=ExitCode.ERROR if planned.exit in INTERRUPTIONS else planned.exit,  # this run was not interrupted
            problems=(no_plan, *planned.problems),
            file=None,
        )
    return None if planned.changes else replace(planned, exit=ExitCode.OK, summary=nothing_done, file=None)


def _why_stopped(wave: str, results: Sequence[FleetEntry], max_failures: int) -> str | None:
    """Return why the waves after this one are not begun; None if they are."""
    if any(entry.exit in INTERRUPTIONS for entry in results):
        return f"the run was interrupted in the wave {wave}"
    failures = sum(entry.failed for entry in results)
    if failures <= max_failures:
        return None
    return f"{count_noun(failures, 'workspace')} of the wave {wave} failed, and the limit is {max_failures:,}"
