"""A recorded run and the workspace as it is now → the declarations that undo the run, and what they leave alone.

A deletion becomes a declaration of what was there, a creation an entry under `absent` with the id that the run got, an
update a declaration, pinned by id, of the keys that the run changed. A value that others have changed since is a
conflict: it is shown, and left alone. The planner plans these declarations as any others.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Final, cast

from msgspec import Struct, field

from lmsconf.errors import Problem, Severity, SourceLocation
from lmsconf.kinds.custom_field.types import parts_of
from lmsconf.kinds.kind_table import KINDS, parse, parse_absent
from lmsconf.kinds.shared.kind_names import CUSTOM_FIELD, USER, Kind, required_keys
from lmsconf.kinds.shared.manifest_entry import LISTS, ManifestEntry
from lmsconf.model.address import Address
from lmsconf.model.canonical_json import Json, members, sha256
from lmsconf.model.declarations import DeleteEntry, DesiredResource, FixedSource, Manifests
from lmsconf.model.names import count_noun, grouped, normalize_name
from lmsconf.model.plan import Action, Change, UndoLevel
from lmsconf.planner.undo.kept_state import answered_since, archived_instead, why_not_emptied
from lmsconf.planner.undo.three_way_merge import (
    Body,
    Names,
    Times,
    alike,
    is_text_list,
    items_of,
    lacking,
    named_parts,
    restored_items,
    restores,
    same,
    shown_value,
    with_names,
)
from lmsconf.planner.undo.undone_run import first_missing, renamed_parts, shown_name

_LISTS: Final = (*LISTS, "applications")
"""The keys that hold a list that may be given in part, with `include` and `exclude`, but for that of parts."""


def undo_run(times: Times, left: Mapping[Address, str]) -> tuple[Manifests, dict[Address, Change]]:
    """Return the declarations that undo a run, with what is left alone as problems, and the change that each undoes.

    left: the addresses, in the plan of the run, of changes that are left alone, and why.
    """
    run, drafter = times.run, Drafter(times)
    changes = [change for change in run.plan.changes if run.is_done(change)]
    skipped = [LeftAlone(change=one, reason=left[one.address]) for one in changes if one.address in left]
    drafter.undo(change for change in changes if change.address not in left)
    names: Names = {at: name for draft in drafter.drafts for at, name in drafter.names_after(draft).items()}
    made = [(entry, draft) for draft in drafter.drafts for entry in drafter.entries(draft, names)]
    manifests = Manifests(
        declared=tuple(entry for entry, _ in made if isinstance(entry, DesiredResource)),
        absent=tuple(entry for entry, _ in made if isinstance(entry, DeleteEntry)),
        problems=(
            *_limits(changes, [draft for _, draft in made]),
            *(_conflict(one, names) for one in (*skipped, *drafter.conflicts, *drafter.in_values)),
        ),
        digest=sha256({"undo": run.name}),
    )
    return manifests, {entry.address: draft.change for entry, draft in made}


def _limits(changes: Sequence[Change], drafts: Sequence[Draft]) -> Iterator[Problem]:
    """Return what cannot come back of what the drafts undo, but for what is there again already."""
    undone = {one.change.address for one in drafts if one.row is None or one.change.action is not Action.DELETE}
    return (
        Problem(
            code="undo/limited",
            message=f"{change.address}: {change.undo.reason}",
            severity=Severity.NOTE,
            address=str(change.address),
        )
        for change in changes
        if change.undo.level is not UndoLevel.FULL and change.address in undone
    )


def _conflict(left: LeftAlone, names: Names) -> Problem:
    """Return what is left alone, and why. names: those that live resources have after the undo."""
    address, hint = str(left.change.address), None
    if left.values is not None:
        before, made, live = (shown_value(left.key, value, names) for value in left.values)
        hint = f"Before the run: {before}. The run made: {made}. Live now: {live}."
    return Problem(
        code="undo/conflict", message=f"{address}: {left.reason}", hint=hint, severity=Severity.WARNING, address=address
    )


class LeftAlone(Struct, frozen=True, kw_only=True):
    """What an undo leaves alone of a change, and why.

    values: of what others have changed since, the value before the run, as the run made it, and now. key: which holds
    them; empty if they are whole entries.
    """

    change: Change
    reason: str
    key: str = ""
    values: tuple[Json, Json, Json] | None = None


class Draft(Struct, kw_only=True, eq=False):
    """An entry that undoes a change. body: its keys beside the id, with the names of live resources.

    Without a name in `body`, the resource keeps the one it has. row: the live resource; None for one to create.
    parts: the name of each live part → the one that it is to have.
    """

    change: Change
    kind: Kind
    row: Any = None
    body: Body = field(default_factory=dict)
    parts: Mapping[str, str] = {}
    absent: bool = False

    @property
    def name(self) -> str | None:
        """The name that it is to take; None: the one it has."""
        return cast("str | None", self.body.get(self.kind.name_key))

    @property
    def name_after(self) -> str:
        """The name that it has after the undo."""
        return self.name or self.kind.normalize_name(self.row.name)


class Drafter:
    """Drafts the entries that undo the changes of a run.

    conflicts, in_values: what it leaves alone: first names and what they keep from being undone, then values.
    """

    def __init__(self, times: Times) -> None:
        self._times, self._run = times, times.run
        self.drafts: list[Draft] = []
        self.conflicts: list[LeftAlone] = []
        self.in_values: list[LeftAlone] = []
        self._deleted_fields: set[str] = set()

    def undo(self, changes: Iterable[Change]) -> None:
        """Draft the undo of changes."""
        for change in sorted(changes, key=lambda change: change.action is not Action.CREATE):
            kind = KINDS[change.address.kind]
            then = self._times.row_before(kind, change.id)
            if change.action is Action.CREATE:
                self._undo_creation(kind, change)
            elif then is None:
                again = "created again" if change.action is Action.DELETE else "changed back"
                self.leave(change, f"it is not {again}: what it was is not recorded")
            elif kind.is_relation:
                self._undo_relation(kind, change, then)
            elif change.action is Action.DELETE:
                self._undo_deletion(kind, change, then)
            else:
                self._undo_update(kind, change, then)
        # Names are told first, because values refer to them.
        by = grouped(
            self.conflicts,
            lambda one: one.key == KINDS[one.change.address.kind].name_key and one.change.action is not Action.CREATE,
        )
        self.conflicts, self.in_values = by.get(True, []), by.get(False, [])
        self._leave_taken_names()
        self._give_answers_back()

    def leave(self, change: Change, reason: str) -> None:
        """Leave a change alone, or a part of it, for a reason."""
        self.conflicts.append(LeftAlone(change=change, reason=reason))

    def _leave_changed(self, change: Change, key: str, before: Json, made: Json, live: Json) -> None:
        """Leave alone what others have changed. before: its value before the run; made: as the run made it."""
        self.conflicts.append(
            LeftAlone(
                change=change,
                reason=f"{key or 'it'} has changed since the run, and is left alone",
                key=key,
                values=(before, made, live),
            )
        )

    def names_after(self, draft: Draft) -> Names:
        """Return the names after the undo of a resource and its parts, by those that it has in drafts."""
        times, kind = self._times, draft.kind
        if kind.is_relation:
            return {}
        then = times.row_before(kind, draft.change.id)
        earlier = "" if then is None else shown_name(kind, times.before, then)
        return named_parts(kind, times.live_name(kind, draft.row, earlier), draft.name_after, draft.parts)

    def entries(self, draft: Draft, names: Names) -> list[DesiredResource[Any]] | list[DeleteEntry[Any]]:
        """Return what a draft declares, without keys that refer to what is not there. names: after the undo."""
        kind, row, body = draft.kind, draft.row, with_names(draft.body, names)
        missing = {key: name for key, value in body.items() if (name := first_missing(key, value)) is not None}
        if missing and (kind.is_relation or row is None):
            what = "is left as it is" if kind.is_relation else "is not created again"
            self.leave(draft.change, f"it {what}: {next(iter(missing.values()))} is not there")
            return []
        for key, name in missing.items():
            self.leave(draft.change, f"{key} is left as it is: {name} is not there")
            del body[key]
        if not kind.is_relation:
            if not body and not draft.absent:
                return []
            body = {**({} if row is None else {"id": row.id}), **body, kind.name_key: draft.name_after}
        wrong: list[Problem] = []
        places = FixedSource(SourceLocation(f"run {self._run.name}"))
        entry = ManifestEntry(body=body, places=places, timezone=None, report=wrong.append)
        made = [*parse_absent(kind.name, entry)] if draft.absent else [*parse(kind.name, entry)]
        if wrong:
            what = "is left as it is" if row else "is not created again"
            self.leave(draft.change, f"it {what}: no manifest can declare it: {wrong[0].message}")
        return [] if wrong else made

    def _undo_creation(self, kind: Kind, change: Change) -> None:
        """Draft the deletion of what the run created, unless it is not live, or others have changed it."""
        times = self._times
        made = times.body_made(change.after)
        row = times.related_row(kind, made) if kind.is_relation else times.created_row(kind, change)
        if row is None:
            return
        live = times.body_now(kind, row)
        other = archived_instead(change) if kind.is_person else {}
        kept = (key for key in made if key not in other or not alike(other[key], live.get(key)))
        changed = next((key for key in kept if not self._is_as_made(change, key, made[key], live.get(key))), None)
        is_field = kind.name == CUSTOM_FIELD
        reason = _filled_since(made, live) or (answered_since(times.live, row, self._run.plan) if is_field else None)
        if changed is not None:
            self._leave_changed(change, changed, None, made[changed], live.get(changed))
        elif reason is not None:
            self.leave(change, f"it is not deleted: {reason}")
        else:
            if is_field:
                self._deleted_fields.add(shown_name(kind, times.live, row))
            body = {key: made[key] for key in required_keys(kind)} if kind.is_relation else dict(other)
            self.drafts.append(Draft(change=change, kind=kind, row=row, body=body, absent=not kind.is_person))

    def _is_as_made(self, change: Change, key: str, made: Json, live: Json) -> bool:
        """Whether a key of a created resource is as the run made it, as far as it came."""
        if alike(made, live) or self._run.is_whole(change):
            return alike(made, live)
        if not isinstance(live, list):
            return not live
        late = items_of(self._times.body_made({key: [*self._run.texts(change, key, unsure=True)]}), key)
        wanted = made if isinstance(made, list) else items_of(made, "include")
        unwanted = live if wanted is made else items_of(made, "exclude")
        differing = (*lacking(wanted, live), *(item for item in unwanted if item in live and item not in wanted))
        return all(item in late for item in differing)

    def _undo_relation(self, kind: Kind, change: Change, then: Any) -> None:
        """Draft a relation as it was before the run deleted or changed it, unless others have made another since."""
        times, is_deleted = self._times, change.action is Action.DELETE
        before = times.body_before(kind, then)
        row = times.related_row(kind, before)
        # An audience that is a text is an id, and the kind and name behind it are not recorded.
        if any(isinstance(audience, str) for audience in items_of(before, "assign_to")):
            again = "created again" if is_deleted else "changed back"
            self.leave(change, f"it is not {again}: what it was for is not recorded")
        elif row is None and not is_deleted and not self._run.has_only_deleted(change):
            self.leave(change, "it is not changed back: it is not live any more")
        else:
            live = None if row is None else times.body_now(kind, row)
            made = None if is_deleted or row is None else times.body_made(change.after)
            before = {key: value for key, value in before.items() if value is not None or made is not None}
            is_restored = restores(before, made, live)
            if is_restored:
                self.drafts.append(Draft(change=change, kind=kind, row=row, body=before))
            elif is_restored is None:
                self._leave_changed(change, "", before, made, live)

    def _undo_deletion(self, kind: Kind, change: Change, row: Any) -> None:
        """Draft what the run deleted, to be created again, unless it was not deleted, or is there again."""
        times, run = self._times, self._run
        id = times.recreated_id(kind, row, change)
        is_gone = run.is_whole(change) or times.row_now(kind, change.id) is None
        if id is None and (change.address in run.recreated or not is_gone):
            return
        body = {
            key: self._live(change, key, value)
            for key, value in times.body_before(kind, row).items()
            if value is not None
        }
        if id is not None:
            body = {key: {"include": body[key]} for key in _LISTS if body.get(key)}
        self.drafts.append(Draft(change=change, kind=kind, row=times.row_now(kind, id), body=body))

    def _undo_update(self, kind: Kind, change: Change, then: Any) -> None:
        """Draft the keys that the run changed with their earlier values."""
        times = self._times
        row = times.row_now(kind, change.id)
        if row is None:
            self.leave(change, "it is not changed back: it is not live any more")
            return
        draft = Draft(change=change, kind=kind, row=row)
        before = {**members(change.before), **times.body_before(kind, then)}
        made, live = times.body_made(change.after), times.body_now(kind, row)
        for key in dict.fromkeys(one.path.partition(".")[0] for one in change.fields):
            if key == kind.parts_key:
                self._parts(draft, then, row)
            elif key in _LISTS:
                self._list(draft, key, live.get(key))
            elif isinstance(made.get(key), dict):
                self._mapping(draft, key, (before, made, live))
            elif self._is_restored(draft, key, before.get(key), made.get(key), live.get(key)):
                draft.body[key] = before.get(key)
        self.drafts.append(draft)

    def _mapping(self, draft: Draft, key: str, states: Sequence[Body]) -> None:
        """Give the values of a mapping, such as answers, back, where the run changed them.

        states: before the run, as it made them, and live.
        """
        before, made, live = (members(state.get(key)) for state in states)
        back: Body = {}
        for part, new in made.items():
            was, now = before.get(part), live.get(part)
            # The deletion of a field empties the answers to it.
            if same(was, new) or (key == "answers" and part in self._deleted_fields and not was):
                continue
            if isinstance(new, list) and all(is_text_list(one or []) for one in (was, new, now)):
                items = restored_items(*(items_of(state, part) for state in (before, made, live)))
                if not alike(items, now):
                    back[part] = items
            elif self._is_restored(draft, key, was, new, now, part):
                back[part] = was
        if back:
            draft.body[key] = back

    def _is_restored(
        self, draft: Draft, key: str, before: Json, made: Json, live: Json, part: str | None = None
    ) -> bool:
        """Whether the earlier value of a key, or of a part of it, is given back; tell why it is not."""
        if key == draft.kind.name_key and live in self._run.texts(draft.change):
            # The temporary name of a circle of renames.
            made = live
        is_restored = restores(before, made, live)
        if is_restored is None:
            # Answers that were destroyed with a field are told of that field.
            is_whole = part is None or draft.change.address.kind != draft.kind.name
            was, new, now = (one if is_whole else {str(part): one} for one in (before, made, live))
            self._leave_changed(draft.change, key, was, new, now)
        elif is_restored and draft.kind.is_person and not before:
            reason = why_not_emptied(self._times.live, key, part)
            if reason is not None:
                self.leave(draft.change, f"{'' if part is None else 'a part of '}{key} is left as it is: {reason}")
                return False
        return is_restored is True

    def _list(self, draft: Draft, key: str, live: Json) -> None:
        """Include the people that the run removed and that are not in the list again; exclude those that it added."""
        change, now = draft.change, live if isinstance(live, list) else []
        [changed] = [one for one in change.fields if one.path == key]
        done = self._run.texts(change, key)
        # People that the service itself adds or removes along with another change are in no call.
        is_whole = self._run.is_whole(change) and (key not in LISTS or not done)
        removed, added = (
            [one for one in items if is_whole or one in done] for items in (changed.removed, changed.added)
        )
        sides = self._times.body_made({key: {"include": removed, "exclude": added}})[key]
        wanted = self._live(change, key, lacking(items_of(sides, "include"), now))
        parts: Body = {"include": wanted, "exclude": [item for item in items_of(sides, "exclude") if item in now]}
        if any(parts.values()):
            draft.body[key] = {part: items for part, items in parts.items() if items}

    def _parts(self, draft: Draft, then: Any, row: Any) -> None:
        """Add the list of parts: the live ones with their ids, without those of the run, with those it removed."""
        change, key = draft.change, str(draft.kind.parts_key)
        before, live = ({str(one.id): normalize_name(one.name) for one in parts_of(of)} for of in (then, row))
        renames = dict(renamed_parts(draft.kind, change))
        fields = [one for one in change.fields if one.path == key]
        added = {normalize_name(str(item)) for one in fields for item in one.added}
        removed = {normalize_name(str(item)) for one in fields for item in one.removed}
        names = {id: name for id, name in live.items() if id in before or name not in added}
        for id, was in before.items():
            if was in renames and live.get(id) == renames[was]:
                names[id] = was
            elif was in renames and live.get(id, was) != was:
                self._leave_changed(change, key, was, renames[was], live[id])
        draft.parts = {live[id]: name for id, name in names.items()}
        free = removed.difference(names.values())
        again = {name: id for id, name in before.items() if id not in names and name in free}
        if names != live or again:
            listed: Body = {id: {"name": name, "id": id} for id, name in names.items()}
            listed |= {id: name for name, id in again.items()}
            draft.body[key] = [listed[id] for id in dict.fromkeys([*before, *live]) if id in listed]

    def _live(self, change: Change, key: str, value: Json) -> Json:
        """Return a value of an entry, of a list of people only the live ones; report how many are missing."""
        if key not in LISTS or not isinstance(value, list):
            return value
        there = [item for item in value if self._times.named(KINDS[USER], str(item))]
        if len(there) < len(value):
            missing = count_noun(len(value) - len(there), "person who is", "people who are")
            self.leave(change, f"{key} lack {missing} not live any more")
        return there

    def _leave_taken_names(self) -> None:
        """Leave the names that are not free, and do not become free with another name or a deletion."""
        claims = [draft for draft in self.drafts if draft.name is not None]
        twice = Counter((draft.kind.name, draft.name) for draft in claims)
        free = {draft for draft in claims if twice[draft.kind.name, draft.name] == 1}
        while taken := self._taken(free):
            free -= taken
        for draft in (one for one in claims if one not in free):
            what = "is not created again" if draft.row is None else "keeps its name"
            self.leave(draft.change, f'it {what}: another live resource has the name "{draft.name}"')
            del draft.body[draft.kind.name_key]
        self.drafts = [one for one in self.drafts if one.row is not None or one.name or one.kind.is_relation]

    def _taken(self, free: set[Draft]) -> set[Draft]:
        """Return those whose name another live resource keeps: it is not deleted, and takes no name of these."""
        leaving = {
            (one.kind.name, one.row.id) for one in self.drafts if one.row is not None and (one.absent or one in free)
        }
        return {
            draft
            for draft in free
            if any((draft.kind.name, row.id) not in leaving for row in self._times.named(draft.kind, draft.name))
        }

    def _give_answers_back(self) -> None:
        """Draft the answers that were destroyed with fields and choices that are there again."""
        times, kind = self._times, KINDS[USER]
        people = {one.row.id: one for one in self.drafts if one.kind.is_person and one.body}
        back = [one.change for one in self.drafts if one.kind.name == CUSTOM_FIELD and not one.absent]
        for change, entry in ((of, entry) for of in back for entry in times.lost_answers(of)):
            row = times.row_now(kind, str(entry["id"]))
            if row is None:
                continue
            lost, draft = members(entry["answers"]), Draft(change=change, kind=kind, row=row)
            emptied: Body = {part: [] if isinstance(value, list) else None for part, value in lost.items()}
            self._mapping(draft, "answers", (entry, {"answers": emptied}, times.body_now(kind, row)))
            if draft.body:
                own = people.setdefault(row.id, draft)
                own.body["answers"] = {**members(draft.body["answers"]), **members(own.body.get("answers"))}
        self.drafts = [*(one for one in self.drafts if not one.kind.is_person), *people.values()]


def _filled_since(made: Body, live: Body) -> str | None:
    """Return which text or list that the run did not declare is not empty now."""
    key = next((key for key in live if key not in made and isinstance(live[key], str | list) and live[key]), None)
    return None if key is None else f"it has {key} now, which the run did not give it"
