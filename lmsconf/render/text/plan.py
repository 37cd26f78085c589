"""Plans, reports and problems as text for a terminal, in terraform's style.

All names are escaped by `escape_terminal`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby

from lmsconf.documents.plan_file import plan_digest
from lmsconf.errors import Problem
from lmsconf.kinds.shared.kind_names import resource_title
from lmsconf.model.address import Address
from lmsconf.model.blockers import CONSENT_LEAD, blockers, consent_command
from lmsconf.model.calls import CallStatus
from lmsconf.model.outcomes import ApplyReport, CallOutcome
from lmsconf.model.plan import Plan
from lmsconf.model.snapshot import Snapshot
from lmsconf.render import plan_wording
from lmsconf.render.apply_wording import (
    REMAINING_CHANGES_HEADING,
    apply_summary,
    count_statuses,
    describe_call,
    other_changes_heading,
    verification_result,
)
from lmsconf.render.effects_wording import predicted_line
from lmsconf.render.escape import escape_terminal
from lmsconf.render.plan_wording import (
    BLOCKERS_HEADING,
    abandoned_heading,
    assumptions_sentence,
    count_severities,
    plan_summary,
    scope_sentences,
    workspace_line,
)
from lmsconf.render.resource_wording import count_listed_rows, count_noun, count_unmanaged
from lmsconf.render.text.blocks import change_lines, indent_lines, join_blocks, problem_lines, unchanged_lines
from lmsconf.render.text.effects import effects_lines, effects_reminder
from lmsconf.render.text.rehearsal import rehearsal_blocks, rehearsal_reminder


def plan_text(plan: Plan, *, color: bool = False, names_blockers: bool = True) -> str:
    """Render a plan: effects on people, settings and problems, changes, unmanaged resources, blockers."""
    return join_blocks(
        [
            [
                escape_terminal(workspace_line(plan.workspace, plan.url, plan.people)),
                *map(escape_terminal, scope_sentences(plan)),
            ],
            *effects_lines(plan),
            _listed(plan_wording.CHANGED_HEADING, plan_wording.changed_settings(plan)),
            _listed(plan_wording.RELAXED_HEADING, plan_wording.relaxed_settings(plan)),
            _listed(plan_wording.CONSENTS_HEADING, plan_wording.consented_guards(plan)),
            _problems(plan.problems),
            *(change_lines(change) for change in plan.changes),
            _left_out(plan.left_out),
            _let_go(plan),
            _unmanaged(plan),
            *rehearsal_blocks(plan),
            [
                *effects_reminder(plan),
                *rehearsal_reminder(plan),
                plan_summary(plan),
                *map(escape_terminal, filter(None, [assumptions_sentence(plan)])),
                *([f"Digest: {plan_digest(plan)}"] if plan.changes else []),
            ],
            _stops(plan) if names_blockers else [],
        ],
        color,
    )


def apply_text(report: ApplyReport, *, color: bool = False, names_workspace: bool = True) -> str:
    """Render an apply report: problems, failed calls, calls not done, remaining differences, outcome.

    names_workspace: whether the first line is that of the workspace.
    """
    workspace = escape_terminal(workspace_line(report.workspace, report.url, report.people))
    return join_blocks(
        [
            [*([workspace] if names_workspace else []), *_meta(report)],
            _problems(report.problems),
            *(_failure(outcome) for outcome in report.outcomes if outcome.status is CallStatus.FAILED),
            *_in_part(report),
            [REMAINING_CHANGES_HEADING] if report.remaining_changes else [],
            *(change_lines(change) for change in report.remaining_changes),
            [other_changes_heading(report)] if report.foreign_changes else [],
            *(change_lines(change) for change in report.foreign_changes),
            [
                *filter(None, [predicted_line(report.predicted)]),
                count_statuses(report) + ".",
                verification_result(report),
                apply_summary(report),
                *([escape_terminal(f"Undo: {report.undo_command}")] if report.undo_command else []),
            ],
        ],
        color,
    )


def snapshot_text(snapshot: Snapshot, *, color: bool = False) -> str:
    """Render a snapshot: counts per kind, and which listings are incomplete."""
    taken = [
        escape_terminal(workspace_line(snapshot.workspace, snapshot.url, snapshot.people)),
        escape_terminal(f"Taken {snapshot.taken_at}."),
    ]
    counts = [escape_terminal(f"  {count_listed_rows(kind, listing)}") for kind, listing in snapshot.listings.items()]
    return join_blocks([taken, counts], color)


def problems_text(problems: Sequence[Problem], *, color: bool = False) -> str:
    """Render problems with their hints and, for several, their counts. Empty without problems."""
    if not problems:
        return ""
    counts = [f"{count_severities(problems)}."] if len(problems) > 1 else []
    return join_blocks([_problems(problems), counts], color)


def _problems(problems: Iterable[Problem]) -> Iterator[str]:
    for problem in problems:
        yield from problem_lines(problem)


def _left_out(addresses: Sequence[Address]) -> Iterator[str]:
    if addresses:
        yield f"Left out, because this plan only adds: {count_noun(len(addresses), 'change')}."
        yield from unchanged_lines(addresses)


def _let_go(plan: Plan) -> Iterator[str]:
    if plan.let_go:
        yield escape_terminal(abandoned_heading(plan))
    for abandoned in plan.let_go:
        yield f"    {escape_terminal(resource_title(abandoned.address))}"
        yield f"      {escape_terminal(abandoned.absent)}"


def _unmanaged(plan: Plan) -> Iterator[str]:
    for group in plan.unmanaged:
        if group.addresses or group.left_alone:
            yield escape_terminal(count_unmanaged(group))
            yield from unchanged_lines(group.addresses)


def _listed(heading: str, lines: Iterable[str]) -> Iterator[str]:
    """Yield lines under a heading; nothing without lines."""
    for number, line in enumerate(lines):
        if not number:
            yield f"{heading}:"
        yield escape_terminal(f"  {line}")


def _stops(plan: Plan) -> Iterator[str]:
    """Yield the plan's blockers with reason and hint, and the command that consents to them."""
    blocking = blockers(plan)
    if blocking:
        yield f"{BLOCKERS_HEADING}:"
    for blocker in blocking:
        yield escape_terminal(f"  {blocker}")
        yield from indent_lines(blocker.hint, indent="    ")
    line = consent_command(plan)
    if line is not None:
        yield CONSENT_LEAD
        yield escape_terminal(f"  {line}")


def _meta(report: ApplyReport) -> Iterator[str]:
    yield from (escape_terminal(f"  {key}: {value}") for key, value in sorted(report.meta.items()))


def _failure(outcome: CallOutcome) -> Iterator[str]:
    yield escape_terminal(f"Failed: {resource_title(outcome.address)} ({describe_call(outcome)})")
    yield from indent_lines(outcome.reason)
    yield from indent_lines(outcome.hint)


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
    yield escape_terminal(f"{label}: {reason}" if reason else f"{label}:")
    yield from (
        f"    {escape_terminal(resource_title(outcome.address))} ({escape_terminal(describe_call(outcome))})"
        for outcome in outcomes
    )
