"""Worker pool and concurrent reader: requests sent at the same time over the connections of one client.

Only requests are run in the pool, which wait for nothing but the service: a job that waits for others has a thread of
its own (`ConcurrentReader.together`), so that no job waits for a thread. The pool counts requests for progress.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import (
    FIRST_COMPLETED,
    FIRST_EXCEPTION,
    CancelledError,
    Executor,
    Future,
    ThreadPoolExecutor,
    wait,
)
from contextlib import AbstractContextManager
from copy import copy
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar

from lmsconf.api.pagination import (
    Keep,
    ListingSchema,
    read_listing,
    refuse_missing_list,
    required_list,
)
from lmsconf.api.response_limits import MemoryQuota, fan_out_memory_limit, listing_limit
from lmsconf.api.spec import ApiSpec, Operation
from lmsconf.api.spec.dialect_candidates import PAGE_SIZE
from lmsconf.model.calls import ListedRows, ListOperation, RateLimit, ReadArguments, Report, RunProgress
from lmsconf.model.canonical_json import Json

if TYPE_CHECKING:
    from lmsconf.api.client import Client

T = TypeVar("T")


class InlineExecutor(Executor):
    """Runs each job at once, in the thread that submits it: for a service in this process, where threads only wait for
    each other.
    """

    def submit(self, fn: Callable[..., T], /, *args: Any, **kwargs: Any) -> Future[T]:
        future: Future[T] = Future()
        try:
            future.set_result(fn(*args, **kwargs))
        except BaseException as error:
            future.set_exception(error)
        return future


class WorkerPool(AbstractContextManager["WorkerPool"]):
    """Runs at most `parallelism` requests at once, in the order in which they are submitted.

    open_client: called before the first of them; each job gets a copy of the client.
    executor: where they run; default: a thread pool. limit: what limits the rate of requests now, for `progress`.
    submitted: how many jobs were submitted so far.
    """

    def __init__(
        self,
        open_client: Callable[[], Client],
        *,
        parallelism: int,
        executor: Executor | None = None,
        progress: Report | None = None,
        limit: Callable[[], RateLimit | None] = lambda: None,
    ) -> None:
        self._open_client, self.parallelism = open_client, parallelism
        self._client: Client | None = None
        self.is_inline = isinstance(executor, InlineExecutor)
        self._executor = executor or ThreadPoolExecutor(parallelism, thread_name_prefix="lmsconf-request")
        self._progress, self._limit = progress, limit
        self._lock, self._reporting = threading.Lock(), threading.Lock()
        self._done = self._total = self.submitted = 0
        self._is_abandoned = False

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        self.close(wait=kind is None)

    def submit(self, job: Callable[[Client], T], *, is_expected: bool = False) -> Future[T]:
        """Queue `job`, to be called with a client; return the future of its result.

        is_expected: it was counted before, by `report_progress(expected=…)`.
        """
        with self._lock:
            self._client = self._client or self._open_client()
            self.submitted += 1
            self._total += not is_expected
        future = self._executor.submit(self._run, job, copy(self._client))
        future.add_done_callback(lambda _: self.report_progress(finished=1))
        return future

    def _run(self, job: Callable[[Client], T], client: Client) -> T:
        if self._is_abandoned:
            raise CancelledError
        return job(client)

    def close(self, *, wait: bool = True) -> None:
        """Let submitted jobs finish; without `wait`, those not started raise CancelledError. The client stays open.

        Once it did not wait, it never does.
        """
        self._is_abandoned |= not wait
        # The executor's own way to cancel jobs leaves those hanging who use `concurrent.futures.wait`.
        self._executor.shutdown(wait=not self._is_abandoned)
        with self._reporting:
            # A rate limiter outlives the pool, and may still tell it of waits.
            self._progress = None

    def drop_expected(self, jobs: int) -> None:
        """Give up expected jobs. They stay in the total, which never falls, and count as done.

        Nothing is reported: the garbage collector may call this while progress is reported.
        """
        with self._lock:
            self._done += jobs

    def report_progress(self, *, finished: int = 0, expected: int = 0) -> None:
        """Count jobs and report progress; also while nothing is finished but the run waits.

        expected: those that will be submitted with `is_expected`, or given up with `drop_expected`.
        """
        with self._reporting:
            with self._lock:
                self._done += finished
                self._total += expected
                done, total = self._done, self._total
            if self._progress is not None:
                self._progress(RunProgress(done=done, total=total, is_final=False, limit=self._limit()))


class ConcurrentReader:
    """Implements `lmsconf.model.calls.Api`. Raises ValueError for an operation that writes.

    whole_rows: rows are kept whole, not only the fields that a plan compares, so memory limits are higher.
    """

    def __init__(self, pool: WorkerPool, spec: ApiSpec | None = None, *, whole_rows: bool = False) -> None:
        self._pool, self._spec, self._everything = pool, spec or ApiSpec.default(), whole_rows

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
        return self._ask(self._readable(operation), {}, {}, body=dict(body)).result()

    def each(self, operation: str, requests: Iterable[ReadArguments]) -> list[Json]:
        """Return one response per request, in order. After a failure, no further one is sent."""
        known = self._readable(operation)
        room = MemoryQuota(fan_out_memory_limit(whole_responses=self._everything), f"to {known.method} {known.path}")
        todo, futures, pending = list(requests), list[Future[Json]](), set[Future[Json]]()
        self._pool.report_progress(expected=len(todo))
        try:
            for path, query in todo:
                # Few are queued, so that pages and single requests need not wait for all of them.
                seconds = None if len(pending) >= self._pool.parallelism else 0
                done, pending = wait(pending, seconds, FIRST_COMPLETED)
                if _failures(done):
                    break
                futures.append(self._pool.submit(partial(_charged_call, room, known, path, query), is_expected=True))
                pending.add(futures[-1])
            self._pool.drop_expected(len(todo) - len(futures))
            wait(futures, return_when=FIRST_EXCEPTION)
            return [refuse_missing_list(known, future.result()) for future in _failures(futures) or futures]
        finally:
            for future in futures:
                future.cancel()

    def rows(
        self, operation: ListOperation, *, query: Mapping[str, Json] | None = None, keep: Keep | None = None
    ) -> ListedRows:
        """Return the rows of a listing and whether they are provably complete."""
        *_, listed = self.pages(operation, query=query, keep=keep)
        return listed

    def pages(
        self, operation: ListOperation, *, query: Mapping[str, Json] | None = None, keep: Keep | None = None
    ) -> Iterator[ListedRows]:
        """Yield the first page of a listing, then all of it; see `pagination.read_listing`."""
        known, behaviour = self._readable(operation.name), self._spec.behaviour
        schema = ListingSchema(
            listing=operation,
            page_size=self._spec.integer_behaviour(PAGE_SIZE),
            reserved_id=behaviour(operation.reserved) if operation.reserved else None,
            counts_unlisted=operation.counted is not None and behaviour(operation.counted) == "all",
            paged="skip" in known.query,
            reduce_row=keep,
            dialect_key=required_list(known)[1],
            size_limit=listing_limit(operation.name, whole_rows=self._everything),
        )
        return read_listing(
            partial(self._ask, known, {}),
            schema,
            query or {},
            expect=lambda pages: self._pool.report_progress(expected=pages),
            drop=self._pool.drop_expected,
        )

    def together(self, jobs: Mapping[str, Callable[[], T]]) -> dict[str, T]:
        """Run jobs concurrently, a thread each, and return their results. Their requests go to the worker pool.

        Where requests run in the thread that submits them, so do the jobs, one after the other.
        """
        if self._pool.is_inline:
            return {name: job() for name, job in jobs.items()}
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
        is_expected: bool = False,
        body: Mapping[str, Json] | None = None,
    ) -> Future[Json]:
        """Submit one request; return the future of its response."""
        return self._pool.submit(
            lambda client: client.call(operation.id, path=path, query=query, body=body),
            is_expected=is_expected,
        )


def _charged_call(
    room: MemoryQuota, operation: Operation, path: Mapping[str, str], query: Mapping[str, Json], client: Client
) -> Json:
    """Return the response to one request, which counts towards a memory quota."""
    return room.charge(client.call(operation.id, path=path, query=query))


def _failures(futures: Iterable[Future[Json]]) -> list[Future[Json]]:
    """Return the futures that ended with an exception, in order."""
    return [future for future in futures if future.done() and not future.cancelled() and future.exception()]
