"""Apply a plan in a workspace of a fleet; apply it again where an earlier attempt may have done a part of it.

An earlier attempt is one whose machine has died, or a run of `fleet apply` that was interrupted or killed. Where its
journal is not in this project's folder, the second attempt first waits until all that was sent shows (`settle`). Then
it plans what is left of the plan, and applies that: nothing is done twice, and nothing that was not reviewed.
"""

from __future__ import annotations

import time
from pathlib import Path
from typing import Final

from msgspec.structs import replace

from lmsconf.apply.applier import Applier
from lmsconf.apply.events import ApplyProgress
from lmsconf.apply.remote_lock import LockHeldElsewhere
from lmsconf.apply.safe_apply import ApplyOptions, PlanSource, PreparedPlan, apply_safely
from lmsconf.documents.plan_file import plan_digest
from lmsconf.errors import StalePlan
from lmsconf.journal.journal_reader import read_headers
from lmsconf.journal.workspace_lock import WorkspaceLocked
from lmsconf.model.blockers import refuse_blocked
from lmsconf.model.calls import CallStatus
from lmsconf.model.outcomes import ApplyReport
from lmsconf.model.plan import Plan
from lmsconf.project.settings import Settings

_AGAIN_AFTER: Final = 2.0
_CLOCKS_DIFFER: Final = 60.0
"""Seconds for which a lock is respected after its lease, see `lock_names`."""


def apply_plan(settings: Settings, plan: Plan, options: ApplyOptions) -> tuple[ApplyReport, int]:
    """Apply a saved plan; return the report, and how many of its calls were carried out."""

    def prepare(workspace: Applier, progress: ApplyProgress) -> PreparedPlan:
        return PreparedPlan(plan=workspace.reevaluate_guards(plan, ()))

    report, _ = apply_safely(settings, PlanSource(get=prepare, saved=True), options, ApplyProgress())
    return report, _done(report)


def begun_plans(root: Path) -> frozenset[str]:
    """Return the digests of the plans of which a journal in the project's folder says that a run has begun.

    Raises LmsconfError.
    """
    return frozenset(header.digest for _, header in read_headers(root))


def apply_again(
    settings: Settings, plan: Plan, options: ApplyOptions, *, has_journals: bool
) -> tuple[ApplyReport, int]:
    """Apply what is left of a plan; return the report of that, and how many calls of the whole plan are carried out.

    has_journals: whether the journals of all earlier attempts are here; then only as long as they need is waited.
    """
    if not has_journals and not settings.workspace.embedded:
        time.sleep(settings.settle)
    digest, left = plan_digest(plan), 0

    def prepare(workspace: Applier, progress: ApplyProgress) -> PreparedPlan:
        nonlocal left
        if options.digest not in (None, digest):
            raise StalePlan(
                f"expected the digest {options.digest}, but the plan's is {digest}",
                hint="Review the plan as it is now.",
            )
        guarded = workspace.reevaluate_guards(plan, ())
        rest = workspace.plan_what_is_left(guarded)
        refuse_blocked(guarded)  # what is left is planned without the lists of `guards.protect`
        left = len(rest.calls)
        return PreparedPlan(plan=rest)

    source = PlanSource(get=prepare, saved=False)
    report = _once_unlocked(settings, source, replace(options, digest=None))
    return replace(report, plan_digest=digest), len(plan.calls) - left + _done(report)


def _once_unlocked(settings: Settings, source: PlanSource, options: ApplyOptions) -> ApplyReport:
    """Apply as soon as the locks of the dead attempt are free. Raises what `apply_safely` raises."""
    lease = 0.0 if settings.lock is None else settings.lock.lease + _CLOCKS_DIFFER
    end = time.monotonic() + max(lease, settings.settle) + _AGAIN_AFTER
    while True:
        try:
            return apply_safely(settings, source, options, ApplyProgress())[0]
        except (WorkspaceLocked, LockHeldElsewhere):
            if time.monotonic() >= end:
                raise
            time.sleep(_AGAIN_AFTER)


def _done(report: ApplyReport) -> int:
    return sum(outcome.status is CallStatus.DONE for outcome in report.outcomes)
