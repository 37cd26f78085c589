"""The names that an undo gives back: to resources that the run renamed, and to those that it deleted."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator, Sequence
from typing import Any

from msgspec import Struct

from lmsconf.model.plan import Action, Change
from lmsconf.planner.context import PlanContext
from lmsconf.planner.kind import Kind
from lmsconf.planner.undo.names import deleted_id
from lmsconf.planner.undo.run import RunToUndo
from lmsconf.planner.undo.vocabulary import renamed_to


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
    rows = {row.id: row for row in live.snapshot.rows(kind.row_type)}
    before = {row.id: row for row in run.before.rows(kind.row_type)}
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
    for row in live.snapshot.rows(claim.kind.row_type):
        if claim.kind.normalize_name(row.name) == claim.name:
            yield row
