"""Which live custom field each declaration means, and what differs in the keys that it declares."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from lmsconf.kinds.custom_field.choices import choices_before_and_after, register_choices
from lmsconf.kinds.custom_field.migration import MIGRATE, active_migrations, has_migration, migration_to_json
from lmsconf.kinds.custom_field.types import FLAGS, CustomFieldSpec, FieldRow
from lmsconf.kinds.shared.manifest_entries import refuse_missing_key
from lmsconf.model.declarations import DeleteEntry, DesiredResource
from lmsconf.model.forms import Form
from lmsconf.model.names import normalize_name, quote_name
from lmsconf.planner.context import BeforeAfter, Deletion, Match, MatchResult, PlanContext, Similarity
from lmsconf.planner.diff import KeyedNames
from lmsconf.planner.matching import match_named


def match_fields(
    planning: PlanContext, declared: Sequence[DesiredResource[CustomFieldSpec]], absent: Sequence[DeleteEntry[Any]]
) -> MatchResult[CustomFieldSpec, FieldRow]:
    """Match fields by name, then the choices of each field by name, then the answers that migrations copy."""
    if has_migration(declared, absent):
        from lmsconf.kinds.custom_field.planned_migration import deletions_by_migration

        absent = [*absent, *deletions_by_migration(planning, declared, absent)]
    matched = match_named(planning, FieldRow, "custom field", declared, absent)
    register_choices(planning, matched)
    if has_migration((), absent):
        from lmsconf.kinds.custom_field.planned_migration import plan_migrations

        plan_migrations(planning, matched)
    return matched


def diff_field(planning: PlanContext, match: Match[CustomFieldSpec, FieldRow]) -> BeforeAfter | None:
    """Compare the declared keys. None, with a problem, for a changed type or a creation without a required key."""
    declared, row = match.declared, match.row
    spec = declared.spec
    if row is None:
        return _new(planning, declared, spec)
    if spec.type is not None and spec.type != row.type:
        planning.problem(
            "custom-field/type",
            f"{declared.address}: its type is {row.type} and cannot become {spec.type}",
            hint="In place of this one, declare a field under another name, with "
            f"`migrate: {{from: {quote_name(declared.address.name)}}}`: `lmsconf help migration` explains it.",
            at=declared.places.at("type"),
            address=declared.address,
        )
        return None
    before: Form = {"name": normalize_name(row.name)}
    after: Form = {"name": declared.address.name}
    if spec.type is not None:
        before["type"] = after["type"] = spec.type
    sizes: dict[str, int] = {}
    if spec.choices is not None:
        before["choices"], after["choices"] = choices_before_and_after(planning, declared.address)
        sizes["choices"] = len(row.choices)
    if spec.description is not None:
        before["description"], after["description"] = row.description, spec.description or None
    for key in FLAGS:
        wanted = getattr(spec, key)
        if wanted is not None:
            before[key], after[key] = bool(getattr(row, key)), wanted
    return BeforeAfter(before=before, after=after, sizes=sizes)


def _new(
    planning: PlanContext, declared: DesiredResource[CustomFieldSpec], spec: CustomFieldSpec
) -> BeforeAfter | None:
    if spec.type is None or (spec.type != "TEXT" and (spec.choices is None or not spec.choices.include)):
        refuse_missing_key(planning, declared, "type" if spec.type is None else "choices")
        return None
    after: Form = {"name": declared.address.name, "type": spec.type}
    if spec.choices is not None:
        after["choices"] = choices_before_and_after(planning, declared.address)[1]
    if spec.description is not None:
        after["description"] = spec.description or None
    after.update({key: getattr(spec, key) for key in FLAGS if getattr(spec, key) is not None})
    defaults = tuple(key for key in ("description", *FLAGS) if key not in after)
    return BeforeAfter(before=None, after=after, defaults=defaults)


def live_field_form(field: FieldRow) -> Form:
    """Return the live name, type, choices and description."""
    form: Form = {"name": normalize_name(field.name), "type": field.type}
    if field.choices:
        form["choices"] = KeyedNames({choice.id: choice.name for choice in field.choices})
    if field.description:
        form["description"] = field.description
    return form


def field_before_deletion(planning: PlanContext, deletion: Deletion[FieldRow]) -> BeforeAfter:
    """Return the live name, type, choices and description, and where its answers move; `after` is None."""
    form = live_field_form(deletion.row)
    migration = active_migrations(planning).get(deletion.address)
    if migration is not None:
        form[MIGRATE] = migration_to_json(migration.migration)
    return BeforeAfter(before=form, after=None)


def similar_choices(planning: PlanContext, form: Form) -> Similarity:
    """Compare fields of one type by their choices; a TEXT field has nothing to compare."""
    choices = form.get("choices")
    names = frozenset(choices.names.values()) if isinstance(choices, KeyedNames) else frozenset()
    return Similarity(of="choices", key=names or None, items=names, type=str(form["type"]))
