"""Reports ⇄ JSON: of an apply, drift, a fleet, recorded runs, people and tests, and of problems.

An apply report is sealed, as evidence of which calls were and were not carried out.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from datetime import datetime
from functools import partial
from typing import Final

from lmsconf.documents import plan_file
from lmsconf.documents.json_documents import (
    TOOL,
    add_seal,
    change_json,
    file_changed_error,
    from_json,
    json_at,
    object_json,
    parse_document,
    read_back,
    refuse_missing,
    render_canonical_json,
    render_json,
    signature,
    to_json,
    unmanaged_json,
    value_at,
    verify_format,
    verify_signature,
    without_keys,
)
from lmsconf.documents.plan_file import blocker_json
from lmsconf.errors import LmsconfError, Problem, Severity, shorten
from lmsconf.model.access import AccessTestReport, AudienceReport, PersonAccess
from lmsconf.model.canonical_json import Json
from lmsconf.model.drift import DriftFinding, DriftReport, DriftState
from lmsconf.model.effects import Effects
from lmsconf.model.fleet import MOST_SHARDS, FleetEntry, FleetIndex
from lmsconf.model.outcomes import ApplyReport, RecordedRun
from lmsconf.model.plan import Plan
from lmsconf.model.time_formats import format_utc

APPLY_FORMAT = "lmsconf.apply/1"


def apply_json(report: ApplyReport) -> str:
    """Return the text of the report file."""
    return _sealed(report, TOOL)


def load_apply_report(text: str) -> ApplyReport:
    """Return the report that `apply_json` wrote.

    Raises StalePlan (exit 3) for text that was changed since, LmsconfError for a document of another format.
    """
    document = parse_document(text)
    verify_format(document, APPLY_FORMAT)
    return read_back(
        document,
        lambda: _apply_report(document),
        lambda report: _sealed(report, document.get("tool")),
        text,
        "an apply report",
        hint=None,
    )


def _sealed(report: ApplyReport, tool: Json) -> str:
    document: dict[str, Json] = {
        "format": APPLY_FORMAT,
        "digest": report.plan_digest,
        "seal": "",
        "tool": tool,
        "workspace": {"name": report.workspace, "url": report.url},
        "people": report.people,
        "started_at": report.started_at,
        "finished_at": report.finished_at,
        "meta": dict(sorted(report.meta.items())),
        "summary": to_json(report.summary),
        "outcomes": [without_keys(object_json(outcome), "unsure", "carried_out") for outcome in report.outcomes],
        "verified": {
            **without_keys(object_json(report.verified), "reason"),
            "others": [change.address for change in report.foreign_changes],
            "reason": report.verified.reason,
        },
        "converged": report.converged,
        "residue": [change_json(change) for change in report.residue],
        "problems": to_json(report.problems),
        "exit": int(report.exit),
        # Left out where nothing was predicted, as in reports of earlier versions.
        **({} if report.predicted is None else {"predicted": object_json(report.predicted)}),
    }
    return render_json(add_seal(document))


def _apply_report(document: dict[str, Json]) -> ApplyReport:
    """Return the report of a document; what it lacks, or has too much, shows when the report is written again."""
    return from_json(
        {
            **document,
            "workspace": json_at(document, "workspace", "name"),
            "url": json_at(document, "workspace", "url"),
            "plan_digest": json_at(document, "digest"),
        },
        ApplyReport,
    )


def fleet_index_text(index: FleetIndex, signing_key: bytes | None = None) -> str:
    """Return the text of an index, one workspace per line, signed if there is a key."""
    document = index_json(index)
    return render_json(document if signing_key is None else {**document, "hmac": signature(document, signing_key)})


def index_json(index: FleetIndex) -> dict[str, Json]:
    """Return an index as JSON."""
    return {
        "format": "lmsconf.fleet/1",
        "tool": TOOL,
        "action": index.action.value,
        "created_at": index.created_at,
        "exit": index.exit.value,
        **({} if index.shard is None else {"shard": to_json(index.shard)}),
        "summary": {
            "workspaces": len(index.entries),
            "failed": len(index.failed),
            "changed": sum(bool(entry.changes) for entry in index.entries),
        },
        "workspaces": [entry_json(entry) for entry in index.entries],
    }


def entry_json(entry: FleetEntry) -> dict[str, Json]:
    """Return the result in one workspace as JSON, without the keys about what it has nothing of."""
    known = {
        "basis": entry.basis,
        "relaxed": entry.relaxed,
        "assumed_keys": entry.assumed_keys,
        "assumed_calls": entry.assumed_keys,
    }
    left_out = [key for key, value in known.items() if not value]
    return {**without_keys(object_json(entry), *left_out), "blocked": [*map(blocker_json, entry.blocked)]}


def load_fleet_index(text: str, signing_key: bytes | None = None) -> FleetIndex:
    """Return the index that `fleet_index_text` wrote.

    Raises LmsconfError for a document of another kind or a damaged one; StalePlan, given a key, for one that was not
    signed with it.
    """
    document = parse_document(text)
    verify_format(document, "lmsconf.fleet/1")
    if signing_key is not None:
        verify_signature(
            document,
            signing_key,
            "index of the fleet",
            "Create it again with lmsconf fleet, and with the same key in the environment (LMSCONF_PLAN_KEY).",
        )
    try:
        index = from_json(without_keys(document, "shared"), FleetIndex)
        refuse_missing(document["workspaces"], [entry_json(entry) for entry in index.entries], "workspaces")
        if index.shard is not None and not 1 <= index.shard.number <= index.shard.of <= MOST_SHARDS:
            raise ValueError(f"there is no shard {shorten(str(index.shard))}")
        return index
    except ValueError as error:
        raise LmsconfError(
            f"the file is not an index of a fleet: {error}", hint="Create it again with lmsconf fleet."
        ) from error


plan_json = plan_file.dumps


def plan_digest(plan: Plan) -> str:
    """Return the plan's digest and a newline, for `apply --expect-digest`."""
    return f"{plan_file.plan_digest(plan)}\n"


