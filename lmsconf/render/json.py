"""JSON: the documents that lmsconf saves, those of drift, fleets and recorded runs, and single values for scripts."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import Final

from lmsconf.documents import plan_file
from lmsconf.documents.access_documents import problems_json
from lmsconf.documents.apply_report_file import dumps as apply_json
from lmsconf.documents.document import (
    TOOL,
    change_json,
    object_json,
    render_json,
    to_json,
    unmanaged_json,
    without_keys,
)
from lmsconf.documents.fleet_file import index_json
from lmsconf.documents.plan_file import dumps as plan_json
from lmsconf.model.canonical_json import Json
from lmsconf.model.drift import DriftFinding, DriftReport, DriftState, IgnoredFinding, ManagedShare
from lmsconf.model.fleet import FleetReport, SharedChanges
from lmsconf.model.outcomes import CallState, RecordedCall, RecordedRun
from lmsconf.model.plan import Plan
from lmsconf.model.time_formats import format_utc

__all__ = ["apply_json", "drift_json", "fleet_json", "plan_json", "problems_json"]


def plan_digest(plan: Plan) -> str:
    """Return the plan's digest and a newline, for `apply --expect-digest`."""
    return f"{plan_file.plan_digest(plan)}\n"


def plan_gitlab(plan: Plan) -> str:
    """Return GitLab's merge request report of type `terraform`, in which a replacement is a deletion and a creation."""
    counts = plan.summary
    created, deleted = counts.create + counts.replace, counts.delete + counts.replace
    return json.dumps({"create": created, "update": counts.update, "delete": deleted}) + "\n"


def fleet_json(report: FleetReport) -> str:
    """Return the document `lmsconf.fleet/1` with `shared`: which changes are the same in which workspaces."""
    return render_json({**index_json(report.index), "shared": [_shared_json(one) for one in report.shared]})


def _shared_json(shared: SharedChanges) -> Json:
    return {
        "workspaces": list[Json](shared.workspaces),
        "one_each": shared.one_each,
        "changes": [change_json(change) for change in shared.changes],
    }


FORMAT: Final = "lmsconf.drift/1"


def drift_json(drift: DriftReport) -> str:
    """Return the whole report as JSON, one finding per line."""
    return render_json(
        {
            "format": FORMAT,
            "tool": TOOL,
            "created_at": drift.created_at,
            "workspace": {"name": drift.workspace, "url": drift.url},
            "people": drift.people,
            "timezone": drift.timezone,
            "manifests": {"digest": drift.manifests_digest, "files": list(drift.manifests_files)},
            "base": drift.base,
            "counts_unmanaged": drift.counts_unmanaged,
            "read": "everything" if drift.reads_all else "declared",
            "summary": drift_summary_json(drift),
            "findings": [finding_json(finding) for finding in drift.findings],
            "not_applied": [finding_json(finding) for finding in drift.not_applied],
            "ignored": [_ignored(ignored_finding) for ignored_finding in drift.ignored],
            "coverage": [_coverage(share) for share in drift.coverage],
            "unmanaged": unmanaged_json(drift.unmanaged),
            "problems": to_json(drift.problems),
        }
    )


def drift_summary_json(drift: DriftReport) -> Json:
    """Return the counts of findings per state; `unmanaged` counts all such resources, findings or not."""
    states: dict[str, Json] = {state.value: drift.count(state) for state in DriftState}
    unmanaged = sum(len(group.addresses) for group in drift.unmanaged)
    return {
        "findings": len(drift.findings),
        **states,
        DriftState.UNMANAGED.value: unmanaged,
        "not_applied": len(drift.not_applied),
        "ignored": len(drift.ignored),
    }


def finding_json(finding: DriftFinding) -> dict[str, Json]:
    edit = finding.edit
    values = without_keys(object_json(finding), "edit", "goes_along", "restore", "accept")
    return {
        "address": finding.address,
        "kind": finding.address.kind,
        "name": finding.address.name,
        **values,
        "candidates": [without_keys(object_json(candidate), "is_earlier_name") for candidate in finding.candidates],
        "changed_by": edit.by if edit else None,
        "changed_at": edit.at if edit else None,
        "hint": {"restore": finding.restore, "accept": finding.accept},
    }


def _ignored(ignored: IgnoredFinding) -> Json:
    return {**finding_json(ignored.finding), "ignored_by": to_json(ignored.entry)}


def _coverage(coverage: ManagedShare) -> Json:
    return {
        "kind": coverage.kind,
        "managed": coverage.managed,
        "live": coverage.live,
        "percent": coverage.percent,
        "left_alone": coverage.left_alone,
        "incomplete": coverage.incomplete,
    }


RUNS_FORMAT: Final = "lmsconf.runs/1"


def runs_json(runs: Sequence[RecordedRun]) -> str:
    """Return the runs, without calls, as JSON."""
    return _runs_document([_run(run) for run in runs])


def run_json(run: RecordedRun) -> str:
    """Return one run with its calls as JSON."""
    return _runs_document([{**_run(run), "calls": [_call_json(call) for call in run.calls]}])


def _runs_document(runs: Iterable[Json]) -> str:
    return render_json({"format": RUNS_FORMAT, "tool": TOOL, "runs": list(runs)})


def _run(run: RecordedRun) -> dict[str, Json]:
    opening, ending = run.opening, run.ending
    return {
        "run": run.name,
        "digest": opening.digest if opening else None,
        "workspace": {"name": opening.workspace, "url": opening.url} if opening else None,
        "tool": {"name": "lmsconf", "version": opening.tool} if opening else None,
        "meta": dict(sorted(opening.meta.items())) if opening else {},
        "started_at": _time(opening.started) if opening else None,
        "ended_at": _time(ending.at) if ending else None,
        "exit": ending.exit if ending else None,
        "verified": ending.verified.value if ending else None,
        "converged": ending.converged if ending else None,
        "summary": {state.value: run.summary[state] for state in CallState},
        "damaged": run.damaged,
    }


def _call_json(call: RecordedCall) -> Json:
    return {
        "call": call.call,
        "address": call.address,
        "operation": call.operation,
        "status": call.state.value,
        "reason": call.reason,
        "id": call.id,
        "people": list(call.people),
        "begun_at": _time(call.begun),
        "ended_at": _time(call.ended),
    }


def _time(at: datetime | None) -> str | None:
    return None if at is None else format_utc(at)
