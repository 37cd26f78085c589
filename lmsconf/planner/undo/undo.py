"""A recorded run and the workspace as it is now → the declarations that undo the run, and what they leave alone.

A deletion becomes a declaration of what was there, a creation an entry under `absent` with the id that the run got, an
update a declaration, pinned by id, of the keys that the run changed. A value that others have changed since is a
conflict: it is shown, and left alone. The planner plans these declarations as any others.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Final

from lmsconf.errors import Problem, Severity, SourceLocation
from lmsconf.kinds.kind_table import KINDS, parse, parse_absent
from lmsconf.kinds.shared.kind_names import CUSTOM_FIELD, USER, Kind
from lmsconf.kinds.shared.manifest_entry import ManifestEntry
from lmsconf.model.address import Address, RemoteId
from lmsconf.model.canonical_json import Json, members, sha256
from lmsconf.model.declarations import DeleteEntry, DesiredResource, FixedSource, Manifests
from lmsconf.model.plan import Action, Change, UndoLevel
from lmsconf.planner.undo.kept_state import lost_answer_entries
from lmsconf.planner.undo.three_way_merge import Body, Times, alike
from lmsconf.planner.undo.undo_entries import ALL, Draft, Drafter, LeftAlone
from lmsconf.planner.undo.undone_run import MARK, NameClaim, granted, references, renamed_to

LIMITED: Final = "undo/limited"


class Inversion:
    """The undo of a run. left: the addresses, in the plan of the run, of changes that are left alone, and why.

    origins: the address of each declaration that undoes the run → the change of the run that it undoes.
    """

    def __init__(self, times: Times, left: Mapping[Address, str]) -> None:
        self.times, self.left = times, left
        self.drafter = Drafter(times)
        self.left_alone = LeftAlone()
        self.declared: list[DesiredResource[Any]] = []
        self.absent: list[DeleteEntry[Any]] = []
        self.origins: dict[Address, Change] = {}

    def run(self) -> Manifests:
        """Return the declarations that undo the run, with what is left alone as their problems."""
        changes = [change for change in self.times.run.plan.changes if self._is_undone(change)]
        self.times.rename(changes, ())
        deleted = {str(draft.id) for draft in self._deletions(changes) if draft.absent and draft.id}
        claims = self._claims(changes, deleted)
        self.times.rename(changes, claims)
        self.drafter = Drafter(self.times)
        deletions = self._deletions(changes)
        self.drafter.deleted_fields = frozenset(
            self.times.name_after(one.kind, one.id) for one in deletions if one.kind.name == CUSTOM_FIELD
        )
        drafts = [*deletions, *self._earlier_states(changes, claims)]
        for draft in self._with_values_beside(drafts, claims):
            self._write(draft)
        return Manifests(
            declared=tuple(self.declared),
            absent=tuple(self.absent),
            problems=(*self._limits(changes), *self.left_alone.problems, *self.drafter.left.problems),
            digest=sha256({"undo": self.times.run.name}),
        )

    def _deletions(self, changes: Iterable[Change]) -> list[Draft]:
        created = (change for change in changes if change.action is Action.CREATE)
        return [draft for change in created if (draft := self.drafter.undo_creation(change)) is not None]

    def _is_undone(self, change: Change) -> bool:
        if not self.times.run.is_done(change):
            return False
        reason = self.left.get(change.address)
        if reason is not None:
            self.left_alone.add(change, ALL, reason)
        return reason is None

    def _claims(self, changes: Sequence[Change], deleted: set[str]) -> list[NameClaim]:
        """Return the names that the undo gives back; tell which are taken."""
        claims = [claim for change in changes if (claim := self._claim(change)) is not None]
        allowed = granted(claims, self.times.live, deleted)
        for claim in claims:
            if claim not in allowed:
                key, what = (
                    (ALL, "is not created again") if claim.id is None else (claim.kind.name_key, "keeps its name")
                )
                reason = f'it {what}: another live resource has the name "{claim.name}"'
                self.left_alone.add(claim.change, key, reason)
        return allowed

    def _claim(self, change: Change) -> NameClaim | None:
        """Return the name that a renamed or deleted resource gets back; tell where others have given another since."""
        times, run, kind = self.times, self.times.run, KINDS[change.address.kind]
        before, row = times.row_before(kind, change.id), times.row_now(kind, change.id)
        if kind.is_relation or before is None:
            return None
        name, given = kind.normalize_name(before.name), renamed_to(kind, change)
        if change.action is Action.DELETE:
            is_there = change.address in run.recreated or times.recreated_id(kind, change) is not None
            is_deleted = row is None or run.is_whole(change)
            return NameClaim(change=change, kind=kind, name=name, id=None) if is_deleted and not is_there else None
        if row is None or given is None:
            return None
        now = kind.normalize_name(row.name)
        if now == given or (now != name and run.has_sent(change, now)):
            return NameClaim(change=change, kind=kind, name=name, id=row.id)
        if now != name:
            self.left_alone.add_changed(change, kind.name_key, name, given, now)
        return None

    def _earlier_states(self, changes: Sequence[Change], claims: Sequence[NameClaim]) -> Iterator[Draft]:
        names = {(one.kind.name, str(one.change.id)): one for one in claims}
        for change in changes:
            kind = KINDS[change.address.kind]
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
            kind = KINDS[change.address.kind]
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
        kind = KINDS[USER]
        row = self.times.row_now(kind, str(entry["id"]))
        if row is None:
            return
        bodies = (self.times.entry_before(kind, entry), self.times.body_now(kind, row))
        wanted, live = (body.get("answers") for body in bodies)
        if missing := self._missing(change, members(wanted), members(live)):
            draft = drafts.setdefault((USER, row.id, None), Draft(change=change, kind=kind, id=row.id))
            draft.body["answers"] = {**missing, **members(draft.body.get("answers"))}

    def _missing(self, change: Change, wanted: Mapping[str, Json], live: Mapping[str, Json]) -> Body:
        """Return the answers, by field, that are not live; report those in whose place others are."""
        out: Body = {}
        for part, value in wanted.items():
            given = live.get(part)
            if isinstance(value, list) and isinstance(given, list):
                value = [*given, *(item for item in value if item not in given)]
            elif given and not alike(value, given):
                self.left_alone.add_changed(change, "answers", value, None, given)
                continue
            if not alike(value, given):
                out[part] = value
        return out

    def _write(self, draft: Draft) -> None:
        kind = draft.kind
        body: Body = {}
        for piece in [draft.body] if kind.is_relation else [{key: value} for key, value in draft.body.items()]:
            missing = next((str(one).replace(MARK, "") for one in references(kind, piece) if MARK in one.name), None)
            if missing is None:
                body |= piece
            elif kind.is_relation or draft.id is None:
                what = "is left as it is" if kind.is_relation else "is not created again"
                self.left_alone.add(draft.change, ALL, f"it {what}: {missing} is not there")
                return
            else:
                [key] = piece
                self.left_alone.add(draft.change, key, f"{key} is left as it is: {missing} is not there")
        if not kind.is_relation:
            if not body and draft.name is None and not draft.absent:
                return
            pin: Body = {} if draft.id is None else {"id": draft.id}
            body = {kind.name_key: draft.name or self.times.name_after(kind, draft.id), **pin, **body}
        wrong: list[Problem] = []
        entry = ManifestEntry(body=body, places=run_source(self.times.run.name), timezone=None, report=wrong.append)
        declared = [] if draft.absent else list(parse(kind.name, entry))
        absent = list(parse_absent(kind.name, entry)) if draft.absent else []
        if wrong:
            what = "is not created again" if draft.id is None else "is left as it is"
            self.left_alone.add(draft.change, ALL, f"it {what}: no manifest can declare it: {wrong[0].message}")
            return
        self.declared.extend(declared)
        self.absent.extend(absent)
        self.origins.update((made.address, draft.change) for made in (*declared, *absent))

    def _limits(self, changes: Sequence[Change]) -> Iterator[Problem]:
        """Yield what cannot come back of what is undone."""
        untouched = self.left_alone.whole | self.drafter.left.whole | self.drafter.there_again
        for change in changes:
            if change.undo.level is not UndoLevel.FULL and change.address not in untouched:
                message = f"{change.address}: {change.undo.reason}"
                yield Problem(code=LIMITED, message=message, severity=Severity.NOTE, address=str(change.address))


def run_source(run: str) -> FixedSource:
    """Return the SourceMap of an entry that undoes a run: it has the name of the run in the place of a file."""
    return FixedSource(SourceLocation(f"run {run}"))