def plan_gitlab(plan: Plan) -> str:
    """Return GitLab's merge request report of type `terraform`, in which a replacement is a deletion and a creation."""
    counts = plan.summary
    created, deleted = counts.create + counts.replace, counts.delete + counts.replace
    return json.dumps({"create": created, "update": counts.update, "delete": deleted}) + "\n"


def fleet_json(report: FleetIndex) -> str:
    """Return the document `lmsconf.fleet/1` with `shared`: which changes are the same in which workspaces."""
    return render_json(
        {
            **index_json(report),
            "shared": [
                {
                    "workspaces": list[Json](one.workspaces),
                    "one_each": one.one_each,
                    "changes": [change_json(change) for change in one.changes],
                }
                for one in report.shared
            ],
        }
    )


def drift_json(drift: DriftReport) -> str:
    """Return the whole report as JSON, one finding per line."""
    return render_json(
        {
            "format": "lmsconf.drift/1",
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
            "ignored": [{**finding_json(one), "ignored_by": to_json(one.ignored_by)} for one in drift.ignored],
            "coverage": [
                {
                    "kind": share.kind,
                    "managed": share.managed,
                    "live": share.live,
                    "percent": share.percent,
                    "left_alone": share.left_alone,
                    "incomplete": share.incomplete,
                }
                for share in drift.coverage
            ],
            "unmanaged": unmanaged_json(drift.unmanaged),
            "problems": to_json(drift.problems),
        }
    )


def drift_summary_json(drift: DriftReport) -> Json:
    """Return the counts of findings per state; `unmanaged` counts all such resources, findings or not."""
    return {
        "findings": len(drift.findings),
        **{state.value: drift.count(state) for state in DriftState},
        DriftState.UNMANAGED.value: sum(len(group.addresses) for group in drift.unmanaged),
        "not_applied": len(drift.not_applied),
        "ignored": len(drift.ignored),
    }


def finding_json(finding: DriftFinding) -> dict[str, Json]:
    edit = finding.edit
    return {
        "address": finding.address,
        "kind": finding.address.kind,
        "name": finding.address.name,
        **without_keys(object_json(finding), "edit", "goes_along", "restore", "accept", "ignored_by"),
        "fields": [
            {
                "path": one.path,
                "declared": one.before,
                "live": one.after,
                "missing": list(one.removed),
                "extra": list(one.added),
            }
            for one in finding.fields
        ],
        "candidates": [without_keys(object_json(candidate), "is_earlier_name") for candidate in finding.candidates],
        "changed_by": edit.by if edit else None,
        "changed_at": edit.at if edit else None,
        "hint": {"restore": finding.restore, "accept": finding.accept},
    }


