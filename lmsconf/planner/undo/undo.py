"""A recorded run and the workspace as it is now → the declarations that undo the run, and what they leave alone.

A deletion becomes a declaration of what was there, a creation an entry under `absent` with the id that the run got, an
update a declaration, pinned by id, of the keys that the run changed. A value that others have changed since is a
conflict: it is shown, and left alone. The planner plans these declarations as any others.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from lmsconf.errors import Problem, Severity, SourceLocation
from lmsconf.kinds.kind_table import parse, parse_absent
from lmsconf.kinds.shared.kind_names import Kind
from lmsconf.kinds.shared.manifest_entry import ManifestEntry
from lmsconf.model.address import Address
from lmsconf.model.canonical_json import Json, sha256
from lmsconf.model.declarations import DeleteEntry, DesiredResource, FixedSource, Manifests
from lmsconf.model.plan import Change, UndoLevel
from lmsconf.planner.undo.conflicts import ALL, LIMITED, LeftAlone
from lmsconf.planner.undo.restored_entries import Draft, Drafter
from lmsconf.planner.undo.three_way_merge import Body, Names, Times, named_parts, with_names
from lmsconf.planner.undo.undone_run import MARK, references, shown_name


class Inversion:
    """The undo of a run. left: the addresses, in the plan of the run, of changes that are left alone, and why.

    origins: the address of each declaration that undoes the run → the change of the run that it undoes.
    """

    def __init__(self, times: Times, left: Mapping[Address, str]) -> None:
        self._times, self._left = times, left
        self._drafter = Drafter(times)
        self._names = Names()
        self._entries: list[DesiredResource[Any] | DeleteEntry[Any]] = []
        self.origins: dict[Address, Change] = {}

    def run(self) -> Manifests:
        """Return the declarations that undo the run, with what is left alone as their problems."""
        run, drafter = self._times.run, self._drafter
        changes = [change for change in run.plan.changes if run.is_done(change)]
        drafter.undo(change for change in changes if change.address not in self._left)
        for draft in drafter.drafts:
            self._names |= self._names_after(draft)
        for draft in drafter.drafts:
            self._write(draft)
        return Manifests(
            declared=tuple(one for one in self._entries if isinstance(one, DesiredResource)),
            absent=tuple(one for one in self._entries if isinstance(one, DeleteEntry)),
            problems=tuple(self._problems(changes)),
            digest=sha256({"undo": run.name}),
        )

    def _names_after(self, draft: Draft) -> Names:
        """Return the names after the undo of a resource and its parts, by those that it has in drafts."""
        kind, times = draft.kind, self._times
        if kind.is_relation:
            return {}
        then = times.row_before(kind, draft.change.id)
        known = times.live_name(kind, draft.row, "" if then is None else shown_name(kind, times.before, then))
        return named_parts(kind, known, self._name(draft), draft.parts)

    def _name(self, draft: Draft) -> str:
        return draft.name or draft.kind.normalize_name(draft.row.name)

    def _write(self, draft: Draft) -> None:
        """Add what a draft declares, but for keys that refer to what is not there."""
        kind, leave = draft.kind, self._drafter.leave
        body = with_names(kind, draft.body, self._names)
        gone = {key: _missing(kind, key, value) for key, value in body.items()}
        for key, missing in ((key, missing) for key, missing in gone.items() if missing):
            if kind.is_relation or draft.row is None:
                what = "is left as it is" if kind.is_relation else "is not created again"
                leave(draft.change, ALL, f"it {what}: {missing} is not there")
                return
            leave(draft.change, key, f"{key} is left as it is: {missing} is not there")
        body = {key: value for key, value in body.items() if not gone[key]}
        if not kind.is_relation:
            if not body and draft.name is None and not draft.absent:
                return
            pin: Body = {} if draft.row is None else {"id": draft.id}
            body = {kind.name_key: self._name(draft), **pin, **body}
        wrong: list[Problem] = []
        entry = ManifestEntry(body=body, places=run_source(self._times.run.name), timezone=None, report=wrong.append)
        made = [*parse_absent(kind.name, entry)] if draft.absent else [*parse(kind.name, entry)]
        if wrong:
            what = "is not created again" if draft.row is None else "is left as it is"
            leave(draft.change, ALL, f"it {what}: no manifest can declare it: {wrong[0].message}")
            return
        self._entries += made
        self.origins |= {one.address: draft.change for one in made}

    def _problems(self, changes: Sequence[Change]) -> Iterator[Problem]:
        """Yield what cannot come back of what is undone, then what is left alone."""
        drafter = self._drafter
        skipped = [change for change in changes if change.address in self._left]
        left = [LeftAlone(change=one, key=ALL, reason=self._left[one.address]) for one in skipped]
        left += (*drafter.left, *drafter.left_values)
        untouched = {one.change.address for one in left if one.key == ALL} | drafter.there_again
        for change in changes:
            if change.undo.level is not UndoLevel.FULL and change.address not in untouched:
                message = f"{change.address}: {change.undo.reason}"
                yield Problem(code=LIMITED, message=message, severity=Severity.NOTE, address=str(change.address))
        yield from (one.warning(self._names) for one in left)


def _missing(kind: Kind, key: str, value: Json) -> str | None:
    """Return the first of what a key refers to that will not be there; None if all of it will."""
    return next((str(one).replace(MARK, "") for one in references(kind, {key: value}) if MARK in one.name), None)


def run_source(run: str) -> FixedSource:
    """Return the SourceMap of an entry that undoes a run: it has the name of the run in the place of a file."""
    return FixedSource(SourceLocation(f"run {run}"))
