"""Plan files: `lmsconf.plan/1`, sealed, so that the plan that is applied is the one that was reviewed.

The seal detects accidental and manual changes, but anyone can compute a new one. Against deliberate tampering a file
can also be signed, with a key shared by those who plan and those who apply.
"""

from __future__ import annotations

import hashlib
import hmac
from collections.abc import Mapping
from dataclasses import replace
from typing import cast

from lmsconf.documents.document import (
    TOOL,
    JsonObjectReader,
    add_seal,
    change_from_json,
    change_json,
    file_changed_error,
    parse_document,
    problem_from_json,
    problem_json,
    render_canonical_json,
    string_list,
    verify_format,
    verify_seal,
)
from lmsconf.errors import Problem, StalePlan
from lmsconf.model.address import Address, Ref
from lmsconf.model.blockers import blockers
from lmsconf.model.calls import Call
from lmsconf.model.canonical_json import Json, canonical_json, sha256
from lmsconf.model.plan import (
    Change,
    GuardCount,
    GuardResult,
    NoLongerDeclared,
    Plan,
    SettingChange,
    UnmanagedResources,
)
from lmsconf.model.scope import PlanScope

FORMAT = "lmsconf.plan/1"
_ANY_PLAN = "lmsconf.plan/"
_SIGN = "Plan again with --out, and with the same key in the environment (LMSCONF_PLAN_KEY)."
PAIRS = "$pairs"
"""Marks an object with keys that are ids not known yet: `{"$pairs": [[key, value], …]}`."""
_OURS = frozenset({"$ref", PAIRS})


def dumps(plan: Plan, signing_key: bytes | None = None) -> str:
    """Return the text of a plan file, signed if there is a key. With masked people it is neither sealed nor signed."""
    document = _document(plan, TOOL)
    if plan.masked_digest is not None:
        return render_canonical_json(document)
    return _text(document if signing_key is None else {**document, "hmac": _signature(document, signing_key)})


def _text(document: Mapping[str, Json]) -> str:
    return render_canonical_json(add_seal(document))


def _signature(document: Mapping[str, Json], key: bytes) -> str:
    """Return the hexadecimal HMAC-SHA256 of the canonical document with empty `hmac` and `seal`."""
    return hmac.new(key, canonical_json({**document, "hmac": "", "seal": ""}), hashlib.sha256).hexdigest()


def plan_digest(plan: Plan) -> str:
    """Return the SHA-256 of what a plan does: equal for equal plans, whatever their files and times of creation."""
    return plan.masked_digest or _digest(_document(plan, TOOL))


def loads(text: str, signing_key: bytes | None = None) -> Plan:
    """Return the plan that `dumps` wrote.

    Raises StalePlan (exit 3) for any other text, even if one byte differs, and, given a key, for a file that was not
    signed with it; LmsconfError for a document of another kind.
    """
    document = parse_document(text)
    _expect_format(document)
    if document.get("masked") is True:
        hint = "Save the plan itself with: lmsconf plan --out FILE, without --mask-people"
        raise StalePlan("the file shows a plan without its people, and cannot be applied", hint=hint)
    verify_seal(document)
    if signing_key is not None:
        _expect_signature(document, signing_key)
    try:
        plan = _plan(JsonObjectReader(document))
        again = _document(plan, document.get("tool"))
        same = _text({**again, "hmac": document["hmac"]} if "hmac" in document else again) == text
    except (ValueError, RecursionError) as error:
        raise StalePlan(f"the file does not hold a plan: {error}", hint="Make it again with: lmsconf plan") from error
    if not same:
        raise file_changed_error()
    return plan


def _expect_format(document: Mapping[str, Json]) -> None:
    """Raise LmsconfError for a document that is not a plan, StalePlan for an unsupported version of the plan format."""
    actual = str(document["format"])
    if actual != FORMAT and actual.startswith(_ANY_PLAN):
        hint = "Another version of lmsconf wrote it. Plan again with this one."
        raise StalePlan(f"the file has the format {actual!r}, not {FORMAT!r}", hint=hint)
    verify_format(document, FORMAT)


