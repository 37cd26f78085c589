"""Protocol of the reads that a plan needs, so that planner and kinds do not depend on HTTP; and how far a run is."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Protocol, TypeAlias

from msgspec import Struct

from lmsconf.model.canonical_json import Json


class RateLimit(Struct, frozen=True, kw_only=True):
    """The rate limit of a run, as far as it is known.

    at: now, in seconds on a monotonic clock; wall: the same since the epoch. rate: requests a second that were accepted
    since there is a limit; None before the first one. resumes_in: seconds in which nothing is sent, as the service
    asked with Retry-After; 0 without.
    """

    at: float
    wall: float
    rate: float | None
    resumes_in: float


class RunProgress(Struct, frozen=True, kw_only=True):
    """How far a phase of a run is, in requests; while a plan is applied, in calls.

    done: finished. total: known so far, finished ones included; it never falls. is_final: it does not grow
    either, as while a plan is applied; a reading may go on. limit: what limits the rate; None if nothing does.
    """

    done: int
    total: int
    is_final: bool
    limit: RateLimit | None = None


Report: TypeAlias = Callable[[RunProgress], None]
"""Report progress. Calls never overlap."""


class ListOperation(Struct, frozen=True):
    """A listing operation, with the JSON keys of its rows, of a row's id and, if it has one, of the total.

    reserved: the dialect key of an id that may be listed and is none of the rows.
    """

    name: str
    rows: str
    id: str
    total: str | None = None
    reserved: str | None = None


class ListedRows(Struct, frozen=True, kw_only=True):
    """A listing as read: distinct rows, and `incomplete`, the reason why rows may be missing, else None.

    total: the response's `matchCount` or `total`; None if the listing has neither.
    """

    rows: tuple[dict[str, Json], ...]
    total: int | None = None
    incomplete: str | None = None


ReadArguments = tuple[Mapping[str, str], Mapping[str, Json]]
"""The path parameters and the query of one read."""


class GetRequest(Protocol):
    """Sends one read request and returns its JSON value. May raise ApiError."""

    def __call__(
        self, operation: str, *, path: Mapping[str, str] | None = None, query: Mapping[str, Json] | None = None
    ) -> Json: ...


class Api(Protocol):
    """Read-only access to the workspace. Raises ValueError for an operation that writes, before anything is sent.

    Every method may raise ApiError. Thread-safe.
    """

    @property
    def requests(self) -> int:
        """How many requests were submitted so far."""
        ...

    def get(
        self, operation: str, *, path: Mapping[str, str] | None = None, query: Mapping[str, Json] | None = None
    ) -> Json:
        """Send one request and return its JSON value."""
        ...

    def search(self, operation: str, body: Mapping[str, Json]) -> Json:
        """Send one request that reads with a body, and return its JSON value."""
        ...

    def each(self, operation: str, requests: Iterable[ReadArguments]) -> list[Json]:
        """Send requests concurrently and return their JSON values in the order of the requests.

        Raises InvalidResponse for a response without its list, if the API description requires one.
        """
        ...

    def rows(
        self,
        operation: ListOperation,
        *,
        query: Mapping[str, Json] | None = None,
        on_first: Callable[[int | None, int], bool] | None = None,
        keep: Callable[[dict[str, Json]], dict[str, Json]] | None = None,
    ) -> ListedRows:
        """Return every row of a paged listing.

        on_first: called with the total and the number of rows of the first page, once it is read. If it returns False,
        no further page is read, and the listing is incomplete.
        keep: reduces each row, page by page, to what is needed; must keep the id.
        """
        ...

    def together(self, jobs: Mapping[str, Callable[[], object]]) -> dict[str, object]:
        """Run jobs concurrently and return their results by key; once all have ended, raise the first one's failure."""
        ...
