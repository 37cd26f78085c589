"""Plan files: `lmsconf.plan/1`, sealed, so that the plan that is applied is the one that was reviewed.

The seal detects accidental and manual changes, but anyone can compute a new one. Against deliberate tampering a file
can also be signed, with a key shared by those who plan and those who apply.
"""

from __future__ import annotations

from collections.abc import Mapping
from itertools import islice
from typing import cast

from msgspec.structs import replace

from lmsconf.documents.json_documents import (
    TOOL,
    add_seal,
    change_json,
    from_json,
    json_at,
    object_json,
    parse_document,
    read_back,
    render_canonical_json,
    signature,
    to_json,
    unmanaged_json,
    value_at,
    verify_format,
    verify_signature,
    without_keys,
)
from lmsconf.errors import StalePlan, refuse_if
from lmsconf.model.address import Address, Ref
from lmsconf.model.canonical_json import Json, sha256
from lmsconf.model.effects import Effects
from lmsconf.model.plan import (
    Plan,
    Rehearsal,
)
from lmsconf.model.problem_codes import Blocker, blockers

FORMAT = "lmsconf.plan/1"


def dumps(plan: Plan, signing_key: bytes | None = None) -> str:
    """Return the text of a plan file, signed if there is a key. With masked people it is neither sealed nor signed."""
    document = _document(plan, TOOL)
    if plan.masked_digest is not None:
        return render_canonical_json(document)
    signed = document if signing_key is None else {**document, "hmac": signature(document, signing_key)}
    return render_canonical_json(add_seal(signed))


def loads(text: str, signing_key: bytes | None = None) -> Plan:
    """Return the plan that `dumps` wrote.

    Raises StalePlan (exit 3) for any other text, even if one byte differs, for an unsupported version of the
    format, and, given a key, for a file that was not signed with it; LmsconfError for a document of another kind.
    """
    document = parse_document(text)
    actual = str(document["format"])
    refuse_if(
        (
            actual != FORMAT and actual.startswith("lmsconf.plan/"),
            f"the file has the format {actual!r}, not {FORMAT!r}",
            "Another version of lmsconf wrote it. Plan again with this one.",
        ),
        (
            actual == FORMAT and document.get("masked") is True,
            "the file is a plan with masked people, and cannot be applied",
            "Save the plan itself with: lmsconf plan --out FILE, without --mask-people",
        ),
        error=StalePlan,
    )
    verify_format(document, FORMAT)

    def read() -> Plan:
        if signing_key is not None:
            verify_signature(
                document,
                signing_key,
                "plan file",
                "Plan again with --out, and with the same key in the environment (LMSCONF_PLAN_KEY).",
            )
        return _plan(document)

    signed = {key: document[key] for key in ("hmac",) if key in document}
    return read_back(
        document,
        read,
        lambda plan: render_canonical_json(add_seal({**_document(plan, document.get("tool")), **signed})),
        text,
        "a plan",
        hint="Create it again with: lmsconf plan",
    )


def plan_digest(plan: Plan, digested: Mapping[str, Json] | None = None) -> str:
    """Return the SHA-256 of what a plan does: equal for equal plans, whatever their files and times of creation.

    digested: the part of its document that the digest is computed from, if that is known already.
    """
    computed = plan.__dict__  # once: a command shows it, compares it and writes it down
    if plan.masked_digest is None and "digest" not in computed:
        document = _digested_keys(plan) if digested is None else digested
        changes = cast("list[dict[str, Json]]", document["changes"])
        # Not part of what a plan does: source locations, reasons (`about`), origins, and what can be undone.
        bare = [without_keys(change, "source", "about", "origin", "undo") for change in changes]
        computed["digest"] = sha256({**document, "changes": bare})
    return plan.masked_digest or cast("str", computed["digest"])


def _digested_keys(plan: Plan) -> dict[str, Json]:
    """Return the part of the document that its digest is computed from."""
    return {
        "format": FORMAT,
        "workspace": {"name": plan.workspace, "url": plan.url},
        "policy": dict(plan.policy),
        # Without the source locations of problems, which must not affect the digest.
        "changes": [
            {
                **change_json(change),
                "problems": [without_keys(object_json(problem), "source") for problem in change.problems],
            }
            for change in plan.changes
        ],
        "calls": [
            {**object_json(replace(call, body=None)), "body": request_body_json(call.body)} for call in plan.calls
        ],
        "fingerprints": dict(sorted(plan.fingerprints.items())),
    }


def _document(plan: Plan, tool: Json) -> dict[str, Json]:
    """Return the document without its seal."""
    digested, is_masked = _digested_keys(plan), plan.masked_digest is not None
    members = [group.members for group in plan.effects.groups]
    parts: dict[str, Json] = {
        # The digest of the members after the plan of each of the groups, null where it is not known.
        "predicted_members": cast("Json", members) if any(members) and not is_masked else None,
        "base": plan.base,
        "let_go": None if plan.base is None else to_json(plan.no_longer_declared),
        "settings_changed": None if plan.base is None else to_json(plan.settings_changed),
        "rehearsal": None if plan.rehearsal is None else rehearsal_json(plan.rehearsal),
        "undo_of": None if plan.undo_of is None else to_json(plan.undo_of),
        "masked": True if is_masked else None,
    }
    return {
        **digested,
        "digest": plan_digest(plan, digested),
        "seal": "",
        "tool": tool,
        "created_at": plan.created_at,
        "expires_at": plan.expires_at,
        "people": plan.people,
        "timezone": plan.timezone,
        "manifests": {"digest": plan.manifests_digest, "files": to_json(plan.manifests_files)},
        "partial": plan.partial,
        "selection": to_json(plan.selection),
        "offline": plan.offline,
        "summary": summary_json(plan),
        "guards": to_json(plan.guards),
        "measures": to_json(plan.measures),
        "effects": effects_json(plan.effects),
        "assumptions": to_json(plan.assumptions),
        "assumed_calls": plan.assumed_calls,
        "unmanaged": unmanaged_json(plan.unmanaged),
        "left_out": to_json(plan.left_out),
        "problems": to_json(plan.all_problems),
        **{key: part for key, part in parts.items() if part is not None},
    }


