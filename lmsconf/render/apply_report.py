"""Apply reports in words that all formats share, which are not escaped, and recorded runs as a table of text."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from lmsconf.errors import ExitCode
from lmsconf.model.calls import CallStatus
from lmsconf.model.outcomes import ApplyReport, CallOutcome, CallState, RecordedCall, RecordedRun, VerifyMode
from lmsconf.model.time_formats import format_utc
from lmsconf.render.escape import escape_terminal
from lmsconf.render.plan_wording import skipped_people_clause
from lmsconf.render.resource_wording import count_noun, is_or_are, name_list
from lmsconf.render.text import table_lines

STATUS_TITLES = {
    CallStatus.FAILED: "Failed",
    CallStatus.BLOCKED: "Skipped",
    CallStatus.NOT_ATTEMPTED: "Not attempted",
    CallStatus.DONE: "Done",
}
"""Calls by their status, in the order in which views list them."""
_FEW = 3
"""The number of people named beside a call: a removed person, or the first of many added ones."""


def describe_call(call: CallOutcome | RecordedCall) -> str:
    """Return the operation of a call and the people concerned: `manual-groups.remove-member: bo@acme.example`."""
    return f"{call.operation}: {name_list(call.people, _FEW)}" if call.people else call.operation


def count_statuses(report: ApplyReport) -> str:
    """`5 calls done, 1 failed, 2 blocked, 0 not attempted`."""
    rest = (CallStatus.FAILED, CallStatus.BLOCKED, CallStatus.NOT_ATTEMPTED)
    not_done = [f"{report.count(status):,} {status.value.replace('_', ' ')}" for status in rest]
    return ", ".join([f"{count_noun(report.count(CallStatus.DONE), 'call')} done", *not_done])


def apply_summary(report: ApplyReport) -> str:
    """Return the last line of an apply report: `Apply complete!` only if no difference is known to remain."""
    done, total = report.count(CallStatus.DONE), len(report.outcomes)
    calls = count_noun(total, "API call")
    if not done and _may_have_acted(report):
        return f"Apply stopped. It is not known whether anything was done: none of {calls} is confirmed."
    if done < total:
        verb = "stopped before any change" if not done else "incomplete"
        return f"Apply {verb}. {done:,} of {calls} done."
    if report.converged or (report.converged is None and not total):
        resources = len({outcome.address for outcome in report.outcomes})
        return f"Apply complete! {count_noun(resources, 'resource')} changed ({calls})."
    if report.converged is None:
        return f"Apply ended, but it is not known whether the workspace is as planned ({calls} done)."
    difference = f"{_unlike(report)} ({calls} done)"
    if report.residue and not report.remaining_changes and report.verified.scope is VerifyMode.ALL:
        return f"Apply ended, but the workspace does not match the manifests: {difference}."
    return f"Apply ended, but the workspace is not as planned: {difference}."


_MAY_HAVE_ACTED = (ExitCode.PARTIAL, ExitCode.NOT_CONVERGED, ExitCode.INTERRUPTED, ExitCode.TERMINATED)
"""Exit codes of runs that changed something, may have, or were interrupted before that was known."""


def _may_have_acted(report: ApplyReport) -> bool:
    """Whether a failed call may have been carried out, because its response was lost."""
    return report.count(CallStatus.FAILED) > 0 and report.exit in _MAY_HAVE_ACTED


def verification_result(report: ApplyReport) -> str:
    """Return the result of the verification, limited to the scope that was read back."""
    verified = report.verified
    if report.converged is None:
        if not report.outcomes:
            return "Nothing was sent, and the workspace was not read back."
        return "The workspace was not read back, so it is not known whether it matches the manifests."
    if verified.scope is VerifyMode.TOUCHED:
        return " ".join(filter(None, (_touched(report), verified.reason)))
    looked_at = "the scope of this plan" if verified.partial else "the workspace"
    if not report.converged:
        return f"Read back: {looked_at} does not match the manifests; {_unlike(report)}."
    if verified.left_out:
        more = f"{count_noun(verified.left_out, 'change')} left out, because this plan only adds"
        return f"Read back: nothing of {looked_at} is left to create or to add; {more}."
    begin = "Read back" if report.outcomes else "Nothing was sent"
    return f"{begin}: {looked_at} matches the manifests{skipped_people_clause(verified.skipped)}."


def _touched(report: ApplyReport) -> str:
    """Return the result for `--verify touched`, which reads back only the plan's resources."""
    number = report.verified.resources
    planned = f"The {count_noun(number, 'resource')} of this plan {is_or_are(number)}"
    return f"{planned} as planned." if report.converged else f"{planned} not all as planned: {_unlike(report)}."


def other_changes_heading(report: ApplyReport) -> str:
    """Return the heading of the remaining differences in resources that the plan did not change."""
    if report.verified.scope is VerifyMode.TOUCHED:
        return "Not part of this plan, but now conflicts with it:"
    return "Not part of this plan, but drifted:"


REMAINING_CHANGES_HEADING = "A new plan would still make these changes:"
"""The heading of the remaining differences in resources that the plan changed."""


def _unlike(report: ApplyReport) -> str:
    """Return how the workspace is not as planned: resources that differ, and errors that prevent a fresh plan."""
    number, others = len(report.residue), len(report.foreign_changes)
    errors = sum(problem.is_error and problem.code != "apply/no-effect" for problem in report.problems)
    parts = [f"{count_noun(number, 'resource')} {'differs' if number == 1 else 'differ'}"] if number else []
    if others:
        which = "which is" if number == 1 else "none of them" if others == number else f"{others:,} of them"
        parts.append(f"{which} {'' if others == number > 1 else 'not '}part of this plan")
    if errors or not parts:
        parts.append(f"a new plan finds {count_noun(errors, 'error')}")
    return ", ".join(parts)


_COUNTED: Final = {
    CallState.DONE: "DONE",
    CallState.FAILED: "FAILED",
    CallState.BLOCKED: "BLOCKED",
    CallState.IN_FLIGHT: "IN FLIGHT",
    CallState.NOT_ATTEMPTED: "NOT ATTEMPTED",
}
_HEAD: Final = ("STARTED", "WORKSPACE", "RUN", *_COUNTED.values(), "END")
_TEXTS: Final = [column for column, title in enumerate(_HEAD) if title not in _COUNTED.values()]
"""The columns that are no counts."""
_UNKNOWN: Final = "?"


def runs_text(runs: Sequence[RecordedRun]) -> str:
    """Render a table: one line per run, with counts of calls per state."""
    if not runs:
        return "No runs recorded.\n"
    rows = [_HEAD, *(_row(run) for run in runs)]
    return "".join(f"{line}\n" for line in table_lines(rows, _TEXTS))


def _row(run: RecordedRun) -> tuple[str, ...]:
    opening = run.opening
    started, workspace = (format_utc(opening.started), opening.workspace) if opening else (_UNKNOWN, _UNKNOWN)
    counts = (f"{run.summary[state]:,}" for state in _COUNTED)
    return (started, escape_terminal(workspace), escape_terminal(run.name), *counts, _end(run))


def _end(run: RecordedRun) -> str:
    end = "not ended" if run.ending is None else f"exit {run.ending.exit}"
    return f"{end}, {count_noun(run.damaged, 'line')} damaged" if run.damaged else end
