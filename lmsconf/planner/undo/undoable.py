"""How much of each change a later plan can undo, and why not all of it."""

from __future__ import annotations

from typing import cast

from lmsconf.api.spec.value_encoding import NEVER_CLEARED, clear_answer_key
from lmsconf.kinds.assignment.steps import update_action
from lmsconf.kinds.assignment.types import is_window_declarable
from lmsconf.kinds.custom_field.lost_answers import field_undo
from lmsconf.kinds.kind_functions import Subject
from lmsconf.kinds.shared.entry_keys import partial_undo
from lmsconf.kinds.shared.kind_names import CONTENT_TARGET, CUSTOM_FIELD, SMART_GROUP, USER
from lmsconf.kinds.shared.plan_context import BeforeAfter, Deletion, Match, PlanContext, SideEffect
from lmsconf.kinds.smart_group.compare import why_conditions_stay
from lmsconf.kinds.user.types import TEXTS, PersonRow
from lmsconf.model.forms import Form
from lmsconf.model.plan import FULL_UNDO, Action, Undo, UndoLevel
from lmsconf.planner.undo.answers import METADATA_MODE


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
