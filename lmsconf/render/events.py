"""Events: one JSON object a line for what a plan, an apply or a drift report does, while it does it.

`schemas/events.schema.json` describes every event. The values are those of the plan's and the drift report's JSON.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from enum import StrEnum
from typing import Final, NamedTuple

from lmsconf import __version__
from lmsconf.documents.change_values import change_json, problem_json
from lmsconf.documents.document import escape_invisible, object_json, without_keys
from lmsconf.documents.plan_file import plan_digest
from lmsconf.documents.plan_values import summary_json
from lmsconf.errors import Problem, Severity
from lmsconf.kinds.shared.kind_names import resource_title
from lmsconf.model.blockers import Blocker, blockers
from lmsconf.model.calls import Call, CallStatus
from lmsconf.model.canonical_json import Json
from lmsconf.model.declarations import Manifests
from lmsconf.model.drift import DriftFinding, DriftReport
from lmsconf.model.outcomes import ApplyReport, CallOutcome
from lmsconf.model.plan import Action, Change, Plan
from lmsconf.model.progress import RunProgress
from lmsconf.model.snapshot import Snapshot
from lmsconf.render.apply_wording import apply_summary, verification_result
from lmsconf.render.drift_wording import drift_summary, finding_headline
from lmsconf.render.json import drift_summary_json, finding_json
from lmsconf.render.plan_wording import plan_summary
from lmsconf.render.progress_wording import count_text
from lmsconf.render.resource_wording import count_kind, count_noun

FORMAT: Final = 1
"""The version of the events. Keys and types may be added to it; another number is for anything else."""

_VERBS: Final = {Action.UPDATE: "change"}
_LEVELS: Final = {Severity.ERROR: "error", Severity.WARNING: "warning", Severity.NOTE: "info"}


class Event(NamedTuple):
    """One event. values: the keys of its type. level: info, warning or error."""

    type: str
    message: str
    values: Mapping[str, Json]
    level: str = "info"


class WaitReason(StrEnum):
    """What a run waits for.

    rate_limit    the service limits the rate of requests
    retry         a request is to be sent again
    settle        a write does not show yet
    lock          the run's own lock does not show yet
    earlier_run   writes of an earlier run may still take effect
    approval      somebody is asked whether to apply the plan
    """

    RATE_LIMIT = "rate_limit"
    RETRY = "retry"
    SETTLE = "settle"
    LOCK = "lock"
    EARLIER_RUN = "earlier_run"
    APPROVAL = "approval"


def event_line(event: Event, at: str) -> str:
    """Return the line of an event, with its end."""
    common: dict[str, Json] = {"format": FORMAT, "type": event.type, "at": at, "level": event.level}
    return escape_invisible(json.dumps({**common, "message": event.message, **event.values}, ensure_ascii=False)) + "\n"


def start_event(command: str) -> Event:
    """The first event of every stream."""
    return Event("start", f"lmsconf {__version__} {command}", {"lmsconf": __version__, "command": command})


def end_event(code: int) -> Event:
    """The last event of every stream that is whole."""
    return Event("end", f"Exit code {code}", {"exit": code}, "info" if code in (0, 2) else "error")


def manifests_event(manifests: Manifests) -> Event:
    counts: dict[str, Json] = {
        "files": len(manifests.files),
        "declared": len(manifests.declared),
        "absent": len(manifests.absent),
    }
    message = f"Read {count_noun(len(manifests.files), 'file')} of manifests"
    return Event("manifests_read", message, {**counts, "digest": manifests.digest})


def snapshot_event(snapshot: Snapshot) -> Event:
    """What was read of a workspace: rows by kind, or by part of a kind."""
    rows: dict[str, Json] = {name: len(listing.rows) for name, listing in sorted(snapshot.listings.items())}
    why: dict[str, Json] = {
        name: listing.incomplete for name, listing in sorted(snapshot.listings.items()) if listing.incomplete
    }
    counts = ", ".join(count_kind(len(listing.rows), name) for name, listing in sorted(snapshot.listings.items()))
    values: dict[str, Json] = {
        "workspace": {"name": snapshot.workspace, "url": snapshot.url},
        "people": snapshot.people,
        "rows": rows,
        "incomplete": why,
    }
    return Event("workspace_read", f"Read from {snapshot.workspace}: {counts or 'nothing'}", values)


def phase_event(part: str, phase: str, progress: RunProgress | None, more: Mapping[str, Json]) -> Event:
    """part: start, progress or end."""
    counts: dict[str, Json] = {}
    if progress is not None:
        counts = {"done": progress.done, "total": progress.total, "total_is_final": progress.is_final}
    what = {"start": "begins", "end": "ended"}.get(part) or ("" if progress is None else count_text(progress))
    return Event(f"phase_{part}", f"{phase}: {what}", {"phase": phase.lower(), **counts, **more})


def problem_event(problem: Problem) -> Event:
    return Event("problem", problem.message, {"problem": problem_json(problem)}, _LEVELS[problem.severity])


def note_event(text: str) -> Event:
    return Event("note", text, {})


def plan_events(plan: Plan) -> Iterator[Event]:
    """Yield a plan's problems, changes, the reasons that would stop an apply, and its summary."""
    yield from map(problem_event, plan.all_problems)
    yield from map(_change_event, plan.changes)
    yield from map(_blocked_event, blockers(plan))
    people: Json = {"basis": plan.effects.basis.value, "people": object_json(plan.effects.people)}
    values: dict[str, Json] = {
        "workspace": {"name": plan.workspace, "url": plan.url},
        "digest": plan_digest(plan),
        "partial": plan.partial,
        "summary": summary_json(plan),
        "unmanaged": sum(len(group.addresses) + group.left_alone for group in plan.unmanaged),
        "effects": people,
    }
    yield Event("plan_summary", plan_summary(plan), values)


