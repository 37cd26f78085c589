"""The specification's group Authentication, one method an operation.

Written by tests/api/writer.py from schemas/openapi.json; edit that one.
"""

from __future__ import annotations

from typing import cast

from lmsconf.api.endpoint_group import EndpointGroup
from lmsconf.api.sdk.messages import AuthCreateAnswer


class Auth(EndpointGroup):
    """Authentication."""

    def create(
        self, *, redirect_uri: str | None = None, user_id: str | None = None, email: str | None = None
    ) -> AuthCreateAnswer:
        """Creates a pre-signed sign-in link for a user.

        The user has to exist. With both identifiers, userId takes precedence.

        redirect_uri  Where to go on after the sign-in is verified
        user_id       The user's id
        email         The user's e-mail

        POST /auth
        """
        return cast(
            "AuthCreateAnswer",
            self._ask("auth.create", query={"redirectUri": redirect_uri}, body={"userId": user_id, "email": email}),
        )
