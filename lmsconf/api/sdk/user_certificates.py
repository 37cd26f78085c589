"""The specification's group User Certificates, one method an operation.

Written by tests/api/writer.py from schemas/openapi.json; edit that one.
"""

from __future__ import annotations

from typing import cast

from lmsconf.api.endpoint_group import EndpointGroup, ListOf
from lmsconf.api.sdk.messages import UserCertificatesListAnswer, UserCertificatesOfUserAnswer


class UserCertificates(EndpointGroup):
    """User Certificates."""

    def list(self, *, user_ids: ListOf[str] | None = None, flat_view: bool | None = None) -> UserCertificatesListAnswer:
        """Lists certificates of several users.

        user_ids   Whose certificates
        flat_view  true: a flat list; left out: grouped by user

        GET /users/certificates
        Assumed: user-certificates.list.certificates, user-certificates.list.userId
        """
        return cast(
            "UserCertificatesListAnswer",
            self._ask("user-certificates.list", query={"userIds[]": user_ids, "flatView": flat_view}),
        )

    def of_user(self, user_id: str) -> UserCertificatesOfUserAnswer:
        """Lists a user's certificates.

        user_id  A user's id

        GET /users/{userId}/certificates
        """
        return cast("UserCertificatesOfUserAnswer", self._ask("user-certificates.of-user", path={"userId": user_id}))
