"""`--events FILE|-`: one JSON object a line for each thing that a command does, while it does it.

A command with the option gets `events: CommandEvents`. Without `--events` its methods do nothing; with it, an
`EventWriter` writes them.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import TYPE_CHECKING, ParamSpec

import click

from lmsconf.errors import ExitCode, LmsconfError, Problem

if TYPE_CHECKING:
    from lmsconf.api.client import Exchange
    from lmsconf.model.calls import Call
    from lmsconf.model.declarations import Manifests
    from lmsconf.model.drift import DriftReport
    from lmsconf.model.outcomes import ApplyReport, CallOutcome
    from lmsconf.model.plan import Plan
    from lmsconf.model.progress import Report
    from lmsconf.model.snapshot import Snapshot

P = ParamSpec("P")


class CommandEvents:
    """The events of a command. Every method does nothing here, and none raises."""

    def phase(self, label: str) -> AbstractContextManager[Report]:
        """A phase begins: Reading, Checking, Applying or Verifying. The context's value receives the progress."""
        return nullcontext(lambda progress: None)

    def exchanged(self, exchange: Exchange) -> None:
        """A request was answered, or failed. Called by several threads."""

    def manifests_read(self, manifests: Manifests) -> None:
        """The manifests were read and have no errors."""

    def workspace_read(self, snapshot: Snapshot) -> None:
        """The workspace, or a part of it, was read."""

    def planned(self, plan: Plan) -> None:
        """A plan was made or loaded."""

    def compared(self, report: DriftReport) -> None:
        """A drift report was made."""

    def approval_asked(self) -> None:
        """Somebody is asked whether to apply the plan."""

    def call_started(self, call: Call) -> None:
        """A call is about to be sent, or sent again. Called by several threads."""

    def call_ended(self, outcome: CallOutcome) -> None:
        """A call has ended, or is not sent."""

    def waiting(self, reason: str, message: str, seconds: float) -> None:
        """The run waits for at most so many seconds."""

    def note(self, text: str) -> None:
        """A sentence for people."""

    def applied(self, report: ApplyReport) -> None:
        """A run ended, before or after its first call."""

    def failed(self, problems: Sequence[Problem]) -> None:
        """The command ends with these problems."""

    def end(self, code: int) -> None:
        """The command ends with this exit code."""


NO_EVENTS = CommandEvents()


def events_option(command: Callable[P, ExitCode | None]) -> Callable[P, ExitCode | None]:
    """Add `--events`; the command receives it as `events: CommandEvents`. Apply it inside of `output_options`."""

    @click.option(
        "--events",
        "events_",
        metavar="FILE",
        help="Write what happens, while it happens, to this file: one JSON object a line. - is stdout; the result then "
        "goes to stderr.",
    )
    @functools.wraps(command)
    def framed(*args: P.args, **kwargs: P.kwargs) -> ExitCode | None:
        path = kwargs.pop("events_")
        if path is None:
            kwargs["events"] = NO_EVENTS
            return command(*args, **kwargs)
        from lmsconf.cli.event_writer import open_event_writer

        with open_event_writer(str(path), click.get_current_context().info_name or "", kwargs) as events:
            kwargs["events"] = events
            return _recorded(events, functools.partial(command, *args, **kwargs))

    return framed


def _recorded(events: CommandEvents, command: Callable[[], ExitCode | None]) -> ExitCode | None:
    """Run the command, and record the problems and the exit code that it ends with."""
    try:
        code = command()
    except BaseException as error:
        ending, problems = _ending(error)
        events.failed(problems)
        events.end(ending)
        raise
    events.end(code or ExitCode.OK)
    return code


def _ending(error: BaseException) -> tuple[ExitCode, Sequence[Problem]]:
    """Return the exit code of a command that ends with an exception, and the problems to show."""
    from lmsconf.cli.run_command import abort_cause, interrupt_exit_code

    if isinstance(error, LmsconfError):
        return error.exit, error.problems
    if isinstance(error, click.ClickException):
        misused = isinstance(error, click.UsageError)
        problem = Problem(code="usage" if misused else "error", message=error.format_message())
        return ExitCode.USAGE if misused else ExitCode.ERROR, (problem,)
    if isinstance(error, click.Abort | KeyboardInterrupt):
        cause = abort_cause(error)
        if isinstance(cause, EOFError):
            return ExitCode.ERROR, (Problem(code="error", message="declined: no answer"),)
        return interrupt_exit_code(cause), (Problem(code="interrupted", message="the command was interrupted"),)
    return ExitCode.ERROR, (Problem(code="crash", message=f"lmsconf crashed: {type(error).__name__}"),)
