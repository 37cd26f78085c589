"""A plan as a file: `lmsconf.plan/1`, sealed, so that what is applied is what was reviewed."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import cast

from lmsconf.core.address import Address, Ref
from lmsconf.core.canonical import sha256
from lmsconf.core.document import (
    TOOL,
    Reader,
    change_json,
    change_value,
    changed,
    expect_format,
    expect_seal,
    parse,
    problem_json,
    problem_value,
    render_canonical,
    sealed,
    texts,
)
from lmsconf.core.values import Call, Change, Guard, Json, Measure, Plan, Unmanaged
from lmsconf.errors import Problem, StalePlan

FORMAT = "lmsconf.plan/1"
_PAIRS = "$pairs"
_OURS = frozenset({"$ref", _PAIRS})


def dumps(plan: Plan) -> str:
    """The plan as the text of a plan file."""
    return _text(plan, TOOL)


def _text(plan: Plan, tool: Json) -> str:
    return render_canonical(sealed(_document(plan, tool)))


def plan_digest(plan: Plan) -> str:
    """What a plan would do, in one number: equal for equal plans, whenever and from whichever files they were made."""
    return _digest(_document(plan, TOOL))


def loads(text: str) -> Plan:
    """The plan that `dumps` wrote. Any other text is refused, be it changed in one byte only: StalePlan, exit 3."""
    document = parse(text)
    expect_format(document, FORMAT)
    expect_seal(document)
    try:
        plan = _plan(Reader(document))
        same = _text(plan, document.get("tool")) == text
    except (ValueError, RecursionError) as error:
        raise StalePlan(f"the file does not hold a plan: {error}", hint="Make it again with: lmsconf plan") from error
    if not same:
        raise changed()
    return plan


def _digest(document: Mapping[str, Json]) -> str:
    lasting = {key: document[key] for key in ("format", "workspace", "calls", "fingerprints")}
    changes = cast("list[dict[str, Json]]", document["changes"])
    # Equal plans may differ in where the manifests say something, and why.
    return sha256({**lasting, "changes": [_without(change, "source", "about") for change in changes]})


def _without(value: Mapping[str, Json], *keys: str) -> dict[str, Json]:
    return {key: item for key, item in value.items() if key not in keys}


def _document(plan: Plan, tool: Json) -> dict[str, Json]:
    """The whole document but its seal."""
    document: dict[str, Json] = {
        "format": FORMAT,
        "digest": "",
        "seal": "",
        "tool": tool,
        "created_at": plan.created_at,
        "workspace": {"name": plan.workspace, "url": plan.url},
        "people": plan.people,
        "timezone": plan.timezone,
        "manifests": {"digest": plan.manifests_digest, "files": texts(plan.manifests_files)},
        "partial": plan.partial,
        "offline": plan.offline,
        "summary": _summary(plan),
        "changes": [_change_json(change) for change in plan.changes],
        "calls": [_call_json(call) for call in plan.calls],
        "guards": [_guard_json(guard) for guard in plan.guards],
        "measures": [_measure_json(measure) for measure in plan.measures],
        "effects": [],
        "unmanaged": [_unmanaged_json(group) for group in plan.unmanaged],
        "left_out": texts(plan.left_out),
        "fingerprints": dict(sorted(plan.fingerprints.items())),
        "problems": [problem_json(problem) for problem in plan.all_problems],
    }
    return {**document, "digest": _digest(document)}


def _plan(at: Reader) -> Plan:
    workspace, manifests = at.reader("workspace"), at.reader("manifests")
    changes, problems = _changes(at)
    return Plan(
        workspace=workspace.text("name"),
        url=workspace.text("url"),
        people=at.maybe("people", at.number),
        created_at=at.text("created_at"),
        manifests_digest=manifests.text("digest"),
        manifests_files=manifests.texts("files"),
        partial=at.flag("partial"),
        offline=at.flag("offline"),
        timezone=at.maybe("timezone", at.text),
        changes=changes,
        calls=at.each("calls", _call_value),
        guards=at.each("guards", _guard_value),
        measures=at.each("measures", _measure_value),
        unmanaged=at.each("unmanaged", _unmanaged_value),
        fingerprints=at.text_map("fingerprints"),
        problems=problems,
        left_out=tuple(map(Address.parse, at.texts("left_out"))),
    )


def _change_json(change: Change) -> dict[str, Json]:
    """A change whose problems leave out their places, which a digest must not depend on."""
    problems: list[Json] = [_without(problem_json(problem), "source") for problem in change.problems]
    return {**change_json(change), "problems": problems}


def _changes(at: Reader) -> tuple[tuple[Change, ...], tuple[Problem, ...]]:
    """The changes, and the plan's own problems. Those of the changes stand with their places behind the plan's own."""
    problems = list(at.each("problems", problem_value))
    changes: list[Change] = []
    for item in reversed(at.items("changes")):
        own = len(problems) - len(Reader(item).items("problems"))
        bare = change_value(Reader({**cast("dict[str, Json]", item), "problems": []}))
        changes.append(replace(bare, problems=tuple(problems[own:])))
        del problems[own:]
    return tuple(reversed(changes)), tuple(problems)


def _summary(plan: Plan) -> Json:
    counts = plan.summary
    return {
        "create": counts.create,
        "update": counts.update,
        "replace": counts.replace,
        "delete": counts.delete,
        "calls": counts.calls,
    }


def _call_json(call: Call) -> Json:
    return {
        "id": call.id,
        "address": str(call.address),
        "operation": call.operation,
        "method": call.method,
        "path": call.path,
        "query": dict(call.query),
        "body": body_json(call.body),
        "needs": texts(call.needs),
        "may_be_refused": call.may_be_refused,
    }


def _call_value(at: Reader) -> Call:
    return Call(
        id=at.text("id"),
        address=Address.parse(at.text("address")),
        operation=at.text("operation"),
        method=at.text("method"),
        path=at.text("path"),
        query=at.object("query"),
        body=body_value(at.json("body")),
        needs=at.texts("needs"),
        may_be_refused=at.flag("may_be_refused"),
    )


def body_json(body: object) -> Json:
    """A request body as JSON, `{"$ref": "group/Sales"}` where an id is not known yet.

    An object in which such an id is a key stands as `{"$pairs": [[key, value], …]}`.
    """
    if isinstance(body, Ref):
        whole: dict[str, Json] = {"$ref": str(body.address)}
        return whole if body.part is None else {**whole, "choice": body.part}
    if isinstance(body, dict):
        if not body.keys().isdisjoint(_OURS):
            raise ValueError("a request body may not have a key $ref or $pairs")
        if any(isinstance(key, Ref) for key in body):
            return {_PAIRS: [[body_json(key), body_json(value)] for key, value in body.items()]}
        return {key: body_json(value) for key, value in body.items()}
    if isinstance(body, list):
        return [body_json(item) for item in body]
    if body is None or isinstance(body, (str, int, float)):
        return body
    raise TypeError(f"a request body cannot hold a {type(body).__name__}")


def body_value(body: Json) -> object:
    """The body that `body_json` was given."""
    if isinstance(body, dict):
        if "$ref" in body:
            at = Reader(body)
            return Ref(Address.parse(at.text("$ref")), at.text("choice") if "choice" in body else None)
        if _PAIRS in body:
            pairs = cast("list[list[Json]]", body[_PAIRS])
            return {body_value(key): body_value(value) for key, value in pairs}
        return {key: body_value(value) for key, value in body.items()}
    return [body_value(item) for item in body] if isinstance(body, list) else body


def _guard_json(guard: Guard) -> Json:
    return {
        "name": guard.name,
        "limit": dict(guard.limit),
        "total": guard.total,
        "tripped": guard.tripped,
        "allow": guard.allow,
        "reason": guard.reason,
        "allowed_by": guard.allowed_by,
    }


def _guard_value(at: Reader) -> Guard:
    return Guard(
        name=at.text("name"),
        limit=at.object("limit"),
        total=at.number("total"),
        tripped=at.flag("tripped"),
        allow=at.maybe("allow", at.text),
        reason=at.maybe("reason", at.text),
        allowed_by=at.maybe("allowed_by", at.text),
    )


def _measure_json(measure: Measure) -> Json:
    return {"guard": measure.guard, "of": measure.of, "taken": measure.taken, "size": measure.size}


def _measure_value(at: Reader) -> Measure:
    return Measure(guard=at.text("guard"), of=at.text("of"), taken=at.number("taken"), size=at.number("size"))


def _unmanaged_json(unmanaged: Unmanaged) -> Json:
    return {
        "kind": unmanaged.kind,
        "count": len(unmanaged.addresses) + unmanaged.left_alone,
        "addresses": texts(unmanaged.addresses),
        "left_alone": unmanaged.left_alone,
    }


def _unmanaged_value(at: Reader) -> Unmanaged:
    return Unmanaged(
        kind=at.text("kind"),
        addresses=tuple(map(Address.parse, at.texts("addresses"))),
        left_alone=at.number("left_alone"),
    )
