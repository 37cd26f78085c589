"""A journal whose process dies."""

from __future__ import annotations

from lmsconf.journal.journal_writer import Journal
from lmsconf.journal.kept_runs import Retention
from lmsconf.model.calls import Call
from lmsconf.model.outcomes import CallOutcome

from .request_faults import Killed

KEPT = Retention(keep=50, settle=30.0)


class MortalJournal(Journal):
    """Everything is written down until the outcome of that number: then the process dies instead.

    unsent: it dies before that call is sent, with its intent written down.
    """

    dies_at: int | None = None
    unsent: bool = False

    def record_intent(self, call: Call) -> None:
        super().record_intent(call)
        if self.unsent and self.dies_at == 1:
            raise Killed

    def record_outcome(self, outcome: CallOutcome) -> None:
        if self.dies_at is not None:
            self.dies_at -= 1
            if not self.dies_at:
                raise Killed
        super().record_outcome(outcome)
