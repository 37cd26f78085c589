"""Group the changes of many plans by the workspaces that share them."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from pathlib import Path
from typing import Final

from msgspec.structs import replace

from lmsconf.documents.document import change_json
from lmsconf.documents.plan_file import loads
from lmsconf.fleet.tasks import load_file
from lmsconf.model.canonical_json import Json, sha256
from lmsconf.model.fleet import FleetAction, FleetIndex, FleetReport, SharedChanges
from lmsconf.model.plan import FULL_UNDO, Change

_DIFFERS = ("id", "source", "about", "problems", "undo", "origin")
"""Keys of a change that differ between workspaces although the same thing changes."""
_ALIKE: Final = 3
"""The fewest changes that are shown together because they are equal but for their names."""


def read_report(folder: Path, index: FleetIndex, key: bytes | None = None) -> FleetReport:
    """Return an index with the changes of its plan files grouped. Raises LmsconfError for a plan that is not valid."""
    if index.action is not FleetAction.PLAN:
        return FleetReport(index=index)
    plans = (
        (entry.workspace, load_file(folder / entry.file, loads, key).changes)
        for entry in index.entries
        if entry.file is not None and not entry.failed
    )
    return FleetReport(index=index, shared=group_changes(plans))


def group_changes(plans: Iterable[tuple[str, tuple[Change, ...]]]) -> tuple[SharedChanges, ...]:
    """Group changes that are equal but for ids and source lines; those in most workspaces first."""
    change_of: dict[str, Change] = {}
    workspaces: dict[str, list[str]] = defaultdict(list)
    for workspace, changes in plans:
        for change in changes:
            key = sha256({name: value for name, value in change_json(change).items() if name not in _DIFFERS})
            change_of.setdefault(key, change)
            workspaces[key].append(workspace)
    together: dict[tuple[str, ...], list[Change]] = defaultdict(list)
    alike: dict[str, list[tuple[str, Change]]] = defaultdict(list)
    for key, names in workspaces.items():
        change = replace(change_of[key], id=None, problems=(), undo=FULL_UNDO)
        if len(names) == 1:
            alike[_without_name(change)].append((names[0], change))
        else:
            together[tuple(names)].append(change)
    shared: list[SharedChanges] = []
    for pairs in alike.values():
        if len(pairs) >= _ALIKE and len({workspace for workspace, _ in pairs}) == len(pairs):
            shared.append(
                SharedChanges(
                    changes=tuple(change for _, change in pairs),
                    workspaces=tuple(workspace for workspace, _ in pairs),
                    one_each=True,
                )
            )
        else:
            for workspace, change in pairs:
                together[workspace,].append(change)
    shared += [
        SharedChanges(changes=tuple(sorted(changes, key=lambda change: change.address)), workspaces=names)
        for names, changes in together.items()
    ]
    return tuple(sorted(shared, key=lambda one: (-len(one.workspaces), one.one_each, one.workspaces)))


def _without_name(change: Change) -> str:
    """Return a digest of a change that is equal for changes that are equal but for their names."""
    name = change.address.name

    def unnamed(value: Json) -> Json:
        if isinstance(value, dict):
            return {key: unnamed(item) for key, item in value.items()}
        return "" if value == name else value

    form = change_json(change)
    return sha256({key: unnamed(value) for key, value in form.items() if key not in (*_DIFFERS, "address", "name")})
