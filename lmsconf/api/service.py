"""Service: the whole API for a script, every operation a typed method of its group.

    with Service.at("https://lms.example/api", token) as service:
        for user in service.users.list_all(filter="@acme.example"):
            print(user["email"])

Arguments and answers have the specification's names, whatever the dialect calls them on the wire; an optional part of
an answer may be missing. A refusal is Rejected, or Unauthorized for the credential; Unreachable and AnswerLost say that
no answer came; misuse, as a value of the wrong type, is ValueError before anything is sent. Calls are tried again where
that is safe.
"""

from __future__ import annotations

from collections.abc import Mapping

from lmsconf.api import sdk
from lmsconf.api.client import Client
from lmsconf.api.spec import ApiSpec


class Service:
    """One workspace's API over one client. Not for several threads at once."""

    def __init__(self, client: Client) -> None:
        self.client = client
        self.auth = sdk.Auth(client)
        self.users = sdk.Users(client)
        self.user_access = sdk.UserAccess(client)
        self.user_certificates = sdk.UserCertificates(client)
        self.certificates = sdk.Certificates(client)
        self.groups = sdk.Groups(client)
        self.smart_groups = sdk.SmartGroups(client)
        self.custom_fields = sdk.CustomFields(client)
        self.content = sdk.Content(client)
        self.content_targets = sdk.ContentTargets(client)
        self.analytics = sdk.Analytics(client)

    @classmethod
    def at(cls, url: str, token: str, *, dialect: Mapping[str, str | int] | None = None) -> Service:
        """The API at a URL. Raises LmsconfError for a URL or a token that is not safe, and for a wrong dialect.

        dialect: names and behaviours of this service that differ from the assumed ones, by key.
        """
        return cls(Client(url, token, wire=ApiSpec(dialect)))

    def __enter__(self) -> Service:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Hangs up."""
        self.client.close()
