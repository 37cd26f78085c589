"""The part of a snapshot that a plan changes or destroys: kept when it is applied, so that the run can be undone."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final

from msgspec.structs import replace

from lmsconf.kinds.custom_field.lost_answers import MOST_KEPT
from lmsconf.kinds.custom_field.undo import people_losing_answers
from lmsconf.model.canonical_json import Json
from lmsconf.model.plan import Plan
from lmsconf.model.rows import row_to_json
from lmsconf.model.snapshot import Listing, Snapshot
from lmsconf.planner.kind import Kind, is_named

_PART: Final = "only what a run changed was kept"


def pre_image(kinds: Mapping[str, Kind], plan: Plan, snapshot: Snapshot) -> Snapshot:
    """Return the rows that a plan changes, those that they and its calls refer to, and what is destroyed with them.

    Of kinds with names, all rows are kept with their names, because names are what manifests refer to; of people and
    content only those that are referred to.
    """
    ids = {change.id for change in plan.changes if change.id is not None}
    lost = sorted(people_losing_answers(snapshot, plan.changes), key=lambda row: row.id)
    destroyed = {row.id: row for row in lost[:MOST_KEPT]}
    texts = {part for call in plan.calls for part in call.path.split("/")}
    texts.update(_texts([_json(call.body) for call in plan.calls]))
    for kind in kinds.values():
        for row in snapshot.rows(kind.row_type):
            if row.id in ids:
                texts.update(_texts(row_to_json(row)))
    kept: dict[str, dict[str, Any]] = {}
    for kind in kinds.values():
        for row_type in kind.row_types:
            rows = snapshot.rows(row_type)
            wanted = (row for row in rows if is_named(kind) or row.id in ids or row.id in texts)
            kept[row_type.listing] = {row.id: row for row in wanted}
        if kind.is_person:
            people = kept[kind.row_type.listing]
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


def _json(body: object) -> Json:
    if isinstance(body, Mapping):
        return [str(key) for key in body] + [_json(value) for value in body.values()]
    if isinstance(body, list | tuple):
        return [_json(item) for item in body]
    return body if isinstance(body, str) else None


def _texts(value: Json | Iterable[Json]) -> Iterator[str]:
    """Yield every text in a value."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        for item in value.values():
            yield from _texts(item)
    elif isinstance(value, list):
        for item in value:
            yield from _texts(item)
