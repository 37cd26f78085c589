"""The workspace before a run, as the run made it, and as it is now, and which value of the three undoes the run.

All have the names that resources and their parts have after the undo, so that a rename is no difference.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Final

from lmsconf.api.spec import ApiSpec
from lmsconf.kinds.custom_field.types import FieldRow, parts_of
from lmsconf.kinds.exported_entries import person_form
from lmsconf.kinds.kind_functions import named_context, state_before_deletion
from lmsconf.kinds.kind_table import KINDS
from lmsconf.kinds.shared.kind_names import USER, Kind, row_type_of
from lmsconf.kinds.shared.plan_context import Deletion, PlanContext
from lmsconf.kinds.user.types import PersonRow
from lmsconf.model.address import Address, RemoteId
from lmsconf.model.canonical_json import Json, members
from lmsconf.model.forms import form_to_json
from lmsconf.model.names import normalize_name
from lmsconf.model.plan import Action, Change
from lmsconf.model.policy import Policy
from lmsconf.model.snapshot import Snapshot
from lmsconf.planner.undo.kept_state import field_form
from lmsconf.planner.undo.undone_run import (
    MARK,
    NameClaim,
    RunToUndo,
    map_references,
    renamed_parts,
    renamed_to,
    shown_name,
)

Body = dict[str, Json]


Names = dict[tuple[str, ...], str]
"""(kind, name), and (kind, name, name of a part) → the name after the undo."""


class Times:
    """The three states of the resources of a run, with the names that they have after the undo."""

    def __init__(
        self,
        run: RunToUndo,
        snapshot: Snapshot,
        policy: Policy,
        api_spec: ApiSpec,
    ) -> None:
        self.run = run
        self.before = named_context(run.before, policy, api_spec)
        self.live = named_context(snapshot, policy, api_spec)
        self._rows = {
            (name, planning is self.live): {row.id: row for row in planning.snapshot.rows(row_type_of(kind))}
            for name, kind in KINDS.items()
            for planning in (self.before, self.live)
        }
        self._names: dict[tuple[str, str], str] = {}
        self._parts: dict[str, str] = {}
        self._then, self._made, self._now = Names(), Names(), Names()

    def rename(self, changes: Sequence[Change], claims: Sequence[NameClaim]) -> None:
        """Set the names after the undo of these changes, which gives the names of these claims back."""
        self._parts = {id: name for change in changes for id, name in self._parts_back(change)}
        given = dict(self._declared(changes)) | {(claim.kind.name, claim.id): claim.name for claim in claims}
        claimed = {(kind, name) for (kind, _), name in given.items()}
        self._now = Names()
        for kind, row in self._named_rows(live=True):
            name = kind.normalize_name(row.name)
            # What has a name that is declared is deleted, or a twin of the resource that is meant.
            after = name + MARK if (kind.name, name) in claimed else name
            self._names[kind.name, row.id] = after = given.get((kind.name, row.id), after)
            self._parts = {part.id: normalize_name(part.name) for part in parts_of(row)} | self._parts
            self._now |= _entries(kind, shown_name(kind, self.live, row), after, self._parts_now(row))
        self._then, self._made = Names(), Names(self._now)
        changed = {(change.address.kind, change.id): change for change in self.run.plan.changes}
        again = {(claim.kind.name, claim.change.id): claim.name for claim in claims if claim.id is None}
        for kind, row in self._named_rows(live=False):
            self._add_before(kind, row, changed.get((kind.name, row.id)), again.get((kind.name, row.id)))
        for change in self.run.plan.changes:
            id = self.run.created_id(change) if change.action is Action.CREATE else None
            if id is not None:
                kind, name = KINDS[change.address.kind], change.address.name
                after = self._names.get((kind.name, id), MARK + name)
                self._made |= _entries(kind, name, after, self._parts_now(self.row_now(kind, id)))

    def _add_before(self, kind: Kind, row: Any, change: Change | None, again: str | None) -> None:
        """Add the names that a resource had before the run and with it. again: its name if it is created again."""
        is_deleted = change is not None and change.action is Action.DELETE
        id: str | None = row.id
        if change is not None and is_deleted:
            # A service may give the id of what was deleted to what is created.
            id = self.recreated_id(kind, change) or (None if self.run.is_whole(change) else row.id)
        name = shown_name(kind, self.before, row)
        after = self._names.get((kind.name, str(id))) or again or MARK + name
        parts = {normalize_name(part.name): part.id for part in parts_of(row)}
        now = {part: self._parts.get(one, part) if id == row.id else part for part, one in parts.items()}
        self._then |= _entries(kind, name, after, now)
        if not is_deleted:
            renames = dict(renamed_parts(kind, change))
            made = {renames.get(part, part): new for part, new in now.items()}
            self._made |= _entries(kind, renamed_to(kind, change) or name, after, made)

    def _declared(self, changes: Iterable[Change]) -> Iterator[tuple[tuple[str, str | None], str]]:
        """Yield the kind, id and name of each live resource that the run changed."""
        for change in changes:
            kind = KINDS[change.address.kind]
            if (row := self.row_now(kind, change.id)) is not None:
                yield (kind.name, change.id), kind.normalize_name(row.name)

    def _parts_back(self, change: Change) -> Iterator[tuple[str, str]]:
        """Yield the id and the earlier name of each live part that has the name that a change gave it."""
        kind = KINDS[change.address.kind]
        renames = dict(renamed_parts(kind, change))
        before = {part.id: normalize_name(part.name) for part in parts_of(self.row_before(kind, change.id))}
        for part in parts_of(self.row_now(kind, change.id)):
            was = before.get(part.id)
            if was is not None and renames.get(was) == normalize_name(part.name):
                yield part.id, was

    def _parts_now(self, row: Any) -> dict[str, str]:
        return {normalize_name(part.name): self._parts[part.id] for part in parts_of(row)}

    def _named_rows(self, *, live: bool) -> Iterator[tuple[Kind, Any]]:
        for kind in KINDS.values():
            yield from ((kind, row) for row in self.rows(kind, live=live).values() if not kind.is_relation)

    def name_after(self, kind: Kind, id: str | None) -> str:
        """Return the name that a live resource has after the undo."""
        return self._names[kind.name, str(id)]

    def part_after(self, id: str) -> str:
        """Return the name that a part of a live resource has after the undo."""
        return self._parts[id]

    def is_person(self, email: str) -> bool:
        """Whether an e-mail is that of a live person."""
        return any(self.name_after(KINDS[USER], id) == email for id in self.rows(KINDS[USER], live=True))

    def row_before(self, kind: Kind, id: str | None) -> Any:
        """Return a resource as it was before the run; None if it was not there."""
        return self.rows(kind, live=False).get(id or "")

    def row_now(self, kind: Kind, id: str | None) -> Any:
        """Return a live resource by id; None if it is not live."""
        return self.rows(kind, live=True).get(id or "")

    def body_before(self, kind: Kind, row: Any) -> Body:
        """Return the state of a resource before the run."""
        return self.entry_before(kind, _body(kind, self.before, row))

    def entry_before(self, kind: Kind, body: Mapping[str, Json]) -> Body:
        """Return an entry in which resources have the names of before the run."""
        return self._renamed(kind, body, self._then)

    def body_now(self, kind: Kind, row: Any) -> Body:
        """Return the state of a live resource."""
        return self._renamed(kind, _body(kind, self.live, row), self._now)

    def body_made(self, change: Change, form: Json) -> Body:
        """Return a form in which resources have the names that the run gave them."""
        return self._renamed(KINDS[change.address.kind], members(form), self._made)

    def _renamed(self, kind: Kind, body: Mapping[str, Json], names: Names) -> Body:
        def name_after(of: str, name: str) -> str:
            return names.get((of, KINDS[of].normalize_name(name)), name)

        def part_after(of: str, owner: str, part: str) -> str:
            return names.get((of, KINDS[of].normalize_name(owner), normalize_name(part)), part)

        return map_references(kind, body, name_after, part_after)

    def rows(self, kind: Kind, *, live: bool) -> Mapping[str, Any]:
        """Return the resources of a kind by id, live ones or those of before the run."""
        return self._rows[kind.name, live]

    def recreated_id(self, kind: Kind, change: Change) -> RemoteId | None:
        """Return the live id of a deleted resource that an earlier undo of the run has created again."""
        row = self.row_before(kind, change.id)
        if row is None:
            return None
        name = kind.normalize_name(row.name)
        at = Address.of(kind.name, name)
        id = self.run.recreated.get(at)
        if id is not None and self.row_now(kind, id) is not None:
            return id
        if at not in self.run.unsure:
            return None
        ids = [row.id for row in self.rows(kind, live=True).values() if kind.normalize_name(row.name) == name]
        if len(ids) != 1:
            return None
        # A service may give the id of what was deleted to what is created.
        is_free = ids[0] == change.id and self.run.is_whole(change)
        return ids[0] if is_free or self.row_before(kind, ids[0]) is None else None


def _entries(kind: Kind, name: str, after: str, parts: Mapping[str, str]) -> Names:
    name = kind.normalize_name(name)
    return {(kind.name, name): after, **{(kind.name, name, part): new for part, new in parts.items()}}


def _body(kind: Kind, planning: PlanContext, row: Any) -> Body:
    if isinstance(row, PersonRow):
        form = person_form(planning, row)
    elif isinstance(row, FieldRow):
        form = field_form(row)
    else:
        at = Address.of(kind.name, kind.normalize_name(row.name))
        form = dict(state_before_deletion(planning, Deletion(address=at, row=row, absent=None)).before or {})
    return members(form_to_json(form))


INCLUDE: Final = "include"
EXCLUDE: Final = "exclude"


def alike(wanted: Json, live: Json) -> bool:
    """Whether a live value is what a plan wanted: lists have no order, and what an entry leaves out is not compared."""
    if isinstance(wanted, dict) and isinstance(live, list) and wanted.keys() == {INCLUDE, EXCLUDE}:
        unwanted = items_of(wanted, EXCLUDE)
        return all(item in live for item in items_of(wanted, INCLUDE)) and not any(item in live for item in unwanted)
    if isinstance(wanted, dict) and isinstance(live, str):
        # Content, with its id beside its name.
        return wanted.get("name") == live
    if isinstance(wanted, str) and isinstance(live, dict):
        return live.get("name") == wanted
    if isinstance(wanted, dict) and isinstance(live, dict):
        return all(alike(value, live.get(key)) for key, value in wanted.items())
    if isinstance(wanted, list) and isinstance(live, list):
        return _same_items(wanted, live)
    return wanted == live or (not wanted and not live)


def restores(before: Json, after: Json, live: Json) -> bool | None:
    """Whether a key that is one value gets its earlier value again: False if it has it, None if others changed it."""
    if alike(before, live) and alike(live, before):
        return False
    return True if alike(after, live) else None


def restored_items(before: list[Json], after: list[Json], live: list[Json]) -> list[Json]:
    """Return a live list without what a run added and with what it removed; what others have added since stays."""
    added = [item for item in after if item not in before]
    removed = [item for item in before if item not in after]
    return [item for item in live if item not in added] + [item for item in removed if item not in live]


def is_text_list(value: Json) -> bool:
    return isinstance(value, list) and all(isinstance(item, str) for item in value)


def differing_keys(before: Mapping[str, Json], after: Mapping[str, Json]) -> list[str]:
    """Return the keys of two mappings that differ, in order."""
    both = ((key, before.get(key), after.get(key)) for key in dict.fromkeys((*before, *after)))
    return [key for key, one, other in both if not (alike(one, other) and alike(other, one))]


def _same_items(wanted: list[Json], live: list[Json]) -> bool:
    if is_text_list(wanted) and is_text_list(live):
        return Counter(map(str, wanted)) == Counter(map(str, live))
    left = list(live)
    for item in wanted:
        match = next((number for number, other in enumerate(left) if alike(item, other)), None)
        if match is None:
            return False
        left.pop(match)
    return not left


def items_of(sides: Json, part: str) -> list[Json]:
    """Return the items to include, or to exclude, of a list that is given in part."""
    value = sides.get(part) if isinstance(sides, dict) else None
    return value if isinstance(value, list) else []
