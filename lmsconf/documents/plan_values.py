"""The values within a plan file ⇄ JSON: changes, calls with their bodies, its rehearsal."""

from __future__ import annotations

from typing import cast

from msgspec.structs import replace

from lmsconf.documents.change_values import change_json, problem_json
from lmsconf.documents.document import JsonObjectReader, from_json, object_json, without_keys
from lmsconf.errors import Problem
from lmsconf.model.address import Address, Ref
from lmsconf.model.blockers import Blocker, blockers
from lmsconf.model.calls import Call
from lmsconf.model.canonical_json import Json
from lmsconf.model.plan import Change, Plan, Rehearsal, UnmanagedResources

PAIRS = "$pairs"
"""Marks an object with keys that are ids not known yet: `{"$pairs": [[key, value], …]}`."""
_OURS = frozenset({"$ref", PAIRS})


def plan_change_json(change: Change) -> dict[str, Json]:
    """Return a change without the source locations of its problems, which must not affect the digest."""
    problems: list[Json] = [without_keys(problem_json(problem), "source") for problem in change.problems]
    return {**change_json(change), "problems": problems}


def changes_and_problems(at: JsonObjectReader) -> tuple[tuple[Change, ...], tuple[Problem, ...]]:
    """Return the changes and the plan's own problems.

    `problems` of the document lists the plan's own first, then those of each change, with source locations.
    """
    problems = list(at.value("problems", tuple[Problem, ...]))
    changes: list[Change] = []
    for bare in reversed(at.value("changes", tuple[Change, ...])):
        own = len(problems) - len(bare.problems)
        changes.append(replace(bare, problems=tuple(problems[own:])))
        del problems[own:]
    return tuple(reversed(changes)), tuple(problems)


def summary_json(plan: Plan) -> Json:
    return {**object_json(plan.summary), "blocked": [blocker_json(blocker) for blocker in blockers(plan)]}


def blocker_json(blocker: Blocker) -> dict[str, Json]:
    return without_keys(object_json(blocker), "hint")


def call_json(call: Call) -> Json:
    return {**object_json(replace(call, body=None)), "body": request_body_json(call.body)}


def calls_from_json(at: JsonObjectReader) -> tuple[Call, ...]:
    calls = at.value("calls", tuple[Call, ...])
    return tuple(replace(call, body=request_body_from_json(cast("Json", call.body))) for call in calls)


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


def unmanaged_json(unmanaged: UnmanagedResources) -> Json:
    return {**object_json(unmanaged), "count": len(unmanaged.addresses) + unmanaged.left_alone}


def rehearsal_json(rehearsal: Rehearsal) -> dict[str, Json]:
    return {
        **without_keys(object_json(rehearsal), "done"),
        "calls": {"total": rehearsal.calls, "done": rehearsal.done},
        "remaining": [change_json(change) for change in rehearsal.remaining],
        "pace": {**object_json(rehearsal.pace), "seconds": rehearsal.pace.seconds},
    }


def rehearsal_from_json(value: dict[str, Json]) -> Rehearsal:
    calls = JsonObjectReader(value).reader("calls")
    return from_json({**value, "calls": calls.json("total"), "done": calls.json("done")}, Rehearsal, "rehearsal")
