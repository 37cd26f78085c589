"""Turn a plan's changes back into declarations, to re-plan before a run and to verify after it.

Thus a plan file is applied without its manifests, and the fresh plan that checks it covers the same resources.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, cast

from lmsconf.errors import LmsconfError, Problem, SourceLocation, StalePlan
from lmsconf.kinds.shared.names import CONTENT_TARGET, CUSTOM_FIELD
from lmsconf.model.address import Address
from lmsconf.model.values import Action, Change, DeleteEntry, DesiredResource, Json, Plan
from lmsconf.planner.kind import AnyKind, ManifestEntry
from lmsconf.planner.plan import Manifests


class _Source:
    """SourceMap of an entry made from a change: every part has the change's source location."""

    def __init__(self, change: Change) -> None:
        self._where = change.source or SourceLocation(str(change.address))

    def at(self, *path: str | int) -> SourceLocation:
        return self._where

    def find(self, text: str, *path: str | int) -> SourceLocation:
        return self._where


def as_manifests(plan: Plan, kinds: Mapping[str, AnyKind]) -> Manifests:
    """Return the desired state of the resources that the plan changes.

    Raises LmsconfError for a form that its kind cannot parse, StalePlan for one without its identifying keys.
    """
    declared: list[DesiredResource[Any]] = []
    absent: list[DeleteEntry[Any]] = []
    choices = dict(_choice_ids(plan))
    for change in plan.changes:
        if change.is_effect:
            # Not declared: a side effect of another change.
            continue
        kind = kinds[change.address.kind]
        body = _body(change, choices.get(change.address, {}))
        entry = ManifestEntry(body=body, places=_Source(change), timezone=None, report=_refuse)
        if change.action is Action.DELETE:
            absent.extend(kind.parse_absent(entry))
        else:
            declared.extend(kind.parse(entry))
    return Manifests(
        declared=tuple(declared),
        absent=tuple(absent),
        files=plan.manifests_files,
        digest=plan.manifests_digest,
    )


def _refuse(problem: Problem) -> None:
    raise LmsconfError(problem.message, hint=problem.hint)


def _choice_ids(plan: Plan) -> Iterator[tuple[Address, dict[str, str]]]:
    """Yield the kept choices of fields, new name → id, from each custom-fields.replace call; a later one overrides."""
    for call in plan.calls:
        if call.operation == "custom-fields.replace":
            choices = cast("Mapping[str, object]", call.body).get("choices", [])
            named = ((one.get("name"), one.get("choiceId")) for one in cast("list[Mapping[str, object]]", choices))
            yield call.address, {str(name): id for name, id in named if isinstance(id, str)}


def _body(change: Change, ids: Mapping[str, str]) -> dict[str, Json]:
    """Return the manifest entry of a change, with every live resource and choice pinned by its id."""
    gone = change.action is Action.DELETE
    side = change.before if gone else change.after
    named = {"content", "assign_to"} if change.address.kind == CONTENT_TARGET else {"name"} if gone else set()
    if not isinstance(side, dict) or not named <= side.keys():
        hint = "Plan again, and apply that file as it is."
        raise StalePlan(f"{change.address}: what the plan says of it is not whole", hint=hint)
    form = dict(side)
    if change.address.kind == CONTENT_TARGET:
        return {key: form[key] for key in ("content", "assign_to")} if gone else form
    if gone:
        return {"name": form["name"], "id": change.id}
    if change.id is not None:
        form["id"] = change.id
    if change.address.kind == CUSTOM_FIELD and isinstance(form.get("choices"), list):
        names = cast("list[str]", form["choices"])
        form["choices"] = [{"name": name, "id": ids[name]} if name in ids else name for name in names]
    return form
