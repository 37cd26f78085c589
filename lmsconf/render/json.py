"""JSON: the documents that lmsconf saves, those of drift and fleets, and single values for CI scripts."""

from __future__ import annotations

import json
from typing import Final

from lmsconf.documents import plan_file
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
from lmsconf.documents.report_file import dumps as apply_json
from lmsconf.documents.reports import problems_json
from lmsconf.model.canonical_json import Json
from lmsconf.model.drift import DriftFinding, DriftReport, DriftState, IgnoredFinding, ManagedShare
from lmsconf.model.fleet import FleetReport, SharedChanges
from lmsconf.model.plan import Plan

__all__ = ["apply_json", "drift_json", "fleet_json", "plan_json", "problems_json"]


def plan_digest(plan: Plan) -> str:
    """Return the plan's digest and a newline, for `apply --expect-digest`."""
    return f"{plan_file.plan_digest(plan)}\n"


def plan_gitlab(plan: Plan) -> str:
    """Return GitLab's merge request report of type `terraform`: three counts.

    A replacement counts as a deletion and a creation, as in the reports of GitLab's own template.
    """
    counts = plan.summary
    report = {
        "create": counts.create + counts.replace,
        "update": counts.update,
        "delete": counts.delete + counts.replace,
    }
    return json.dumps(report) + "\n"


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
