"""The values within a plan file ⇄ JSON: changes, calls with their bodies, guards, selection, settings."""

from __future__ import annotations

from collections.abc import Mapping
from typing import cast

from msgspec.structs import replace

from lmsconf.documents.change_values import change_from_json, change_json, problem_from_json, problem_json
from lmsconf.documents.document import JsonObjectReader, string_list
from lmsconf.errors import Problem
from lmsconf.model.address import Address, Ref
from lmsconf.model.blockers import Blocker, BlockerType, blockers
from lmsconf.model.calls import Call
from lmsconf.model.canonical_json import Json
from lmsconf.model.plan import (
    Assumption,
    Change,
    GuardCount,
    GuardResult,
    NoLongerDeclared,
    Plan,
    SettingChange,
    UndoneRun,
    UnmanagedResources,
)
from lmsconf.model.scope import PlanScope

PAIRS = "$pairs"
"""Marks an object with keys that are ids not known yet: `{"$pairs": [[key, value], …]}`."""
_OURS = frozenset({"$ref", PAIRS})


def without_keys(value: Mapping[str, Json], *keys: str) -> dict[str, Json]:
    return {key: item for key, item in value.items() if key not in keys}


def plan_change_json(change: Change) -> dict[str, Json]:
    """Return a change without the source locations of its problems, which must not affect the digest."""
    problems: list[Json] = [without_keys(problem_json(problem), "source") for problem in change.problems]
    return {**change_json(change), "problems": problems}


def undone_run_from_json(at: JsonObjectReader) -> UndoneRun:
    return UndoneRun(run=at.text("run"), digest=at.text("digest"))


def changes_and_problems(at: JsonObjectReader) -> tuple[tuple[Change, ...], tuple[Problem, ...]]:
    """Return the changes and the plan's own problems.

    `problems` of the document lists the plan's own first, then those of each change, with source locations.
    """
    problems = list(at.each("problems", problem_from_json))
    changes: list[Change] = []
    for item in reversed(at.items("changes")):
        own = len(problems) - len(JsonObjectReader(item).items("problems"))
        bare = change_from_json(JsonObjectReader({**cast("dict[str, Json]", item), "problems": []}))
        changes.append(replace(bare, problems=tuple(problems[own:])))
        del problems[own:]
    return tuple(reversed(changes)), tuple(problems)


def selection_json(selection: PlanScope) -> Json:
    return {
        "only": string_list(selection.only),
        "except": string_list(selection.excluded),
        "additive": selection.additive,
    }


def selection_from_json(at: JsonObjectReader) -> PlanScope:
    return PlanScope(only=at.texts("only"), excluded=at.texts("except"), additive=at.flag("additive"))


def no_longer_declared_from_json(at: JsonObjectReader) -> NoLongerDeclared:
    return NoLongerDeclared(address=Address.parse(at.text("address")), absent=at.text("absent"))


def setting_json(change: SettingChange) -> Json:
    return {"path": change.path, "base": change.base, "now": change.now, "weaker": change.weaker}


def setting_from_json(at: JsonObjectReader) -> SettingChange:
    return SettingChange(path=at.text("path"), base=at.json("base"), now=at.json("now"), weaker=at.flag("weaker"))


def summary_json(plan: Plan) -> Json:
    counts = plan.summary
    return {
        "create": counts.create,
        "update": counts.update,
        "replace": counts.replace,
        "delete": counts.delete,
        "calls": counts.calls,
        "blocked": [blocker_json(blocker) for blocker in blockers(plan)],
    }


def blocker_json(blocker: Blocker) -> dict[str, Json]:
    return {"type": blocker.type.value, "name": blocker.name, "message": blocker.message, "allow": blocker.allow}


def blocker_from_json(at: JsonObjectReader) -> Blocker:
    return Blocker(
        type=BlockerType(at.text("type")),
        name=at.text("name"),
        message=at.text("message"),
        allow=at.maybe("allow", at.text),
    )


def call_json(call: Call) -> Json:
    return {
        "id": call.id,
        "address": str(call.address),
        "operation": call.operation,
        "method": call.method,
        "path": call.path,
        "query": dict(call.query),
        "body": request_body_json(call.body),
        "needs": string_list(call.needs),
        "may_be_refused": call.may_be_refused,
        "people": string_list(call.people),
    }


