"""The handlers of all operations: one module per endpoint group of the specification."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from lmsconf.sandbox.handlers import (
    accounts,
    analytics,
    authentication,
    certificate_management,
    content_catalog,
    content_targets,
    custom_field_answers,
    custom_fields,
    manual_groups,
    order_details,
    smart_groups,
    user_access,
    user_certificates,
    users,
)
from lmsconf.sandbox.request_context import Handler

_GROUPS: Final = (
    *(
        authentication,
        users,
        accounts,
        custom_field_answers,
        order_details,
        user_access,
        user_certificates,
        certificate_management,
    ),
    *(manual_groups, smart_groups, custom_fields, content_catalog, content_targets, analytics),
)
HANDLERS: Final[Mapping[str, Handler]] = {
    operation: handler for group in _GROUPS for operation, handler in group.HANDLERS.items()
}
"""Operation id → handler."""
