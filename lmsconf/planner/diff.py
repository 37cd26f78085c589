"""Two forms of one resource → field changes. deepdiff finds the differences; no other module imports it.

Unordered lists are sets or keyed names, which an operator compares as wholes: item by item, a group of ten thousand
would take seconds.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping
from typing import TYPE_CHECKING, Any, Final, cast

from lmsconf.model.canonical_json import Json
from lmsconf.model.forms import Form, KeyedNames, form_to_json, sort_items
from lmsconf.model.plan import FieldChange

if TYPE_CHECKING:
    from deepdiff.diff import DeepDiff
    from deepdiff.model import DiffLevel

_UNORDERED: Final = "unordered_list_changed"
"""A report beside those of deepdiff."""


def diff_forms(before: Form, after: Form) -> tuple[FieldChange, ...]:
    """Return the field changes between two forms, in the order of their keys. A key that one lacks is None there."""
    from deepdiff import DeepDiff  # takes 75 ms to import, and a plan without changes has no use for it

    # deepdiff takes as long for equal values as for others. Compared as texts, since 1 == True.
    order = {
        key: position for position, key in enumerate((*before, *after)) if repr(before.get(key)) != repr(after.get(key))
    }
    old, new = ({key: form.get(key) for key in order} for form in (before, after))
    tree = DeepDiff(old, new, view="tree", custom_operators=[_UnorderedLists()])
    changes = (
        change
        for report, levels in tree.items()
        for level in cast("Iterable[DiffLevel]", levels)
        for change in _changes(report, level)
    )
    return tuple(sorted(changes, key=lambda change: (order[change.path.partition(".")[0]], change.path)))


class _UnorderedLists:
    """An operator of deepdiff, which reports unordered lists that differ."""

    def match(self, level: DiffLevel) -> bool:
        return _members(level.t1) is not None and _members(level.t2) is not None

    def give_up_diffing(self, level: DiffLevel, diff_instance: DeepDiff) -> bool:
        if level.t1 != level.t2:
            diff_instance.custom_report_result(_UNORDERED, level)  # type: ignore[no-untyped-call]  # deepdiff has no types there
        return True


def _members(value: object) -> Collection[object] | None:
    """Return the members of an unordered list; None for any other value."""
    if isinstance(value, KeyedNames):
        return value.names.keys()
    include = getattr(value, "include", value)
    return include if isinstance(include, frozenset | tuple) else None


def _side(value: object) -> Json:
    return None if type(value).__name__ == "NotPresent" else form_to_json(value)


def _changes(report: str, level: DiffLevel) -> list[FieldChange]:
    """Return the changes at a place: `description`, or `metadata.costCentre` for a key inside a key."""
    path = ".".join(map(str, level.path(output_format="list")))
    if report != _UNORDERED:
        return [FieldChange(path=path, before=_side(level.t1), after=_side(level.t2))]
    if isinstance(level.t1, KeyedNames) and isinstance(level.t2, KeyedNames):
        return _keyed_changes(path, level.t1.names, level.t2.names)
    old, new = Counter(_members(level.t1)), Counter(_members(level.t2))
    return _items_change(path, new - old, old - new)


def _keyed_changes(path: str, old: Mapping[str, str], new: Mapping[str, str]) -> list[FieldChange]:
    added = Counter(new[key] for key in new.keys() - old.keys())
    removed = Counter(old[key] for key in old.keys() - new.keys())
    return [
        *_items_change(path, added, removed),
        *(
            FieldChange(path=f"{path}.{name}", before=name, after=new[key])
            for key, name in old.items()
            if new.get(key, name) != name
        ),
    ]


def _items_change(path: str, added: Counter[Any], removed: Counter[Any]) -> list[FieldChange]:
    """Return the change of an unordered list; none if nothing is added or removed."""
    return [FieldChange(path=path, added=_json(added), removed=_json(removed))] if added or removed else []


def _json(items: Counter[Any]) -> tuple[Json, ...]:
    return tuple(sort_items([form_to_json(item) for item in items.elements()]))
