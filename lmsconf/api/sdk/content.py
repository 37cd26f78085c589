"""The specification's group Content Catalog, one method an operation.

Written by tests/api/writer.py from schemas/openapi.json; edit that one.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import cast

from lmsconf.api.endpoint_group import EndpointGroup, ListOf
from lmsconf.api.sdk.messages import ContentListAnswer, ContentMeetupsAnswer
from lmsconf.api.sdk.resources import ContentItem


class Content(EndpointGroup):
    """Content Catalog."""

    def list(
        self,
        *,
        group_ids: ListOf[str] | None = None,
        skip: int | None = None,
        limit: int | None = None,
        only_sellable: bool | None = None,
    ) -> ContentListAnswer:
        """Lists the content catalog.

        group_ids      Only what these groups see; left out: everything
        skip           left out: 0
        limit          Values above 100 are capped to 100; left out: 100
        only_sellable  Only sellable academy products, with the academy's total; left out: false

        GET /content/all
        Assumed: paging.limit, content-targets.everyone
        """
        return cast(
            "ContentListAnswer",
            self._ask(
                "content.list",
                query={"groupIds[]": group_ids, "skip": skip, "limit": limit, "onlySellable": only_sellable},
            ),
        )

    def list_all(
        self, *, group_ids: ListOf[str] | None = None, only_sellable: bool | None = None
    ) -> Iterator[ContentItem]:
        """Every row of `list`, page after page. Raises InvalidResponse where not all came."""
        return cast(
            "Iterator[ContentItem]",
            self._every(
                lambda skip, limit: self.list(group_ids=group_ids, only_sellable=only_sellable, skip=skip, limit=limit),
                rows="courses",
                id="courseId",
                total="total",
            ),
        )

    def get(self, content_id: str) -> ContentItem:
        """Reads one content item.

        content_id  A content item's id

        GET /content/{contentId}
        """
        return cast("ContentItem", self._ask("content.get", path={"contentId": content_id}))

    def meetups(self, *, group_ids: ListOf[str] | None = None) -> ContentMeetupsAnswer:
        """Lists meetups, the latest updated first.

        Limited to the first 100 content ids that the catalog gives.

        group_ids  Only what these groups see; left out: what everyone sees; left out: ["EVERYONE"]

        GET /content/meetups
        Assumed: content.meetups.contentId, content.meetups.name, content.meetups.lastUpdatedAt,
        content.meetups.partOfPrograms, content.meetups.categories, content.meetups.link, content.meetups.occasions,
        content.meetups.occasions.occasionId, content.meetups.occasions.startTime,
        content.meetups.occasions.attendanceCount, content-targets.everyone
        """
        return cast("ContentMeetupsAnswer", self._ask("content.meetups", query={"groupIds[]": group_ids}))
