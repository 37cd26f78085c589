"""The specification's group Manual Groups, one method an operation.

Written by tests/api/writer.py from schemas/openapi.json; edit that one.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import cast

from lmsconf.api.endpoint_group import EndpointGroup, ListOf
from lmsconf.api.sdk.messages import ManualGroupsCreateAnswer, ManualGroupsListAnswer
from lmsconf.api.sdk.resources import ManualGroup, UserIds


class Groups(EndpointGroup):
    """Manual Groups."""

    def list(self, *, skip: int | None = None, limit: int | None = None) -> ManualGroupsListAnswer:
        """Lists manual groups.

        skip   left out: 0
        limit  The largest value is not shown; left out: 100

        GET /groups
        Assumed: paging.limit
        """
        return cast("ManualGroupsListAnswer", self._ask("manual-groups.list", query={"skip": skip, "limit": limit}))

    def list_all(self) -> Iterator[ManualGroup]:
        """Every row of `list`, page after page. Raises InvalidResponse where not all came."""
        return cast(
            "Iterator[ManualGroup]",
            self._every(lambda skip, limit: self.list(skip=skip, limit=limit), rows="groups", id="groupId", total=None),
        )

    def create(
        self, name: str, *, member_ids: ListOf[str] | None = None, manager_ids: ListOf[str] | None = None
    ) -> ManualGroupsCreateAnswer:
        """Creates a manual group.

        member_ids   Initial members, user ids
        manager_ids  Initial managers, user ids

        POST /groups
        Assumed: manual-groups.create.memberIds, manual-groups.create.managerIds, manual-groups.who-can-manage
        """
        return cast(
            "ManualGroupsCreateAnswer",
            self._ask("manual-groups.create", body={"name": name, "memberIds": member_ids, "managerIds": manager_ids}),
        )

    def delete(self, group_id: str) -> None:
        """Deletes a manual group.

        group_id  A manual group's id

        DELETE /groups/{groupId}
        """
        self._ask("manual-groups.delete", path={"groupId": group_id})

    def rename(self, group_id: str, name: str) -> None:
        """Renames a manual group.

        group_id  A manual group's id
        name      The new name

        POST /groups/{groupId}/rename
        Assumed: manual-groups.rename.name
        """
        self._ask("manual-groups.rename", path={"groupId": group_id}, body={"name": name})

    def managers(self, group_id: str) -> UserIds:
        """Lists a manual group's managers.

        group_id  A manual group's id

        GET /groups/{groupId}/managers
        """
        return cast("UserIds", self._ask("manual-groups.managers", path={"groupId": group_id}))

    def add_managers(self, group_id: str, user_ids: ListOf[str]) -> None:
        """Adds managers to a manual group.

        group_id  A manual group's id

        POST /groups/{groupId}/managers
        Assumed: manual-groups.add-managers.userIds, manual-groups.add.batch, manual-groups.add.mode, manual-
        groups.who-can-manage
        """
        self._in_batches("manual-groups.add-managers", path={"groupId": group_id}, body={"userIds": user_ids})

    def remove_manager(self, group_id: str, user_id: str) -> None:
        """Removes a manager from a manual group.

        group_id  A manual group's id
        user_id   A user's id

        DELETE /groups/{groupId}/managers/{userId}
        """
        self._ask("manual-groups.remove-manager", path={"groupId": group_id, "userId": user_id})

    def members(self, group_id: str) -> UserIds:
        """Lists a manual group's members.

        group_id  A manual group's id

        GET /groups/{groupId}/members
        """
        return cast("UserIds", self._ask("manual-groups.members", path={"groupId": group_id}))

    def add_members(self, group_id: str, user_ids: ListOf[str]) -> None:
        """Adds members to a manual group.

        group_id  A manual group's id

        POST /groups/{groupId}/members
        Assumed: manual-groups.add-members.userIds, manual-groups.add.batch, manual-groups.add.mode
        """
        self._in_batches("manual-groups.add-members", path={"groupId": group_id}, body={"userIds": user_ids})

    def remove_member(self, group_id: str, user_id: str) -> None:
        """Removes a member from a manual group.

        group_id  A manual group's id
        user_id   A user's id

        DELETE /groups/{groupId}/members/{userId}
        """
        self._ask("manual-groups.remove-member", path={"groupId": group_id, "userId": user_id})