def _expect_signature(document: Mapping[str, Json], key: bytes) -> None:
    """Raise StalePlan unless the file was signed with the key; compares in constant time."""
    signature = document.get("hmac")
    if not isinstance(signature, str):
        raise StalePlan("the plan file is not signed, and there is a key to check it with", hint=_SIGN)
    if not hmac.compare_digest(signature.encode("utf-8", "surrogatepass"), _signature(document, key).encode("ascii")):
        raise StalePlan("the plan file was signed with another key, or changed after it was signed", hint=_SIGN)


def _digest(document: Mapping[str, Json]) -> str:
    lasting = {key: document[key] for key in ("format", "workspace", "policy", "calls", "fingerprints")}
    changes = cast("list[dict[str, Json]]", document["changes"])
    # Not part of what a plan does: source locations, reasons (`about`), origins, and what can be undone.
    return sha256({**lasting, "changes": [_without(change, "source", "about", "origin", "undo") for change in changes]})


def _without(value: Mapping[str, Json], *keys: str) -> dict[str, Json]:
    return {key: item for key, item in value.items() if key not in keys}


def _document(plan: Plan, tool: Json) -> dict[str, Json]:
    """Return the document without its seal."""
    document: dict[str, Json] = {
        "format": FORMAT,
        "digest": "",
        "seal": "",
        "tool": tool,
        "created_at": plan.created_at,
        "expires_at": plan.expires_at,
        "workspace": {"name": plan.workspace, "url": plan.url},
        "people": plan.people,
        "timezone": plan.timezone,
        "manifests": {"digest": plan.manifests_digest, "files": string_list(plan.manifests_files)},
        "partial": plan.partial,
        "selection": _selection_json(plan.selection),
        "offline": plan.offline,
        "summary": _summary(plan),
        "policy": dict(plan.policy),
        "changes": [_change_json(change) for change in plan.changes],
        "calls": [_call_json(call) for call in plan.calls],
        "guards": [_guard_json(guard) for guard in plan.guards],
        "measures": [_measure_json(measure) for measure in plan.measures],
        "effects": [],
        "unmanaged": [_unmanaged_json(group) for group in plan.unmanaged],
        "left_out": string_list(plan.left_out),
        "fingerprints": dict(sorted(plan.fingerprints.items())),
        "problems": [problem_json(problem) for problem in plan.all_problems],
    }
    if plan.base is not None:
        let_go: list[Json] = [{"address": str(item.address), "absent": item.absent} for item in plan.let_go]
        settings: list[Json] = [_setting_json(change) for change in plan.settings_changed]
        document |= {"base": plan.base, "let_go": let_go, "settings_changed": settings}
    if plan.masked_digest is not None:
        return {**document, "digest": plan.masked_digest, "masked": True}
    return {**document, "digest": _digest(document)}


def _plan(at: JsonObjectReader) -> Plan:
    workspace, manifests = at.reader("workspace"), at.reader("manifests")
    changes, problems = _changes(at)
    selection = _selection_value(at.reader("selection"))
    if at.flag("partial") is not selection.partial:
        raise ValueError("partial does not go with the selection")
    return Plan(
        workspace=workspace.text("name"),
        url=workspace.text("url"),
        people=at.maybe("people", at.number),
        created_at=at.text("created_at"),
        expires_at=at.text("expires_at"),
        manifests_digest=manifests.text("digest"),
        manifests_files=manifests.texts("files"),
        selection=selection,
        offline=at.flag("offline"),
        timezone=at.maybe("timezone", at.text),
        policy=at.object("policy"),
        changes=changes,
        calls=at.each("calls", _call_value),
        guards=at.each("guards", _guard_value),
        measures=at.each("measures", _measure_value),
        unmanaged=at.each("unmanaged", _unmanaged_value),
        fingerprints=at.text_map("fingerprints"),
        problems=problems,
        left_out=tuple(map(Address.parse, at.texts("left_out"))),
        base=at.text("base") if at.has("base") else None,
        let_go=at.each("let_go", _let_go_value) if at.has("let_go") else (),
        settings_changed=at.each("settings_changed", _setting_value) if at.has("settings_changed") else (),
    )


