"""GET /users/extended-info: people with rights and groups, read at most once per reading of a workspace."""

from __future__ import annotations

import threading
from collections.abc import Callable, Collection, Iterator
from typing import Final

from lmsconf.api.spec.listings import EXTENDED_INFO
from lmsconf.kinds.user.values import RIGHTS
from lmsconf.model.api import Api, Rows
from lmsconf.model.values import Json

MEMBER_OF: Final = "memberOfGroups"
MANAGER_OF: Final = "managerOfGroups"


class ExtendedInfo:
    """The extended listing, shared by the jobs of one reading (API specification, Users).

    manual: returns the ids of the manual groups, waiting for their listing. Only these groups are kept: most are smart
    groups, of which one person can be in hundreds.
    """

    def __init__(self, api: Api, manual: Callable[[], Collection[str]]) -> None:
        self._api, self._manual = api, manual
        self._lock = threading.Lock()
        self._rows: Rows | None = None
        self._groups: dict[tuple[str, str], Json] = {}

    def rows(self) -> Rows:
        """Return the whole listing. Raises ApiError if the service refuses or cannot be reached."""
        with self._lock:
            if self._rows is None:
                self._rows = self._api.rows(EXTENDED_INFO, keep=self._kept)
            return self._rows

    def _kept(self, person: dict[str, Json]) -> dict[str, Json]:
        manual = self._manual()
        lists = {key: person.get(key) for key in (MEMBER_OF, MANAGER_OF)}
        return {
            "userId": person["userId"],
            **{key: person.get(key) for key in RIGHTS},
            **{
                key: [*self._of_these(groups, manual)] if isinstance(groups, list) else groups
                for key, groups in lists.items()
            },
        }

    def _of_these(self, groups: list[Json], manual: Collection[str]) -> Iterator[Json]:
        """Yield the manual groups, one shared object each to save memory, and items without an id, unchanged."""
        for group in groups:
            if not isinstance(group, dict) or group.get("groupId") is None:
                yield group
            elif (id := str(group["groupId"])) in manual:
                name = str(group.get("name") or "")
                yield self._groups.setdefault((id, name), {"groupId": id, "name": name})
