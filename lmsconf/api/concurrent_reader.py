"""ConcurrentReader: concurrent, read-only access to a workspace on a worker pool."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, MutableMapping
from concurrent.futures import FIRST_COMPLETED, FIRST_EXCEPTION, Future, ThreadPoolExecutor, wait
from typing import TYPE_CHECKING, TypeAlias

from lmsconf.api.limits import MemoryQuota, fan_out_memory_limit
from lmsconf.api.pagination import (
    Keep,
    ListingSchema,
    OnFirstPage,
    PageRequests,
    read_listing,
    refuse_missing_list,
)
from lmsconf.api.spec import ApiSpec, Operation
from lmsconf.api.worker_pool import WorkerPool
from lmsconf.model.api import ListedRows, ListOperation, ReadArguments
from lmsconf.model.canonical_json import Json

if TYPE_CHECKING:
    from lmsconf.api.client import Client


AnsweredRequests: TypeAlias = "MutableMapping[tuple[str, str], Json]"
"""Operation and query, as `query_key` writes it → a response that has come already."""


def query_key(query: Mapping[str, Json]) -> str:
    """Return a query as text: equal for equal queries."""
    return json.dumps(query, sort_keys=True)


class ConcurrentReader:
    """Implements `lmsconf.model.api.Api`. Raises ValueError for an operation that writes.

    whole_rows: rows are kept whole, not only the fields that a plan compares, so memory limits are higher.
    answered: responses that have come already, each used once instead of its request.
    """

    def __init__(
        self,
        pool: WorkerPool,
        spec: ApiSpec | None = None,
        *,
        whole_rows: bool = False,
        answered: AnsweredRequests | None = None,
    ) -> None:
        self._everything = whole_rows
        self._answered = {} if answered is None else answered
        self._pool = pool
        self._most_queued = pool.parallelism
        self._spec = spec or ApiSpec.default()

    @property
    def requests(self) -> int:
        """How many requests were submitted so far."""
        return self._pool.submitted

    def get(
        self, operation: str, *, path: Mapping[str, str] | None = None, query: Mapping[str, Json] | None = None
    ) -> Json:
        """Return one response."""
        return self._ask(self._readable(operation), path or {}, query or {}).result()

    def search(self, operation: str, body: Mapping[str, Json]) -> Json:
        """Return one response to a request that reads with a body."""
        known = self._readable(operation)
        return self._pool.submit(lambda client: client.call(known.id, body=dict(body))).result()

    def each(
        self, operation: str, requests: Iterable[ReadArguments], *, on_queued: Callable[[], None] | None = None
    ) -> list[Json]:
        """Return one response per request, in order. After a failure, no further one is sent.

        on_queued: called once progress knows their number.
        """
        known = self._readable(operation)
        room = MemoryQuota(fan_out_memory_limit(whole_responses=self._everything), f"to {known.method} {known.path}")
        todo, futures, pending = list(requests), list[Future[Json]](), set[Future[Json]]()
        self._pool.expect(len(todo))
        if on_queued is not None:
            on_queued()
        try:
            for path, query in todo:
                if len(pending) >= self._most_queued:
                    # Few are queued, so that pages and single requests need not wait for all of them.
                    done, pending = wait(pending, return_when=FIRST_COMPLETED)
                    if _failures(done):
                        break
                future = self._ask(known, path, query, room, is_expected=True)
                futures.append(future)
                pending.add(future)
                if _failures([future]):
                    break
            self._pool.drop_expected(len(todo) - len(futures))
            wait(futures, return_when=FIRST_EXCEPTION)
            return [refuse_missing_list(known, future.result()) for future in _failures(futures) or futures]
        finally:
            for future in futures:
                future.cancel()

    def rows(
        self,
        operation: ListOperation,
        *,
        query: Mapping[str, Json] | None = None,
        on_first: OnFirstPage | None = None,
        keep: Keep | None = None,
    ) -> ListedRows:
        """Return the rows of a listing and whether they are provably complete; see `pagination.read_listing`."""
        known = self._readable(operation.name)
        schema = ListingSchema.for_operation(self._spec, operation, keep, whole_rows=self._everything)

        def ask(page: Mapping[str, Json], is_expected: bool) -> Future[Json]:
            return self._ask(known, {}, page, is_expected=is_expected)

        pages = PageRequests(ask=ask, expect=self._pool.expect, drop=self._pool.drop_expected)
        return read_listing(pages, schema, query or {}, on_first)

    def end_total(self) -> None:
        """Report from now on that no further request is queued."""
        self._pool.end_total()

    def together(self, jobs: Mapping[str, Callable[[], object]]) -> dict[str, object]:
        """Run jobs concurrently, a thread each, and return their results. Their requests go to the worker pool."""
        threads = ThreadPoolExecutor(max(len(jobs), 1), thread_name_prefix="lmsconf-job")
        try:
            futures = {name: threads.submit(job) for name, job in jobs.items()}
            wait(futures.values())
        finally:
            threads.shutdown(wait=False)
        return {name: future.result() for name, future in futures.items()}

    def _readable(self, operation: str) -> Operation:
        """Return the operation. Raises ValueError if it writes."""
        known = self._spec[operation]
        if known.writes:
            raise ValueError(f"{operation} is a write, and this client is read-only")
        return known

    def _ask(
        self,
        operation: Operation,
        path: Mapping[str, str],
        query: Mapping[str, Json],
        room: MemoryQuota | None = None,
        *,
        is_expected: bool = False,
    ) -> Future[Json]:
        """Submit one request; return the future of its response. room: the memory quota it counts towards."""
        if self._answered and not path and (key := (operation.id, query_key(query))) in self._answered:
            ready: Future[Json] = Future()
            ready.set_result(self._answered.pop(key))
            self._pool.drop_expected(is_expected)
            return ready

        def ask(client: Client) -> Json:
            answer = client.call(operation.id, path=path, query=query)
            if room is not None:
                room.charge(answer)
            return answer

        return self._pool.submit(ask, is_expected=is_expected)


def _failures(futures: Iterable[Future[Json]]) -> list[Future[Json]]:
    """Return the futures that ended with an exception, in order."""
    return [future for future in futures if future.done() and not future.cancelled() and future.exception()]
