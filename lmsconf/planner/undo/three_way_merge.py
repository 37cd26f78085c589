"""The workspace before a run, as the run made it, and as it is now, and which value of the three undoes the run.

All have the names of live resources and their parts, so that a rename is no difference.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from typing import Any, TypeGuard

from lmsconf.api.spec import ApiSpec
from lmsconf.kinds.assignment.types import TargetRow
from lmsconf.kinds.custom_field.compare import live_field_form
from lmsconf.kinds.custom_field.types import FLAGS, FieldRow, parts_of
from lmsconf.kinds.export import person_form
from lmsconf.kinds.kind_functions import named_context, state_before_deletion
from lmsconf.kinds.kind_table import KINDS
from lmsconf.kinds.shared.kind_names import CONTENT_TARGET, CUSTOM_FIELD, Kind, required_keys, row_type_of
from lmsconf.kinds.shared.plan_context import Deletion, PlanContext
from lmsconf.kinds.user.types import PersonRow
from lmsconf.model.address import Address, RemoteId
from lmsconf.model.canonical_json import Json, members
from lmsconf.model.forms import form_to_json
from lmsconf.model.guards import Policy
from lmsconf.model.names import grouped, normalize_name
from lmsconf.model.plan import Action, Change
from lmsconf.model.snapshot import Snapshot
from lmsconf.planner.undo.kept_state import lost_answer_entries
from lmsconf.planner.undo.undone_run import (
    MARK,
    RunToUndo,
    map_references,
    renamed_parts,
    renamed_to,
    shown_name,
)

Body = dict[str, Json]
Names = dict[tuple[str, ...], str]
"""(kind, name), and (kind, name, name of a part) → another name."""


class Times:
    """The three states of the resources of a run: before it, as it made them, and live, with the names of live ones.

    What is not live has a name with MARK.
    """

    def __init__(self, run: RunToUndo, snapshot: Snapshot, policy: Policy, api_spec: ApiSpec) -> None:
        self.run = run
        self.before, self.live = (named_context(one, policy, api_spec) for one in (run.before, snapshot))
        self._rows_before, self._rows_now = (
            {name: {row.id: row for row in of.snapshot.rows(row_type_of(kind))} for name, kind in KINDS.items()}
            for of in (self.before, self.live)
        )
        named = [kind for kind in KINDS.values() if not kind.is_relation]
        self._by_name = grouped(
            ((kind, row) for kind in named for row in self._rows_now[kind.name].values()),
            lambda one: (one[0].name, one[0].normalize_name(one[1].name)),
        )
        self._then, self._made = Names(), Names()
        changed = {(change.address.kind, change.id): change for change in run.plan.changes}
        for kind in named:
            for row in self._rows_before[kind.name].values():
                self._add_before(kind, row, changed.get((kind.name, row.id)))
        created = [(KINDS[one.address.kind], one) for one in run.plan.changes if one.action is Action.CREATE]
        self._made |= {
            (kind.name, change.address.name): self.live_name(kind, self.created_row(kind, change), change.address.name)
            for kind, change in created
            if not kind.is_relation
        }

    def _add_before(self, kind: Kind, row: Any, change: Change | None) -> None:
        """Add the live names of a resource and of its parts, by those before the run and by those with it."""
        is_deleted = change is not None and change.action is Action.DELETE
        id: str | None = row.id
        if change is not None and is_deleted:
            # A service may give the id of what was deleted to what is created.
            id = self.recreated_id(kind, row, change) or (None if self.run.is_whole(change) else row.id)
        live, name = self.row_now(kind, id), shown_name(kind, self.before, row)
        after, there = self.live_name(kind, live, name), {part.id: part.name for part in parts_of(live)}
        parts = {
            normalize_name(part.name): normalize_name(there.get(part.id, part.name) if id == row.id else part.name)
            for part in parts_of(row)
        }
        self._then |= named_parts(kind, name, after, parts)
        if not is_deleted:
            renames = dict(renamed_parts(kind, change))
            made = {renames.get(part, part): new for part, new in parts.items()}
            self._made |= named_parts(kind, renamed_to(kind, change) or name, after, made)

    def live_name(self, kind: Kind, live: Any, name: str) -> str:
        """Return the name of a live resource; with MARK the earlier one of what is not live."""
        return MARK + kind.normalize_name(name) if live is None else shown_name(kind, self.live, live)

    def row_before(self, kind: Kind, id: str | None) -> Any:
        """Return a resource as it was before the run; None if it was not there."""
        return self._rows_before[kind.name].get(id or "")

    def row_now(self, kind: Kind, id: str | None) -> Any:
        """Return a live resource by id; None if it is not live."""
        return self._rows_now[kind.name].get(id or "")

    def body_before(self, kind: Kind, row: Any) -> Body:
        """Return the state of a resource before the run."""
        return with_names(_body(kind, self.before, row), self._then)

    def lost_answers(self, change: Change) -> Iterator[Body]:
        """Return the entries of the people whose answers to a field, or to choices of it, a change deleted."""
        return (
            with_names(one, self._then)
            for one in lost_answer_entries(self.before, change, self.row_before(KINDS[CUSTOM_FIELD], change.id))
        )

    def body_now(self, kind: Kind, row: Any) -> Body:
        """Return the state of a live resource."""
        return _body(kind, self.live, row)

    def body_made(self, form: Json) -> Body:
        """Return a form in which resources have the names that the run gave them."""
        return with_names(members(form), self._made)

    def created_row(self, kind: Kind, change: Change) -> Any:
        """Return the live resource that a run created: by the id in its journal, else by name, if it is new."""
        id = self.run.created_id(change)
        if id is not None:
            return self.row_now(kind, id)
        new = [row for row in self.named(kind, change.address.name) if self.row_before(kind, row.id) is None]
        return new[0] if len(new) == 1 else None

    def named(self, kind: Kind, name: str | None) -> list[Any]:
        """Return the live resources of a kind that have a name."""
        return [row for _, row in self._by_name.get((kind.name, name or ""), ())]

    def related_row(self, kind: Kind, body: Mapping[str, Json]) -> Any:
        """Return the live relation between the same resources."""
        wanted: Body = {key: body.get(key) for key in required_keys(kind)}
        return next((row for row, live in self._relations.get(_relation_key(body), ()) if alike(wanted, live)), None)

    @cached_property
    def _relations(self) -> Mapping[str, list[tuple[Any, Body]]]:
        """The live assignments with their states, by what they relate."""
        live = ((row, _body(KINDS[CONTENT_TARGET], self.live, row)) for row in self.live.snapshot.rows(TargetRow))
        return grouped(live, lambda one: _relation_key(one[1]))

    def recreated_id(self, kind: Kind, row: Any, change: Change) -> RemoteId | None:
        """Return the live id of a deleted resource that an earlier undo of the run has created again."""
        name = kind.normalize_name(row.name)
        at = Address.of(kind.name, name)
        id = self.run.recreated.get(at)
        if id is not None and self.row_now(kind, id) is not None:
            return id
        ids = [one.id for one in self.named(kind, name)] if at in self.run.unsure else []
        # A service may give the id of what was deleted to what is created.
        is_free = ids == [row.id] and self.run.is_whole(change)
        return ids[0] if len(ids) == 1 and (is_free or self.row_before(kind, ids[0]) is None) else None


def _relation_key(body: Mapping[str, Json]) -> str:
    content = body.get("content")
    return json.dumps([content["name"] if isinstance(content, dict) else content, body.get("assign_to")])


def with_names(body: Mapping[str, Json], names: Names) -> Body:
    """Return an entry in which resources and parts have other names."""

    def renamed(of: str, name: str, *parts: str) -> str:
        return names.get((of, KINDS[of].normalize_name(name), *map(normalize_name, parts)), (name, *parts)[-1])

    return map_references(body, renamed)


def shown_value(key: str, value: Json, names: Names) -> str:
    """Return a value for people to read, also of what is not there. key: which holds it; empty if it is an entry."""
    if value is None or value == []:
        return "nothing"
    named = with_names({key: value}, names)[key] if key else with_names(members(value), names)
    text = named if isinstance(named, str) else json.dumps(named, ensure_ascii=False).replace(r"\u0000", MARK)
    whole = text.replace(MARK, "")
    return whole if len(whole) <= 200 else f"{whole[:200]}…"


def named_parts(kind: Kind, name: str, after: str, parts: Mapping[str, str]) -> Names:
    """Return another name of a resource, and those of its parts, by its name."""
    at = (kind.name, kind.normalize_name(name))
    return {at: after, **{(*at, part): new for part, new in parts.items()}}


def _body(kind: Kind, planning: PlanContext, row: Any) -> Body:
    match row:
        case PersonRow():
            form = person_form(planning, row)
        case FieldRow():
            # A flag that the response lacks is left out.
            form = {
                **live_field_form(row),
                **{key: getattr(row, key) for key in FLAGS if getattr(row, key) is not None},
            }
        case _:
            at = Address.of(kind.name, kind.normalize_name(row.name))
            form = dict(state_before_deletion(planning, Deletion(address=at, row=row, absent=None)).before or {})
    return members(form_to_json(form))


def alike(wanted: Json, live: Json) -> bool:
    """Whether a live value is what a plan wanted: lists have no order, and what an entry leaves out is not compared."""
    match wanted, live:
        case {"include": [*included], "exclude": [*excluded], **rest}, list(items) if not rest:
            return all(item in items for item in included) and not any(item in items for item in excluded)
        case (dict(content), str(name)) | (str(name), dict(content)):
            # Content, with its id beside its name.
            return content.get("name") == name
        case dict(), dict():
            return all(alike(value, live.get(key)) for key, value in wanted.items())
        case list(), list() if is_text_list(wanted) and is_text_list(live):
            return Counter(wanted) == Counter(live)
        case list(), list():
            return (
                len(wanted) == len(live)
                and all(any(alike(item, other) for other in live) for item in wanted)
                and all(any(alike(item, other) for item in wanted) for other in live)
            )
    return wanted == live or (not wanted and not live)


def same(one: Json, other: Json) -> bool:
    """Whether two values have all in common."""
    return alike(one, other) and alike(other, one)


def restores(before: Json, after: Json, live: Json) -> bool | None:
    """Whether a key that is one value gets its earlier value again: False if it has it, None if others changed it."""
    if same(before, live):
        return False
    return True if alike(after, live) else None


def restored_items(before: list[Json], after: list[Json], live: list[Json]) -> list[Json]:
    """Return a live list without what a run added and with what it removed; what others have added since stays."""
    kept = [item for item in live if item in before or item not in after]
    return kept + [item for item in before if item not in after and item not in live]


def lacking(items: Sequence[Json], others: Sequence[Json]) -> list[Json]:
    """Return the items that are not among the others."""
    return [item for item in items if item not in others]


def is_text_list(value: Json) -> TypeGuard[list[str]]:
    return isinstance(value, list) and all(isinstance(item, str) for item in value)


def items_of(sides: Json, part: str) -> list[Json]:
    """Return the items to include, or to exclude, of a list that is given in part."""
    value = sides.get(part) if isinstance(sides, dict) else None
    return value if isinstance(value, list) else []
