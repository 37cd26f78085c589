"""What is kept of a workspace when a plan is applied, and how much of each change a later plan can undo."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any, Final, TypeAlias, cast

from msgspec.structs import replace

from lmsconf.api.spec.dialect_keys import METADATA_MODE
from lmsconf.api.spec.value_encoding import NEVER_CLEARED, clear_answer_key
from lmsconf.kinds.assignment.steps import update_action
from lmsconf.kinds.assignment.types import is_window_declarable
from lmsconf.kinds.custom_field.lost_answers import MOST_KEPT, field_undo
from lmsconf.kinds.kind_functions import Subject
from lmsconf.kinds.kind_table import KINDS
from lmsconf.kinds.shared.kind import Kind, is_named, row_type_of
from lmsconf.kinds.shared.kind_names import CONTENT_TARGET, CUSTOM_FIELD, SMART_GROUP, USER
from lmsconf.kinds.shared.manifest_entry import partial_undo
from lmsconf.kinds.shared.plan_context import BeforeAfter, Deletion, Match, PlanContext, SideEffect
from lmsconf.kinds.smart_group.compare import why_conditions_stay
from lmsconf.kinds.user.types import TEXTS, PersonRow
from lmsconf.model.address import Address
from lmsconf.model.forms import Form, texts_in
from lmsconf.model.names import casefold_name, normalize_name
from lmsconf.model.plan import FULL_UNDO, Action, Change, Plan, Undo, UndoLevel
from lmsconf.model.snapshot import Listing, Snapshot
from lmsconf.planner.undo.answers import people_losing_answers
from lmsconf.planner.undo.undone_run import references, renamed_to


def undo_extent(planning: PlanContext, subject: Subject, sides: BeforeAfter) -> Undo:
    """Return how much of a change a later plan can undo; requires `settle`."""
    kind = subject.address.kind
    if kind == CUSTOM_FIELD:
        return field_undo(planning, subject.address)
    if kind == USER:
        return _person_undo(planning, sides, subject.row if isinstance(subject.row, PersonRow) else None)
    if kind == CONTENT_TARGET:
        return _assignment_undo(planning, subject)
    if isinstance(subject, Deletion):
        return partial_undo(f"the {kind.replace('_', ' ')} comes back with another id")
    if isinstance(subject, SideEffect):
        return partial_undo("its conditions come back, with the new id of what they name")
    reason = why_conditions_stay(sides) if kind == SMART_GROUP else None
    return FULL_UNDO if reason is None else partial_undo(reason)


def _assignment_undo(planning: PlanContext, subject: Subject) -> Undo:
    """Return the extent for an assignment: one that is deleted, even to be created again, loses its progress."""
    row = subject.row if isinstance(subject, Match | Deletion) else None
    if row is not None and not is_window_declarable(row):
        return Undo(level=UndoLevel.NONE, reason="no manifest can declare its window")
    stays = isinstance(subject, Match) and (subject.row is None or update_action(planning) is not Action.REPLACE)
    return FULL_UNDO if stays else partial_undo("the assignment comes back with another id and without progress")


def _person_undo(planning: PlanContext, sides: BeforeAfter, row: PersonRow | None) -> Undo:
    """Return how much of a change to a person can be undone."""
    if sides.before is None:
        return partial_undo("the account can be archived, and not deleted")
    after = sides.after or {}
    if row is not None and row.manages:
        return partial_undo("groups that go with the manager right are not given back")
    empty = [key for key in TEXTS if key in sides.before and not sides.before[key] and after.get(key)]
    if empty:
        return partial_undo(f"{' and '.join(empty)} cannot be made empty again")
    if set_for_good := _set_for_good(planning, sides.before, after):
        answers = " and ".join(f'"{field}"' for field in set_for_good)
        return partial_undo(f"the service refuses to clear the answer to {answers} again")
    held, given = (cast("dict[str, str | None]", side.get("metadata", {})) for side in (sides.before, after))
    new = any(value is not None and held.get(key) is None for key, value in given.items())
    if new and planning.api_spec.behaviour(METADATA_MODE) == "merge":
        return partial_undo("the service merges metadata, so that no key can be removed")
    return FULL_UNDO


def _set_for_good(planning: PlanContext, before: Form, after: Form) -> list[str]:
    """Return the fields that a change answers for the first time, and whose answers the service clears in no form."""
    held, given = before.get("answers"), after.get("answers")
    if not isinstance(held, dict) or not isinstance(given, dict):
        return []
    new = (field for field, answer in given.items() if answer and not held.get(field))
    types, behaviour = planning.field_types, planning.api_spec.behaviour
    return sorted(field for field in new if behaviour(clear_answer_key(types.get(field, "TEXT"))) == NEVER_CLEARED)


Names: TypeAlias = "Counter[tuple[str, str]]"
"""How many live resources of a kind have a name."""


def with_undo_limits(snapshot: Snapshot, changes: Sequence[Change]) -> tuple[Change, ...]:
    """Return the changes of a plan with what their names, and what they refer to, keep from being undone."""
    rows = [(kind, row.name) for kind in {change.address.kind for change in changes} for row in snapshot.of(kind).rows]
    names = Counter((kind, normalize_name(name)) for kind, name in rows)
    looks = Counter((kind, casefold_name(name)) for kind, name in rows)
    limited = [_limited_by_name(KINDS[change.address.kind], names, looks, change) for change in changes]
    lost = {_address_before(one) for one in limited if one.undo.level is UndoLevel.NONE and one.id is not None}
    lost = {address for address in lost if is_named(KINDS[address.kind])}
    return tuple(_limited_by_references(change, lost) if lost else change for change in limited)


def _limited_by_name(kind: Kind, names: Names, looks: Names, change: Change) -> Change:
    """Return a change with what other live names keep from being undone: equal ones, and those that look the same."""
    if not is_named(kind) or change.id is None:
        return change
    name = _address_before(change).name
    if change.action is Action.DELETE and _has_parts_that_look_alike(kind, change):
        undo = Undo(
            level=UndoLevel.NONE,
            reason=f"two of its {kind.parts_key} look the same, so that it cannot be created again",
        )
    elif change.action is Action.DELETE and looks[kind.name, casefold_name(name)] > 1:
        undo = Undo(
            level=UndoLevel.NONE,
            reason="another resource has its name, or one that looks the same, so that it cannot be created again",
        )
    elif renamed_to(kind, change) is not None and names[kind.name, name] > 1:
        undo = Undo(
            level=UndoLevel.PARTIAL, reason="another resource has its earlier name, so that it keeps the new one"
        )
    else:
        return change
    return replace(change, undo=undo)


def _has_parts_that_look_alike(kind: Kind, change: Change) -> bool:
    parts = change.before.get(str(kind.parts_key)) if isinstance(change.before, dict) else None
    names = [casefold_name(str(part)) for part in parts] if isinstance(parts, list) else []
    return len(set(names)) < len(names)


def _limited_by_references(change: Change, lost: set[Address]) -> Change:
    if change.undo.level is UndoLevel.NONE or not isinstance(change.before, dict):
        return change
    missing = next((one for one in references(KINDS[change.address.kind], change.before) if one in lost), None)
    if missing is None:
        return change
    level = UndoLevel.NONE if change.action is Action.DELETE else UndoLevel.PARTIAL
    return replace(change, undo=Undo(level=level, reason=f"it refers to {missing}, which cannot come back"))


def _address_before(change: Change) -> Address:
    """Return the address that the resource of a change has before the plan."""
    form = change.before if isinstance(change.before, dict) else {}
    name = form.get(KINDS[change.address.kind].name_key)
    return change.address if name is None else Address.of(change.address.kind, str(name))


_PART: Final = "only what a run changed was kept"


def pre_image(plan: Plan, snapshot: Snapshot) -> Snapshot:
    """Return the rows that a plan changes, those that they and its calls refer to, and what is destroyed with them.

    Of kinds with names, all rows are kept with their names, because names are what manifests refer to; of people and
    content only those that are referred to.
    """
    ids = {change.id for change in plan.changes if change.id is not None}
    lost = sorted(people_losing_answers(snapshot, plan.changes), key=lambda row: row.id)
    destroyed = {row.id: row for row in lost[:MOST_KEPT]}
    texts = {part for call in plan.calls for part in call.path.split("/")}
    texts.update(texts_in([call.body for call in plan.calls]))
    for kind in KINDS.values():
        for row in snapshot.rows(row_type_of(kind)):
            if row.id in ids:
                texts.update(texts_in(row))
    kept: dict[str, dict[str, Any]] = {}
    for kind in KINDS.values():
        for row_type in kind.row_types:
            rows = snapshot.rows(row_type)
            wanted = (row for row in rows if is_named(kind) or row.id in ids or row.id in texts)
            kept[row_type.listing] = {row.id: row for row in wanted}
        if kind.is_person:
            people = kept[row_type_of(kind).listing]
            people |= {id: _joined(people[id], row) if id in people else row for id, row in destroyed.items()}
    listings = {
        name: Listing(rows=tuple(rows[id] for id in sorted(rows)), incomplete=_PART) for name, rows in kept.items()
    }
    return replace(snapshot, listings=listings)


def count_destroyed(plan: Plan, snapshot: Snapshot) -> int:
    """Return of how many people values are destroyed without a change of their own."""
    return len([*people_losing_answers(snapshot, plan.changes)])


def _joined(row: Any, destroyed: Any) -> Any:
    """Return a row that is kept for its own change, with the values that were read only because they are destroyed."""
    more = {name: getattr(destroyed, name) for name in row.__struct_fields__ if getattr(row, name) is None}
    return replace(row, **more)
