"""The list operations of the API, with the JSON keys of their rows (API specification, the listings)."""

from __future__ import annotations

from typing import Final

from lmsconf.model.api import ListOperation

USERS: Final = ListOperation("users.list", "users", "userId", "matchCount")
EXTENDED_INFO: Final = ListOperation("users.extended-info", "users", "userId", "matchCount")
"""GET /users/extended-info: users with their groups and rights."""
CUSTOM_FIELDS: Final = ListOperation("custom-fields.list", "customFields", "customFieldId")
MANUAL_GROUPS: Final = ListOperation("manual-groups.list", "groups", "groupId", reserved="content-targets.everyone")
SMART_GROUPS: Final = ListOperation("smart-groups.list", "smartGroups", "smartGroupId")
CATALOG: Final = ListOperation("content.list", "courses", "courseId", "total")
