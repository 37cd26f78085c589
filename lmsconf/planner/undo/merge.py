"""Three values of one key, before a run, after it and now, → the value that undoes the run.

Values have ids in the place of names, so that a rename is no difference.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from enum import Enum
from typing import Final

from lmsconf.model.canonical_json import Json

INCLUDE: Final = "include"
EXCLUDE: Final = "exclude"


class NoValue(Enum):
    """Why nothing is declared: it is as before already, or neither as before nor as the run made it."""

    NOTHING = "nothing"
    CONFLICT = "conflict"


def alike(wanted: Json, live: Json) -> bool:
    """Whether a live value is what a plan wanted: lists have no order, and what an entry leaves out is not compared."""
    if isinstance(wanted, dict) and isinstance(live, list) and wanted.keys() == {INCLUDE, EXCLUDE}:
        return _has_all(wanted.get(INCLUDE), live) and not _has_any(wanted.get(EXCLUDE), live)
    if isinstance(wanted, dict) and isinstance(live, str):
        # Content, with its id beside its name.
        return wanted.get("name") == live
    if isinstance(wanted, str) and isinstance(live, dict):
        return live.get("name") == wanted
    if isinstance(wanted, dict) and isinstance(live, dict):
        return all(alike(value, live.get(key)) for key, value in wanted.items())
    if isinstance(wanted, list) and isinstance(live, list):
        return _same_items(wanted, live)
    return wanted == live or (not wanted and not live)


def restored(before: Json, after: Json, live: Json) -> Json | NoValue:
    """Return the value to declare for a key that is one value."""
    if alike(before, live) and alike(live, before):
        return NoValue.NOTHING
    return before if alike(after, live) else NoValue.CONFLICT


def restored_items(before: list[Json], after: list[Json], live: list[Json]) -> list[Json]:
    """Return a live list without what a run added and with what it removed; what others have added since stays."""
    added = [item for item in after if item not in before]
    removed = [item for item in before if item not in after]
    return [item for item in live if item not in added] + [item for item in removed if item not in live]


def is_text_list(value: Json) -> bool:
    return isinstance(value, list) and all(isinstance(item, str) for item in value)


def differing_keys(before: Mapping[str, Json], after: Mapping[str, Json]) -> list[str]:
    """Return the keys of two mappings that differ, in order."""
    both = ((key, before.get(key), after.get(key)) for key in dict.fromkeys((*before, *after)))
    return [key for key, one, other in both if not (alike(one, other) and alike(other, one))]


def _same_items(wanted: list[Json], live: list[Json]) -> bool:
    if is_text_list(wanted) and is_text_list(live):
        return Counter(map(str, wanted)) == Counter(map(str, live))
    left = list(live)
    for item in wanted:
        match = next((number for number, other in enumerate(left) if alike(item, other)), None)
        if match is None:
            return False
        left.pop(match)
    return not left


def _has_all(items: Json, live: list[Json]) -> bool:
    return all(item in live for item in items) if isinstance(items, list) else True


def _has_any(items: Json, live: list[Json]) -> bool:
    return any(item in live for item in items) if isinstance(items, list) else False
