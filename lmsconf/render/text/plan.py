"""Plans, reports and problems as text for a terminal, in terraform's style. All names are escaped by `safe`."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby

from lmsconf.documents.plan_file import plan_digest
from lmsconf.errors import Problem
from lmsconf.model.address import Address
from lmsconf.model.blockers import blockers, consent_command
from lmsconf.model.outcomes import ApplyReport, CallOutcome, CallStatus
from lmsconf.model.plan import Plan
from lmsconf.model.snapshot import Snapshot
from lmsconf.render import phrases, settings_words
from lmsconf.render.blocks import change_lines, listed, page, paragraph, problem_lines
from lmsconf.render.escape import safe


def plan_text(plan: Plan, *, color: bool = False) -> str:
    """Render a plan: settings and problems, changes, unmanaged resources, blockers."""
    return page(
        [
            [safe(phrases.first_line(plan.workspace, plan.url, plan.people)), *map(safe, phrases.scope(plan))],
            _listed(settings_words.CHANGED, settings_words.changed(plan)),
            _listed(settings_words.RELAXED, settings_words.relaxed(plan)),
            _listed(settings_words.CONSENTS, settings_words.consents(plan)),
            _problems(plan.problems),
            *(change_lines(change) for change in plan.changes),
            _left_out(plan.left_out),
            _let_go(plan),
            _unmanaged(plan),
            [phrases.closing(plan), *([f"Digest: {plan_digest(plan)}"] if plan.changes else [])],
            _stops(plan),
        ],
        color,
    )


def apply_text(report: ApplyReport, *, color: bool = False) -> str:
    """Render an apply report: problems, failed calls, calls not done, remaining differences, outcome."""
    return page(
        [
            [safe(phrases.first_line(report.workspace, report.url, report.people)), *_meta(report)],
            _problems(report.problems),
            *(_failure(outcome) for outcome in report.outcomes if outcome.status is CallStatus.FAILED),
            *_in_part(report),
            [phrases.LEFT] if report.remaining_changes else [],
            *(change_lines(change) for change in report.remaining_changes),
            [phrases.other_changes_heading(report)] if report.foreign_changes else [],
            *(change_lines(change) for change in report.foreign_changes),
            [phrases.outcome_counts(report) + ".", phrases.convergence(report), phrases.ending(report)],
        ],
        color,
    )


def snapshot_text(snapshot: Snapshot, *, color: bool = False) -> str:
    """Render a snapshot: counts per kind, and which listings are incomplete."""
    taken = [safe(phrases.first_line(snapshot.workspace, snapshot.url, snapshot.people)), f"Taken {snapshot.taken_at}."]
    counts = [safe(f"  {phrases.listing(kind, listing)}") for kind, listing in snapshot.listings.items()]
    return page([taken, counts], color)


def problems_text(problems: Sequence[Problem], *, color: bool = False) -> str:
    """Render problems with their hints and, for several, their counts. Empty without problems."""
    if not problems:
        return ""
    counts = [f"{phrases.problem_counts(problems)}."] if len(problems) > 1 else []
    return page([_problems(problems), counts], color)


def _problems(problems: Iterable[Problem]) -> Iterator[str]:
    for problem in problems:
        yield from problem_lines(problem)


def _left_out(addresses: Sequence[Address]) -> Iterator[str]:
    if addresses:
        yield f"Left out, because this plan only adds: {phrases.count(len(addresses), 'change')}."
        yield from listed(addresses)


def _let_go(plan: Plan) -> Iterator[str]:
    if plan.let_go:
        yield safe(phrases.let_go(plan))
    for abandoned in plan.let_go:
        yield f"    {safe(phrases.title(abandoned.address))}"
        yield f"      {safe(abandoned.absent)}"


def _unmanaged(plan: Plan) -> Iterator[str]:
    for group in plan.unmanaged:
        if group.addresses or group.left_alone:
            yield safe(phrases.unmanaged(group))
            yield from listed(group.addresses)


def _listed(heading: str, lines: Iterable[str]) -> Iterator[str]:
    """Yield lines under a heading; nothing without lines."""
    for number, line in enumerate(lines):
        if not number:
            yield f"{heading}:"
        yield safe(f"  {line}")


def _stops(plan: Plan) -> Iterator[str]:
    """Yield the plan's blockers with reason and hint, and the command that consents to them."""
    blocking = blockers(plan)
    if blocking:
        yield f"{phrases.STOPS}:"
    for blocker in blocking:
        yield safe(f"  {blocker}")
        yield from paragraph(blocker.hint, indent="    ")
    line = consent_command(plan)
    if line is not None:
        yield "To allow exactly this:"
        yield safe(f"  {line}")


def _meta(report: ApplyReport) -> Iterator[str]:
    yield from (safe(f"  {key}: {value}") for key, value in sorted(report.meta.items()))


def _failure(outcome: CallOutcome) -> Iterator[str]:
    yield safe(f"Failed: {phrases.title(outcome.address)} ({phrases.call(outcome)})")
    yield from paragraph(outcome.reason)
    yield from paragraph(outcome.hint)


_LABELS = {CallStatus.DONE: "Done", CallStatus.BLOCKED: "Skipped", CallStatus.NOT_ATTEMPTED: "Not attempted"}


def _in_part(report: ApplyReport) -> Iterator[Iterator[str]]:
    """Yield the calls done, skipped and not attempted, grouped by reason; nothing if all calls are done."""
    if report.count(CallStatus.DONE) == len(report.outcomes):
        return
    for status, label in _LABELS.items():
        outcomes = [outcome for outcome in report.outcomes if outcome.status is status]
        for reason, group in groupby(sorted(outcomes, key=_reason), key=_reason):
            yield _calls(label, reason, list(group))


def _reason(outcome: CallOutcome) -> str:
    return outcome.reason or ""


def _calls(label: str, reason: str, outcomes: Sequence[CallOutcome]) -> Iterator[str]:
    yield safe(f"{label}: {reason}" if reason else f"{label}:")
    yield from (f"    {safe(phrases.title(outcome.address))} ({safe(phrases.call(outcome))})" for outcome in outcomes)
