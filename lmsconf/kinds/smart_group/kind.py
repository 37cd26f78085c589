"""Smart groups: membership computed from custom-field conditions.

Conditions are replaced as a whole, never patched, and at least one is required. Members cannot be set (API
specification, Smart Groups).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Final, cast

from lmsconf.api.spec.listings import SMART_GROUPS
from lmsconf.errors import Problem, shown
from lmsconf.kinds.custom_field.choices import refuse_left_out
from lmsconf.kinds.custom_field.types import CustomFieldSpec
from lmsconf.kinds.shared.common import (
    ABSENT_NAMED,
    NAME,
    NAMED,
    entry_schema,
    named,
    named_absent,
    needed,
    not_read,
    partial_undo,
    texts,
)
from lmsconf.kinds.shared.names import CONTENT_TARGET, CUSTOM_FIELD, GROUP, SMART_GROUP, USER
from lmsconf.kinds.shared.people_lists import NOBODY, People, parse_people, people_schema
from lmsconf.kinds.shared.renames import find_rename_cycles, freed_name_slot, name_slot, rename_steps
from lmsconf.kinds.smart_group import redact
from lmsconf.kinds.smart_group.condition_losses import note_condition_losses
from lmsconf.kinds.smart_group.conditions import (
    Like,
    NumberedCondition,
    as_set,
    check_conditions,
    conditions_of,
    effective,
    in_ids,
    in_names,
    named_refs,
    note_conditions,
    note_usage,
    record_choice_renames,
)
from lmsconf.kinds.smart_group.export import PART_REFERENCES, REFERENCES, smart_group_body
from lmsconf.kinds.smart_group.read import read_smart_groups, unlisted_field
from lmsconf.kinds.smart_group.types import DeclaredCondition, SmartGroupSpec, SmartRow, listed_row
from lmsconf.kinds.user.directory import (
    addresses,
    check_people,
    directory,
    foretell_managers,
    note_unknown,
    shown_people,
)
from lmsconf.kinds.user.people_steps import awaited, list_grant, people_steps
from lmsconf.model.address import Address, Ref
from lmsconf.model.forms import Form
from lmsconf.model.names import did_you_mean, normal
from lmsconf.model.snapshot import HasName, ListedRow, Listing, Snapshot
from lmsconf.model.values import Call, DeleteEntry, DesiredResource, Json, Step, Undo
from lmsconf.planner.context import BeforeAfter, Deletion, Effect, Match, MatchResult, PlanContext, Similarity
from lmsconf.planner.entries import EntryBody
from lmsconf.planner.grants import GrantCheck
from lmsconf.planner.kind import Kind, ManifestEntry
from lmsconf.planner.live_names import LiveNames
from lmsconf.planner.matching import match_named
from lmsconf.planner.reading import ReadContext
from lmsconf.planner.redaction import Entry, RedactionContext, Report, RestoreContext

_CONDITION: dict[str, Json] = {
    **entry_schema(
        {
            "field": {**NAME, "description": "The custom field."},
            "choices": {
                "type": "array",
                "items": {"type": "string", "minLength": 1},
                "minItems": 1,
                "description": "One of these must have been chosen.",
            },
            "system_condition": {"type": "string", "minLength": 1, "description": "Passed through, e.g. IS_ANY."},
        },
        ["field"],
        "What a person must have answered.",
    ),
    "anyOf": [{"required": ["choices"]}, {"required": ["system_condition"]}],
}


class SmartGroupKind(Kind[SmartGroupSpec, SmartRow]):
    """The kind `smart_group`."""

    name = SMART_GROUP
    section = "smart_groups"
    noun = "smart group"
    plural = "smart groups"
    rank = 3
    reports_people = True
    row_type = SmartRow
    list_operation = SMART_GROUPS
    operations = (
        "users.list",
        "users.extended-info",
        "custom-fields.list",
        "smart-groups.list",
        "smart-groups.get",
        "smart-groups.create",
        "smart-groups.delete",
        "smart-groups.rename",
        "smart-groups.replace-conditions",
        "smart-groups.managers",
        "smart-groups.add-managers",
        "smart-groups.remove-manager",
        "content.list",
        "content-targets.list",
        "content-targets.delete",
    )
    schema = entry_schema(
        {
            **NAMED,
            "conditions": {
                "type": "array",
                "items": _CONDITION,
                "minItems": 1,
                "description": "All of them must hold.",
                "x-conditions": True,
            },
            "managers": people_schema("Who manages the group."),
        },
        ["name"],
        "A smart group: everybody whose answers fit.",
    )
    absent_schema = ABSENT_NAMED

    def parse(self, entry: ManifestEntry) -> Iterator[DesiredResource[SmartGroupSpec]]:
        """Yield the smart group of one manifest entry."""
        conditions = entry.body.get("conditions")
        spec = SmartGroupSpec(
            conditions=tuple(_condition(one) for one in cast("list[Mapping[str, Json]]", conditions))
            if conditions is not None
            else None,
            managers=parse_people(entry, "managers"),
        )
        yield named(SMART_GROUP, entry, spec)

    def parse_absent(self, entry: ManifestEntry) -> Iterator[DeleteEntry[Any]]:
        """Yield the smart group that an `absent` entry deletes."""
        yield named_absent(SMART_GROUP, entry)

    def check(
        self,
        declared: Sequence[DesiredResource[SmartGroupSpec]],
        everything: Mapping[str, Sequence[DesiredResource[SmartGroupSpec]]],
    ) -> Iterator[Problem]:
        """Yield a problem for choices of a TEXT field, and for choices missing from a field's declared whole list."""
        fields = {one.address: cast(CustomFieldSpec, one.spec) for one in everything.get(CUSTOM_FIELD, ())}
        for declared_group in declared:
            for position, condition in enumerate(declared_group.spec.conditions or ()):
                field = fields.get(Address.of(CUSTOM_FIELD, condition.field))
                if field is not None:
                    yield from _unknown_choices(declared_group, position, condition, field)

    def dependencies(self, declared: DesiredResource[SmartGroupSpec]) -> list[Address]:
        """The fields in its conditions, and its managers; the plan may create them."""
        spec = declared.spec
        fields = [Address.of(CUSTOM_FIELD, condition.field) for condition in spec.conditions or ()]
        return [*fields, *addresses(spec.managers or NOBODY)]

    def match(
        self,
        planning: PlanContext,
        declared: Sequence[DesiredResource[SmartGroupSpec]],
        absent: Sequence[DeleteEntry[Any]],
    ) -> MatchResult[SmartGroupSpec, SmartRow]:
        """Match by name."""
        return match_named(planning, SmartRow, self.noun, declared, absent)

    def diff(self, planning: PlanContext, match: Match[SmartGroupSpec, SmartRow]) -> BeforeAfter | None:
        """Compare name, and conditions and managers where declared."""
        declared, row = match.declared, match.row
        spec = declared.spec
        if row is None and spec.conditions is None:
            needed(planning, declared, "conditions")
            return None
        before: Form = {} if row is None else {"name": normal(row.name)}
        after: Form = {"name": declared.address.name}
        sizes: dict[str, int] = {}
        if spec.conditions is not None:
            if not check_conditions(planning, declared, spec.conditions):
                return None
            if row is None:
                refuse_left_out(planning, declared, named_refs(spec.conditions))
            live = None if row is None else row.conditions
            if row is not None and live is None:
                not_read(planning, declared.address, "conditions", declared.places.at("conditions"))
                return None
            live_conditions = in_names(planning, live or ())
            wanted = effective(spec.conditions, live_conditions)
            record_choice_renames(planning, wanted, live_conditions)
            after["conditions"] = as_set(wanted)
            if row is not None:
                before["conditions"] = as_set(live_conditions)
                sizes["conditions"] = len(live_conditions)
                if not planning.policy.additive:
                    note_conditions(planning, row.id, wanted)
        if spec.managers is not None:
            after["managers"] = managers = check_people(planning, declared, "managers", spec.managers)
            if row is not None:
                if row.managers is None:
                    not_read(planning, declared.address, "managers", declared.places.at("managers"))
                    return None
                note_unknown(planning, declared, "managers", row.managers)
                before["managers"] = directory(planning).comparable(row.managers, managers)
                sizes["managers"] = len(row.managers)
            held = before.get("managers")
            kept = held.include if isinstance(held, People) else frozenset()
            foretell_managers(planning, declared, managers.include - kept)
        if row is None:
            return BeforeAfter(before=None, after=after, defaults=() if "managers" in after else ("managers",))
        return BeforeAfter(before=before, after=after, sizes=sizes)

    def state_before_delete(self, planning: PlanContext, deletion: Deletion[SmartRow]) -> BeforeAfter:
        """The live name, conditions and managers; members are computed, so they are no part of it."""
        row = deletion.row
        form: Form = {"name": normal(row.name)}
        if row.conditions is None or row.managers is None:
            not_read(
                planning,
                deletion.address,
                "conditions and managers",
                deletion.absent.source if deletion.absent else None,
            )
            return BeforeAfter(before=form, after=None)
        form["conditions"] = as_set(in_names(planning, row.conditions))
        form["managers"] = People(shown_people(planning, row.managers))
        return BeforeAfter(before=form, after=None, sizes={"managers": len(row.managers)})

    def finalize(self, planning: PlanContext, matched: MatchResult[SmartGroupSpec, SmartRow]) -> None:
        """Find rename cycles, and record which fields and choices each live smart group keeps and drops."""
        find_rename_cycles(planning, matched)
        deletions = () if planning.policy.additive else matched.deletions
        deleted = frozenset(deletion.row.id for deletion in deletions if planning.chosen(deletion.address))
        note_usage(planning, deleted)
        note_condition_losses(planning, matched, deleted)

    def live_form(self, planning: PlanContext, row: SmartRow) -> Form:
        """Its name, and its conditions where they were read."""
        conditions = row.conditions
        form: Form = {"name": normal(row.name)}
        return form if conditions is None else {**form, "conditions": as_set(in_names(planning, conditions))}

    def similarity(self, planning: PlanContext, form: Form) -> Similarity:
        """Compare smart groups by their conditions."""
        conditions = cast("frozenset[NumberedCondition]", form.get("conditions", frozenset()))
        unnumbered = (condition for condition, _ in conditions)
        items = {(condition.field, choice) for condition in unnumbered for choice in condition.choices or (None,)}
        return Similarity(of="conditions", key=Like(conditions) if conditions else None, items=frozenset(items))

    def plan_steps(
        self, planning: PlanContext, match: Match[SmartGroupSpec, SmartRow], sides: BeforeAfter
    ) -> list[Step]:
        """One create, or rename, replace the conditions, add managers, then remove managers."""
        at, row = match.address, match.row
        after, before = sides.after or {}, sides.before
        if row is None or before is None:
            return [self._create(planning, at, after)]
        path = {"smartGroupId": row.id}
        steps = list(rename_steps(planning, "smart-groups.rename", path, match, sides))
        if "conditions" in after and after["conditions"] != before["conditions"]:
            steps.append(self._replace(planning, path, before, after))
        managers = after.get("managers")
        if isinstance(managers, People):
            adds, removes = "smart-groups.add-managers", "smart-groups.remove-manager"
            held = before["managers"]
            old = held if isinstance(held, People) else None
            steps.extend(people_steps(planning, at, path, adds, removes, old, managers))
        return steps

    def _create(self, planning: PlanContext, at: Address, after: Form) -> Step:
        conditions = conditions_of(after)
        body: dict[str, object] = {"name": at.name, "conditions": in_ids(planning, conditions)}
        managers = after.get("managers")
        emails = managers.include if isinstance(managers, People) else frozenset()
        if emails:
            body["managers"] = [directory(planning).id(one) for one in sorted(emails)]
        return Step(
            operation="smart-groups.create",
            body=planning.terms.body("smart-groups.create", **body),
            makes=frozenset({Ref(at)}),
            uses=name_slot(at) | named_refs(conditions) | awaited(planning, emails, manages=True),
            people=tuple(sorted(emails)),
        )

    def _replace(self, planning: PlanContext, path: Mapping[str, str], before: Form, after: Form) -> Step:
        # The service discards all previous conditions, so all of them are sent each time.
        conditions = conditions_of(after)
        body = planning.terms.body("smart-groups.replace-conditions", conditions=in_ids(planning, conditions))
        now = named_refs(conditions)
        return Step(
            operation="smart-groups.replace-conditions",
            path=path,
            body=body,
            uses=now,
            releases=named_refs(conditions_of(before)) - now,
        )

    def lost_on(
        self,
        planning: PlanContext,
        subject: Match[SmartGroupSpec, SmartRow] | Deletion[SmartRow] | Effect,
        sides: BeforeAfter,
    ) -> Undo:
        """A smart group created again has another id; a condition removed with its field must be restored by hand."""
        if isinstance(subject, Effect):
            return partial_undo("what it names comes back with another id, and the condition not by itself")
        return partial_undo("the smart group comes back with another id") if isinstance(subject, Deletion) else Undo()

    def plan_delete(self, planning: PlanContext, deletion: Deletion[SmartRow]) -> list[Step]:
        """One DELETE, after the assignments of the group are deleted."""
        conditions = in_names(planning, deletion.row.conditions or ())
        return [
            Step(
                operation="smart-groups.delete",
                path={"smartGroupId": deletion.row.id},
                makes=freed_name_slot(SMART_GROUP, deletion.row),
                releases=named_refs(conditions),
                ends=frozenset({Ref(deletion.address)}),
                revokes=True,
            )
        ]

    def grant_check(self, call: Call) -> GrantCheck | None:
        """Additions of managers are verified by reading the smart group."""
        return list_grant("smart-groups.get", "managers") if call.operation == "smart-groups.add-managers" else None

    def revokes(self, call: Call) -> bool:
        """Removals of managers, and deletions."""
        return call.operation in ("smart-groups.remove-manager", "smart-groups.delete")

    references = REFERENCES
    part_references = PART_REFERENCES
    graph_shape = "ellipse"

    def entry_body(self, live: LiveNames, row: SmartRow) -> EntryBody:
        """Its conditions, and its managers if there are any."""
        return smart_group_body(live, row)

    def needs(self, reading: ReadContext) -> frozenset[str]:
        """The fields of conditions, and people as for manual groups."""
        if reading.may_delete(SMART_GROUP):
            return frozenset({CONTENT_TARGET, CUSTOM_FIELD, GROUP, SMART_GROUP, USER})
        declared = reading.declared_of(self)
        lists = any(one.spec.managers is not None and reading.chosen(one.address) for one in declared)
        return frozenset({CUSTOM_FIELD, USER} if lists else {CUSTOM_FIELD})

    def parse_row(self, data: Mapping[str, Json]) -> SmartRow:
        """Parse a row of the listing, which has neither conditions nor managers."""
        return listed_row(data)

    def read(self, reading: ReadContext) -> Listing[SmartRow] | None:
        """Read the listing, and conditions and managers where they are compared."""
        return read_smart_groups(self, reading)

    def contradicts(self, snapshot: Snapshot) -> Iterator[tuple[str, str]]:
        """Fields in conditions that are not listed."""
        return unlisted_field(snapshot)

    def redact(self, redaction: RedactionContext, row_type: type[ListedRow]) -> Iterable[HasName]:
        """Count the undeclared people in lists."""
        return redact.redacted(redaction)

    def restore(self, restoring: RestoreContext, row_type: type[ListedRow]) -> Iterable[HasName]:
        """Add placeholders for the people who are only counted in lists."""
        return redact.restored(restoring)

    def without_people(self, entry: Entry, new: frozenset[str], report: Report) -> Entry | None:
        """Leave out people that a redacted snapshot does not know."""
        return redact.without_people(entry, new, report)


