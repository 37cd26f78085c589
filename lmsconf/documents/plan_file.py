"""Plan files: `lmsconf.plan/1`, sealed, so that the plan that is applied is the one that was reviewed.

The seal detects accidental and manual changes, but anyone can compute a new one. Against deliberate tampering a file
can also be signed, with a key shared by those who plan and those who apply.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import cast

from lmsconf.documents.change_values import problem_json
from lmsconf.documents.document import (
    TOOL,
    JsonObjectReader,
    file_changed_error,
    parse_document,
    render_canonical_json,
    render_sealed,
    signature,
    string_list,
    to_json,
    verify_format,
    verify_seal,
    verify_signature,
    without_keys,
)
from lmsconf.documents.effect_values import effects_from_json, effects_json, predicted_members_json
from lmsconf.documents.plan_values import (
    call_json,
    calls_from_json,
    changes_and_problems,
    plan_change_json,
    rehearsal_from_json,
    rehearsal_json,
    summary_json,
    unmanaged_json,
)
from lmsconf.errors import StalePlan
from lmsconf.model.address import Address
from lmsconf.model.canonical_json import Json, sha256
from lmsconf.model.plan import (
    Assumption,
    GuardCount,
    GuardResult,
    NoLongerDeclared,
    Plan,
    SettingChange,
    UndoneRun,
    UnmanagedResources,
)
from lmsconf.model.scope import PlanScope

FORMAT = "lmsconf.plan/1"
_ANY_PLAN = "lmsconf.plan/"
_SIGN = "Plan again with --out, and with the same key in the environment (LMSCONF_PLAN_KEY)."


def dumps(plan: Plan, signing_key: bytes | None = None) -> str:
    """Return the text of a plan file, signed if there is a key. With masked people it is neither sealed nor signed."""
    document = _document(plan, TOOL)
    if plan.masked_digest is not None:
        return render_canonical_json(document)
    return _text(document if signing_key is None else {**document, "hmac": signature(document, signing_key)})


def dumps_with_digest(plan: Plan) -> tuple[str, str]:
    """Return the text of an unsigned plan file, and the plan's digest, which takes as long to compute."""
    document = _document(plan, TOOL)
    return _text(document), str(document["digest"])


def _text(document: Mapping[str, Json]) -> str:
    return render_sealed(document)


def plan_digest(plan: Plan) -> str:
    """Return the SHA-256 of what a plan does: equal for equal plans, whatever their files and times of creation."""
    return plan.masked_digest or _digest(plan)


def loads(text: str, signing_key: bytes | None = None) -> Plan:
    """Return the plan that `dumps` wrote.

    Raises StalePlan (exit 3) for any other text, even if one byte differs, and, given a key, for a file that was not
    signed with it; LmsconfError for a document of another kind.
    """
    document = parse_document(text)
    _expect_format(document)
    if document.get("masked") is True:
        hint = "Save the plan itself with: lmsconf plan --out FILE, without --mask-people"
        raise StalePlan("the file is a plan with masked people, and cannot be applied", hint=hint)
    verify_seal(document)
    if signing_key is not None:
        verify_signature(document, signing_key, "plan file", _SIGN)
    try:
        plan = _plan(JsonObjectReader(document))
        again = _document(plan, document.get("tool"))
        same = _text({**again, "hmac": document["hmac"]} if "hmac" in document else again) == text
    except (ValueError, RecursionError) as error:
        raise StalePlan(
            f"the file does not contain a plan: {error}", hint="Create it again with: lmsconf plan"
        ) from error
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


_latest: tuple[Plan, str] | None = None
"""The plan that a digest was computed for last: a command shows it, compares it and writes it down."""


def _digest(plan: Plan, digested: Mapping[str, Json] | None = None) -> str:
    """Return the digest of a plan, computed once. digested: the part of its document that it is computed from."""
    global _latest
    latest = _latest  # replaced as a whole by another thread
    if latest is not None and latest[0] is plan:
        return latest[1]
    document = _digested_keys(plan) if digested is None else digested
    changes = cast("list[dict[str, Json]]", document["changes"])
    # Not part of what a plan does: source locations, reasons (`about`), origins, and what can be undone.
    bare = [without_keys(change, "source", "about", "origin", "undo") for change in changes]
    digest = sha256({**document, "changes": bare})
    _latest = plan, digest
    return digest


