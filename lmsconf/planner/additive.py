"""`--additive`: reduce a change to its additions."""

from __future__ import annotations

from dataclasses import replace

from lmsconf.planner.context import BeforeAfter
from lmsconf.planner.diff import Keyed


def additions_only(sides: BeforeAfter) -> BeforeAfter:
    """Return the same state with an `after` that only adds to lists of people and choices."""
    before, after = sides.before or {}, sides.after or {}
    return replace(sides, after={key: _added(before[key], value) for key, value in after.items()})


def _added(before: object, after: object) -> object:
    if isinstance(before, Keyed) and isinstance(after, Keyed):
        new = {key: name for key, name in after.names.items() if key not in before.names}
        return Keyed({**before.names, **new})
    joined = getattr(before, "joined", None)
    return joined(after) if callable(joined) else before
