"""The rehearsal of a plan ⇄ JSON: the key `rehearsal` of a plan file, with its receipt."""

from __future__ import annotations

from lmsconf.documents.change_values import change_from_json, change_json, problem_from_json, problem_json
from lmsconf.documents.document import JsonObjectReader, string_list
from lmsconf.model.address import Address
from lmsconf.model.calls import CallStatus
from lmsconf.model.canonical_json import Json
from lmsconf.model.effects import Basis
from lmsconf.model.plan import (
    FailedCall,
    Rehearsal,
    RehearsalOutcome,
    RehearsalPace,
    RehearsalReceipt,
    RehearsedAssumption,
    RehearsedGroup,
)


def rehearsal_json(rehearsal: Rehearsal) -> dict[str, Json]:
    return {
        "receipt": _receipt_json(rehearsal.receipt),
        "taken_at": rehearsal.taken_at,
        "calls": {"total": rehearsal.calls, "done": rehearsal.done},
        "failed": [_failed_json(call) for call in rehearsal.failed],
        "remaining": [change_json(change) for change in rehearsal.remaining],
        "problems": [problem_json(problem) for problem in rehearsal.problems],
        "assumptions": [_assumption_json(assumption) for assumption in rehearsal.assumptions],
        "memberships": [_group_json(group) for group in rehearsal.groups],
        "pace": {
            "requests": rehearsal.pace.requests,
            "rate": rehearsal.pace.rate,
            "is_limit": rehearsal.pace.is_limit,
            "seconds": rehearsal.pace.seconds,
        },
    }


def rehearsal_from_json(at: JsonObjectReader) -> Rehearsal:
    calls, pace = at.reader("calls"), at.reader("pace")
    return Rehearsal(
        receipt=_receipt_value(at.reader("receipt")),
        taken_at=at.text("taken_at"),
        calls=calls.number("total"),
        done=calls.number("done"),
        failed=at.each("failed", _failed_value),
        remaining=at.each("remaining", change_from_json),
        problems=at.each("problems", problem_from_json),
        assumptions=at.each("assumptions", _assumption_value),
        groups=at.each("memberships", _group_value),
        pace=RehearsalPace(
            requests=pace.number("requests"), rate=_rate(pace.json("rate")), is_limit=pace.flag("is_limit")
        ),
    )


def _rate(value: Json) -> float | None:
    if value is None or (isinstance(value, int | float) and not isinstance(value, bool)):
        return value
    raise ValueError("rate is not a number")


def _receipt_json(receipt: RehearsalReceipt) -> Json:
    return {
        "plan_digest": receipt.plan_digest,
        "snapshot_digest": receipt.snapshot_digest,
        "outcome": receipt.outcome.value,
        "at": receipt.at,
        "tool": receipt.tool,
    }


def _receipt_value(at: JsonObjectReader) -> RehearsalReceipt:
    return RehearsalReceipt(
        plan_digest=at.text("plan_digest"),
        snapshot_digest=at.text("snapshot_digest"),
        outcome=RehearsalOutcome(at.text("outcome")),
        at=at.text("at"),
        tool=at.text("tool"),
    )


def _failed_json(call: FailedCall) -> Json:
    return {
        "call": call.call,
        "address": str(call.address),
        "operation": call.operation,
        "status": call.status.value,
        "reason": call.reason,
        "hint": call.hint,
    }


def _failed_value(at: JsonObjectReader) -> FailedCall:
    return FailedCall(
        call=at.text("call"),
        address=Address.parse(at.text("address")),
        operation=at.text("operation"),
        status=CallStatus(at.text("status")),
        reason=at.maybe("reason", at.text),
        hint=at.maybe("hint", at.text),
    )


def _assumption_json(one: RehearsedAssumption) -> Json:
    return {"key": one.key, "value": one.value, "operations": string_list(one.operations), "declared": one.declared}


def _assumption_value(at: JsonObjectReader) -> RehearsedAssumption:
    return RehearsedAssumption(
        key=at.text("key"), value=at.text("value"), operations=at.texts("operations"), declared=at.flag("declared")
    )


def _group_json(group: RehearsedGroup) -> Json:
    return {
        "address": str(group.address),
        "before": group.before,
        "predicted": group.predicted,
        "reached": group.reached,
        "basis": group.basis.value,
    }


def _group_value(at: JsonObjectReader) -> RehearsedGroup:
    return RehearsedGroup(
        address=Address.parse(at.text("address")),
        before=at.maybe("before", at.number),
        predicted=at.maybe("predicted", at.number),
        reached=at.maybe("reached", at.number),
        basis=Basis(at.text("basis")),
    )
