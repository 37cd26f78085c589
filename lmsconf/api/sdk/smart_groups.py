"""The specification's group Smart Groups, one method an operation.

Written by tests/api/writer.py from schemas/openapi.json; edit that one.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import cast

from lmsconf.api.endpoint_group import EndpointGroup, ListOf
from lmsconf.api.sdk.messages import SmartGroupsCreateAnswer, SmartGroupsListAnswer, SmartGroupsListAnswerSmartGroup
from lmsconf.api.sdk.resources import Conditions, SmartGroup, UserIds


class SmartGroups(EndpointGroup):
    """Smart Groups."""

    def list(
        self, *, skip: int | None = None, limit: int | None = None, filter: str | None = None
    ) -> SmartGroupsListAnswer:
        """Lists smart groups.

        skip    left out: 0
        limit   The largest value is not shown; left out: 100
        filter  Case-insensitive part of the name

        GET /smart-groups
        Assumed: paging.limit
        """
        return cast(
            "SmartGroupsListAnswer",
            self._ask("smart-groups.list", query={"skip": skip, "limit": limit, "filter": filter}),
        )

    def list_all(self, *, filter: str | None = None) -> Iterator[SmartGroupsListAnswerSmartGroup]:
        """Every row of `list`, page after page. Raises InvalidResponse where not all came."""
        return cast(
            "Iterator[SmartGroupsListAnswerSmartGroup]",
            self._every(
                lambda skip, limit: self.list(filter=filter, skip=skip, limit=limit),
                rows="smartGroups",
                id="smartGroupId",
                total=None,
            ),
        )

    def create(
        self, name: str, conditions: Conditions, *, managers: ListOf[str] | None = None
    ) -> SmartGroupsCreateAnswer:
        """Creates a smart group.

        managers  User ids

        POST /smart-groups
        Assumed: manual-groups.who-can-manage
        """
        return cast(
            "SmartGroupsCreateAnswer",
            self._ask("smart-groups.create", body={"name": name, "conditions": conditions, "managers": managers}),
        )

    def get(self, smart_group_id: str, *, include_members: bool | None = None) -> SmartGroup:
        """Reads one smart group.

        smart_group_id   A smart group's id
        include_members  left out: false

        GET /smart-groups/{smartGroupId}
        Assumed: smart-groups.system-condition.alone, smart-groups.system-condition.with-choices
        """
        return cast(
            "SmartGroup",
            self._ask(
                "smart-groups.get", path={"smartGroupId": smart_group_id}, query={"includeMembers": include_members}
            ),
        )

    def delete(self, smart_group_id: str) -> None:
        """Deletes a smart group.

        Idempotent: a group that does not exist is no error.

        smart_group_id  A smart group's id

        DELETE /smart-groups/{smartGroupId}
        """
        self._ask("smart-groups.delete", path={"smartGroupId": smart_group_id})

    def rename(self, smart_group_id: str, name: str) -> None:
        """Renames a smart group.

        smart_group_id  A smart group's id

        POST /smart-groups/{smartGroupId}/rename
        """
        self._ask("smart-groups.rename", path={"smartGroupId": smart_group_id}, body={"name": name})

    def replace_conditions(self, smart_group_id: str, conditions: Conditions) -> None:
        """Replaces all conditions of a smart group.

        The old conditions are discarded and the members computed again.

        smart_group_id  A smart group's id

        POST /smart-groups/{smartGroupId}/replace-conditions
        """
        self._ask(
            "smart-groups.replace-conditions", path={"smartGroupId": smart_group_id}, body={"conditions": conditions}
        )

    def managers(self, smart_group_id: str) -> UserIds:
        """Lists a smart group's managers.

        smart_group_id  A smart group's id

        GET /smart-groups/{smartGroupId}/managers
        """
        return cast("UserIds", self._ask("smart-groups.managers", path={"smartGroupId": smart_group_id}))

    def add_managers(self, smart_group_id: str, user_ids: ListOf[str]) -> None:
        """Adds managers to a smart group.

        smart_group_id  A smart group's id

        POST /smart-groups/{smartGroupId}/managers
        Assumed: manual-groups.add.batch, manual-groups.add.mode, manual-groups.who-can-manage
        """
        self._in_batches("smart-groups.add-managers", path={"smartGroupId": smart_group_id}, body={"userIds": user_ids})

    def remove_manager(self, smart_group_id: str, user_id: str) -> None:
        """Removes a manager from a smart group.

        smart_group_id  A smart group's id
        user_id         A user's id

        DELETE /smart-groups/{smartGroupId}/managers/{userId}
        """
        self._ask("smart-groups.remove-manager", path={"smartGroupId": smart_group_id, "userId": user_id})