def runs_json(runs: Sequence[RecordedRun]) -> str:
    """Return the runs, without calls, as JSON."""
    return _runs_document([_run(run) for run in runs])


def run_json(run: RecordedRun) -> str:
    """Return one run with its calls as JSON."""
    calls: list[Json] = [
        {
            "call": call.call,
            "address": call.address,
            "operation": call.operation,
            "status": call.status.value,
            "reason": call.reason,
            "id": call.id,
            "people": list(call.people),
            "begun_at": _time(call.begun),
            "ended_at": _time(call.ended),
        }
        for call in run.calls
    ]
    return _runs_document([{**_run(run), "calls": calls}])


def _runs_document(runs: Iterable[Json]) -> str:
    return render_json({"format": "lmsconf.runs/1", "tool": TOOL, "runs": list(runs)})


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
        "summary": to_json(run.summary),
        "damaged": run.damaged,
    }


def _time(at: datetime | None) -> str | None:
    return None if at is None else format_utc(at)


PROBLEMS_FORMAT: Final = "lmsconf.problems/1"


def _on_people(format: str, report: PersonAccess | AudienceReport) -> str:
    header = report.header
    return render_json(
        {
            "format": format,
            "tool": TOOL,
            "created_at": header.created_at,
            "workspace": {"name": header.workspace, "url": header.url},
            "people": header.people,
            "planned": header.planned,
            "basis": header.basis.value,
            "reasons": to_json(header.reasons),
            "requests": header.requests,
            "problems": to_json(header.problems),
            **without_keys(object_json(report), "header"),
        }
    )


access_json: Final = partial(_on_people, "lmsconf.access/1")
"""What a person has, and why, as a document."""
audience_json: Final = partial(_on_people, "lmsconf.audience/1")
"""Who is in an audience as a document."""


def tests_json(report: AccessTestReport) -> str:
    """Return the results as a document."""
    return render_json(
        {
            "format": "lmsconf.test/1",
            "tool": TOOL,
            "created_at": report.created_at,
            "workspace": {"name": report.workspace, "url": report.url},
            "people": report.people,
            "state": "live" if report.live else "planned",
            "summary": {"passed": len(report.results) - len(report.failed), "failed": len(report.failed)},
            "tests": [
                {
                    "name": test.name,
                    "statement": test.statement,
                    "passed": result.passed,
                    "reason": result.reason,
                    "audiences": to_json(test.audiences),
                    "content": test.content,
                    "about": None if test.about is None else dict(test.about),
                    "source": to_json(test.source),
                }
                for test, result in ((one.test, one) for one in report.results)
            ],
        }
    )


def people_json(effects: Effects) -> str:
    """Return whose access changes, and where that is not known, as a document `lmsconf.people/1`."""
    return render_canonical_json(
        {
            "format": "lmsconf.people/1",
            "rows": to_json(effects.rows or ()),
            "unknown": [
                {
                    "audience": None if one.audience is None else str(one.audience),
                    "contents": [name for name, _ in one.contents],
                    "reason": one.reason,
                }
                for one in effects.unknown
            ],
        }
    )


def problems_json(problems: Sequence[Problem]) -> str:
    """Return the text of the document; the list of problems may be empty."""
    return render_json(
        {
            "format": PROBLEMS_FORMAT,
            "tool": TOOL,
            "summary": {
                f"{severity.value}s": sum(problem.severity is severity for problem in problems) for severity in Severity
            },
            "problems": to_json(problems),
        }
    )


def load_problems(text: str) -> tuple[Problem, ...]:
    """Return the problems in a document.

    Raises LmsconfError for another format, StalePlan for text that is not JSON or has a missing or invalid value.
    """
    document = parse_document(text)
    verify_format(document, PROBLEMS_FORMAT)
    try:
        problems = value_at(document, tuple[Problem, ...], "problems")
        refuse_missing(document["problems"], to_json(problems), "problems")
    except ValueError as error:
        raise file_changed_error() from error
    return problems
