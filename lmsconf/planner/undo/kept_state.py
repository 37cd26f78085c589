"""What is kept of a workspace when a plan is applied, so that it can be undone, and how far a plan can be undone."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any, Final, TypeAlias

from msgspec.structs import replace

from lmsconf.kinds.custom_field.lost_answers import MOST_KEPT
from lmsconf.kinds.kind_table import KINDS
from lmsconf.kinds.shared.kind import Kind, is_named, row_type_of
from lmsconf.model.address import Address
from lmsconf.model.forms import texts_in
from lmsconf.model.names import casefold_name, normalize_name
from lmsconf.model.plan import Action, Change, Plan, Undo, UndoLevel
from lmsconf.model.snapshot import Listing, Snapshot
from lmsconf.planner.undo.answers import people_losing_answers
from lmsconf.planner.undo.references import references, renamed_to

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