def call_from_json(at: JsonObjectReader) -> Call:
    return Call(
        id=at.text("id"),
        address=Address.parse(at.text("address")),
        operation=at.text("operation"),
        method=at.text("method"),
        path=at.text("path"),
        query=at.object("query"),
        body=request_body_from_json(at.json("body")),
        needs=at.texts("needs"),
        may_be_refused=at.flag("may_be_refused"),
        people=at.texts("people"),
    )


def request_body_json(body: object) -> Json:
    """Return a request body as JSON, with `{"$ref": "group/Sales"}` for an id that is not known yet.

    An object with such an id as a key becomes `{"$pairs": [[key, value], …]}`. Raises ValueError for a body with a key
    `$ref` or `$pairs`, TypeError for a value that JSON lacks.
    """
    if isinstance(body, Ref):
        whole: dict[str, Json] = {"$ref": str(body.address)}
        return whole if body.part is None else {**whole, "choice": body.part}
    if isinstance(body, dict):
        if not body.keys().isdisjoint(_OURS):
            raise ValueError("a request body may not have a key $ref or $pairs")
        if any(isinstance(key, Ref) for key in body):
            return {PAIRS: [[request_body_json(key), request_body_json(value)] for key, value in body.items()]}
        return {key: request_body_json(value) for key, value in body.items()}
    if isinstance(body, list):
        return [request_body_json(item) for item in body]
    if body is None or isinstance(body, (str, int, float)):
        return body
    raise TypeError(f"a request body cannot hold a {type(body).__name__}")


def request_body_from_json(body: Json) -> object:
    """Return the request body that `request_body_json` was given. Raises ValueError for a malformed reference."""
    if isinstance(body, dict):
        if "$ref" in body:
            at = JsonObjectReader(body)
            return Ref(Address.parse(at.text("$ref")), at.text("choice") if "choice" in body else None)
        if PAIRS in body:
            pairs = cast("list[list[Json]]", body[PAIRS])
            return {request_body_from_json(key): request_body_from_json(value) for key, value in pairs}
        return {key: request_body_from_json(value) for key, value in body.items()}
    return [request_body_from_json(item) for item in body] if isinstance(body, list) else body


def guard_json(guard: GuardResult) -> Json:
    return {
        "name": guard.name,
        "limit": dict(guard.limit),
        "total": guard.total,
        "tripped": guard.tripped,
        "allow": guard.allow,
        "reason": guard.reason,
        "allowed_by": guard.allowed_by,
    }


def guard_from_json(at: JsonObjectReader) -> GuardResult:
    return GuardResult(
        name=at.text("name"),
        limit=at.object("limit"),
        total=at.maybe("total", at.number),
        tripped=at.flag("tripped"),
        allow=at.maybe("allow", at.text),
        reason=at.maybe("reason", at.text),
        allowed_by=at.maybe("allowed_by", at.text),
    )


def measure_json(measure: GuardCount) -> Json:
    document: dict[str, Json] = {"guard": measure.guard, "of": measure.of, "taken": measure.taken, "size": measure.size}
    return document if measure.counts else {**document, "counts": False}


def measure_from_json(at: JsonObjectReader) -> GuardCount:
    taken = at.maybe("taken", at.number)
    counts = at.flag("counts") if at.has("counts") else True
    return GuardCount(guard=at.text("guard"), of=at.text("of"), taken=taken, size=at.number("size"), counts=counts)


def assumption_json(one: Assumption) -> Json:
    return {"key": one.key, "value": one.value, "known": one.known, "calls": one.calls}


def assumption_from_json(at: JsonObjectReader) -> Assumption:
    return Assumption(key=at.text("key"), value=at.text("value"), known=at.flag("known"), calls=at.number("calls"))


def unmanaged_json(unmanaged: UnmanagedResources) -> Json:
    return {
        "kind": unmanaged.kind,
        "count": len(unmanaged.addresses) + unmanaged.left_alone,
        "addresses": string_list(unmanaged.addresses),
        "left_alone": unmanaged.left_alone,
    }


def unmanaged_from_json(at: JsonObjectReader) -> UnmanagedResources:
    return UnmanagedResources(
        kind=at.text("kind"),
        addresses=tuple(map(Address.parse, at.texts("addresses"))),
        left_alone=at.number("left_alone"),
    )
