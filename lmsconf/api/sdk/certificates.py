"""The specification's group Certificate Management, one method an operation.

Written by tests/api/writer.py from schemas/openapi.json; edit that one.
"""

from __future__ import annotations

from typing import cast

from lmsconf.api.endpoint_group import EndpointGroup
from lmsconf.api.sdk.messages import CertificatesStartAnswer, CertificatesStatusAnswer


class Certificates(EndpointGroup):
    """Certificate Management."""

    def start(
        self,
        user_id: str,
        content_id: str,
        content_type: str,
        *,
        issued_at: int | None = None,
        expires_at: int | None = None,
    ) -> CertificatesStartAnswer:
        """Starts the generation of a participation and its certificate.

        The dates and the user's account are checked, a progress record is made, and the rest depends on the
        content's type.

        content_type  Example value COURSE; others are not shown
        issued_at     When the certificate was issued, epoch milliseconds
        expires_at    When the certificate expires, epoch milliseconds

        POST /manage-certificate/participation
        Assumed: certificates.start.issuedAt, certificates.start.expiresAt
        """
        return cast(
            "CertificatesStartAnswer",
            self._ask(
                "certificates.start",
                body={
                    "userId": user_id,
                    "contentId": content_id,
                    "contentType": content_type,
                    "issuedAt": issued_at,
                    "expiresAt": expires_at,
                },
            ),
        )

    def invite(self) -> None:
        """Does nothing yet.

        A placeholder, without body and without effect.

        POST /manage-certificate/invite
        """
        self._ask("certificates.invite")

    def delete(self, user_id: str, content_id: str) -> None:
        """Removes a user's certificate for a content item.

        The content's type is taken from the stored certificate.

        user_id     A user's id
        content_id  A content item's id

        DELETE /manage-certificate/participation/users/{userId}/contents/{contentId}
        """
        self._ask("certificates.delete", path={"userId": user_id, "contentId": content_id})

    def status(self, progress_id: str, *, service_calling_user_id: str | None = None) -> CertificatesStatusAnswer:
        """Reads how far a generation is.

        progress_id              A progress record's id
        service_calling_user_id  Id of the manager or admin who asks

        GET /manage-certificate/status/{progressId}
        Assumed: certificates.status.Service-Calling-User-Id, certificates.status.progressId,
        certificates.status.status
        """
        return cast(
            "CertificatesStatusAnswer",
            self._ask(
                "certificates.status",
                path={"progressId": progress_id},
                headers={"Service-Calling-User-Id": service_calling_user_id},
            ),
        )
