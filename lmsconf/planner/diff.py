"""Two forms of one resource → field changes. The only module that imports deepdiff.

Unordered lists are sets or keyed names, and are compared by two set differences: as sequences, a group of ten thousand
would take seconds.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Final, cast

from msgspec import Struct

from lmsconf.model.canonical_json import Json
from lmsconf.model.forms import Form, form_to_json, sort_items
from lmsconf.model.plan import FieldChange

_REPORTS: Final = (
    "values_changed", "type_changes", "dictionary_item_added", "dictionary_item_removed", "iterable_item_added",
    "iterable_item_removed",
)  # fmt: skip
"""What deepdiff calls the differences between two values."""

if TYPE_CHECKING:
    from deepdiff.diff import DeepDiff
    from deepdiff.model import DiffLevel


class KeyedNames(Struct, frozen=True):
    """Names with an identity of their own: key → name, in display order."""

    names: Mapping[str, str]

    def to_json(self) -> Json:
        return list(self.names.values())

    def __hash__(self) -> int:
        return hash(frozenset(self.names.items()))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, KeyedNames) and dict(self.names) == dict(other.names)


class _Lists:
    """A deepdiff operator that compares unordered lists and collects the field changes."""

    def __init__(self) -> None:
        self.changes: list[FieldChange] = []

    def match(self, level: DiffLevel) -> bool:
        return _members(level.t1) is not None and _members(level.t2) is not None

    def give_up_diffing(self, level: DiffLevel, diff_instance: DeepDiff) -> bool:
        self.changes.extend(_list_changes(_path(level), level.t1, level.t2))
        return True


def diff_forms(before: Form, after: Form) -> tuple[FieldChange, ...]:
    """Return the field changes between two forms, in the order of their keys."""
    changes: list[FieldChange] = []
    for key in dict.fromkeys((*before, *after)):
        if key in before and key in after:
            changes.extend(_value_changes(key, before[key], after[key]))
        elif before.get(key) is not None or after.get(key) is not None:
            changes.append(_change(key, before.get(key), after.get(key)))
    order = {key: position for position, key in enumerate((*before, *after))}
    return tuple(sorted(changes, key=lambda change: (order[change.path.partition(".")[0]], change.path)))


def _value_changes(path: str, old: object, new: object) -> Iterator[FieldChange]:
    """Compare two values of one key."""
    if isinstance(old, Mapping) and isinstance(new, Mapping) and _are_alike(old, new):
        for key in dict.fromkeys((*old, *new)):
            if key in old and key in new:
                yield from _value_changes(f"{path}.{key}", old[key], new[key])
            else:
                yield _change(f"{path}.{key}", old.get(key), new.get(key))
    elif isinstance(old, list) and isinstance(new, list) and _are_pairs_of_mappings(old, new):
        for position, (left, right) in enumerate(zip(old, new, strict=True)):
            yield from _value_changes(f"{path}.{position}", left, right)
    elif isinstance(old, Mapping | list) or isinstance(new, Mapping | list):
        yield from _nested_changes(path, old, new)
    elif _members(old) is not None and _members(new) is not None:
        yield from _list_changes(path, old, new)
    elif type(old) is not type(new) or old != new:
        yield _change(path, old, new)


def _are_alike(old: Mapping[str, object], new: Mapping[str, object]) -> bool:
    """Whether two mappings share most of their keys. Of others, deepdiff may tell the whole as changed."""
    return 2 * len(old.keys() & new.keys()) >= len(old.keys() | new.keys())


def _are_pairs_of_mappings(old: list[object], new: list[object]) -> bool:
    return len(old) == len(new) and all(isinstance(item, Mapping) for item in (*old, *new))


def _change(path: str, old: object, new: object) -> FieldChange:
    return FieldChange(path=path, before=form_to_json(old), after=form_to_json(new))


def _nested_changes(path: str, old: object, new: object) -> Iterator[FieldChange]:
    """Compare two lists in which order matters, or values of different shapes."""
    # Imported for these only: importing deepdiff takes a third of a small plan's time.
    from deepdiff import DeepDiff

    before, after = {path: old}, {path: new}
    lists = _Lists()
    tree = DeepDiff(before, after, view="tree", custom_operators=[lists])
    yield from lists.changes
    for report in _REPORTS:
        yield from (_single(level) for level in cast("Iterable[DiffLevel]", tree.get(report, ())))


def _single(level: DiffLevel) -> FieldChange:
    return FieldChange(path=_path(level), before=_side(level.t1), after=_side(level.t2))


def _path(level: DiffLevel) -> str:
    """`description`, or `metadata.costCentre` for a key inside a key."""
    return ".".join(map(str, level.path(output_format="list")))


def _side(value: object) -> Json:
    return None if type(value).__name__ == "NotPresent" else form_to_json(value)


def _members(value: object) -> frozenset[object] | None:
    """Return the members of an unordered list; None for any other value."""
    if isinstance(value, frozenset):
        return value
    if isinstance(value, KeyedNames):
        return frozenset(value.names)
    include = getattr(value, "include", None)
    return include if isinstance(include, frozenset) else None


def _list_changes(path: str, before: object, after: object) -> Iterator[FieldChange]:
    if isinstance(before, KeyedNames) and isinstance(after, KeyedNames):
        yield from _keyed_changes(path, before.names, after.names)
        return
    old, new = _members(before), _members(after)
    if old is not None and new is not None and old != new:
        yield FieldChange(path=path, added=_plain_all(new - old), removed=_plain_all(old - new))


def _keyed_changes(path: str, old: Mapping[str, str], new: Mapping[str, str]) -> Iterator[FieldChange]:
    added = [name for key, name in new.items() if key not in old]
    removed = [name for key, name in old.items() if key not in new]
    if added or removed:
        yield FieldChange(path=path, added=tuple(sort_items(added)), removed=tuple(sort_items(removed)))
    for key, name in old.items():
        if new.get(key, name) != name:
            yield FieldChange(path=f"{path}.{name}", before=name, after=new[key])


def _plain_all(items: Iterable[object]) -> tuple[Json, ...]:
    return tuple(sort_items([form_to_json(item) for item in items]))
