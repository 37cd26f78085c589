"""Custom fields: questions about each person, and their choices.

PUT replaces the whole field: a choice keeps its id only if the request carries it, and a choice left out is deleted
with the answers that picked it. A workspace holds at most ten fields, and the service may refuse to change a field in
use (API specification, Custom Fields).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final, cast

from lmsconf.api.spec.listings import CUSTOM_FIELDS
from lmsconf.errors import Problem, shown
from lmsconf.kinds.custom_field.choices import both_choices, know_choices
from lmsconf.kinds.custom_field.export import field_body, replayed_field
from lmsconf.kinds.custom_field.lost_answers import note_losses, undo_of_fields
from lmsconf.kinds.custom_field.read import read_fields
from lmsconf.kinds.custom_field.steps import REFUSED_IN_USE, count_slots, field_deletion, field_steps, new_choices
from lmsconf.kinds.custom_field.types import (
    FLAGS,
    MOST_FIELDS,
    TYPES,
    Choice,
    Choices,
    CustomFieldSpec,
    FieldRow,
    field_row,
)
from lmsconf.kinds.shared.common import (
    ABSENT_NAMED,
    NAME,
    NAMED,
    PIN,
    PREVIOUSLY,
    entry_schema,
    learnt_id,
    named,
    named_absent,
    needed,
    pins,
    texts,
)
from lmsconf.kinds.shared.names import CUSTOM_FIELD, SMART_GROUP
from lmsconf.kinds.shared.renames import find_rename_cycles
from lmsconf.model.address import Address, Ref
from lmsconf.model.forms import Form
from lmsconf.model.names import normal
from lmsconf.model.snapshot import Listing
from lmsconf.model.values import Call, Change, DeleteEntry, DesiredResource, Json, Step, Undo
from lmsconf.planner.context import BeforeAfter, Deletion, Effect, Match, MatchResult, PlanContext, Similarity
from lmsconf.planner.diff import Keyed
from lmsconf.planner.entries import EntryBody
from lmsconf.planner.kind import Kind, ManifestEntry
from lmsconf.planner.live_names import LiveNames
from lmsconf.planner.matching import match_named
from lmsconf.planner.reading import ReadContext

_CHOICE: dict[str, Json] = {
    "oneOf": [NAME, entry_schema({"name": NAME, "id": PIN, "previously": PREVIOUSLY}, ["name"], "One choice.")]
}
_CHOICES: dict[str, Json] = {"type": "array", "items": _CHOICE, "minItems": 1}
_CHOICE_NAMES: dict[str, Json] = {"type": "array", "items": NAME}


def _choices(value: Json) -> Choices | None:
    if value is None:
        return None
    if isinstance(value, list):
        return Choices(tuple(_choice(item, ("choices", i)) for i, item in enumerate(value)))
    parts = cast("Mapping[str, list[Json]]", value)
    return Choices(
        tuple(_choice(item, ("choices", "include", i)) for i, item in enumerate(parts.get("include", []))),
        texts(parts.get("exclude", [])),
        whole=False,
    )


def _choice(item: Json, at: tuple[str | int, ...]) -> Choice:
    body: Mapping[str, Json] = item if isinstance(item, dict) else {"name": item}
    return Choice(normal(str(body["name"])), pins(body.get("id")), texts(body.get("previously")), at)


class CustomFieldKind(Kind[CustomFieldSpec, FieldRow]):
    """The kind `custom_field`."""

    name = CUSTOM_FIELD
    section = "custom_fields"
    noun = "custom field"
    plural = "custom fields"
    rank = 0
    row_type = FieldRow
    list_operation = CUSTOM_FIELDS
    refused_in_use = REFUSED_IN_USE
    limit = MOST_FIELDS
    operations = (
        "custom-fields.list",
        "custom-fields.create",
        "custom-fields.replace",
        "custom-fields.delete",
        "smart-groups.list",
        "smart-groups.get",
    )
    schema = entry_schema(
        {
            **NAMED,
            "type": {"enum": list(TYPES), "description": "CHOICE, MULTI_SELECT or TEXT. It cannot change later."},
            "choices": {
                "description": "What people can choose from: all there is, or include and exclude.",
                "x-choices": True,
                "oneOf": [
                    _CHOICES,
                    {
                        "type": "object",
                        "properties": {"include": {"type": "array", "items": _CHOICE}, "exclude": _CHOICE_NAMES},
                        "minProperties": 1,
                        "additionalProperties": False,
                    },
                ],
            },
            "description": {"type": ["string", "null"], "description": "Shown to people; null clears it."},
            "hidden": {"type": "boolean", "description": "Not shown to people."},
            "locked": {"type": "boolean", "description": "People cannot change their own answer."},
            "optional": {"type": "boolean", "description": "People need not answer."},
        },
        ["name"],
        "A custom field: a question about each person.",
    )
    absent_schema = ABSENT_NAMED

    def parse(self, entry: ManifestEntry) -> Iterator[DesiredResource[CustomFieldSpec]]:
        """Yield the field of one manifest entry; report bad choices."""
        body = entry.body
        choices = _choices(body.get("choices"))
        for problem in _bad_choices(entry, choices):
            entry.report(problem)
        if body.get("type") == "TEXT" and choices is not None:
            entry.report(
                Problem(
                    code="manifest/text-choices",
                    message=f"{body['name']}: a TEXT field has no choices",
                    hint="Take `choices` out, or make it CHOICE or MULTI_SELECT.",
                    source=entry.places.at("choices"),
                )
            )
        spec = CustomFieldSpec(
            type=cast("str | None", body.get("type")),
            choices=choices,
            description=("" if body["description"] is None else str(body["description"]))
            if "description" in body
            else None,
            **{key: cast("bool | None", body.get(key)) for key in FLAGS},
        )
        yield named(CUSTOM_FIELD, entry, spec)

    def parse_absent(self, entry: ManifestEntry) -> Iterator[DeleteEntry[Any]]:
        """Yield the field that an `absent` entry deletes."""
        yield named_absent(CUSTOM_FIELD, entry)

    def check(
        self,
        declared: Sequence[DesiredResource[CustomFieldSpec]],
        everything: Mapping[str, Sequence[DesiredResource[CustomFieldSpec]]],
    ) -> Iterator[Problem]:
        """Yield a problem for each declared field beyond MOST_FIELDS; no snapshot is needed."""
        names = dict.fromkeys(one.address for one in declared)
        for extra in list(names)[MOST_FIELDS:]:
            declared_field = next(one for one in declared if one.address == extra)
            yield Problem(
                code="custom-field/too-many",
                message=f"{extra}: one field too many, a workspace holds at most {MOST_FIELDS}",
                hint=f"{len(names)} are declared. Take {len(names) - MOST_FIELDS} out.",
                source=declared_field.source,
                address=str(extra),
            )

    def match(
        self,
        planning: PlanContext,
        declared: Sequence[DesiredResource[CustomFieldSpec]],
        absent: Sequence[DeleteEntry[Any]],
    ) -> MatchResult[CustomFieldSpec, FieldRow]:
        """Match fields by name, then the choices of each field by name."""
        matched = match_named(planning, FieldRow, self.noun, declared, absent)
        know_choices(planning, matched)
        return matched

    def diff(self, planning: PlanContext, match: Match[CustomFieldSpec, FieldRow]) -> BeforeAfter | None:
        """Compare the declared keys. None, with a problem, for a changed type or a creation without a required key."""
        declared, row = match.declared, match.row
        spec = declared.spec
        if row is None:
            return self._new(planning, declared, spec)
        if spec.type is not None and spec.type != row.type:
            planning.problem(
                "custom-field/type",
                f"{declared.address}: its type is {row.type} and cannot become {spec.type}",
                hint="Declare a new field under another name, move people over, and put this one under `absent`.",
                at=declared.places.at("type"),
                address=declared.address,
            )
            return None
        before: Form = {"name": normal(row.name)}
        after: Form = {"name": declared.address.name}
        if spec.type is not None:
            before["type"] = after["type"] = spec.type
        sizes: dict[str, int] = {}
        if spec.choices is not None:
            before["choices"], after["choices"] = both_choices(planning, declared.address)
            sizes["choices"] = len(row.choices)
        if spec.description is not None:
            before["description"], after["description"] = row.description, spec.description or None
        for key in FLAGS:
            wanted = getattr(spec, key)
            if wanted is not None:
                before[key], after[key] = bool(getattr(row, key)), wanted
        return BeforeAfter(before=before, after=after, sizes=sizes)

    def _new(
        self, planning: PlanContext, declared: DesiredResource[CustomFieldSpec], spec: CustomFieldSpec
    ) -> BeforeAfter | None:
        if spec.type is None or (spec.type != "TEXT" and (spec.choices is None or not spec.choices.include)):
            needed(planning, declared, "type" if spec.type is None else "choices")
            return None
        after: Form = {"name": declared.address.name, "type": spec.type}
        if spec.choices is not None:
            after["choices"] = both_choices(planning, declared.address)[1]
        if spec.description is not None:
            after["description"] = spec.description or None
        after.update({key: getattr(spec, key) for key in FLAGS if getattr(spec, key) is not None})
        defaults = tuple(key for key in ("description", *FLAGS) if key not in after)
        return BeforeAfter(before=None, after=after, defaults=defaults)

    def state_before_delete(self, planning: PlanContext, deletion: Deletion[FieldRow]) -> BeforeAfter:
        """The live name, type, choices and description; `after` is None."""
        return BeforeAfter(before=self.live_form(planning, deletion.row), after=None)

    def live_form(self, planning: PlanContext, row: FieldRow) -> Form:
        """Its name, type, choices and description."""
        field = row
        form: Form = {"name": normal(field.name), "type": field.type}
        if field.choices:
            form["choices"] = Keyed({choice.id: choice.name for choice in field.choices})
        if field.description:
            form["description"] = field.description
        return form

    def finalize(self, planning: PlanContext, matched: MatchResult[CustomFieldSpec, FieldRow]) -> None:
        """Find rename cycles, check the limit of ten fields, and record the deleted fields and choices."""
        find_rename_cycles(planning, matched)
        count_slots(planning, matched)
        note_losses(planning, matched)

    def similarity(self, planning: PlanContext, form: Form) -> Similarity:
        """Compare fields of one type by their choices; a TEXT field has nothing to compare."""
        choices = form.get("choices")
        names = frozenset(choices.names.values()) if isinstance(choices, Keyed) else frozenset()
        return Similarity(of="choices", key=names or None, items=names, type=str(form["type"]))

    def plan_steps(
        self, planning: PlanContext, match: Match[CustomFieldSpec, FieldRow], sides: BeforeAfter
    ) -> list[Step]:
        """One create, or one or more replaces; see `field_steps`."""
        return field_steps(planning, match, sides)

    def lost_on(
        self,
        planning: PlanContext,
        subject: Match[CustomFieldSpec, FieldRow] | Deletion[FieldRow] | Effect,
        sides: BeforeAfter,
    ) -> Undo:
        """A field or choice that is created again has another id and no answers."""
        return undo_of_fields(planning, subject.address)

    def ids_from_response(self, at: Address, operation: str, answer: Json) -> dict[Ref, str]:
        """The ids of a field and its choices; both calls return the whole field (API specification, Custom Fields)."""
        if not isinstance(answer, dict):
            return {}
        ids = learnt_id(at, answer, "customFieldId") or learnt_id(at, answer, "id")
        choices = answer.get("choices")
        for choice in choices if isinstance(choices, list) else []:
            if isinstance(choice, dict) and "choiceId" in choice and "name" in choice:
                ids[Ref(at, normal(str(choice["name"])))] = str(choice["choiceId"])
        return ids

    def plan_delete(self, planning: PlanContext, deletion: Deletion[FieldRow]) -> list[Step]:
        """One DELETE, after the last smart group stops referencing the field."""
        return field_deletion(planning, deletion)

    def created_ids(self, call: Call) -> frozenset[Ref]:
        """A created field, and the new choices of a created or replaced one."""
        return super().created_ids(call) | new_choices(call)

    parts_key = "choices"
    graph_shape = "parallelogram"

    def entry_body(self, live: LiveNames, row: FieldRow) -> EntryBody:
        """Its type, choices in live order, description and flags."""
        return field_body(row)

    def replay_entry(self, change: Change, form: Mapping[str, Json], calls: Sequence[Call]) -> Mapping[str, Json]:
        """The field with every choice that it keeps pinned, as the call that replaces it sends them."""
        return replayed_field(change, super().replay_entry(change, form, calls), calls)

    def needs(self, reading: ReadContext) -> frozenset[str]:
        """The smart groups, whose conditions reference fields."""
        return frozenset({SMART_GROUP})

    def parse_row(self, data: Mapping[str, Json]) -> FieldRow:
        """Parse a field of a response."""
        return field_row(data)

    def read(self, reading: ReadContext) -> Listing[FieldRow] | None:
        """Read the listing, twice before a field is created."""
        return read_fields(self, reading)


def _bad_choices(entry: ManifestEntry, choices: Choices | None) -> Iterator[Problem]:
    if choices is None:
        return
    by_name: dict[str, Choice] = {}
    for choice in choices.include:
        if choice.name in by_name:
            yield Problem(
                code="manifest/choice-twice",
                message=f'{entry.body["name"]}: the choice "{choice.name}" stands here twice',
                hint=f"See {entry.places.at(*by_name[choice.name].at)}. Delete one of the two.",
                source=entry.places.at(*choice.at),
            )
        by_name.setdefault(choice.name, choice)
    for name in choices.exclude:
        if name in by_name:
            yield Problem(
                code="manifest/choice-both",
                message=f'{entry.body["name"]}: the choice "{shown(name)}" is both included and excluded',
                hint="Leave it in one of the two lists.",
                source=entry.places.find(name, "choices", "exclude"),
            )


KIND: Final = CustomFieldKind()
