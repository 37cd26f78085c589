"""A run to be undone: its plan, what became of its calls, and the part of the workspace that it changed, as it was.

References in manifest entries have the names that an undo gives back.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import partial
from itertools import chain
from typing import Any, Final

from lmsconf.kinds.kind_table import KINDS
from lmsconf.kinds.shared.kind_names import CUSTOM_FIELD, USER, Kind
from lmsconf.kinds.shared.manifest_entry import LISTS
from lmsconf.kinds.shared.plan_context import PlanContext
from lmsconf.model.address import Address, RemoteId
from lmsconf.model.calls import Call, calls_by_address, is_creation
from lmsconf.model.canonical_json import Json, members
from lmsconf.model.names import normalize_name
from lmsconf.model.outcomes import CallState, RecordedRun
from lmsconf.model.plan import Change, Plan
from lmsconf.model.snapshot import Snapshot

MARK: Final = "\x00"
"""In the name of what will not be there after the undo: no name of a manifest contains it."""


def map_references(form: Mapping[str, Json], rename: Callable[..., str]) -> dict[str, Json]:
    """Return a form of any kind with every reference in it replaced.

    rename: (kind, name) → the new name; (kind, name of the resource, name of its part) → the new name of the part.
    """
    changed = dict(form)
    for key, value in form.items():
        match key, value:
            case "members" | "managers", _:
                changed[key] = _renamed(value, partial(rename, USER))
            case "answers", dict(answers):
                choices = {field: _renamed(one, partial(rename, CUSTOM_FIELD, field)) for field, one in answers.items()}
                changed[key] = {rename(CUSTOM_FIELD, field): one for field, one in choices.items()}
            case "conditions", [*conditions]:
                changed[key] = [_condition(members(one), rename) or one for one in conditions]
            case "assign_to", [*audiences]:
                changed[key] = [_audience(one, rename) for one in audiences]
    return changed


def _renamed(value: Json, rename: Callable[[str], str]) -> Json:
    """Return a name, or those of a list, or of the parts of one, replaced."""
    match value:
        case dict():
            return {part: _renamed(items, rename) for part, items in value.items()}
        case list():
            return [_renamed(item, rename) for item in value]
        case str():
            return rename(value)
    return value


def _condition(condition: dict[str, Json], rename: Callable[..., str]) -> Json:
    field = condition.get("field")
    if not isinstance(field, str):
        return condition
    choices = _renamed(condition.get("choices"), partial(rename, CUSTOM_FIELD, field))
    return {**condition, "field": rename(CUSTOM_FIELD, field), **({"choices": choices} if choices else {})}


def _audience(audience: Json, rename: Callable[..., str]) -> Json:
    return {
        kind: _renamed(name, partial(rename, kind)) if kind in KINDS else name
        for kind, name in members(audience).items()
    } or audience


def references(form: Mapping[str, Json]) -> Iterator[Address]:
    """Yield what an entry refers to."""
    addresses: list[Address] = []

    def note(kind: str, *names: str) -> str:
        addresses.append(Address.of(kind, names[0]))
        return names[-1]

    map_references(form, note)
    yield from addresses


def first_missing(key: str, value: Json) -> str | None:
    """Return the first of what a key refers to that will not be there; None if all of it will."""
    return next((str(one).replace(MARK, "") for one in references({key: value}) if MARK in one.name), None)


def shown_name(kind: Kind, planning: PlanContext, row: Any) -> str:
    """Return the name under which plans on a snapshot show a live resource: with its id, if another has the name."""
    return planning.registry.name(kind.name, row.id) or kind.normalize_name(row.name)


def renamed_to(kind: Kind, change: Change | None) -> str | None:
    """Return the name that an update gives a resource; None if it keeps its own."""
    fields = () if change is None else change.fields
    return next((str(field.after) for field in fields if field.path == kind.name_key), None)


def renamed_parts(kind: Kind, change: Change | None) -> Iterator[tuple[str, str]]:
    """Yield the old and the new name of each part that an update renames."""
    return (
        (normalize_name(field.before), normalize_name(str(field.after)))
        for field in (() if change is None else change.fields)
        if field.path.startswith(f"{kind.parts_key}.") and isinstance(field.before, str)
    )


class RunToUndo:
    """A recorded run with its plan.

    before: what the run changed, as it was before. recreated: the ids of resources that an earlier undo of this run has
    created again, by address. unsure: addresses of creations of such a run whose outcome is not known.
    """

    def __init__(
        self,
        recorded: RecordedRun,
        plan: Plan,
        before: Snapshot,
        *,
        recreated: Mapping[Address, RemoteId] | None = None,
        unsure: frozenset[Address] = frozenset(),
    ) -> None:
        self.name, self.plan, self.before = recorded.name, plan, before
        self.digest = recorded.opening.digest if recorded.opening is not None else ""
        self.recreated, self.unsure = recreated or {}, unsure
        self._ids = {call.call: RemoteId(call.id) for call in recorded.calls if call.id}
        self._done = {call.call for call in recorded.calls if call.effect is CallState.DONE}
        self._begun = self._done | {call.call for call in recorded.calls if call.effect is CallState.IN_FLIGHT}
        self._calls = calls_by_address(plan.calls)

    def calls(self, change: Change) -> list[Call]:
        """Return the calls of a change that were carried out, or may have been."""
        return [call for call in self._calls.get(change.address, ()) if call.id in self._begun]

    def is_done(self, change: Change) -> bool:
        """Whether the run has, or may have, carried out any of a change."""
        cause = change.goes_with if change.is_side_effect else None
        return any(call.id in self._begun for call in self._calls.get(cause or change.address, ()))

    def created_id(self, change: Change) -> RemoteId | None:
        """Return the id of a resource that the run created; None if its journal has none."""
        creations = (call for call in self.calls(change) if is_creation(call.operation))
        return next((self._ids[call.id] for call in creations if call.id in self._ids), None)

    def texts(self, change: Change, key: str = "", *, unsure: bool = False) -> frozenset[str]:
        """Return the people and the texts of the calls of a change, or of those about a list of people.

        Only of those that were, or may have been, carried out; if `unsure`, of those that may not have been.
        """
        word = key.removesuffix("s") if key in LISTS else ""
        chosen = [
            call
            for call in self._calls.get(change.address, ())
            if word in call.operation and (call.id not in self._done if unsure else call.id in self._begun)
        ]
        bodies = (call.body.values() for call in chosen if isinstance(call.body, dict))
        texts = chain(*(call.people for call in chosen), *bodies)
        return frozenset(text for text in texts if isinstance(text, str))

    def is_whole(self, change: Change) -> bool:
        """Whether every call of a change was carried out."""
        return all(call.id in self._done for call in self._calls.get(change.address, ()))

    def has_only_deleted(self, change: Change) -> bool:
        """Whether the run may have deleted a resource that it replaces, and did not certainly create it again."""
        calls = self.calls(change)
        return any(call.method == "DELETE" for call in calls) and not any(
            is_creation(call.operation) and call.id in self._done for call in calls
        )
