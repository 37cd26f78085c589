"""What jobs of one reading share of people: their number, and GET /users/extended-info with rights and groups."""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import Future
from functools import cached_property
from operator import itemgetter
from typing import Final, cast

from lmsconf.api.spec.operations import EXTENDED_INFO
from lmsconf.kinds.shared.kind_names import GROUP, USER
from lmsconf.kinds.user.types import RIGHTS
from lmsconf.model.api import ListedRows
from lmsconf.model.canonical_json import Json
from lmsconf.planner.reading import ReadContext, ReadState

MEMBER_OF: Final = "memberOfGroups"
MANAGER_OF: Final = "managerOfGroups"
_GROUP_ID: Final = cast("Callable[[Json], object]", itemgetter("groupId"))


class PeopleCount(ReadState):
    """first_page: the number of people, None if not counted, and of rows on the first page, 0 if they are not listed.

    The job of this kind sets it once the first page has arrived.
    """

    def __init__(self, reading: ReadContext) -> None:
        super().__init__(reading)
        self.first_page: Future[tuple[int | None, int]] = Future()
        reading.fail_with_job(USER, self.first_page)

    def set(self, total: int | None, rows: int) -> None:
        """Set both numbers, unless they are set."""
        if not self.first_page.done():
            self.first_page.set_result((total, rows))


class ExtendedInfoListing(ReadState):
    """The extended listing, shared by the jobs of one reading (API specification, Users).

    Of the groups of a person, only manual ones are kept: most are smart groups, of which one person can be in hundreds.
    """

    def __init__(self, reading: ReadContext) -> None:
        super().__init__(reading)
        self._lock = threading.Lock()
        self._rows: ListedRows | None = None
        self._groups: dict[tuple[str, str], Json] = {}

    def rows(self) -> ListedRows:
        """Return the whole listing. Raises ApiError if the service refuses or cannot be reached."""
        with self._lock:
            if self._rows is None:
                self._rows = self.reading.api.rows(EXTENDED_INFO, keep=self._kept)
            return self._rows

    def _kept(self, person: dict[str, Json]) -> dict[str, Json]:
        lists = {key: person.get(key) for key in (MEMBER_OF, MANAGER_OF)}
        return {
            "userId": person["userId"],
            **{key: person.get(key) for key in RIGHTS},
            **{key: self._manual_only(groups) if isinstance(groups, list) else groups for key, groups in lists.items()},
        }

    @cached_property
    def _manual(self) -> frozenset[str]:
        """The ids of the manual groups, waiting for their listing; empty if it is not read."""
        rows = self.reading.wait_for_listing(GROUP).rows if self.reading.is_needed(GROUP) else ()
        return frozenset(row.id for row in rows)

    def _manual_only(self, groups: list[Json]) -> list[Json]:
        """Return the manual groups, one shared object each to save memory, and items without an id, unchanged."""
        manual = self._manual
        try:
            ids = [*map(_GROUP_ID, groups)]
        except (TypeError, KeyError):
            ids = []
        if len(ids) == len(groups) and {*map(type, ids)} <= {str}:  # so it is for all but odd services
            return [self._shared(group) for group, id in zip(groups, ids, strict=True) if id in manual]
        return [
            self._shared(group)
            for group in groups
            if not isinstance(group, dict) or (id := group.get("groupId")) is None or str(id) in manual
        ]

    def _shared(self, group: Json) -> Json:
        """Return one object for all equal groups, with id and name alone; what has no id as it is."""
        if not isinstance(group, dict) or group.get("groupId") is None:
            return group
        key = (str(group["groupId"]), str(group.get("name") or ""))
        return self._groups.get(key) or self._groups.setdefault(key, {"groupId": key[0], "name": key[1]})