def _plan(document: dict[str, Json]) -> Plan:
    """Return the plan of a document; what it lacks, or has too much, shows when the plan is written again."""
    values: dict[str, Json] = {
        **document,
        "workspace": json_at(document, "workspace", "name"),
        "url": json_at(document, "workspace", "url"),
        "manifests_digest": json_at(document, "manifests", "digest"),
        "manifests_files": json_at(document, "manifests", "files"),
        "effects": _effects_values(value_at(document, dict[str, Json], "effects"), document.get("predicted_members")),
    }
    if "rehearsal" in document:
        rehearsal = value_at(document, dict[str, Json], "rehearsal")
        values["rehearsal"] = {
            **rehearsal,
            "calls": json_at(rehearsal, "calls", "total"),
            "done": json_at(rehearsal, "calls", "done"),
        }
    plan = from_json(values, Plan)
    # The problems of the document are the plan's own first, then those of each change, with source locations.
    own = len(plan.problems) - sum(len(change.problems) for change in plan.changes)
    rest = iter(plan.problems[own:])
    changes = tuple(replace(bare, problems=tuple(islice(rest, len(bare.problems)))) for bare in plan.changes)
    calls = tuple(replace(call, body=request_body_from_json(cast("Json", call.body))) for call in plan.calls)
    return replace(plan, changes=changes, problems=plan.problems[:own], calls=calls)


def _effects_values(effects: dict[str, Json], members: Json) -> dict[str, Json]:
    """Return the values of Effects. members: the digest of the members of each of the groups, if any is known."""
    groups = value_at(effects, list[dict[str, Json]], "groups")
    if isinstance(members, list):
        groups = [{**group, "members": one} for group, one in zip(groups, members, strict=True)]
    return {
        **effects,
        "contents": [{**one, "counts": one} for one in value_at(effects, list[dict[str, Json]], "contents")],
        "groups": cast("Json", groups),
    }


PAIRS = "$pairs"
"""Marks an object with keys that are ids not known yet: `{"$pairs": [[key, value], …]}`."""


def summary_json(plan: Plan) -> Json:
    return {**object_json(plan.summary), "blocked": [blocker_json(blocker) for blocker in blockers(plan)]}


def blocker_json(blocker: Blocker) -> dict[str, Json]:
    return without_keys(object_json(blocker), "hint")


def request_body_json(body: object) -> Json:
    """Return a request body as JSON, with `{"$ref": "group/Sales"}` for an id that is not known yet.

    An object with such an id as a key becomes `{"$pairs": [[key, value], …]}`. Raises ValueError for a body with a key
    `$ref` or `$pairs`.
    """
    if isinstance(body, Ref):
        return {"$ref": str(body.address), **({} if body.part is None else {"choice": body.part})}
    if isinstance(body, dict):
        if not body.keys().isdisjoint(("$ref", PAIRS)):
            raise ValueError("a request body may not have a key $ref or $pairs")
        if any(isinstance(key, Ref) for key in body):
            return {PAIRS: [[request_body_json(key), request_body_json(value)] for key, value in body.items()]}
        return {key: request_body_json(value) for key, value in body.items()}
    if isinstance(body, list):
        return [request_body_json(item) for item in body]
    return cast("Json", body)


def request_body_from_json(body: Json) -> object:
    """Return the request body that `request_body_json` was given. Raises ValueError for a malformed reference."""
    if isinstance(body, dict):
        if "$ref" in body:
            address = Address.parse(value_at(body, str, "$ref"))
            return Ref(address, value_at(body, str, "choice") if "choice" in body else None)
        if PAIRS in body:
            return {
                request_body_from_json(cast(Json, key)): request_body_from_json(cast(Json, value))
                for key, value in value_at(body, list[tuple[object, object]], PAIRS)
            }
        return {key: request_body_from_json(value) for key, value in body.items()}
    return [request_body_from_json(item) for item in body] if isinstance(body, list) else body


def rehearsal_json(rehearsal: Rehearsal) -> dict[str, Json]:
    return {
        **without_keys(object_json(rehearsal), "done"),
        "calls": {"total": rehearsal.calls, "done": rehearsal.done},
        "remaining": [change_json(change) for change in rehearsal.remaining],
        "pace": {**object_json(rehearsal.pace), "seconds": rehearsal.pace.seconds},
    }


def effects_json(effects: Effects) -> Json:
    """Return effects as in a plan file, without the people."""
    return {
        **without_keys(object_json(replace(effects, rows=None, unknown=())), "rows", "unknown"),
        "contents": [
            {**without_keys(object_json(content), "counts"), **object_json(content.counts)}
            for content in effects.contents
        ],
        "groups": [without_keys(object_json(group), "members") for group in effects.groups],
    }
