"""A plan made on a snapshot of the whole workspace, and its rehearsal: `plan --rehearse`, and `Project.plan`."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from msgspec import Struct
from msgspec.structs import replace

from lmsconf.apply.phases import Phase, unreported
from lmsconf.apply.rehearsal.rehearse import RehearsalOptions, rehearse
from lmsconf.model.declarations import Manifests
from lmsconf.model.plan import Plan
from lmsconf.model.policy import Policy
from lmsconf.model.snapshot import Snapshot
from lmsconf.workspace.plan_with_base import plan_with_base
from lmsconf.workspace.reader import WorkspaceReader

if TYPE_CHECKING:
    from lmsconf.workspace.base_comparison import BaseManifests


class RehearsalRequest(Struct, frozen=True, kw_only=True):
    """What is rehearsed, and how.

    snapshot: the saved snapshot to plan on; None: the workspace is read. base: the manifests to compare with.
    max_rate: requests a second, at most. phase: receives the progress.
    """

    policy: Policy
    snapshot: Snapshot | None = None
    base: BaseManifests | None = None
    max_rate: float | None = None
    phase: Phase = unreported


def rehearsed_plan(
    reader: WorkspaceReader,
    request: RehearsalRequest,
    manifests: Manifests,
    read: Callable[[Manifests], Snapshot],
) -> Plan:
    """Return the plan of the manifests with its rehearsal. Raises CannotRehearse, and ProblemsFound like any plan.

    read: reads the whole workspace, unless a snapshot is given.
    """
    live = read(manifests) if request.snapshot is None else request.snapshot
    if request.base is None:
        plan = reader.plan_offline(manifests, request.policy, live)
    else:
        plan = plan_with_base(reader, manifests, request.policy, request.base, snapshot=live)
    plan = replace(plan, offline=request.snapshot is not None)
    rate = None if request.snapshot is not None else reader.connection.rate
    options = RehearsalOptions(rate=rate, is_limit=rate is not None and rate == request.max_rate, phase=request.phase)
    return replace(plan, rehearsal=rehearse(plan, manifests, request.policy, live, reader.settings, options))
