"""The changes of a run → drafts of the manifest entries that undo them, with ids for names, and conflicts."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Mapping
from functools import cached_property
from typing import Any, Final

from msgspec import Struct, field
from msgspec.structs import replace

from lmsconf.errors import Problem, Severity
from lmsconf.kinds.custom_field.types import parts_of
from lmsconf.kinds.kind_table import KINDS
from lmsconf.kinds.shared.kind_names import CONTENT_TARGET, CUSTOM_FIELD, Kind, required_keys
from lmsconf.kinds.shared.manifest_entry import LISTS
from lmsconf.model.address import Address, RemoteId
from lmsconf.model.canonical_json import Json, members
from lmsconf.model.names import normalize_name
from lmsconf.model.plan import Change
from lmsconf.planner.undo.kept_state import answered_since, archived_instead, why_not_emptied
from lmsconf.planner.undo.three_way_merge import (
    EXCLUDE,
    INCLUDE,
    Body,
    Times,
    alike,
    differing_keys,
    is_text_list,
    items_of,
    restored_items,
    restores,
)
from lmsconf.planner.undo.undone_run import MARK, renamed_parts

_LISTS: Final = (*LISTS, "applications")
"""The keys that hold a list that may be given in part, with `include` and `exclude`, but for that of parts."""
CONFLICT: Final = "undo/conflict"
_SHOWN: Final = 200
"""The number of characters of a value that a conflict quotes."""
ALL: Final = ""
"""The key of a conflict about a whole resource."""


class LeftAlone:
    """What an undo leaves alone: the warnings about it, and the changes of which nothing is undone."""

    def __init__(self) -> None:
        self.problems: list[Problem] = []
        self.whole: set[Address] = set()

    def add(self, change: Change, key: str, reason: str, hint: str | None = None) -> None:
        """Leave a key of a change alone, or all of it, for a reason. key: ALL for the whole resource."""
        if key == ALL:
            self.whole.add(change.address)
        address = str(change.address)
        warning = Problem(
            code=CONFLICT, message=f"{address}: {reason}", hint=hint, severity=Severity.WARNING, address=address
        )
        self.problems.append(warning)

    def add_changed(self, change: Change, key: str, before: Json, made: Json, live: Json) -> None:
        """Leave alone what others have changed since: the value before the run, as the run made it, and now."""
        was, run, now = map(_shown, (before, made, live))
        hint = f"Before the run: {was}. The run made: {run}. Live now: {now}."
        self.add(change, key, f"{key or 'it'} has changed since the run, and is left alone", hint)


def _shown(value: Json) -> str:
    """Return a value for people to read, also of what is not there."""
    if value is None or value == []:
        return "nothing"
    whole = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False).replace(r"\u0000", MARK)
    whole = whole.replace(MARK, "")
    return whole if len(whole) <= _SHOWN else f"{whole[:_SHOWN]}…"


class Draft(Struct, kw_only=True):
    """An entry that undoes a change. body: its keys beside name and id. parts: those of a live resource, whole.

    id: the live resource; None for one to create. name: the name that it is to have; None: the one it has.
    """

    change: Change
    kind: Kind
    id: RemoteId | None
    name: str | None = None
    body: Body = field(default_factory=dict)
    absent: bool = False


class Drafter:
    """Drafts the entries that undo the changes of a run.

    there_again: what the run deleted, and others have made again as it was, or an earlier undo has created again.
    left: what the drafts leave alone. deleted_fields: the names of those that the undo deletes.
    """

    def __init__(self, times: Times) -> None:
        self._times = times
        self.there_again: set[Address] = set()
        self.left = LeftAlone()
        self.deleted_fields: frozenset[str] = frozenset()

    def undo_creation(self, change: Change) -> Draft | None:
        """Return the entry that deletes what the run created; None if it is not live, or others have changed it."""
        times, kind = self._times, KINDS[change.address.kind]
        made = times.body_made(change, change.after)
        row = self._related_row(kind, made) if kind.is_relation else self._created_row(kind, change, made)
        if row is None:
            return None
        live = times.body_now(kind, row)
        other = archived_instead(change) if kind.is_person else None
        for key, value in made.items():
            if not self._is_as_made(change, key, value, live.get(key), other):
                self.left.add_changed(change, key, None, value, live.get(key))
                return None
        reason = _filled_since(made, live)
        if reason is None and kind.name == CUSTOM_FIELD:
            reason = answered_since(times.live, row, times.run.plan)
        if reason is not None:
            self.left.add(change, ALL, f"it is not deleted: {reason}")
            return None
        if other is not None:
            return Draft(change=change, kind=kind, id=row.id, body=dict(other))
        if kind.is_relation:
            keys = {key: made[key] for key in required_keys(kind)}
            return Draft(change=change, kind=kind, id=None, body=keys, absent=True)
        return Draft(change=change, kind=kind, id=row.id, absent=True)

    def _is_as_made(self, change: Change, key: str, made: Json, live: Json, other: Mapping[str, Json] | None) -> bool:
        """Whether a key of a created resource is as the run made it, as far as it came."""
        if alike(made, live) or (other is not None and key in other and alike(other[key], live)):
            return True
        run = self._times.run
        if run.is_whole(change):
            return False
        parts = made if isinstance(made, dict) and made.keys() == {INCLUDE, EXCLUDE} else None
        wanted = made if parts is None else parts[INCLUDE]
        if not isinstance(wanted, list) or not isinstance(live, list):
            return not live
        unwanted = [item for item in live if item not in wanted] if parts is None else items_of(parts, EXCLUDE)
        late: Body = {key: [*sorted(run.unsure_people(change, key))]}
        people = self._times.body_made(change, late)[key]
        unsure = [*(people if isinstance(people, list) else ()), *run.unsure_texts(change)]
        differing = [item for item in wanted if item not in live] + [item for item in unwanted if item in live]
        return all(one in unsure for one in differing)

    def _created_row(self, kind: Kind, change: Change, made: Body) -> Any:
        """Return the live resource that a run created: by the id in its journal, else by name, if it is new."""
        times = self._times
        id = times.run.created_id(change)
        if id is not None:
            return times.row_now(kind, id)
        live, name = times.rows(kind, live=True).values(), change.address.name
        rows = [row for row in live if kind.normalize_name(row.name) == name]
        new = [row for row in rows if times.row_before(kind, row.id) is None]
        return new[0] if len(new) == 1 else None

    def _related_row(self, kind: Kind, body: Mapping[str, Json]) -> Any:
        """Return the live relation between the same resources."""
        for row, live in self._relations.get(_relation_key(kind, body), ()):
            if all(alike(body.get(key), live.get(key)) for key in required_keys(kind)):
                return row
        return None

    def undo_deletion(self, change: Change) -> Draft | None:
        """Return the entry that creates again what the run deleted; None if it was not deleted, or is there again."""
        times, kind = self._times, KINDS[change.address.kind]
        row = times.row_before(kind, change.id)
        if row is None:
            self.left.add(change, ALL, "it is not created again: what it was is not recorded")
            return None
        if not times.run.is_whole(change) and times.row_now(kind, change.id) is not None:
            return None
        body = _without_nulls(times.body_before(kind, row))
        if kind.is_relation:
            return self._relation_again(change, kind, body)
        name = kind.normalize_name(str(body.pop(kind.name_key)))
        people = self._without_missing(change, body)
        id = times.recreated_id(kind, change)
        if id is None:
            return Draft(change=change, kind=kind, id=None, name=name, body=people)
        self.there_again.add(change.address)
        lists: Body = {key: {INCLUDE: value} for key, value in people.items() if key in _LISTS and value}
        return Draft(change=change, kind=kind, id=id, body=lists)

    def _relation_again(self, change: Change, kind: Kind, body: Body) -> Draft | None:
        if _is_unresolved(kind, body):
            self.left.add(change, ALL, "it is not created again: what it was for is not recorded")
            return None
        row = self._related_row(kind, body)
        if row is None:
            return Draft(change=change, kind=kind, id=None, body=body)
        live = self._times.body_now(kind, row)
        if all(alike(value, live.get(key)) for key, value in body.items()):
            self.there_again.add(change.address)
        else:
            self.left.add_changed(change, ALL, body, None, live)
        return None

    def undo_update(self, change: Change, name: str | None) -> Draft | None:
        """Return the entry that gives the keys that the run changed their earlier values. name: its earlier name."""
        times, kind = self._times, KINDS[change.address.kind]
        row, then = times.row_now(kind, change.id), times.row_before(kind, change.id)
        if row is None and then is not None and kind.is_relation and times.run.has_only_deleted(change):
            return self._relation_again(change, kind, _without_nulls(times.body_before(kind, then)))
        if row is None or then is None or change.id is None:
            self.left.add(change, ALL, "it is not changed back: it is not live any more")
            return None
        before, live = times.body_before(kind, then), times.body_now(kind, row)
        draft = Draft(change=change, kind=kind, id=change.id, name=name)
        if kind.is_relation:
            if _is_unresolved(kind, before):
                self.left.add(change, ALL, "it is not changed back: what it was for is not recorded")
                return None
            made = times.body_made(change, change.after)
            return replace(draft, body=before) if self._is_restored(draft, ALL, before, made, live) else None
        declared, wanted = members(change.before), members(change.after)
        changed = dict.fromkeys(field_change.path.partition(".")[0] for field_change in change.fields)
        for key in changed:
            if key == kind.name_key:
                continue
            if key == kind.parts_key:
                self._parts(draft, then, row)
            elif key in _LISTS:
                self._list(draft, key, live.get(key))
            else:
                made = times.body_made(change, {key: wanted.get(key)})
                self._value(draft, key, before.get(key, declared.get(key)), made.get(key), live.get(key))
        return draft if draft.body or name is not None else None

    def _value(self, draft: Draft, key: str, before: Json, made: Json, live: Json) -> None:
        """Add the earlier value of a key, or of each key below it that the run changed."""
        if isinstance(made, dict) and not isinstance(before, list):
            earlier, now = members(before), members(live)
            values: Body = {}
            for part in (one for one in made if one in differing_keys(earlier, made)):
                values |= self._part_value(draft, key, part, earlier.get(part), made[part], now.get(part))
            if values:
                draft.body[key] = values
        elif self._is_restored(draft, key, before, made, live):
            draft.body[key] = before

    def _part_value(self, draft: Draft, key: str, part: str, before: Json, made: Json, live: Json) -> Body:
        if key == "answers" and part in self.deleted_fields and not before:
            # The deletion of a field empties the answers to it.
            return {}
        if isinstance(made, list) and is_text_list(made) and is_text_list(before or []) and is_text_list(live or []):
            then, now = (value if isinstance(value, list) else [] for value in (before, live))
            items = restored_items(then, made, now)
            return {} if alike(items, now) else {part: items}
        return {part: before} if self._is_restored(draft, key, before, made, live, part) else {}

    def _is_restored(
        self, draft: Draft, key: str, before: Json, made: Json, live: Json, part: str | None = None
    ) -> bool:
        """Whether the earlier value of a key, or of a part of it, is given back; tell why it is not."""
        is_restored = restores(before, made, live)
        if is_restored is None:
            values = (before, made, live) if part is None else ({part: value} for value in (before, made, live))
            self.left.add_changed(draft.change, key, *values)
        if not is_restored:
            return False
        reason = self._not_restorable(draft, key, before, part)
        if reason is not None:
            what = key if part is None else f"a part of {key}"
            self.left.add(draft.change, key, f"{what} is left as it is: {reason}")
        return reason is None

    def _not_restorable(self, draft: Draft, key: str, value: Json, part: str | None) -> str | None:
        """Return why the service does not take an empty value of a person back; None if it takes the value."""
        if value or not draft.kind.is_person:
            return None
        times, kind = self._times, KINDS[CUSTOM_FIELD]
        fields = (row for row in times.rows(kind, live=True).values() if times.name_after(kind, row.id) == part)
        return why_not_emptied(times.live, key, part, next(fields, None))

    def _list(self, draft: Draft, key: str, live: Json) -> None:
        """Include the people that the run removed and that are not in the list again; exclude those that it added."""
        change, now = draft.change, live if isinstance(live, list) else []
        run = self._times.run
        done = run.people_of(change, key)
        all_done = done is None and run.is_whole(change)

        def is_done(item: str) -> bool:
            return all_done or (run.has_sent(change, item) if done is None else item in done)

        field_changes = [field_change for field_change in change.fields if field_change.path == key]
        added = [item for field_change in field_changes for item in field_change.added if is_done(str(item))]
        removed = [item for field_change in field_changes for item in field_change.removed if is_done(str(item))]
        sides = self._times.body_made(change, {key: {INCLUDE: removed, EXCLUDE: added}})[key]
        missing: Json = [item for item in items_of(sides, INCLUDE) if item not in now]
        wanted = self._without_missing(change, {key: missing})[key]
        parts: Body = {INCLUDE: wanted, EXCLUDE: [item for item in items_of(sides, EXCLUDE) if item in now]}
        if any(parts.values()):
            draft.body[key] = {part: items for part, items in parts.items() if items}

    def _parts(self, draft: Draft, then: Any, row: Any) -> None:
        """Add the list of parts: the live ones with their ids, without those of the run, with those it removed."""
        change, kind, key = draft.change, draft.kind, str(draft.kind.parts_key)
        before = {part.id: normalize_name(part.name) for part in parts_of(then)}
        renames = dict(renamed_parts(kind, change))
        added = {normalize_name(str(item)) for one in change.fields if one.path == key for item in one.added}
        removed = {normalize_name(str(item)) for one in change.fields if one.path == key for item in one.removed}
        names: dict[str, str] = {}
        for part in parts_of(row):
            now, was = normalize_name(part.name), before.get(part.id)
            if was is None and now in added:
                continue
            if was in renames and now not in (was, renames[was]):
                self.left.add_changed(change, key, was, renames[was], now)
            names[part.id] = self._times.part_after(part.id)
        free = removed.difference(names.values())
        again = [name for id, name in before.items() if id not in names and name in free]
        live = {part.id: normalize_name(part.name) for part in parts_of(row)}
        if names == live and not again:
            return
        listed: Body = {id: {"name": name, "id": id} for id, name in names.items()}
        listed |= {name: name for name in again}
        order = [id if id in listed else name for id, name in before.items()]
        keys = [one for one in order if one in listed] + [one for one in listed if one not in order]
        draft.body[key] = [listed[one] for one in dict.fromkeys(keys)]

    def _without_missing(self, change: Change, body: Body) -> Body:
        """Return an entry whose lists of people hold only live people; report how many are missing."""
        out = dict(body)
        for key, value in body.items():
            if isinstance(value, list) and key in LISTS:
                there = [item for item in value if self._times.is_person(str(item))]
                out[key] = [*there]
                if len(there) < len(value):
                    missing = len(value) - len(there)
                    people = "1 person who is" if missing == 1 else f"{missing:,} people who are"
                    self.left.add(change, key, f"{key} lack {people} not live any more")
        return out

    @cached_property
    def _relations(self) -> Mapping[str, list[tuple[Any, Body]]]:
        """The live assignments, by what they relate."""
        kind = KINDS[CONTENT_TARGET]
        related: defaultdict[str, list[tuple[Any, Body]]] = defaultdict(list)
        for row in self._times.rows(kind, live=True).values():
            body = self._times.body_now(kind, row)
            related[_relation_key(kind, body)].append((row, body))
        return related


def _relation_key(kind: Kind, body: Mapping[str, Json]) -> str:
    def named(value: Json) -> Json:
        return value["name"] if isinstance(value, dict) and "name" in value else value

    return json.dumps([named(body.get(key)) for key in sorted(required_keys(kind))])


def _filled_since(made: Body, live: Body) -> str | None:
    """Return which text or list that the run did not declare is not empty now."""
    key = next((key for key in live if key not in made and isinstance(live[key], str | list) and live[key]), None)
    return None if key is None else f"it has {key} now, which the run did not give it"


def _without_nulls(body: Body) -> Body:
    return {key: value for key, value in body.items() if value is not None}


def _is_unresolved(kind: Kind, body: Mapping[str, Json]) -> bool:
    """Whether a relation has an item that is a text: its id stands in it, because what it relates is not known."""
    items = body.get(kind.entry_items.key) if kind.entry_items else None
    return isinstance(items, list) and any(isinstance(item, str) for item in items)
