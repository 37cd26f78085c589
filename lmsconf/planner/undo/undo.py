"""A recorded run and the workspace as it is now → the declarations that undo the run, and what they leave alone.

A deletion becomes a declaration of what was there, a creation an entry under `absent` with the id that the run got, an
update a declaration, pinned by id, of the keys that the run changed. A value that others have changed since is a
conflict: it is shown, and left alone. The planner plans these declarations as any others.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from lmsconf.errors import Problem, Severity, SourceLocation
from lmsconf.kinds.kind_table import parse, parse_absent
from lmsconf.kinds.shared.manifest_entry import ManifestEntry
from lmsconf.model.address import Address
from lmsconf.model.canonical_json import Json, members, sha256
from lmsconf.model.declarations import DeleteEntry, DesiredResource, FixedSource, Manifests
from lmsconf.model.plan import Action, Change, UndoLevel
from lmsconf.planner.undo.restore_or_leave import Draft, Drafter, LeftAlone
from lmsconf.planner.undo.three_way_merge import Names, Times, named_parts, with_names
from lmsconf.planner.undo.undone_run import MARK, references, shown_name


def undo_run(times: Times, left: Mapping[Address, str]) -> tuple[Manifests, dict[Address, Change]]:
    """Return the declarations that undo a run, with what is left alone as problems, and the change that each undoes.

    left: the addresses, in the plan of the run, of changes that are left alone, and why.
    """
    run, drafter = times.run, Drafter(times)
    changes = [change for change in run.plan.changes if run.is_done(change)]
    skipped = [LeftAlone(change=one, reason=left[one.address]) for one in changes if one.address in left]
    drafter.undo(change for change in changes if change.address not in left)
    names: Names = {at: name for draft in drafter.drafts for at, name in _names_after(draft, times).items()}
    made = [(entry, draft) for draft in drafter.drafts for entry in _entries(draft, names, drafter, run.name)]
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


def _names_after(draft: Draft, times: Times) -> Names:
    """Return the names after the undo of a resource and its parts, by those that it has in drafts."""
    if draft.kind.is_relation:
        return {}
    then = times.row_before(draft.kind, draft.change.id)
    earlier = "" if then is None else shown_name(draft.kind, times.before, then)
    return named_parts(draft.kind, times.live_name(draft.kind, draft.row, earlier), _name_after(draft), draft.parts)


def _name_after(draft: Draft) -> str:
    return draft.name or draft.kind.normalize_name(draft.row.name)


def _entries(
    draft: Draft, names: Names, drafter: Drafter, run: str
) -> list[DesiredResource[Any]] | list[DeleteEntry[Any]]:
    """Return what a draft declares, but for keys that refer to what is not there."""
    kind, body = draft.kind, with_names(draft.body, names)
    missing = {key: name for key, value in body.items() if (name := _missing(key, value)) is not None}
    what = "is left as it is" if kind.is_relation or draft.row is not None else "is not created again"
    if missing and (kind.is_relation or draft.row is None):
        drafter.leave(draft.change, f"it {what}: {next(iter(missing.values()))} is not there")
        return []
    for key, name in missing.items():
        drafter.leave(draft.change, f"{key} {what}: {name} is not there")
        del body[key]
    if not kind.is_relation:
        if not body and not draft.absent:
            return []
        body = {**({} if draft.row is None else {"id": draft.row.id}), **body, kind.name_key: _name_after(draft)}
    wrong: list[Problem] = []
    entry = ManifestEntry(
        body=body, places=FixedSource(SourceLocation(f"run {run}")), timezone=None, report=wrong.append
    )
    made = [*parse_absent(kind.name, entry)] if draft.absent else [*parse(kind.name, entry)]
    if wrong:
        what = "is left as it is" if draft.row else "is not created again"
        drafter.leave(draft.change, f"it {what}: no manifest can declare it: {wrong[0].message}")
    return [] if wrong else made


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
        before, made, live = (_shown(left.key, value, names) for value in left.values)
        hint = f"Before the run: {before}. The run made: {made}. Live now: {live}."
    return Problem(
        code="undo/conflict",
        message=f"{address}: {left.reason}",
        hint=hint,
        severity=Severity.WARNING,
        address=address,
    )


def _shown(key: str, value: Json, names: Names) -> str:
    """Return a value for people to read, also of what is not there. key: which holds it; empty if it is an entry."""
    if value is None or value == []:
        return "nothing"
    named = with_names({key: value}, names)[key] if key else with_names(members(value), names)
    text = named if isinstance(named, str) else json.dumps(named, ensure_ascii=False).replace(r"\u0000", MARK)
    whole = text.replace(MARK, "")
    return whole if len(whole) <= 200 else f"{whole[:200]}…"


def _missing(key: str, value: Json) -> str | None:
    """Return the first of what a key refers to that will not be there; None if all of it will."""
    return next((str(one).replace(MARK, "") for one in references({key: value}) if MARK in one.name), None)
