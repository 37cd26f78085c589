"""`--events FILE|-`: one JSON object a line for each thing that a command does, while it does it.

A command with the option gets `events: CommandEvents`. Without `--events` its methods do nothing; with it, an
`EventWriter` writes them.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from lmsconf.api.client import Exchange
    from lmsconf.errors import Problem
    from lmsconf.model.calls import Call, Report
    from lmsconf.model.declarations import Manifests
    from lmsconf.model.drift import DriftReport
    from lmsconf.model.outcomes import ApplyReport, CallOutcome
    from lmsconf.model.plan import Plan
    from lmsconf.model.snapshot import Snapshot


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

    def call_started(self, call: Call) -> None:
        """A call is about to be sent, or sent again. Called by several threads."""

    def call_ended(self, outcome: CallOutcome) -> None:
        """A call has ended, or is not sent."""

    def waiting(self, reason: str, message: str, seconds: float | None = None) -> None:
        """The run waits for at most so many seconds; None: until somebody has answered."""

    def note(self, text: str) -> None:
        """A sentence for people."""

    def applied(self, report: ApplyReport) -> None:
        """A run ended, before or after its first call."""

    def failed(self, problems: Sequence[Problem]) -> None:
        """The command ends with these problems."""

    def end(self, code: int) -> None:
        """The command ends with this exit code."""


NO_EVENTS = CommandEvents()