def _change_json(change: Change) -> dict[str, Json]:
    """Return a change without the source locations of its problems, which must not affect the digest."""
    problems: list[Json] = [_without(problem_json(problem), "source") for problem in change.problems]
    return {**change_json(change), "problems": problems}


def _changes(at: JsonObjectReader) -> tuple[tuple[Change, ...], tuple[Problem, ...]]:
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


def _selection_json(selection: PlanScope) -> Json:
    return {
        "only": string_list(selection.only),
        "except": string_list(selection.excluded),
        "additive": selection.additive,
    }


def _selection_value(at: JsonObjectReader) -> PlanScope:
    return PlanScope(only=at.texts("only"), excluded=at.texts("except"), additive=at.flag("additive"))


def _let_go_value(at: JsonObjectReader) -> NoLongerDeclared:
    return NoLongerDeclared(address=Address.parse(at.text("address")), absent=at.text("absent"))


def _setting_json(change: SettingChange) -> Json:
    return {"path": change.path, "base": change.base, "now": change.now, "weaker": change.weaker}


def _setting_value(at: JsonObjectReader) -> SettingChange:
    return SettingChange(path=at.text("path"), base=at.json("base"), now=at.json("now"), weaker=at.flag("weaker"))


def _summary(plan: Plan) -> Json:
    counts = plan.summary
    return {
        "create": counts.create,
        "update": counts.update,
        "replace": counts.replace,
        "delete": counts.delete,
        "calls": counts.calls,
        "blocked": [
            {"type": blocker.type.value, "name": blocker.name, "message": blocker.message, "allow": blocker.allow}
            for blocker in blockers(plan)
        ],
    }


def _call_json(call: Call) -> Json:
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


def _call_value(at: JsonObjectReader) -> Call:
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


def _guard_json(guard: GuardResult) -> Json:
    return {
        "name": guard.name,
        "limit": dict(guard.limit),
        "total": guard.total,
        "tripped": guard.tripped,
        "allow": guard.allow,
        "reason": guard.reason,
        "allowed_by": guard.allowed_by,
    }


def _guard_value(at: JsonObjectReader) -> GuardResult:
    return GuardResult(
        name=at.text("name"),
        limit=at.object("limit"),
        total=at.maybe("total", at.number),
        tripped=at.flag("tripped"),
        allow=at.maybe("allow", at.text),
        reason=at.maybe("reason", at.text),
        allowed_by=at.maybe("allowed_by", at.text),
    )


def _measure_json(measure: GuardCount) -> Json:
    return {"guard": measure.guard, "of": measure.of, "taken": measure.taken, "size": measure.size}


def _measure_value(at: JsonObjectReader) -> GuardCount:
    taken = at.maybe("taken", at.number)
    return GuardCount(guard=at.text("guard"), of=at.text("of"), taken=taken, size=at.number("size"))


def _unmanaged_json(unmanaged: UnmanagedResources) -> Json:
    return {
        "kind": unmanaged.kind,
        "count": len(unmanaged.addresses) + unmanaged.left_alone,
        "addresses": string_list(unmanaged.addresses),
        "left_alone": unmanaged.left_alone,
    }


def _unmanaged_value(at: JsonObjectReader) -> UnmanagedResources:
    return UnmanagedResources(
        kind=at.text("kind"),
        addresses=tuple(map(Address.parse, at.texts("addresses"))),
        left_alone=at.number("left_alone"),
    )
