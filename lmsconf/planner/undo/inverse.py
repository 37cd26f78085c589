"""A recorded run and the workspace as it is now → the declarations that undo the run, and what they leave alone.

A deletion becomes a declaration of what was there, a creation an entry under `absent` with the id that the run got, an
update a declaration, pinned by id, of the keys that the run changed. A value that others have changed since is a
conflict: it is shown, and left alone. The planner plans these declarations as any others.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any, Final

from msgspec import Struct

from lmsconf.errors import Problem, Severity, SourceLocation
from lmsconf.kinds.custom_field.types import parts_of
from lmsconf.kinds.entries import parse, parse_absent
from lmsconf.kinds.shared.kind_names import CUSTOM_FIELD, USER
from lmsconf.kinds.undo import lost_answer_entries
from lmsconf.model.address import Address, RemoteId
from lmsconf.model.canonical_json import Json, sha256
from lmsconf.model.declarations import DeleteEntry, DesiredResource, FixedSource, Manifests
from lmsconf.model.names import normalize_name
from lmsconf.model.plan import Action, Change, UndoLevel
from lmsconf.planner.context import PlanContext
from lmsconf.planner.kind import Kind, row_type_of
from lmsconf.planner.manifest_entries import ManifestEntry
from lmsconf.planner.undo.drafts import ALL, Draft, Drafter, LeftAlone, without_values_of
from lmsconf.planner.undo.names import deleted_id, map_references, marked_id, plain_id, renamed_to
from lmsconf.planner.undo.run import RunToUndo
from lmsconf.planner.undo.times import Body, Times, alike

CONFLICT: Final = "undo/conflict"
LIMITED: Final = "undo/limited"
_SHOWN: Final = 200
"""The number of characters of a value that a conflict quotes."""


class Inverse(Struct, frozen=True, kw_only=True):
    """The declarations that undo a run, with what is left alone as their problems.

    origins: the address of each → the change of the run that it undoes.
    """

    manifests: Manifests
    origins: Mapping[Address, Change]


def invert(times: Times, left: Mapping[Address, str]) -> Inverse:
    """Return the declarations that undo a run.

    left: the addresses, in the plan of the run, of changes that are left alone, and why.
    """
    return _Inversion(times, left).run()


class _Inversion:
    def __init__(self, times: Times, left: Mapping[Address, str]) -> None:
        self.times, self.left = times, left
        self.drafter = Drafter(times)
        self.problems: list[LeftAlone] = []
        self.declared: list[DesiredResource[Any]] = []
        self.absent: list[DeleteEntry[Any]] = []
        self.origins: dict[Address, Change] = {}

    def run(self) -> Inverse:
        changes = [change for change in self.times.run.plan.changes if self._is_undone(change)]
        created = [change for change in changes if change.action is Action.CREATE]
        deletions = [draft for change in created if (draft := self.drafter.undo_creation(change)) is not None]
        deleted = {str(draft.id) for draft in deletions if draft.absent and draft.id}
        claims = self._claims(changes, deleted)
        states = (without_values_of(deleted, draft) for draft in self._earlier_states(changes, claims))
        drafts = [*deletions, *filter(None, states)]
        writer = EntryWriter(self.times, claims)
        writer.learn_parts(drafts)
        for draft in self._with_values_beside(drafts, claims):
            self._write(writer, draft)
        self.problems.extend(self.drafter.left)
        problems = [*self._limits(changes), *(_problem(self.times, writer, problem) for problem in self.problems)]
        run = self.times.run
        return Inverse(
            manifests=Manifests(
                declared=tuple(self.declared),
                absent=tuple(self.absent),
                problems=tuple(problems),
                digest=sha256({"undo": run.name}),
            ),
            origins=self.origins,
        )

    def _is_undone(self, change: Change) -> bool:
        if not self.times.run.is_done(change):
            return False
        reason = self.left.get(change.address)
        if reason is not None:
            self.problems.append(LeftAlone(change=change, key=ALL, reason=reason))
        return reason is None

    def _claims(self, changes: Sequence[Change], deleted: set[str]) -> list[NameClaim]:
        """Return the names that the undo gives back; tell which are taken."""
        claims: list[NameClaim] = []
        for kind in self.times.kinds.values():
            own = [change for change in changes if change.address.kind == kind.name and not kind.is_relation]
            for claim in name_claims(kind, self.times.run, self.times.live, own):
                if isinstance(claim, NameClaim):
                    if claim.id is not None or self.times.recreated_id(kind, claim.change) is None:
                        claims.append(claim)
                else:
                    self._renamed_since(kind, claim)
        allowed = granted(claims, self.times.live, deleted)
        for claim in claims:
            if claim not in allowed:
                key, what = (
                    (ALL, "is not created again") if claim.id is None else (claim.kind.name_key, "keeps its name")
                )
                reason = f'it {what}: another live resource has the name "{claim.name}"'
                self.problems.append(LeftAlone(change=claim.change, key=key, reason=reason))
        return allowed

    def _renamed_since(self, kind: Kind, change: Change) -> None:
        before, made = (_mapping(form).get(kind.name_key) for form in (change.before, change.after))
        live = kind.normalize_name(self.times.row_now(kind, change.id).name)
        self.problems.append(LeftAlone(change=change, key=kind.name_key, before=before, made=made, live=live))

    def _earlier_states(self, changes: Sequence[Change], claims: Sequence[NameClaim]) -> Iterator[Draft]:
        names = {(one.kind.name, str(one.change.id)): one for one in claims}
        for change in changes:
            kind = self.times.kinds[change.address.kind]
            claim = names.get((kind.name, str(change.id)))
            draft = None
            if change.action is Action.DELETE:
                draft = self.drafter.undo_deletion(change)
                if draft is not None and draft.id is None and not kind.is_relation and claim is None:
                    continue
            elif change.action is not Action.CREATE:
                draft = self.drafter.undo_update(change, None if claim is None else claim.name)
            if draft is not None:
                yield draft

    def _with_values_beside(self, drafts: Sequence[Draft], claims: Sequence[NameClaim]) -> list[Draft]:
        """Return the drafts with those of other resources that restore what was destroyed along with a change."""
        out = {(one.kind.name, one.id, one.change.address if one.id is None else None): one for one in drafts}
        back = {(claim.kind.name, str(claim.change.id)) for claim in claims if claim.id is None}
        for change in self.times.run.plan.changes:
            kind = self.times.kinds[change.address.kind]
            row = self.times.row_before(kind, change.id)
            if kind.name != CUSTOM_FIELD or row is None or not self._is_back(kind, change, back):
                continue
            for entry in lost_answer_entries(self.times.before, change, row):
                self._add_answers(out, change, entry)
        return list(out.values())

    def _is_back(self, kind: Kind, change: Change, back: set[tuple[str, str]]) -> bool:
        """Whether the resource of a change, or the parts that the run removed from it, are there again."""
        if change.address in self.left or not self.times.run.is_done(change):
            return False
        if change.action is Action.DELETE:
            return (kind.name, str(change.id)) in back or self.times.recreated_id(kind, change) is not None
        return change.action is Action.UPDATE and self.times.row_now(kind, change.id) is not None

    def _add_answers(
        self,
        drafts: dict[tuple[str, RemoteId | None, Address | None], Draft],
        change: Change,
        entry: Mapping[str, Json],
    ) -> None:
        """Add the answers of a person that were destroyed, where nobody has given others since."""
        kind = self.times.kinds[USER]
        row = self.times.row_now(kind, str(entry["id"]))
        if row is None:
            return
        bodies = (self.times.mark_before(kind, entry), self.times.body_now(kind, row))
        wanted, live = (body.get("answers") for body in bodies)
        if missing := self._missing(change, _mapping(wanted), _mapping(live)):
            draft = drafts.setdefault((USER, row.id, None), Draft(change=change, kind=kind, id=row.id))
            draft.body["answers"] = {**missing, **_mapping(draft.body.get("answers"))}

    def _missing(self, change: Change, wanted: Mapping[str, Json], live: Mapping[str, Json]) -> Body:
        """Return the answers, by field, that are not live; report those in whose place others are."""
        out: Body = {}
        for part, value in wanted.items():
            given = live.get(part)
            if isinstance(value, list) and isinstance(given, list):
                value = [*given, *(item for item in value if item not in given)]
            elif given and not alike(value, given):
                self.problems.append(LeftAlone(change=change, key="answers", before=value, made=None, live=given))
                continue
            if not alike(value, given):
                out[part] = value
        return out

    def _write(self, writer: EntryWriter, draft: Draft) -> None:
        kind = draft.kind
        body: Body = {}
        for piece in [draft.body] if draft.whole else [{key: value} for key, value in draft.body.items()]:
            try:
                body |= writer.written(kind, piece)
            except NotThere as missing:
                if draft.whole or draft.id is None:
                    what = "is left as it is" if draft.whole else "is not created again"
                    self._refuse(draft, ALL, f"it {what}: {missing} is not there")
                    return
                [key] = piece
                self._refuse(draft, key, f"{key} is left as it is: {missing} is not there")
        if not kind.is_relation:
            if not body and draft.name is None and not draft.absent:
                return
            pin: Body = {} if draft.id is None else {"id": draft.id}
            body = {kind.name_key: writer.name(kind, draft), **pin, **body}
        wrong: list[Problem] = []
        entry = ManifestEntry(body=body, places=run_source(self.times.run.name), timezone=None, report=wrong.append)
        declared = [] if draft.absent else list(parse(kind.name, entry))
        absent = list(parse_absent(kind.name, entry)) if draft.absent else []
        if wrong:
            what = "is not created again" if draft.id is None else "is left as it is"
            self._refuse(draft, ALL, f"it {what}: no manifest can declare it: {wrong[0].message}")
            return
        self.declared.extend(declared)
        self.absent.extend(absent)
        self.origins.update((made.address, draft.change) for made in (*declared, *absent))

    def _refuse(self, draft: Draft, key: str, reason: str) -> None:
        self.problems.append(LeftAlone(change=draft.change, key=key, reason=reason))

    def _limits(self, changes: Sequence[Change]) -> Iterator[Problem]:
        """Yield what cannot come back of what is undone."""
        untouched = {one.change.address for one in self.problems if one.key == ALL} | self.drafter.there_again
        for change in changes:
            if change.undo.level is not UndoLevel.FULL and change.address not in untouched:
                message = f"{change.address}: {change.undo.reason}"
                yield Problem(code=LIMITED, message=message, severity=Severity.NOTE, address=str(change.address))


def run_source(run: str) -> FixedSource:
    """Return the SourceMap of an entry that undoes a run: it has the name of the run in the place of a file."""
    return FixedSource(SourceLocation(f"run {run}"))


def _mapping(value: Json) -> Mapping[str, Json]:
    return value if isinstance(value, dict) else {}


def _problem(times: Times, writer: EntryWriter, left: LeftAlone) -> Problem:
    """Return the warning about what is left alone: what was there, what the run made, what is live now."""
    address = left.change.address
    message, hint = f"{address}: {left.reason}", None
    if left.reason is None:
        kind = times.kinds[address.kind]
        was, made, live = (_shown(writer, kind, left.key, value) for value in (left.before, left.made, left.live))
        message = f"{address}: {left.key or 'it'} has changed since the run, and is left alone"
        hint = f"Before the run: {was}. The run made: {made}. Live now: {live}."
    return Problem(code=CONFLICT, message=message, hint=hint, severity=Severity.WARNING, address=str(address))


def _shown(writer: EntryWriter, kind: Kind, key: str, value: Json) -> str:
    if value is None or value == []:
        return "nothing"
    body = {key: value} if key else value if isinstance(value, dict) else {}
    shown = writer.shown(kind, body)
    text = shown.get(key) if key else shown
    whole = text if isinstance(text, str) else json.dumps(text, ensure_ascii=False)
    return whole if len(whole) <= _SHOWN else f"{whole[:_SHOWN]}…"


class NameClaim(Struct, frozen=True, kw_only=True):
    """A resource that takes its earlier name again. id: of the live resource; None for one that is created again.

    deleted: the run has certainly deleted it, so that a live resource with its id is another.
    """

    change: Change
    kind: Kind
    name: str
    id: str | None
    deleted: bool = False

    @property
    def row_id(self) -> str:
        """What stands for the id that the resource had before the run."""
        return deleted_id(str(self.change.id)) if self.deleted else str(self.change.id)


def name_claims(
    kind: Kind, run: RunToUndo, live: PlanContext, changes: Sequence[Change]
) -> Iterator[NameClaim | Change]:
    """Yield the claims of renamed and deleted resources; a change itself where others have given another name since."""
    rows = {row.id: row for row in live.snapshot.rows(row_type_of(kind))}
    before = {row.id: row for row in run.before.rows(row_type_of(kind))}
    for change in changes:
        if change.id is None or change.id not in before:
            continue
        name, row = kind.normalize_name(before[change.id].name), rows.get(change.id)
        if change.action is Action.DELETE:
            if (row is None or run.is_whole(change)) and change.address not in run.recreated:
                yield NameClaim(change=change, kind=kind, name=name, id=None, deleted=run.is_whole(change))
        elif row is not None and (given := renamed_to(kind, change)) is not None:
            now = kind.normalize_name(row.name)
            if now == given or (now != name and run.has_sent(change, now)):
                yield NameClaim(change=change, kind=kind, name=name, id=row.id)
            elif now != name:
                yield change


def granted(claims: Sequence[NameClaim], live: PlanContext, deleted: Collection[str]) -> list[NameClaim]:
    """Return the claims of names that are free, or become free with another claim or a deletion.

    deleted: the ids of the live resources that the undo deletes.
    """
    twice = {key for key, number in Counter((claim.kind.name, claim.name) for claim in claims).items() if number > 1}
    left = [claim for claim in claims if (claim.kind.name, claim.name) not in twice]
    while True:
        leaving = {*deleted, *(one.id for one in left if one.id is not None)}
        still = [one for one in left if not any(row.id not in leaving for row in holders(one, live))]
        if len(still) == len(left):
            return still
        left = still


def holders(claim: NameClaim, live: PlanContext) -> Iterator[Any]:
    """Yield the live resources that have the name of a claim now."""
    for row in live.snapshot.rows(row_type_of(claim.kind)):
        if claim.kind.normalize_name(row.name) == claim.name:
            yield row


class NotThere(Exception):
    """An entry refers to a resource that is neither live nor created again."""

    def __init__(self, kind: str, name: str) -> None:
        super().__init__(f"{kind}/{name}")


class EntryWriter:
    """Writes names in the place of ids. claims: the names that the undo gives back."""

    def __init__(self, times: Times, claims: Sequence[NameClaim]) -> None:
        self._times = times
        self._given = {(claim.kind.name, claim.row_id): claim.name for claim in claims}
        self._parts: dict[str, str] = {}

    def learn_parts(self, drafts: Sequence[Draft]) -> None:
        """Take over the names that drafts give to the parts of live resources."""
        for draft in drafts:
            listed = draft.body.get(str(draft.kind.parts_key))
            for item in listed if isinstance(listed, list) else ():
                if isinstance(item, dict) and isinstance(item.get("id"), str):
                    self._parts[str(item["id"])] = str(item["name"])

    def name(self, kind: Kind, draft: Draft) -> str:
        """Return the name of a draft's resource: the one that it is to have, or the one it has."""
        if draft.name is not None:
            return draft.name
        return kind.normalize_name(self._times.row_now(kind, draft.id).name)

    def written(self, kind: Kind, body: Mapping[str, Json]) -> Body:
        """Return an entry with names. Raises NotThere."""
        return map_references(kind, body, self._written, self._written_part)

    def shown(self, kind: Kind, body: Mapping[str, Json]) -> Body:
        """Return a value with names for people to read, also of what is not there."""
        return map_references(kind, body, self._shown, self._written_part)

    def _written(self, kind: str, text: str) -> str:
        id = marked_id(text)
        if id is None:
            return text
        name = self._name_of(kind, id)
        if name is None:
            raise NotThere(kind, self._shown(kind, text))
        return name

    def _shown(self, kind: str, text: str) -> str:
        id = marked_id(text)
        if id is None:
            return text
        row = self._times.row_before(self._times.kinds[kind], id)
        return self._name_of(kind, id) or (f"id {plain_id(id)}" if row is None else normalize_name(row.name))

    def _name_of(self, kind: str, id: str) -> str | None:
        given = self._given.get((kind, id))
        row = self._times.row_now(self._times.kinds[kind], id)
        if given is not None or row is None:
            return given
        return self._times.kinds[kind].normalize_name(row.name)

    def _written_part(self, kind: str, owner: str, text: str) -> str:
        id, owner_id = marked_id(text), marked_id(owner)
        if id is None:
            return text
        if id in self._parts:
            return self._parts[id]
        id = plain_id(id)
        names = {part.id: normalize_name(part.name) for part in self._parts_of(kind, owner_id)}
        return names.get(id, id)

    def _parts_of(self, kind: str, owner: str | None) -> Iterator[Any]:
        """Yield the parts of a resource: those of before first, so that those that are live now win."""
        known = self._times.kinds[kind]
        for row in (self._times.row_before(known, owner), self._times.row_now(known, owner)):
            if row is not None:
                yield from parts_of(row)
