"""Match entries under `absent` with live resources: which are deleted, and which match nothing."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property
from typing import Any, Final

from lmsconf.errors import Severity
from lmsconf.model.declarations import DeleteEntry
from lmsconf.model.names import confusable_skeleton, matches_pattern, normalize_name, quote_name
from lmsconf.model.snapshot import HasName
from lmsconf.planner.context import Deletion, MatchResult, PlanContext, Row, Spec

_WILDCARDS: Final = frozenset("*?[")


def match_absent(
    planning: PlanContext,
    kind: str,
    out: MatchResult[Spec, Row],
    absent: Sequence[DeleteEntry[Any]],
    rows: Sequence[Row],
    free: Sequence[Row],
    claimed: set[str],
) -> list[Row]:
    """Record a deletion for each row that `absent` lists; return the other free rows."""
    by_name: defaultdict[str, list[Row]] = defaultdict(list)
    by_id = {row.id: row for row in rows}
    for row in by_id.values():
        by_name[normalize_name(row.name)].append(row)
    unclaimed = (name for name, of_name in by_name.items() if not claimed.issuperset(row.id for row in of_name))
    similar = SimilarNames(unclaimed)
    deleted_ids: set[str] = set()
    for entry in absent:
        same_name = by_name.get(entry.address.name, [])
        pin = entry.pin(planning.policy.workspace)
        pinned = None if pin is None else by_id.get(pin)
        if pinned is not None and normalize_name(pinned.name) != entry.address.name:
            _other_name(planning, entry, pinned, same_name)
            continue
        whole = planning.snapshot.of(kind).incomplete is None
        if whole and pin is not None and pinned is None and same_name:
            _other_id(planning, entry, pin, same_name)
            continue
        named = [row for row in same_name if pin is None or row.id == pin]
        match named:
            case []:
                report_absent_not_live(planning, entry, similar.find(entry.address.name))
            case [row] if row.id in claimed:
                message = "it is listed under `absent`, and another entry renames it by `previously` or `id`"
                _report(planning, entry, "absent/claimed", message, "Keep one of the two.")
            case [row]:
                if row.id not in deleted_ids:
                    deleted_ids.add(row.id)
                    out.deletions.append(Deletion(address=entry.address, row=row, absent=entry))
            case _:
                ids = ", ".join(sorted(row.id for row in named))
                message = f'"{entry.address.name}" is live more than once, with the ids {ids}'
                _report(planning, entry, "identity/live-twice", message, "Select one with `id:`.")
    return [row for row in free if row.id not in deleted_ids]


def _other_name(planning: PlanContext, entry: DeleteEntry[Any], pinned: HasName, named: Sequence[HasName]) -> None:
    """Report an entry under `absent` whose id and name refer to different rows; it deletes neither."""
    name = entry.address.name
    message = f'the id "{pinned.id}" is that of "{pinned.name}", {_live_as(name, named)}'
    otherwise = f"To delete {quote_name(name)}, correct the id." if named else "Or remove the entry."
    hint = f"To delete that one, write {quote_name(pinned.name)} as its name. {otherwise}"
    _report(planning, entry, "absent/other-name", message, hint)


def _other_id(planning: PlanContext, entry: DeleteEntry[Any], pin: str, named: Sequence[HasName]) -> None:
    """Warn of an id that is not live. Not an error: the entry of a duplicate that was deleted by id looks like this."""
    message = f'nothing with the id "{pin}" is live, {_live_as(entry.address.name, named)}'
    hint = "If the deletion is applied, remove the entry. If you mean that one, correct the id."
    _report(planning, entry, "absent/other-id", message, hint, Severity.WARNING)


def _live_as(name: str, named: Sequence[HasName]) -> str:
    ids = ", ".join(sorted(row.id for row in named))
    return f'and "{name}" is live with the id {ids}' if named else f'and nothing called "{name}" is live'


class SimilarNames:
    """Live names, to find the one that an entry without a match may mean. They are indexed when one is looked for."""

    def __init__(self, names: Iterable[str]) -> None:
        self._names = names

    @cached_property
    def _known(self) -> Sequence[str]:
        return list(self._names)

    @cached_property
    def _by_look(self) -> Mapping[str, Sequence[str]]:
        by_look: defaultdict[str, list[str]] = defaultdict(list)
        for name in self._known:
            by_look[confusable_skeleton(name)].append(name)
        return by_look

    def find(self, name: str) -> str | None:
        """Return another name that may be meant: the first that is drawn alike, or that `name` matches as a pattern."""
        alike = self._by_look.get(confusable_skeleton(name), ())
        if _WILDCARDS.isdisjoint(name):
            return next((one for one in alike if one != name), None)
        return next((one for one in self._known if one != name and (one in alike or matches_pattern(one, name))), None)


def report_absent_not_live(planning: PlanContext, entry: DeleteEntry[Any], stays: str | None = None) -> None:
    """Report an entry under `absent` that matches nothing: a note, or an error if the listing is incomplete.

    stays: a live name that the entry may have meant; then it is a warning.
    """
    why = planning.snapshot.of(entry.address.kind).incomplete
    if why is not None:
        message = f"it is not known whether it is deleted, because the listing was not read completely: {why}"
        _report(planning, entry, "read/incomplete", message, "Try again.")
    elif stays is not None:
        message = f"nothing with exactly this name is live, but {quote_name(stays)} is, and is kept"
        hint = "Under `absent`, names are literal; patterns are for `ownership:`."
        _report(planning, entry, "absent/look-alike", message, hint, Severity.WARNING)
    else:
        message, hint = "nothing with this name is live", "Remove the entry under `absent`."
        _report(planning, entry, "absent/nothing-to-do", message, hint, Severity.NOTE)


def _report(
    planning: PlanContext,
    entry: DeleteEntry[Any],
    code: str,
    message: str,
    hint: str,
    severity: Severity = Severity.ERROR,
) -> None:
    """Report a problem of an entry under `absent`."""
    address = entry.address
    planning.problem(code, f"{address}: {message}", hint=hint, at=entry.source, address=address, severity=severity)