def _change_event(change: Change) -> Event:
    verb = _VERBS.get(change.action, change.action.value)
    values = without_keys(change_json(change), "problems")
    return Event("planned_change", f"{resource_title(change.address)}: plan to {verb}", values)


def _blocked_event(blocker: Blocker) -> Event:
    values: dict[str, Json] = {
        "blocker": blocker.type.value,
        "name": blocker.name,
        "reason": blocker.message,
        "allow": blocker.allow,
        "hint": blocker.hint,
    }
    return Event("blocked", f"Apply would stop: {blocker}", values, "error")


def drift_events(report: DriftReport) -> Iterator[Event]:
    """Yield the problems and findings of a drift report, and its summary."""
    yield from map(problem_event, report.problems)
    yield from map(_finding_event, report.findings)
    values: dict[str, Json] = {
        "workspace": {"name": report.workspace, "url": report.url},
        "summary": drift_summary_json(report),
    }
    yield Event("drift_summary", drift_summary(report), values, "warning" if report.findings else "info")


def _finding_event(finding: DriftFinding) -> Event:
    return Event("drift_finding", finding_headline(finding), finding_json(finding), "warning")


def call_start_event(call: Call) -> Event:
    values: dict[str, Json] = {"id": call.id, "address": str(call.address), "operation": call.operation}
    return Event("call_start", f"{resource_title(call.address)}: sending {call.operation}", values)


def call_end_event(outcome: CallOutcome, *, seconds: float | None, requests: int, http_status: int | None) -> Event:
    """seconds: since the call was started; None if it never was. requests: how many were sent for it."""
    values: dict[str, Json] = {
        "id": outcome.call,
        "address": str(outcome.address),
        "operation": outcome.operation,
        "status": outcome.status.value,
        "seconds": None if seconds is None else round(seconds, 3),
        "retries": max(requests - 1, 0),
        "http_status": http_status,
        "resource_id": outcome.id,
        "reason": outcome.reason,
        "hint": outcome.hint,
        "unsure": outcome.unsure,
    }
    done = outcome.status is CallStatus.DONE
    message = f"{resource_title(outcome.address)}: {outcome.operation} {outcome.status.value.replace('_', ' ')}"
    return Event("call_end", message, values, "info" if done else "error")


def wait_event(reason: WaitReason, message: str, seconds: float | None, more: Mapping[str, Json]) -> Event:
    """seconds: for at most how long; None if that is not known."""
    return Event("wait", message, {"reason": reason.value, "seconds": seconds and round(seconds, 3), **more})


def apply_events(report: ApplyReport) -> Iterator[Event]:
    """Yield the problems of an apply report, and its summary."""
    yield from map(problem_event, report.problems)
    values: dict[str, Json] = {
        "workspace": {"name": report.workspace, "url": report.url},
        "digest": report.plan_digest,
        "summary": {status.value: report.count(status) for status in CallStatus},
        "verified": report.verified.scope.value,
        "converged": report.converged,
    }
    message = f"{apply_summary(report)} {verification_result(report)}"
    yield Event("apply_summary", message, values, "error" if report.exit else "info")
