"""The specification's group Analytics, one method an operation.

Written by tests/api/writer.py from schemas/openapi.json; edit that one.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import cast

from lmsconf.api.endpoint_group import EndpointGroup, ListOf
from lmsconf.api.sdk.messages import AnalyticsResultsAnswer, AnalyticsStatisticsAnswer
from lmsconf.api.sdk.resources import (
    AttributeFilter,
    DateRange,
    Enrollment,
    EventLogEntry,
    ParticipationResult,
    Progress,
    ResultOptions,
)


class Analytics(EndpointGroup):
    """Analytics."""

    def results(
        self,
        *,
        content_name: str | None = None,
        content_ids: ListOf[str] | None = None,
        group_ids: ListOf[str] | None = None,
        user_ids: ListOf[str] | None = None,
        progress: ListOf[Progress] | None = None,
        enrollment: ListOf[Enrollment] | None = None,
        attributes: ListOf[AttributeFilter] | None = None,
        expiry_date_range: DateRange | None = None,
        updated_at_date_range: DateRange | None = None,
        options: ResultOptions | None = None,
    ) -> AnalyticsResultsAnswer:
        """Lists participations with their progress.

        All filters are optional.

        content_name  Part of a content's name
        attributes    Answers to custom fields

        POST /analyse/results
        Assumed: analytics.contentName, paging.limit, content-targets.everyone
        """
        return cast(
            "AnalyticsResultsAnswer",
            self._ask(
                "analytics.results",
                body={
                    "contentName": content_name,
                    "contentIds": content_ids,
                    "groupIds": group_ids,
                    "userIds": user_ids,
                    "progress": progress,
                    "enrollment": enrollment,
                    "attributes": attributes,
                    "expiryDateRange": expiry_date_range,
                    "updatedAtDateRange": updated_at_date_range,
                    "options": options,
                },
            ),
        )

    def results_all(
        self,
        *,
        content_name: str | None = None,
        content_ids: ListOf[str] | None = None,
        group_ids: ListOf[str] | None = None,
        user_ids: ListOf[str] | None = None,
        progress: ListOf[Progress] | None = None,
        enrollment: ListOf[Enrollment] | None = None,
        attributes: ListOf[AttributeFilter] | None = None,
        expiry_date_range: DateRange | None = None,
        updated_at_date_range: DateRange | None = None,
        options: ResultOptions | None = None,
    ) -> Iterator[ParticipationResult]:
        """Every row of `results`, page after page. Raises InvalidResponse where pages repeat."""
        return cast(
            "Iterator[ParticipationResult]",
            self._every(
                lambda skip, limit: self.results(
                    content_name=content_name,
                    content_ids=content_ids,
                    group_ids=group_ids,
                    user_ids=user_ids,
                    progress=progress,
                    enrollment=enrollment,
                    attributes=attributes,
                    expiry_date_range=expiry_date_range,
                    updated_at_date_range=updated_at_date_range,
                    options={**(options or {}), "skip": skip, "limit": limit},
                ),
                rows="list",
                id=None,
                total=None,
            ),
        )

    def statistics(
        self,
        *,
        content_name: str | None = None,
        content_ids: ListOf[str] | None = None,
        group_ids: ListOf[str] | None = None,
        user_ids: ListOf[str] | None = None,
        progress: ListOf[Progress] | None = None,
        enrollment: ListOf[Enrollment] | None = None,
        attributes: ListOf[AttributeFilter] | None = None,
        expiry_date_range: DateRange | None = None,
        updated_at_date_range: DateRange | None = None,
    ) -> AnalyticsStatisticsAnswer:
        """Counts participations by progress.

        All filters are optional.

        content_name  Part of a content's name
        attributes    Answers to custom fields

        POST /analyse/statistics
        Assumed: analytics.contentName, content-targets.everyone
        """
        return cast(
            "AnalyticsStatisticsAnswer",
            self._ask(
                "analytics.statistics",
                body={
                    "contentName": content_name,
                    "contentIds": content_ids,
                    "groupIds": group_ids,
                    "userIds": user_ids,
                    "progress": progress,
                    "enrollment": enrollment,
                    "attributes": attributes,
                    "expiryDateRange": expiry_date_range,
                    "updatedAtDateRange": updated_at_date_range,
                },
            ),
        )

    def event_logs(self, content_id: str, user_id: str) -> ListOf[EventLogEntry]:
        """Reads the history of a user's progress on a content item.

        The most recent first.

        content_id  A content item's id
        user_id     A user's id

        GET /analyse/event-logs/content/{contentId}/user/{userId}
        """
        return cast(
            "ListOf[EventLogEntry]",
            self._ask("analytics.event-logs", path={"contentId": content_id, "userId": user_id}),
        )
