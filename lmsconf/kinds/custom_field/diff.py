"""Live and declared state of custom fields, limited to the keys that the entry declares."""

from __future__ import annotations

from lmsconf.kinds.custom_field.choices import choices_before_and_after
from lmsconf.kinds.custom_field.types import FLAGS, CustomFieldSpec, FieldRow
from lmsconf.kinds.shared.manifest_entries import refuse_missing_key
from lmsconf.model.declarations import DesiredResource
from lmsconf.model.forms import Form
from lmsconf.model.names import normalize_name, quote_name
from lmsconf.planner.context import BeforeAfter, Match, PlanContext
from lmsconf.planner.diff import KeyedNames


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
