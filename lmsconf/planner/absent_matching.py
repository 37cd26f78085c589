"""Match entries under `absent` with live resources: which are deleted, and which match nothing."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from typing import Any

from lmsconf.errors import Severity
from lmsconf.model.declarations import DeleteEntry
from lmsconf.model.names import confusable_skeleton, matches_pattern, normalize_name, quote_name
from lmsconf.model.snapshot import HasName
from lmsconf.planner.context import Deletion, MatchResult, PlanContext, Row, Spec


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
    deleted_ids: set[str] = set()
    for entry in absent:
        pin = entry.pin(planning.policy.workspace)
        pinned = None if pin is None else by_id.get(pin)
        if pinned is not None and normalize_name(pinned.name) != entry.address.name:
            _other_name(planning, entry, pinned, by_name[entry.address.name])
            continue
        whole = planning.snapshot.of(kind).incomplete is None
        if whole and pin is not None and pinned is None and by_name[entry.address.name]:
            _other_id(planning, entry, pin, by_name[entry.address.name])
            continue
        named = [row for row in by_name[entry.address.name] if pin is None or row.id == pin]
        match named:
            case []:
                free_names = (
                    name for name, same_name in by_name.items() if not claimed.issuperset(row.id for row in same_name)
                )
                report_absent_not_live(planning, entry, similar_live_name(entry.address.name, free_names))
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


def similar_live_name(name: str, names: Iterable[str]) -> str | None:
    """Return another name that may have been meant: one that is drawn alike, or that `name` matches as a pattern."""
    looks = confusable_skeleton(name)
    return next(
        (one for one in names if one != name and (confusable_skeleton(one) == looks or matches_pattern(one, name))),
        None,
    )


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
