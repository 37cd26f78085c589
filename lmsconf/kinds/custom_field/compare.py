"""Which live custom field and choices each declaration means, and what differs in the keys that it declares."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import partial
from typing import Any, Final

from lmsconf.errors import shorten
from lmsconf.kinds.custom_field.planned_migration import deletions_by_migration, plan_migrations
from lmsconf.kinds.custom_field.types import (
    FLAGS,
    MIGRATE,
    CustomFieldSpec,
    DeclaredChoices,
    FieldRow,
    choices_hint,
    migration_to_json,
)
from lmsconf.kinds.shared.kind_names import CUSTOM_FIELD, choices_registry_kind
from lmsconf.kinds.shared.managed_resources import match_named
from lmsconf.kinds.shared.match_by_name import Claim, ClaimMatches
from lmsconf.kinds.shared.plan_context import (
    BeforeAfter,
    Deletion,
    Match,
    MatchResult,
    NewParts,
    PlanContext,
    Similarity,
    report_ambiguous_reference,
    report_missing_key,
    suggest_name,
    why_name_is_missing,
)
from lmsconf.model.address import Address, Ref, shell_quoted
from lmsconf.model.declarations import DeleteEntry, DesiredResource, pin_in
from lmsconf.model.forms import Form, KeyedNames, without_empty
from lmsconf.model.names import normalize_name, quote_name

NEW: Final = "new "
"""Prefix of the key of a choice without an id, which is to be created."""


def register_choices(planning: PlanContext, matched: MatchResult[CustomFieldSpec, FieldRow]) -> None:
    """Record the types of fields; register each choice under its name after the plan, one to be removed as an alias."""
    types = {match.address.name: match.declared.spec.type for match in matched.matches}
    declaring = [
        (match, choices)
        for match in matched.matches
        if (choices := match.declared.spec.choices) is not None
        and (match.row is None or planning.chosen(match.address))
    ]
    ids = {match.row.id for match, _ in declaring if match.row is not None}
    for row in planning.snapshot.rows(FieldRow):
        name = planning.registry.name(CUSTOM_FIELD, row.id) or normalize_name(row.name)
        types[name] = row.type
        for choice in row.choices if row.id not in ids else ():
            planning.registry.register(choices_registry_kind(name), normalize_name(choice.name), choice.id)
    planning.field_types = {name: type for name, type in types.items() if type is not None}
    for match, choices in declaring:
        _register_declared_choices(planning, match, choices)


def _register_declared_choices(
    planning: PlanContext, match: Match[CustomFieldSpec, FieldRow], choices: DeclaredChoices
) -> None:
    declared, live = match.declared, match.row.choices if match.row else ()
    claims = [
        Claim(
            name=choice.name,
            pin=pin_in(choice.pins, planning.policy.workspace),
            # A new field has no live choices, so `previously` cannot match any.
            previously=() if match.row is None else choice.previously,
            label=f'{declared.address}: choice "{choice.name}"',
            find_source=partial(declared.places.at, *choice.at),
            address=str(declared.address),
        )
        for choice in choices.include
    ]
    matched = ClaimMatches(claims, live, noun="choice")
    planning.problems.extend(matched.problems)
    scope = choices_registry_kind(declared.address.name)
    pairs = [*zip(choices.include, matched.live, strict=True)]
    after: dict[str, str] = {row.id if row else NEW + choice.name: choice.name for choice, row in pairs}
    for choice, row in pairs:
        planning.registry.register(scope, choice.name, None if row is None else row.id)
    for row in sorted(matched.unclaimed, key=lambda row: (normalize_name(row.name), row.id)):
        name = normalize_name(row.name)
        if choices.whole or name in choices.exclude:
            planning.registry.set_display_name(scope, name, row.id)
        else:
            after[row.id] = name
            planning.registry.register(scope, name, row.id)
    if undeclared := frozenset(after[row.id] for row in matched.unclaimed if row.id in after):
        planning.parts[declared.address] = NewParts(
            new=frozenset(choice.name for choice, row in pairs if row is None), undeclared=undeclared
        )
    if not choices.whole:
        # `include` and `exclude` declare no order, so the live order is kept.
        after = {row.id: after[row.id] for row in live if row.id in after} | after
    planning.field_choices[declared.address] = (
        KeyedNames({row.id: normalize_name(row.name) for row in live}),
        KeyedNames(after),
    )


def answered_ref(field: Address, choice: str | None = None) -> Ref:
    """Return the Ref for answers to a field, or those that pick a choice, being set."""
    return Ref(field, "(answered)" if choice is None else f"(answered) {choice}")


def named_ref(field: Address, choice: str) -> Ref:
    """Return the Ref for a choice of a field being renamed to that name."""
    return Ref(field, f"(named) {choice}")


def report_unrenamed_choices(planning: PlanContext, declared: DesiredResource[Any], choices: Iterable[Ref]) -> None:
    """Report a creation that references choices by their new names, since `--additive` renames nothing."""
    for choice in sorted(choices, key=str) if planning.policy.additive else ():
        before, after = planning.field_choices[choice.address]
        if any(name == choice.part and before.names.get(id, name) != name for id, name in after.names.items()):
            planning.report(
                declared,
                "reference/not-renamed",
                f'it names choice "{shorten(str(choice.part))}" of {choice.address}, '
                "and the plan leaves out the renaming that makes it so",
                hint=f"First run: lmsconf apply --only {shell_quoted(choice.address)}",
            )


def references_exist(
    planning: PlanContext,
    declared: DesiredResource[Any],
    field: str,
    choices: Iterable[str],
    at: tuple[str | int, ...],
    choices_at: tuple[str | int, ...] | None = None,
) -> bool:
    """Return whether a field and its choices will exist after the plan; report what a declaration names in vain.

    at, choices_at: the paths of the field, and of a list of the choices, if that is elsewhere.
    """
    named, scope = Address.of(CUSTOM_FIELD, field), choices_registry_kind(field)
    if report_ambiguous_reference(planning, declared, named, at):
        return False
    if not planning.registry.has(CUSTOM_FIELD, field):
        near = suggest_name(planning, field, planning.registry.names(CUSTOM_FIELD))
        planning.report(
            declared,
            "reference/unknown-field",
            *why_name_is_missing(planning, named, near),
            at=declared.places.at(*at),
        )
        return False
    missing = [name for name in sorted(choices) if not planning.registry.has(scope, name)]
    known = planning.registry.names(scope) if missing else []
    before, after = planning.field_choices[named]
    for name in missing:
        new = next((after.names[id] for id, old in before.names.items() if old == name and id in after.names), None)
        near = suggest_name(planning, name, known) if new is None else f'This plan renames it: write "{new}".'
        planning.report(
            declared,
            "reference/unknown-choice",
            f'{named} has no choice "{shorten(name)}"',
            hint=choices_hint(sorted(known), near),
            at=declared.places.find(name, *choices_at) if choices_at else declared.places.at(*at),
        )
    return not missing


def match_fields(
    planning: PlanContext, declared: Sequence[DesiredResource[CustomFieldSpec]], absent: Sequence[DeleteEntry[Any]]
) -> MatchResult[CustomFieldSpec, FieldRow]:
    """Match fields by name, then the choices of each field by name, then the answers that migrations copy."""
    absent = [*absent, *deletions_by_migration(planning, declared, absent)]
    matched = match_named(planning, declared, absent, FieldRow, "custom field")
    register_choices(planning, matched)
    plan_migrations(planning, matched)
    return matched


def diff_field(planning: PlanContext, match: Match[CustomFieldSpec, FieldRow]) -> BeforeAfter | None:
    """Compare the declared keys. None, with a problem, for a changed type or a creation without a required key."""
    declared, row, spec = match.declared, match.row, match.declared.spec
    if row is None and (spec.type is None or (spec.type != "TEXT" and not (spec.choices and spec.choices.include))):
        report_missing_key(planning, declared, "type" if spec.type is None else "choices")
        return None
    if row is not None and spec.type not in (None, row.type):
        planning.report(
            declared,
            "custom-field/type",
            f"its type is {row.type} and cannot become {spec.type}",
            hint="In place of this one, declare a field under another name, with "
            f"`migrate: {{from: {quote_name(declared.address.name)}}}`: `lmsconf help migration` explains it.",
            at=declared.places.at("type"),
        )
        return None
    keys = [key for key in ("type", "choices", "description", *FLAGS) if getattr(spec, key) is not None]
    old_choices, new_choices = planning.field_choices[declared.address]
    wanted: Form = {
        **{key: getattr(spec, key) for key in ("type", *FLAGS)},
        "choices": new_choices,
        "description": spec.description or None,
    }
    after: Form = {"name": declared.address.name, **{key: wanted[key] for key in keys}}
    if row is None:
        return BeforeAfter(before=None, after=after)
    live: Form = {
        "type": row.type,
        "choices": old_choices,
        "description": row.description,
        **{key: bool(getattr(row, key)) for key in FLAGS},
    }
    return BeforeAfter(
        before={"name": normalize_name(row.name), **{key: live[key] for key in keys}},
        after=after,
        sizes={"choices": len(row.choices)} if "choices" in keys else {},
    )


def live_field_form(field: FieldRow) -> Form:
    """Return the live name, type, choices and description."""
    choices = KeyedNames({one.id: one.name for one in field.choices}) if field.choices else None
    beside: Form = {"choices": choices, "description": field.description}
    return {"name": normalize_name(field.name), "type": field.type, **without_empty(beside)}


def field_before_deletion(planning: PlanContext, deletion: Deletion[FieldRow]) -> BeforeAfter:
    """Return the live name, type, choices and description, and where its answers move; `after` is None."""
    before = live_field_form(deletion.row)
    if migration := planning.migrations.get(deletion.address):
        before[MIGRATE] = migration_to_json(migration.migration)
    return BeforeAfter(before=before, after=None)


def similar_choices(planning: PlanContext, form: Form) -> Similarity:
    """Compare fields of one type by their choices; a TEXT field has nothing to compare."""
    choices = form.get("choices")
    names = frozenset(choices.names.values()) if isinstance(choices, KeyedNames) else frozenset()
    return Similarity(of="choices", key=names or None, items=names, type=str(form["type"]))