def _condition(body: Mapping[str, Json]) -> DeclaredCondition:
    system = body.get("system_condition")
    return DeclaredCondition(
        normal(str(body["field"])), frozenset(texts(body.get("choices"))), None if system is None else str(system)
    )


def _unknown_choices(
    declared: DesiredResource[SmartGroupSpec], position: int, condition: DeclaredCondition, field: CustomFieldSpec
) -> Iterator[Problem]:
    at = Address.of(CUSTOM_FIELD, condition.field)
    if field.type == "TEXT" and condition.choices:
        yield Problem(
            code="reference/text-field",
            message=f"{declared.address}: {at} is a TEXT field, it has no choices to name",
            hint="Conditions need a CHOICE or MULTI_SELECT field.",
            source=declared.places.at("conditions", position, "choices"),
            address=str(declared.address),
        )
    if field.choices is None or not field.choices.whole:
        return
    known = [choice.name for choice in field.choices.include]
    for name in sorted(condition.choices - set(known)):
        hints = [f"It has {', '.join(known)}.", did_you_mean(name, known)]
        yield Problem(
            code="reference/unknown-choice",
            message=f'{declared.address}: {at} has no choice "{shown(name)}"',
            hint=" ".join(hint for hint in hints if hint),
            source=declared.places.find(name, "conditions", position, "choices"),
            address=str(declared.address),
        )


KIND: Final = SmartGroupKind()
