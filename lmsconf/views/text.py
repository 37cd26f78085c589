"""Plans, reports and problems for a person at a terminal. Plans read as terraform's do; all names go through `safe`."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby

from lmsconf.core.address import Address
from lmsconf.core.blocked import blockers, consent_command
from lmsconf.core.planfile import plan_digest
from lmsconf.core.snapshot import Snapshot
from lmsconf.core.values import ApplyReport, Outcome, Plan, Status
from lmsconf.errors import Problem
from lmsconf.views import settings_words, wording
from lmsconf.views.blocks import change_lines, listed, page, paragraph, problem_lines
from lmsconf.views.escape import safe


def plan_text(plan: Plan, *, color: bool = False) -> str:
    """What apply would do, and all that a reviewer must know before."""
    return page(
        [
            [safe(wording.first_line(plan.workspace, plan.url, plan.people)), *map(safe, wording.scope(plan))],
            _listed(settings_words.CHANGED, settings_words.changed(plan)),
            _listed(settings_words.RELAXED, settings_words.relaxed(plan)),
            _listed(settings_words.CONSENTS, settings_words.consents(plan)),
            _problems(plan.problems),
            *(change_lines(change) for change in plan.changes),
            _left_out(plan.left_out),
            _let_go(plan),
            _unmanaged(plan),
            [wording.closing(plan), *([f"Digest: {plan_digest(plan)}"] if plan.changes else [])],
            _stops(plan),
        ],
        color,
    )


def apply_text(report: ApplyReport, *, color: bool = False) -> str:
    """What was done and what was not, why, and what is left."""
    return page(
        [
            [safe(wording.first_line(report.workspace, report.url, report.people)), *_meta(report)],
            _problems(report.problems),
            *(_failure(outcome) for outcome in report.outcomes if outcome.status is Status.FAILED),
            *_in_part(report),
            [wording.LEFT] if report.left else [],
            *(change_lines(change) for change in report.left),
            [wording.others(report)] if report.others else [],
            *(change_lines(change) for change in report.others),
            [wording.outcome_counts(report) + ".", wording.convergence(report), wording.ending(report)],
        ],
        color,
    )


def snapshot_text(snapshot: Snapshot, *, color: bool = False) -> str:
    """What a snapshot holds: how many of each kind, and which listing is not whole."""
    taken = [safe(wording.first_line(snapshot.workspace, snapshot.url, snapshot.people)), f"Taken {snapshot.taken_at}."]
    counts = [safe(f"  {wording.listing(kind, listing)}") for kind, listing in snapshot.listings.items()]
    return page([taken, counts], color)


def problems_text(problems: Sequence[Problem], *, color: bool = False) -> str:
    """Every problem with its way out and, where there are several, how many. Empty when there is none."""
    if not problems:
        return ""
    counts = [f"{wording.problem_counts(problems)}."] if len(problems) > 1 else []
    return page([_problems(problems), counts], color)


def _problems(problems: Iterable[Problem]) -> Iterator[str]:
    for problem in problems:
        yield from problem_lines(problem)


def _left_out(addresses: Sequence[Address]) -> Iterator[str]:
    if addresses:
        yield f"Left out, because this plan only adds: {wording.count(len(addresses), 'change')}."
        yield from listed(addresses)


def _let_go(plan: Plan) -> Iterator[str]:
    if plan.let_go:
        yield safe(wording.let_go(plan))
    for one in plan.let_go:
        yield f"    {safe(wording.title(one.address))}"
        yield f"      {safe(one.absent)}"


def _unmanaged(plan: Plan) -> Iterator[str]:
    for group in plan.unmanaged:
        if group.addresses or group.left_alone:
            yield safe(wording.unmanaged(group))
            yield from listed(group.addresses)


def _listed(heading: str, lines: Iterable[str]) -> Iterator[str]:
    """Lines below their heading; nothing where there are none."""
    for number, line in enumerate(lines):
        if not number:
            yield f"{heading}:"
        yield safe(f"  {line}")


def _stops(plan: Plan) -> Iterator[str]:
    """What would stop an apply, why, and what to do: the last that is read."""
    found = blockers(plan)
    if found:
        yield f"{wording.STOPS}:"
    for one in found:
        yield safe(f"  {one}")
        yield from paragraph(one.hint, indent="    ")
    line = consent_command(plan)
    if line is not None:
        yield "To allow exactly this:"
        yield safe(f"  {line}")


def _meta(report: ApplyReport) -> Iterator[str]:
    yield from (safe(f"  {key}: {value}") for key, value in sorted(report.meta.items()))


def _failure(outcome: Outcome) -> Iterator[str]:
    yield safe(f"Failed: {wording.title(outcome.address)} ({wording.call(outcome)})")
    yield from paragraph(outcome.reason)
    yield from paragraph(outcome.hint)


_LABELS = {Status.DONE: "Done", Status.BLOCKED: "Skipped", Status.NOT_ATTEMPTED: "Not attempted"}


def _in_part(report: ApplyReport) -> Iterator[Iterator[str]]:
    """Of a run that was not carried to its end: what was done, skipped and never reached, each under its reason."""
    if report.count(Status.DONE) == len(report.outcomes):
        return
    for status, label in _LABELS.items():
        outcomes = [outcome for outcome in report.outcomes if outcome.status is status]
        for reason, group in groupby(sorted(outcomes, key=_reason), key=_reason):
            yield _calls(label, reason, list(group))


def _reason(outcome: Outcome) -> str:
    return outcome.reason or ""


def _calls(label: str, reason: str, outcomes: Sequence[Outcome]) -> Iterator[str]:
    yield safe(f"{label}: {reason}" if reason else f"{label}:")
    yield from (f"    {safe(wording.title(outcome.address))} ({safe(wording.call(outcome))})" for outcome in outcomes)
