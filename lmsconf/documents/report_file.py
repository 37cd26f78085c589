"""Apply reports: `lmsconf.apply/1`, sealed, as evidence of which calls were and were not carried out."""

from __future__ import annotations

from lmsconf.documents.change_values import change_from_json, change_json, problem_from_json, problem_json
from lmsconf.documents.document import (
    TOOL,
    JsonObjectReader,
    add_seal,
    file_changed_error,
    parse_document,
    render_json,
    string_list,
    verify_format,
    verify_seal,
)
from lmsconf.documents.effect_values import predicted_from_json, predicted_json
from lmsconf.errors import StalePlan
from lmsconf.model.address import Address
from lmsconf.model.calls import CallStatus
from lmsconf.model.canonical_json import Json
from lmsconf.model.outcomes import ApplyReport, CallOutcome
from lmsconf.model.scope import VerifiedScope, VerifyMode

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
        report = _report(JsonObjectReader(document))
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
        "outcomes": [_outcome_json(outcome) for outcome in report.outcomes],
        "verified": _verified_json(report),
        "converged": report.converged,
        "residue": [change_json(change) for change in report.residue],
        "problems": [problem_json(problem) for problem in report.problems],
        "exit": int(report.exit),
        # Left out where nothing was predicted, as in reports of earlier versions.
        **({} if report.predicted is None else {"predicted": predicted_json(report.predicted)}),
    }


def _report(at: JsonObjectReader) -> ApplyReport:
    workspace = at.reader("workspace")
    return ApplyReport(
        plan_digest=at.text("digest"),
        workspace=workspace.text("name"),
        url=workspace.text("url"),
        people=at.maybe("people", at.number),
        started_at=at.text("started_at"),
        finished_at=at.text("finished_at"),
        outcomes=at.each("outcomes", _outcome_value),
        verified=_verified_value(at.reader("verified")),
        converged=at.maybe("converged", at.flag),
        residue=at.each("residue", change_from_json),
        problems=at.each("problems", problem_from_json),
        meta=at.text_map("meta"),
        exit=at.number("exit"),
        predicted=predicted_from_json(at.reader("predicted")) if at.has("predicted") else None,
    )


def _verified_json(report: ApplyReport) -> Json:
    """Return what was verified. others: the addresses in `residue` that are not part of the plan."""
    verified = report.verified
    return {
        "scope": verified.scope.value,
        "resources": verified.resources,
        "partial": verified.partial,
        "skipped": verified.skipped,
        "left_out": verified.left_out,
        "others": string_list(change.address for change in report.foreign_changes),
        "reason": verified.reason,
    }


def _verified_value(at: JsonObjectReader) -> VerifiedScope:
    return VerifiedScope(
        scope=VerifyMode(at.text("scope")),
        resources=at.number("resources"),
        partial=at.flag("partial"),
        skipped=at.number("skipped"),
        left_out=at.number("left_out"),
        reason=at.maybe("reason", at.text),
    )


def _outcome_json(outcome: CallOutcome) -> Json:
    return {
        "call": outcome.call,
        "address": str(outcome.address),
        "operation": outcome.operation,
        "status": outcome.status.value,
        "reason": outcome.reason,
        "hint": outcome.hint,
        "id": outcome.id,
        "people": string_list(outcome.people),
    }


def _outcome_value(at: JsonObjectReader) -> CallOutcome:
    return CallOutcome(
        call=at.text("call"),
        address=Address.parse(at.text("address")),
        operation=at.text("operation"),
        status=CallStatus(at.text("status")),
        reason=at.maybe("reason", at.text),
        hint=at.maybe("hint", at.text),
        id=at.maybe("id", at.text),
        people=at.texts("people"),
    )
