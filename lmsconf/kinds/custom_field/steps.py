"""The calls that create, replace and delete custom fields.

PUT replaces the whole field. Three rules decide the number and order of calls: a choice must exist before a smart group
references it, must stay until the last smart group drops it, and the service may refuse to change a field in use.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from shlex import quote
from typing import Final

from msgspec.structs import replace

from lmsconf.api.spec.value_encoding import encode_cleared_description
from lmsconf.errors import Severity, SourceLocation
from lmsconf.kinds.custom_field.compare import NEW, named_ref
from lmsconf.kinds.custom_field.types import FLAGS, MOST_FIELDS, ActiveMigration, ChoiceRow, CustomFieldSpec, FieldRow
from lmsconf.kinds.shared.kind_names import CUSTOM_FIELD, SMART_GROUP
from lmsconf.kinds.shared.plan_context import SLOT, BeforeAfter, Deletion, Match, MatchResult, PlanContext
from lmsconf.kinds.shared.rename_and_list_steps import free_name_ref, free_name_ref_of_row, temporary_name
from lmsconf.kinds.shared.responses import id_in_response
from lmsconf.model.address import Address, Ref, RemoteId
from lmsconf.model.calls import Call, Step
from lmsconf.model.canonical_json import Json, members
from lmsconf.model.forms import Form, KeyedNames, without_empty
from lmsconf.model.names import count_noun, normalize_name


def count_slots(planning: PlanContext, matched: MatchResult[CustomFieldSpec, FieldRow]) -> None:
    """Count the slots that creations take and deletions free; report creations that exceed the limit.

    Requires the changed references of smart groups.

    A field whose answers move is deleted last, after the calls that set answers to new fields: it frees no slot for
    them.
    """
    deleted = sorted(one.address for one in planning.planned(matched.deletions))
    first = [one for one in deleted if one not in planning.migrations]
    new = sorted(match.address for match in matched.matches if match.row is None and planning.chosen(match.address))
    over = matched.live + len(new) - len(deleted) - MOST_FIELDS
    free = max(0, MOST_FIELDS - matched.live)
    if over > 0 and new:
        planning.problem(
            "refusal/too-many-fields",
            f"{new[-1]}: a workspace has at most {MOST_FIELDS} custom fields, and with this plan there would be "
            f"{MOST_FIELDS + over}",
            hint=f"It has {matched.live} already. List {over} of them under `absent`, or declare {over} fewer.",
            address=new[-1],
        )
    elif len(new) > free + len(first):
        migrated = next(one for one in deleted if one in planning.migrations)
        _report_without_slot(planning, new, migrated, live=matched.live, free=free + len(first))
    planning.freed_slots = _pairs(planning, new, first, free)


def _report_without_slot(planning: PlanContext, new: Sequence[Address], old: Address, *, live: int, free: int) -> None:
    """Refuse the last of the new fields. live: how many there are. free: slots free now, or freed before."""
    # Conditions are replaced as a whole, so that one smart group may need both new fields: nothing is put in an order.
    targets = {migration.target for migration in planning.migrations.values()}
    alone = next((one for one in new if one in targets), None) if free and len(targets) > 1 else None
    way = "List"
    if alone is not None:
        first = f"plan with --only {quote(alone)}, apply that, and plan the rest"
        way = f"Migrate one field after the other: {first}. Or list"
    slots = count_noun(len(new) - free, "more free slot is", "more free slots are")
    planning.problem(
        "refusal/no-free-field",
        f"{new[-1]}: {slots} needed, because {old} is deleted only after its answers are copied, and a workspace has "
        f"at most {MOST_FIELDS} custom fields",
        hint=f"{live} are live. {way} a field that nobody needs under `absent`.",
        address=new[-1],
    )


def _pairs(
    planning: PlanContext, creations: Sequence[Address], deletions: Sequence[Address], free: int
) -> Mapping[Address, Address]:
    """Pair each creation beyond the free slots with a deletion to wait for.

    A smart group drops a deleted field in the call that names the new ones. So those take the free slots, and the
    others wait, for fields that no smart group drops if there are such.
    """
    drops = [(left, gained) for left, gained in planning.changed_refs if any(ref.address in deletions for ref in left)]
    needed = {ref.address for _, gained in drops for ref in gained}
    dropped = {ref.address for left, _ in drops for ref in left}
    new = sorted(creations, key=lambda at: (at not in needed, at))
    return dict(zip(new[free:], sorted(deletions, key=lambda at: (at in dropped, at)), strict=False))


def field_steps(planning: PlanContext, match: Match[CustomFieldSpec, FieldRow], sides: BeforeAfter) -> list[Step]:
    """Create with one POST, or replace with one to three PUTs.

    One more for a temporary name in a rename cycle, and one more if a smart group or an answer moves from
    a deleted choice to a new one, or to a new name that is sent, so that both must exist in between.
    """
    after, at, row = sides.after or {}, match.address, match.row
    if row is None:
        return [_creation(planning, at, after)]
    old, new = _keyed(sides.before, row.choices), _keyed(after, row.choices)
    dropped = {key: name for key, name in old.items() if key not in new}
    made = frozenset(Ref(at, name) for key, name in new.items() if key.startswith(NEW))
    named = frozenset(named_ref(at, name) for key, name in new.items() if old.get(key, name) != name)
    taken = frozenset(Ref(at, name) for name in dropped.values())
    renamed = normalize_name(row.name) != after["name"]
    # If no smart group keeps referencing the field, change it after groups drop it and before others reference it.
    may_be_in_use = planning.api_spec.behaviour("custom-fields.in-use") == "condition"
    whole = frozenset({Ref(at)} if may_be_in_use and not planning.kept_refs.get(Ref(at)) else ())
    replacement = partial(Step, operation="custom-fields.replace", path={"customFieldId": row.id})
    steps: list[Step] = []
    if renamed and at in planning.temporary_names:
        steps.append(
            replacement(
                body=_body(planning, row, {"name": temporary_name(row.id)}, old, at),
                makes=free_name_ref_of_row(CUSTOM_FIELD, row),
                avoids=whole,
            )
        )
    makes = made | named | (free_name_ref_of_row(CUSTOM_FIELD, row) if renamed and not steps else frozenset())
    uses = free_name_ref(at) if renamed else frozenset()
    keeps_both = any(left & taken and gained & (made | named) for left, gained in planning.changed_refs)
    if keeps_both:
        body = _body(planning, row, after, {**new, **dropped}, at)
        steps.append(replacement(body=body, makes=makes, uses=uses, avoids=whole))
        makes, uses = frozenset(), makes
    body = _body(planning, row, after, new, at, known=keeps_both)
    steps.append(replacement(body=body, makes=makes | whole, uses=uses, ends=taken, avoids=whole))
    return _tried_first(planning, match.declared.source, at, _blocking_groups(planning, at, taken), "changed", steps)


def field_deletion(planning: PlanContext, deletion: Deletion[FieldRow]) -> list[Step]:
    """One DELETE, after the last smart group stops referencing the field."""
    at, row = deletion.address, deletion.row
    step = Step(
        operation="custom-fields.delete",
        path={"customFieldId": row.id},
        makes=free_name_ref_of_row(CUSTOM_FIELD, row) | {Ref(at, SLOT)},
        ends=frozenset({Ref(at)}),
        revokes=True,
    )
    groups = planning.kept_refs.get(Ref(at), [])
    if migration := planning.migrations.get(at):
        _report_unreplaced(planning, at, migration, groups)
    elif planning.api_spec.behaviour("custom-fields.in-use") != "never":
        return _tried_first(planning, deletion.source, at, groups, "deleted", [step])
    return [step]


def _report_unreplaced(
    planning: PlanContext, at: Address, migration: ActiveMigration, groups: Sequence[Address]
) -> None:
    """Refuse to delete a field whose answers moved while conditions still name it, or while that is not known."""
    if groups:
        cause = f"it is still named by the conditions of {', '.join(sorted(set(groups)))}"
        hint = _way_to_replace(planning, migration, groups)
    elif why := planning.snapshot.of(SMART_GROUP).incomplete:
        cause = f"it is not known which smart groups name it: {why}"
        hint = "Plan again once all smart groups can be read."
    else:
        return
    planning.problem(
        "refusal/conditions-not-replaced",
        f"{at}: it cannot be deleted, because {cause}",
        hint=hint,
        at=migration.migration.places.at("from"),
        address=at,
    )


def _way_to_replace(planning: PlanContext, migration: ActiveMigration, groups: Sequence[Address]) -> str:
    left = sorted({one.address for one in planning.declared if not planning.chosen(one.address)}.intersection(groups))
    if left and planning.policy.only:
        return f"Plan them too: {' '.join(f'--only {quote(str(group))}' for group in left)}"
    if migration.migration.all_groups or migration.target_type == "TEXT":
        return f"Declare other `conditions` for them: {migration.target} has no choices for theirs."
    return (
        f"Declare `conditions` on {migration.target} for them, or write `conditions: all` under `migrate`, which "
        "replaces the conditions of smart groups that no manifest declares."
    )


def _creation(planning: PlanContext, at: Address, after: Form) -> Step:
    names = list(_keyed(after, ()).values())
    body = {
        "name": at.name,
        "type": after["type"],
        **without_empty({"choices": [{"name": name} for name in names], "description": after.get("description")}),
        **{wire_name: after[key] for key, wire_name in FLAGS.items() if key in after},
    }
    freeing = planning.freed_slots.get(at)
    return Step(
        operation="custom-fields.create",
        body=planning.api_spec.body_to_wire("custom-fields.create", **body),
        makes=frozenset({Ref(at), *(Ref(at, name) for name in names)}),
        uses=free_name_ref(at) | ({Ref(freeing, SLOT)} if freeing else frozenset()),
    )


def _body(
    planning: PlanContext, row: FieldRow, after: Form, choices: dict[str, str], at: Address, *, known: bool = False
) -> dict[str, object]:
    """The whole field: declared values, and live ones for the rest. `known`: new choices have ids already."""
    body: dict[str, object] = {"name": _as_read(row.name, str(after["name"])), "type": row.type}
    if row.type != "TEXT":
        live = {choice.id: choice.name for choice in row.choices}
        body["choices"] = [
            _choice(at, key, _as_read(live.get(RemoteId(key), name), name), known) for key, name in choices.items()
        ]
    description = after.get("description", row.description)
    if description is not None or row.description is not None:
        cleared = encode_cleared_description(planning.api_spec.behaviour)
        body["description"] = cleared if description is None else description
    # Where the service shows flags, it may leave out those that are off, and set what a call omits.
    shows = any(getattr(one, key) is not None for one in planning.snapshot.rows(FieldRow) for key in FLAGS)
    flags = {wire_name: after.get(key, getattr(row, key)) for key, wire_name in FLAGS.items()}
    body |= {wire_name: bool(flag) for wire_name, flag in flags.items() if flag is not None or shows}
    return planning.api_spec.body_to_wire("custom-fields.replace", **body)


def _as_read(live: str, wanted: str) -> str:
    """The live spelling of a name that is equal when normalized: the plan shows no change, so none is sent."""
    return live if normalize_name(live) == normalize_name(wanted) else wanted


def _choice(at: Address, key: str, name: str, known: bool) -> dict[str, object]:
    if not key.startswith(NEW):
        return {"choiceId": key, "name": name}
    return {"choiceId": Ref(at, name), "name": name} if known else {"name": name}


def _keyed(form: Form | None, live: Iterable[ChoiceRow]) -> dict[str, str]:
    """Choice id, or NEW + name for a new choice, → name; of the live ones if the form has none."""
    choices = (form or {}).get("choices")
    return dict(choices.names) if isinstance(choices, KeyedNames) else {one.id: one.name for one in live}


def _blocking_groups(planning: PlanContext, at: Address, taken: frozenset[Ref]) -> list[Address]:
    """The smart groups whose references may make the service refuse to change the field."""
    blocking = {"condition": frozenset({Ref(at)}), "removed-choice": taken}
    refs = blocking.get(planning.api_spec.behaviour("custom-fields.in-use"), ())
    return [group for ref in refs for group in planning.kept_refs.get(ref, [])]


def _tried_first(
    planning: PlanContext,
    source: SourceLocation | None,
    at: Address,
    groups: list[Address],
    verb: str,
    steps: list[Step],
) -> list[Step]:
    """Return the steps; if smart groups name the field, marked as calls that may be refused, with a warning."""
    if not groups:
        return steps
    planning.problem(
        "refusal/in-use",
        f"{at}: may be refused, because a field in use is not {verb}; it is named by {', '.join(sorted(set(groups)))}",
        hint="Allow `refusals` to try it before all other calls. By hand: remove the field from those conditions "
        "in the product, apply, and apply again to restore the conditions.",
        at=source,
        address=at,
        severity=Severity.WARNING,
    )
    return [replace(step, may_be_refused=True) for step in steps]


def choices_created_by(call: Call) -> frozenset[Ref]:
    """Return the choices that a call creates: those sent without an id."""
    choices = call.body.get("choices") if isinstance(call.body, Mapping) else None
    return frozenset(Ref(call.address, choice["name"]) for choice in choices or () if "choiceId" not in choice)


REFUSED_IN_USE: Final = {
    "custom-fields.replace": (
        "It may be in use, in conditions or in people's answers. Remove it from conditions, apply, and apply "
        "again; or declare a new field that takes over its answers: `migrate`."
    ),
    "custom-fields.delete": (
        "It may be in use, in conditions or in people's answers: remove it from these, apply, and apply again."
    ),
}
"""The operations that the service refuses for a field in use → the hint then."""


def ids_of_field(at: Address, answer: Json) -> dict[Ref, str]:
    """Return the ids of a field and its choices; calls return the whole field (API specification, Custom Fields)."""
    choices = members(answer).get("choices")
    named = [one for one in map(members, choices if isinstance(choices, list) else ()) if "choiceId" in one]
    return {
        **(id_in_response(at, answer, "customFieldId") or id_in_response(at, answer, "id")),
        **{Ref(at, normalize_name(str(one["name"]))): str(one["choiceId"]) for one in named if "name" in one},
    }
