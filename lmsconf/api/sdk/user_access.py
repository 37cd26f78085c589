"""The specification's group User Access, one method an operation.

Written by tests/api/writer.py from schemas/openapi.json; edit that one.
"""

from __future__ import annotations

from typing import Literal

from lmsconf.api.endpoint_group import EndpointGroup
from lmsconf.api.sdk.resources import ApplicationId


class UserAccess(EndpointGroup):
    """User Access."""

    def set(self, user_id: str, action: Literal["ADD", "REMOVE"], application_id: ApplicationId) -> None:
        """Gives or takes access to an application.

        user_id  A user's id
        action   ADD gives, REMOVE takes

        POST /users/{userId}/access/{action}
        """
        self._ask("user-access.set", path={"userId": user_id, "action": action}, body={"applicationId": application_id})

    def make_admin(self, user_id: str, endow: bool) -> None:
        """Grants or revokes administrator rights.

        user_id  A user's id
        endow    true grants, false revokes administrator rights

        POST /users/{userId}/make-admin/{endow}
        """
        self._ask("user-access.make-admin", path={"userId": user_id, "endow": endow})

    def make_manager(self, user_id: str, endow: bool) -> None:
        """Grants or revokes manager rights.

        user_id  A user's id
        endow    true grants, false revokes manager rights

        POST /users/{userId}/make-manager/{endow}
        Assumed: user-access.make-manager.managed-groups
        """
        self._ask("user-access.make-manager", path={"userId": user_id, "endow": endow})
