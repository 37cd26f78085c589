"""Terminal interaction of `lmsconf apply`: progress, the approval prompt, the report."""

from __future__ import annotations

import math
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial

from lmsconf.apply.events import ApplyProgress
from lmsconf.cli.events import CommandEvents
from lmsconf.cli.frame import report_interrupt
from lmsconf.cli.output import Output
from lmsconf.cli.output_streams import mask_if_enabled, supports_color, write_redacted, write_stderr
from lmsconf.cli.planning import show_reading_progress
from lmsconf.cli.prompts import confirm
from lmsconf.errors import ExitCode, LmsconfError, Problem, ProblemsFound, UsageError
from lmsconf.journal.journal_reader import PendingWrites
from lmsconf.model.calls import Call
from lmsconf.model.fleet import INTERRUPTIONS
from lmsconf.model.outcomes import ApplyReport, CallOutcome
from lmsconf.model.plan import Plan
from lmsconf.model.progress import Report
from lmsconf.model.snapshot import Snapshot
from lmsconf.render import APPLY_VIEWS
from lmsconf.render.apply_wording import apply_summary, verification_result
from lmsconf.render.plan_wording import workspace_line
from lmsconf.render.text.plan import apply_text, plan_text


class ApplyScreen(ApplyProgress):
    """Progress bars, the plan and notes on stderr, and all of it as events.

    A plan from a file was reviewed already and is not shown.
    """

    def __init__(self, output: Output, events: CommandEvents, *, shows_plan: bool) -> None:
        self._output, self._events = output, events
        self._shows_plan = shows_plan
        self._has_waited = False

    @contextmanager
    def phase(self, label: str) -> Iterator[Report]:
        with show_reading_progress(label, self._events) as tell:
            yield tell

    def workspace_read(self, snapshot: Snapshot) -> None:
        self._events.workspace_read(snapshot)

    def call_started(self, call: Call) -> None:
        self._events.call_started(call)

    def call_ended(self, outcome: CallOutcome) -> None:
        self._events.call_ended(outcome)

    def planned(self, plan: Plan) -> None:
        self._events.planned(plan)
        if self._shows_plan:
            # What stops it is the error that follows.
            text = plan_text(mask_if_enabled(plan), names_blockers=False)
            write_redacted(text, sys.stderr, color=supports_color(sys.stderr))

    def waiting_for_lock(self, seconds: float) -> None:
        self._events.waiting("lock", "Waiting until the lock of this run is listed", seconds)

    def waiting_for_earlier_run(self, writes: PendingWrites) -> None:
        self._events.waiting("earlier_run", str(writes), writes.seconds)
        write_stderr(str(writes))

    def waiting(self, seconds: float) -> None:
        self._events.waiting("settle", "Waiting for what was sent to show", seconds)
        if not self._has_waited:
            self._has_waited = True
            write_stderr(f"Waiting until the changes are readable, at most {math.ceil(seconds)} s.")

    def note(self, text: str) -> None:
        self._events.note(text)
        write_stderr(text)

    def stopped(self, report: ApplyReport) -> None:
        self._events.applied(report)
        # A program expects one document: the report, with all calls not attempted. For a person the error is enough.
        if self._output.format != "text":
            write_report(self._output, report, journalled=False)

    def interrupted(self, error: KeyboardInterrupt) -> None:
        report_interrupt(error)


def approval_prompt(events: CommandEvents) -> Callable[[Plan], bool]:
    """Return the function that prompts for approval on the terminal; only `yes` approves."""

    def approve(plan: Plan) -> bool:
        events.approval_asked()
        return confirm("Apply this plan?", about=workspace_line(plan.workspace, plan.url, plan.people))

    return approve


def write_report(output: Output, report: ApplyReport, *, journalled: bool, was_asked: bool = False) -> ExitCode:
    """Write the report and return its exit code.

    was_asked: the plan and the question, shown above it on a terminal, name the workspace. If it cannot be
    written, raises ProblemsFound with the report's problems, the outcome of the run, and the worse of the two exit
    codes.
    """
    if output.format == "text" and not journalled and report.exit in INTERRUPTIONS:
        # Nothing has begun. As where the plan is declined, the error is enough for a person.
        raise ProblemsFound(report.problems, exit=ExitCode(report.exit))
    try:
        named_above = was_asked and output.is_on_terminal
        text = partial(apply_text, names_workspace=not named_above)
        output.show({**APPLY_VIEWS, "text": text}, report)
    except LmsconfError as lost:
        raise ProblemsFound(
            [*report.problems, _unwritten(lost, report, journalled=journalled)],
            exit=ExitCode.worst([lost.exit, ExitCode(report.exit)]),
        ) from lost
    return ExitCode(report.exit)


def _unwritten(lost: LmsconfError, report: ApplyReport, *, journalled: bool) -> Problem:
    ended = f"{apply_summary(report)} {verification_result(report)}"
    return Problem(
        code=lost.code,
        message=f"{lost.message}. The run itself ended with exit code {report.exit}: {ended}",
        hint="Its journal lists every call: lmsconf runs latest" if journalled else lost.hint,
    )


def parse_key_values(pairs: Sequence[str]) -> dict[str, str]:
    """Parse `k=v` pairs. Raises UsageError."""
    meta = {}
    for pair in pairs:
        key, equals, value = pair.partition("=")
        if not key or not equals:
            raise UsageError(f"--meta {pair}: expected KEY=VALUE", hint="Write --meta commit=4f1d2a.")
        meta[key] = value
    return meta
