"""The kinds of resources, one folder each: every folder but `shared` is a kind, and its module `kind` exports KIND."""

from __future__ import annotations

import pkgutil
from functools import cache
from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

    from lmsconf.planner.kind import AnyKind


@cache
def all_kinds() -> Mapping[str, AnyKind]:
    """Return every kind by name, ordered by `rank`: a kind depends only on kinds before it."""
    folders = (module.name for module in pkgutil.iter_modules(__path__) if module.ispkg and module.name != "shared")
    kinds: list[AnyKind] = [import_module(f"{__name__}.{name}.kind").KIND for name in folders]
    return {kind.name: kind for kind in sorted(kinds, key=lambda kind: kind.rank)}
