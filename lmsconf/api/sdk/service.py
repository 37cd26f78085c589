"""Service: the whole API for scripts, every operation a typed method of its endpoint group.

    with Service.at("https://lms.example/api", token) as service:
        for user in service.users.list_all(filter="@acme.example"):
            print(user["email"])

Arguments and responses use the specification's names, whatever their wire names in the dialect; an optional part of a
response may be missing. Requests are retried where that is safe.

Raises Rejected for a refused request, Unauthorized for a refused credential, Unreachable without a usable response,
WriteOutcomeUnknown for a write that may have been carried out nevertheless, InvalidResponse for a body unlike the
specification, and ValueError for wrong arguments, before anything is sent.

Written by tests/api/writer.py from schemas/openapi.json; edit that one.
"""

from __future__ import annotations

from collections.abc import Mapping

from lmsconf.api.client import Client
from lmsconf.api.sdk.analytics import Analytics
from lmsconf.api.sdk.auth import Auth
from lmsconf.api.sdk.certificates import Certificates
from lmsconf.api.sdk.content import Content
from lmsconf.api.sdk.content_targets import ContentTargets
from lmsconf.api.sdk.custom_fields import CustomFields
from lmsconf.api.sdk.groups import Groups
from lmsconf.api.sdk.smart_groups import SmartGroups
from lmsconf.api.sdk.user_access import UserAccess
from lmsconf.api.sdk.user_certificates import UserCertificates
from lmsconf.api.sdk.users import Users
from lmsconf.api.spec import ApiSpec


class Service:
    """One workspace's API over one client. Not thread-safe."""

    def __init__(self, client: Client) -> None:
        self.client = client
        self.auth = Auth(client)
        self.users = Users(client)
        self.user_access = UserAccess(client)
        self.user_certificates = UserCertificates(client)
        self.certificates = Certificates(client)
        self.groups = Groups(client)
        self.smart_groups = SmartGroups(client)
        self.custom_fields = CustomFields(client)
        self.content = Content(client)
        self.content_targets = ContentTargets(client)
        self.analytics = Analytics(client)

    @classmethod
    def at(cls, url: str, token: str, *, dialect: Mapping[str, str | int] | None = None) -> Service:
        """Return a service for a URL. Raises LmsconfError for an unsafe URL or token and for an invalid dialect.

        dialect: dialect key → name or behaviour of this service, where it differs from the default.
        """
        return cls(Client(url, token, spec=ApiSpec(dialect)))

    def __enter__(self) -> Service:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the connection."""
        self.client.close()