def _digested_keys(plan: Plan) -> dict[str, Json]:
    """Return the part of the document that its digest is computed from."""
    return {
        "format": FORMAT,
        "workspace": {"name": plan.workspace, "url": plan.url},
        "policy": dict(plan.policy),
        "changes": [plan_change_json(change) for change in plan.changes],
        "calls": [call_json(call) for call in plan.calls],
        "fingerprints": dict(sorted(plan.fingerprints.items())),
    }


def _document(plan: Plan, tool: Json) -> dict[str, Json]:
    """Return the document without its seal."""
    digested = _digested_keys(plan)
    document: dict[str, Json] = {
        **digested,
        "digest": "",
        "seal": "",
        "tool": tool,
        "created_at": plan.created_at,
        "expires_at": plan.expires_at,
        "people": plan.people,
        "timezone": plan.timezone,
        "manifests": {"digest": plan.manifests_digest, "files": string_list(plan.manifests_files)},
        "partial": plan.partial,
        "selection": to_json(plan.selection),
        "offline": plan.offline,
        "summary": summary_json(plan),
        "guards": to_json(plan.guards),
        "measures": to_json(plan.measures),
        "effects": effects_json(plan.effects),
        "assumptions": to_json(plan.assumptions),
        "assumed_calls": plan.assumed_calls,
        "unmanaged": [unmanaged_json(group) for group in plan.unmanaged],
        "left_out": string_list(plan.left_out),
        "problems": [problem_json(problem) for problem in plan.all_problems],
    }
    if plan.masked_digest is None and any(members := predicted_members_json(plan.effects)):
        document["predicted_members"] = members
    if plan.base is not None:
        settings = to_json(plan.settings_changed)
        document |= {"base": plan.base, "let_go": to_json(plan.let_go), "settings_changed": settings}
    if plan.rehearsal is not None:
        document["rehearsal"] = rehearsal_json(plan.rehearsal)
    if plan.undo_of is not None:
        document["undo_of"] = to_json(plan.undo_of)
    if plan.masked_digest is not None:
        return {**document, "digest": plan.masked_digest, "masked": True}
    return {**document, "digest": _digest(plan, digested)}


def _plan(at: JsonObjectReader) -> Plan:
    workspace, manifests = at.reader("workspace"), at.reader("manifests")
    changes, problems = changes_and_problems(at)
    scope = at.reader("selection")
    selection = PlanScope(only=scope.texts("only"), excluded=scope.texts("except"), additive=scope.flag("additive"))
    if at.flag("partial") is not selection.partial:
        raise ValueError("partial contradicts the selection")
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
        calls=calls_from_json(at),
        guards=at.value("guards", tuple[GuardResult, ...]),
        measures=at.value("measures", tuple[GuardCount, ...]),
        unmanaged=at.value("unmanaged", tuple[UnmanagedResources, ...]),
        fingerprints=at.text_map("fingerprints"),
        problems=problems,
        effects=effects_from_json(
            at.object("effects"),
            at.value("predicted_members", list[str | None]) if at.has("predicted_members") else None,
        ),
        assumptions=at.value("assumptions", tuple[Assumption, ...]),
        assumed_calls=at.number("assumed_calls"),
        left_out=at.value("left_out", tuple[Address, ...]),
        base=at.text("base") if at.has("base") else None,
        let_go=at.value("let_go", tuple[NoLongerDeclared, ...]) if at.has("let_go") else (),
        undo_of=at.value("undo_of", UndoneRun) if at.has("undo_of") else None,
        settings_changed=at.value("settings_changed", tuple[SettingChange, ...]) if at.has("settings_changed") else (),
        rehearsal=rehearsal_from_json(at.object("rehearsal")) if at.has("rehearsal") else None,
    )


def _members(at: JsonObjectReader) -> list[str | None] | None:
    return at.value("predicted_members", list[str | None]) if at.has("predicted_members") else None
