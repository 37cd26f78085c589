"""The workspace before a run, as the run made it, and as it is now, and which value of the three undoes the run.

Forms of each resource have ids in the place of names, so that a rename is no difference.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from enum import Enum
from typing import Any, Final

from lmsconf.kinds.custom_field.types import FieldRow, parts_of
from lmsconf.kinds.export import person_form
from lmsconf.kinds.planning import match_kind, state_before_deletion
from lmsconf.kinds.shared.call_placeholders import SpecCallTemplates
from lmsconf.kinds.shared.kind_names import USER
from lmsconf.kinds.undo import field_form
from lmsconf.kinds.user.types import PersonRow
from lmsconf.model.address import Address, RemoteId
from lmsconf.model.canonical_json import Json
from lmsconf.model.forms import form_to_json
from lmsconf.model.names import normalize_name
from lmsconf.model.plan import Action, Change
from lmsconf.model.policy import Policy
from lmsconf.model.snapshot import Snapshot
from lmsconf.planner.context import Deletion, PlanContext
from lmsconf.planner.kind import Kind, row_type_of
from lmsconf.planner.undo.names import Kinds, Vocabulary, plain_id
from lmsconf.planner.undo.run import RunToUndo

Body = dict[str, Json]


class Times:
    """The three states of the resources of a run."""

    def __init__(
        self, kinds: Kinds, run: RunToUndo, snapshot: Snapshot, policy: Policy, call_templates: SpecCallTemplates
    ) -> None:
        self.kinds, self.run = kinds, run
        self.before = named_context(kinds, run.before, policy, call_templates)
        self.live = named_context(kinds, snapshot, policy, call_templates)
        deletions = (change for change in run.plan.changes if change.action is Action.DELETE and run.is_whole(change))
        self._then = Vocabulary.of_snapshot(
            kinds, self.before, {(one.address.kind, str(one.id)) for one in deletions if one.id is not None}
        )
        self._made = Vocabulary.of_run(kinds, run, self.before, self.live)
        self._now = Vocabulary.of_snapshot(kinds, self.live)
        self._rows: dict[tuple[str, bool], dict[str, Any]] = {}
        self._follow_recreated()

    def row_before(self, kind: Kind, id: str | None) -> Any:
        """Return a resource as it was before the run; None if it was not there."""
        return self.rows(kind, live=False).get(plain_id(id or ""))

    def row_now(self, kind: Kind, id: str | None) -> Any:
        """Return a live resource by id; None if it is not live."""
        return self.rows(kind, live=True).get(id or "")

    def body_before(self, kind: Kind, row: Any) -> Body:
        """Return the state of a resource before the run."""
        return self._then.mark(kind, _body(kind, self.before, row))

    def body_now(self, kind: Kind, row: Any) -> Body:
        """Return the state of a live resource."""
        return self._now.mark(kind, _body(kind, self.live, row))

    def body_made(self, change: Change) -> Body:
        """Return the keys that the run declared, as it made them."""
        return self.mark_made(change, change.after)

    def mark_made(self, change: Change, form: Json) -> Body:
        """Return a form of the plan with ids for names."""
        return self._made.mark(self.kinds[change.address.kind], form if isinstance(form, dict) else {})

    def mark_before(self, kind: Kind, body: Mapping[str, Json]) -> Body:
        """Return an entry in the names of before the run with ids for names."""
        return self._then.mark(kind, body)

    def is_person(self, text: str) -> bool:
        """Whether a text stands for a live person."""
        return self.row_now(self.kinds[USER], text.removeprefix("\x00")) is not None

    def rows(self, kind: Kind, *, live: bool) -> Mapping[str, Any]:
        """Return the resources of a kind by id, live ones or those of before the run."""
        key = (kind.name, live)
        if key not in self._rows:
            rows = (self.live if live else self.before).snapshot.rows(row_type_of(kind))
            self._rows[key] = {row.id: row for row in rows}
        return self._rows[key]

    def _follow_recreated(self) -> None:
        """Take what an earlier undo has created again, and parts that are live again, for what was there before."""
        for change in self.run.plan.changes:
            kind = self.kinds[change.address.kind]
            row = self.row_before(kind, change.id)
            if row is None or kind.is_relation:
                continue
            id = self.recreated_id(kind, change) if change.action is Action.DELETE else change.id
            now = self.row_now(kind, id)
            if now is None or id is None:
                continue
            if change.action is Action.DELETE:
                self._then.add(kind, kind.normalize_name(row.name), id)
            live = {normalize_name(part.name): part.id for part in parts_of(now)}
            ids = {*live.values()}
            for part in parts_of(row):
                name = normalize_name(part.name)
                if (part.id not in ids and name in live) or (change.action is Action.DELETE and name in live):
                    self._then.add_part(id, name, live[name])

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


def _all(_: Address) -> bool:
    return True


def named_context(kinds: Kinds, snapshot: Snapshot, policy: Policy, call_templates: SpecCallTemplates) -> PlanContext:
    """Return a snapshot in which every kind has registered the names of its live resources."""
    scratch = Policy(workspace=policy.workspace, today=policy.today, timezone=policy.timezone)
    planning = PlanContext(snapshot, scratch, call_templates, _all)
    for kind in kinds.values():
        match_kind(planning, kind.name, [], [])
    return planning


def _body(kind: Kind, planning: PlanContext, row: Any) -> Body:
    if isinstance(row, PersonRow):
        form = person_form(planning, row)
    elif isinstance(row, FieldRow):
        form = field_form(row)
    else:
        at = Address.of(kind.name, kind.normalize_name(row.name))
        form = dict(state_before_deletion(planning, Deletion(address=at, row=row, absent=None)).before or {})
    body = form_to_json(form)
    return body if isinstance(body, dict) else {}


INCLUDE: Final = "include"
EXCLUDE: Final = "exclude"


class NoValue(Enum):
    """Why nothing is declared: it is as before already, or neither as before nor as the run made it."""

    NOTHING = "nothing"
    CONFLICT = "conflict"


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


def restored(before: Json, after: Json, live: Json) -> Json | NoValue:
    """Return the value to declare for a key that is one value."""
    if alike(before, live) and alike(live, before):
        return NoValue.NOTHING
    return before if alike(after, live) else NoValue.CONFLICT


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
