"""Turn a plan's changes back into declarations, to re-plan before a run and to verify after it.

Thus a plan file is applied without its manifests, and the fresh plan that checks it covers the same resources.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, TypeVar

from msgspec.structs import replace

from lmsconf.errors import LmsconfError, Problem, SourceLocation, StalePlan
from lmsconf.kinds.custom_field.types import MIGRATE
from lmsconf.kinds.kind_table import KINDS, parse, parse_absent
from lmsconf.kinds.shared.kind import Kind, required_keys
from lmsconf.kinds.shared.kind_names import CONTENT_TARGET, CUSTOM_FIELD
from lmsconf.kinds.shared.manifest_entry import ManifestEntry
from lmsconf.model.address import Address, RemoteId
from lmsconf.model.calls import CallIndex, is_creation
from lmsconf.model.canonical_json import Json
from lmsconf.model.declarations import DeleteEntry, DesiredResource, FixedSource, Manifests
from lmsconf.model.plan import Action, Change, Plan

_Entry = TypeVar("_Entry", DesiredResource[Any], DeleteEntry[Any])


def plan_to_manifests(plan: Plan) -> Manifests:
    """Return the desired state of the resources that the plan changes.

    Raises LmsconfError for a form that its kind cannot parse, StalePlan for one without its identifying keys.
    """
    declared: list[DesiredResource[Any]] = []
    absent: list[DeleteEntry[Any]] = []
    calls = CallIndex(plan.calls)
    for change in plan.changes:
        if change.is_effect:
            # Not declared: a side effect of another change.
            continue
        kind = KINDS[change.address.kind]
        side = change.before if change.action is Action.DELETE else change.after
        if not isinstance(side, dict) or not required_keys(kind) <= side.keys():
            hint = "Plan again, and apply that file unchanged."
            raise StalePlan(f"{change.address}: the plan describes it incompletely", hint=hint)
        body = replay_entry(kind, change, side, calls)
        places = FixedSource(change.source or SourceLocation(str(change.address)))
        entry = ManifestEntry(body=body, places=places, timezone=None, report=_refuse)
        if change.action is Action.DELETE:
            absent.extend(_replaced(one, change, calls) for one in parse_absent(kind.name, entry))
        else:
            declared.extend(_replaced(one, change, calls) for one in parse(kind.name, entry))
    return Manifests(
        declared=tuple(declared),
        absent=tuple(absent),
        files=plan.manifests_files,
        digest=plan.manifests_digest,
    )


def _replaced(entry: _Entry, change: Change, calls: CallIndex) -> _Entry:
    """Return the entry of a change with what replaces its assignment, so that its calls wait for the same ones."""
    if not change.replaced_by:
        return entry
    first = {one.address for one in calls.needed_by(change.address) if is_creation(one.operation)}
    after = frozenset(address for address in first if address.kind == CONTENT_TARGET and address != change.address)
    return replace(entry, spec=replace(entry.spec, replaced_by=change.replaced_by, after=after))


def replay_entry(kind: Kind, change: Change, form: Mapping[str, Json], calls: CallIndex) -> Mapping[str, Json]:
    """Return the manifest entry that makes a planned change again, with the live resource pinned by its id.

    form: its state after the change, or before a deletion. calls: those of the plan.
    """
    is_deleted = change.action is Action.DELETE
    if kind.name == CONTENT_TARGET:
        return {key: form[key] for key in ("content", "assign_to")} if is_deleted else form
    if is_deleted:
        moved = {MIGRATE: form[MIGRATE]} if kind.name == CUSTOM_FIELD and MIGRATE in form else {}
        return {kind.name_key: form[kind.name_key], "id": change.id, **moved}
    entry = form if change.id is None else {**form, "id": change.id}
    return _with_pinned_choices(change, entry, calls) if kind.name == CUSTOM_FIELD else entry


def _with_pinned_choices(change: Change, entry: Mapping[str, Json], calls: CallIndex) -> Mapping[str, Json]:
    """Return the entry of a planned change, with the choices that are kept pinned by their ids."""
    choices = entry.get("choices")
    if not isinstance(choices, list):
        return entry
    ids = dict(_kept_choices(change.address, calls))
    pinned: list[Json] = [{"name": name, "id": ids[name]} if name in ids else name for name in map(str, choices)]
    return {**entry, "choices": pinned}


def _kept_choices(field: Address, calls: CallIndex) -> Iterator[tuple[str, str]]:
    """Yield the name and id of each choice that the last custom-fields.replace call of a field keeps."""
    match [call.body for call in calls.of(field) if call.operation == "custom-fields.replace"]:
        case [*_, {"choices": [*choices]}]:
            for choice in choices:
                if isinstance(choice, dict) and isinstance(choice.get("choiceId"), str):
                    yield str(choice.get("name")), str(choice["choiceId"])


def people_ids(plan: Plan) -> frozenset[RemoteId]:
    """Return the ids of the people that the plan changes, and of those that its calls add to lists."""
    changed = {change.id for change in plan.changes if change.id is not None and KINDS[change.address.kind].is_person}
    bodies = (call.body.values() for call in plan.calls if call.people and isinstance(call.body, Mapping))
    lists = (value for values in bodies for value in values if isinstance(value, list))
    return frozenset(changed | {RemoteId(id) for ids in lists for id in ids if isinstance(id, str)})


def _refuse(problem: Problem) -> None:
    raise LmsconfError(problem.message, hint=problem.hint)
