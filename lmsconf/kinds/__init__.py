"""The kinds of resources. Each is one module that exports KIND; this package finds them."""

from __future__ import annotations

import pkgutil
from functools import cache
from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

    from lmsconf.core.kind import Kind


@cache
def all_kinds() -> Mapping[str, Kind]:
    """Every kind by its name, in the order in which they lean on each other."""
    modules = (import_module(f"{__name__}.{found.name}") for found in pkgutil.iter_modules(__path__))
    kinds: list[Kind] = [module.KIND for module in modules if hasattr(module, "KIND")]
    return {kind.name: kind for kind in sorted(kinds, key=lambda kind: kind.rank)}
