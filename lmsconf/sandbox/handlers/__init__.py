"""The handlers of all operations: one module per endpoint group of the specification, imported when it is called."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from importlib import import_module
from typing import Final

from lmsconf.sandbox.request_context import Handler

_MODULES: Final[Mapping[str, tuple[str, ...]]] = {
    "analytics": ("analytics",),
    "auth": ("access",),
    "certificates": ("certificates",),
    "content": ("content",),
    "content-targets": ("content",),
    "custom-fields": ("custom_fields",),
    "manual-groups": ("groups",),
    "smart-groups": ("groups",),
    "user-access": ("access",),
    "user-certificates": ("certificates",),
    "users": ("users", "custom_fields"),
}
"""First part of an operation's id → the modules with its handlers."""


def find_handler(operation: str) -> Handler | None:
    """Return the handler of an operation id, or None."""
    return _handlers(operation.partition(".")[0]).get(operation)


def handled_operations() -> frozenset[str]:
    """Return the ids of all operations that have a handler."""
    return frozenset(operation for group in _MODULES for operation in _handlers(group))


@cache
def _handlers(group: str) -> Mapping[str, Handler]:
    modules = (import_module(f"{__name__}.{name}") for name in _MODULES.get(group, ()))
    return {operation: handler for module in modules for operation, handler in module.HANDLERS.items()}
