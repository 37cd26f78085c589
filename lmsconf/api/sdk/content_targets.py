"""The specification's group Content Targeting, one method an operation.

Written by tests/api/writer.py from schemas/openapi.json; edit that one.
"""

from __future__ import annotations

from typing import cast

from lmsconf.api.endpoint_group import LEFT_OUT, EndpointGroup, LeftOut
from lmsconf.api.sdk.messages import ContentTargetsListAnswer


class ContentTargets(EndpointGroup):
    """Content Targeting."""

    def list(self, content_id: str) -> ContentTargetsListAnswer:
        """Lists the targets of a content item.

        GET /content/targets
        Assumed: content-targets.everyone, content-targets.time-format, content-targets.time-zone
        """
        return cast("ContentTargetsListAnswer", self._ask("content-targets.list", query={"contentId": content_id}))

    def create(
        self,
        content_id: str,
        *,
        user_id: str | None = None,
        target_id: str | None = None,
        mandatory: bool | None = None,
        start_time: str | int | LeftOut | None = LEFT_OUT,
        finish_time: str | int | LeftOut | None = LEFT_OUT,
        purchase_metadata: dict[str, object] | None = None,
    ) -> None:
        """Assigns content to a user or a group.

        One of user_id and target_id is given.

        target_id          Id of a group
        start_time         When visibility starts
        finish_time        When visibility ends
        purchase_metadata  Metadata of a purchase; its shape is not shown

        POST /content/targets
        Assumed: content-targets.create.mandatory, content-targets.create.startTime, content-
        targets.create.finishTime, content-targets.create.purchaseMetadata, content-targets.everyone, content-
        targets.on-existing, content-targets.time-format, content-targets.time-zone, content-targets.time-precision,
        content-targets.default-start, content-targets.clear-time
        """
        self._ask(
            "content-targets.create",
            body={
                "contentId": content_id,
                "userId": user_id,
                "targetId": target_id,
                "mandatory": mandatory,
                "purchaseMetadata": purchase_metadata,
            },
            nullable={"startTime": start_time, "finishTime": finish_time},
        )

    def delete(self, target_id: str, target_type: str, content_id: str) -> None:
        """Removes an assignment, with visibility and mandatory access.

        DELETE /content/targets
        Assumed: content-targets.everyone
        """
        self._ask(
            "content-targets.delete", body={"targetId": target_id, "targetType": target_type, "contentId": content_id}
        )
