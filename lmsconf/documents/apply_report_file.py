"""Apply reports: `lmsconf.apply/1`, sealed, as evidence of which calls were and were not carried out."""

from __future__ import annotations

from lmsconf.documents.document import (
    TOOL,
    add_seal,
    change_json,
    file_changed_error,
    from_json,
    json_at,
    object_json,
    parse_document,
    render_json,
    to_json,
    verify_format,
    verify_seal,
    without_keys,
)
from lmsconf.errors import StalePlan
from lmsconf.model.calls import CallStatus
from lmsconf.model.canonical_json import Json
from lmsconf.model.outcomes import ApplyReport

FORMAT = "lmsconf.apply/1"


def dumps(report: ApplyReport) -> str:
    """Return the text of the report file."""
    return _text(report, TOOL)


def loads(text: str) -> ApplyReport:
    """Return the report that `dumps` wrote.

    Raises StalePlan (exit 3) for text that was changed since, LmsconfError for a document of another format.
    """
    document = parse_document(text)
    verify_format(document, FORMAT)
    verify_seal(document)
    try:
        report = _report(document)
        same = _text(report, document.get("tool")) == text
    except (ValueError, RecursionError) as error:
        raise StalePlan(f"the file does not contain an apply report: {error}") from error
    if not same:
        raise file_changed_error()
    return report


def _text(report: ApplyReport, tool: Json) -> str:
    return render_json(add_seal(_document(report, tool)))


def _document(report: ApplyReport, tool: Json) -> dict[str, Json]:
    return {
        "format": FORMAT,
        "digest": report.plan_digest,
        "seal": "",
        "tool": tool,
        "workspace": {"name": report.workspace, "url": report.url},
        "people": report.people,
        "started_at": report.started_at,
        "finished_at": report.finished_at,
        "meta": dict(sorted(report.meta.items())),
        "summary": {status.value: report.count(status) for status in CallStatus},
        "outcomes": [without_keys(object_json(outcome), "unsure", "carried_out") for outcome in report.outcomes],
        "verified": _verified_json(report),
        "converged": report.converged,
        "residue": [change_json(change) for change in report.residue],
        "problems": to_json(report.problems),
        "exit": int(report.exit),
        # Left out where nothing was predicted, as in reports of earlier versions.
        **({} if report.predicted is None else {"predicted": object_json(report.predicted)}),
    }


def _report(document: dict[str, Json]) -> ApplyReport:
    """Return the report of a document; what it lacks, or has too much, shows when the report is written again."""
    values = {
        "workspace": json_at(document, "workspace", "name"),
        "url": json_at(document, "workspace", "url"),
        "plan_digest": json_at(document, "digest"),
    }
    return from_json({**document, **values}, ApplyReport)


def _verified_json(report: ApplyReport) -> Json:
    """Return what was verified. others: the addresses in `residue` that are not part of the plan."""
    verified = object_json(report.verified)
    reason = verified.pop("reason")
    return {**verified, "others": [change.address for change in report.foreign_changes], "reason": reason}
