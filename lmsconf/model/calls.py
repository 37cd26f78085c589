"""API calls as data: Step, before its place in a plan is known, and Call; and the protocol of the reads that a plan
needs, so that planner and kinds do not depend on HTTP.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from enum import StrEnum
from typing import Protocol, TypeAlias, TypeVar

from msgspec import Struct, field

from lmsconf.model.address import Address, Ref
from lmsconf.model.canonical_json import Json
from lmsconf.model.names import grouped


class ApiCall(Struct, frozen=True, kw_only=True):
    """What is sent, as data. Leaves of `body` may be Refs, where the id is not known yet.

    may_be_refused: the service may refuse the call: it is ordered first if it needs no other call.
    people: the e-mails of the people that the call adds to or removes from a list.
    """

    operation: str
    query: Mapping[str, Json] = field(default_factory=dict)
    body: object = None
    may_be_refused: bool = False
    people: tuple[str, ...] = ()


class Step(ApiCall, frozen=True, kw_only=True):
    """A call before its place in a plan is known. Values of `path` may be Refs, too.

    makes     what exists, or which name is free, after this call  → ordered before all that uses it
    uses      what must exist, or which name must be free, before this call
    releases  what no longer is a dependency after this call       → ordered before all that ends, avoids or follows it
    ends      what no longer exists after this call
    avoids    what should be released before this call. If only that makes a dependency cycle, the call is sent anyway
              and may be refused
    follows   what should be released before this call, so that nobody loses access for a moment; ignored in a cycle
    revokes   the call takes access or rights away; such calls are ordered last where dependencies allow
    """

    path: Mapping[str, str | Ref] = field(default_factory=dict)
    makes: frozenset[Ref] = frozenset()
    uses: frozenset[Ref] = frozenset()
    releases: frozenset[Ref] = frozenset()
    ends: frozenset[Ref] = frozenset()
    avoids: frozenset[Ref] = frozenset()
    follows: frozenset[Ref] = frozenset()
    revokes: bool = False


class CallStatus(StrEnum):
    """The result of a call. `blocked`: a call that it needs failed. `not_attempted`: the run stopped before it."""

    DONE = "done"
    FAILED = "failed"
    BLOCKED = "blocked"
    NOT_ATTEMPTED = "not_attempted"


class CallResult(Struct, frozen=True, kw_only=True):
    """What became of one call. reason: why it was not done; hint: the fix."""

    call: str
    address: Address
    operation: str
    status: CallStatus
    reason: str | None = None
    hint: str | None = None


class Call(ApiCall, frozen=True, kw_only=True):
    """A Step with its position. `path` is filled in; `{group/New name}` in it, or a Ref in the body, is an unknown id.

    The calls of a plan are in an order in which they can be sent. needs: ids of the calls that must be done before.
    """

    id: str
    address: Address
    method: str
    path: str
    needs: tuple[str, ...] = ()


def calls_by_address(calls: Sequence[Call]) -> Mapping[Address, Sequence[Call]]:
    """Return the calls of a plan, in their order, by the address that each is for."""
    return grouped(calls, lambda call: call.address)


def is_creation(operation: str) -> bool:
    """Whether an operation such as `manual-groups.create` makes a resource: sent twice, it makes a duplicate."""
    return operation.endswith(".create")


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

    reserved: the dialect key of an id that may be listed and is none of the rows. counted: that of the total.
    """

    name: str
    rows: str
    id: str
    total: str | None = None
    reserved: str | None = None
    counted: str | None = None


class ListedRows(Struct, frozen=True, kw_only=True):
    """A listing as read: distinct rows, and `incomplete`, the reason why rows may be missing, else None.

    total: the response's `matchCount` or `total`; None if the listing has neither.
    """

    rows: tuple[dict[str, Json], ...]
    total: int | None = None
    incomplete: str | None = None


ReadArguments = tuple[Mapping[str, str], Mapping[str, Json]]
"""The path parameters and the query of one read."""


T = TypeVar("T")


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
        keep: Callable[[dict[str, Json]], dict[str, Json]] | None = None,
    ) -> ListedRows:
        """Return every row of a paged listing.

        keep: reduces each row, page by page, to what is needed; must keep the id.
        """
        ...

    def pages(
        self, operation: ListOperation, *, keep: Callable[[dict[str, Json]], dict[str, Json]]
    ) -> Iterator[ListedRows]:
        """Yield the first page of a listing, marked incomplete, then, when asked for more, what `rows` returns.

        If the first page fails, only that is yielded.
        """
        ...

    def together(self, jobs: Mapping[str, Callable[[], T]]) -> dict[str, T]:
        """Run jobs concurrently and return their results by key; once all have ended, raise the first one's failure."""
        ...
