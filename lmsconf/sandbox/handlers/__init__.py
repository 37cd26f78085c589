"""The handlers of all operations: one module per endpoint group of the specification."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from lmsconf.sandbox.handlers import (
    access,
    accounts,
    analytics,
    answers,
    authentication,
    certificates,
    certification,
    content,
    custom_fields,
    manual_groups,
    orders,
    smart_groups,
    targets,
    users,
)
from lmsconf.sandbox.request_context import Handler

_GROUPS: Final = (
    *(authentication, users, accounts, answers, orders, access, certificates, certification),
    *(manual_groups, smart_groups, custom_fields, content, targets, analytics),
)
HANDLERS: Final[Mapping[str, Handler]] = {
    operation: handler for group in _GROUPS for operation, handler in group.HANDLERS.items()
}
"""Operation id → handler."""
