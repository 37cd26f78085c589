"""The reads that a plan needs, as a protocol: it keeps the planner and the kinds free of HTTP."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import NamedTuple, Protocol

from lmsconf.model.values import Json


class ListOperation(NamedTuple):
    """An operation that lists something: the keys of its rows, of their id and, where it counts them, of the total."""

    name: str
    rows: str
    id: str
    total: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Rows:
    """A listing as read: its rows without repeats, and `incomplete` saying why it may not be all of them.

    total: what `matchCount` or `total` said, None where the listing has neither.
    """

    rows: tuple[dict[str, Json], ...]
    total: int | None = None
    incomplete: str | None = None


Request = tuple[Mapping[str, str], Mapping[str, Json]]
"""The path parameters and the query of one read."""


class Api(Protocol):
    """Reads from the workspace. It cannot write: an operation that would raises ValueError before anything is sent.

    Every method may raise ApiError. All of them may be called from several threads at once.
    """

    def get(
        self, operation: str, *, path: Mapping[str, str] | None = None, query: Mapping[str, Json] | None = None
    ) -> Json:
        """One answer."""
        ...

    def each(self, operation: str, requests: Iterable[Request]) -> list[Json]:
        """One answer a request, in their order; requests run side by side."""
        ...

    def rows(
        self,
        operation: ListOperation,
        *,
        query: Mapping[str, Json] | None = None,
        on_first: Callable[[int | None, int], None] | None = None,
        keep: Callable[[dict[str, Json]], dict[str, Json]] | None = None,
    ) -> Rows:
        """Every row of a paged listing; `on_first` hears the total and the rows of the first page as it arrives.

        keep: what of a row to hold on to, its id among it; the rest is forgotten page by page.
        """
        ...

    def together(self, jobs: Mapping[str, Callable[[], object]]) -> dict[str, object]:
        """Runs jobs that wait for answers side by side; the first failure is raised when all have ended."""
        ...
