"""Thread pool that sends requests over the connections of one client, and counts them for progress.

Only requests are run in it, which wait for nothing but the service: a job that waits for others has a thread of its own
(`ConcurrentReader.together`), so that no job waits for a thread.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import CancelledError, Executor, Future, ThreadPoolExecutor
from copy import copy
from typing import TYPE_CHECKING, Any, TypeVar

from lmsconf.model.progress import RateLimit, Report, RunProgress

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


class WorkerPool:
    """Runs at most `parallelism` requests at once, in the order in which they are submitted.

    open_client: called before the first of them; each job gets a copy of the client.
    executor: where they run; default: a thread pool. limit: what limits the rate of requests now, for `progress`.
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
        self._open_client = open_client
        self._client: Client | None = None
        self.parallelism = parallelism
        self._executor = executor or ThreadPoolExecutor(parallelism, thread_name_prefix="lmsconf-request")
        self._progress, self._limit = progress, limit
        self._lock, self._reporting = threading.Lock(), threading.Lock()
        self._done = self._submitted = self._expected = 0
        self._is_final = self._is_closed = self._is_abandoned = False

    def __enter__(self) -> WorkerPool:
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        self.close(wait=kind is None)

    def submit(self, job: Callable[[Client], T], *, is_expected: bool = False) -> Future[T]:
        """Queue `job`, to be called with a client; return the future of its result. Raises RuntimeError once closed.

        is_expected: it is one of those that `expect` added to the total.
        """
        with self._lock:
            if self._is_closed:
                raise RuntimeError("the worker pool is closed")
            self._client = self._client or self._open_client()
            self._submitted += 1
            self._expected -= is_expected
        future = self._executor.submit(self._run, job, copy(self._client))
        future.add_done_callback(lambda _: self.report_progress(finished=1))
        return future

    def _run(self, job: Callable[[Client], T], client: Client) -> T:
        if self._is_abandoned:
            raise CancelledError
        return job(client)

    @property
    def submitted(self) -> int:
        """How many jobs were submitted so far."""
        return self._submitted

    def expect(self, jobs: int) -> None:
        """Add jobs to the total that will be submitted with `is_expected`, or given up with `drop_expected`."""
        with self._lock:
            self._expected += jobs
        self.report_progress()

    def drop_expected(self, jobs: int) -> None:
        """Give up expected jobs. They stay in the total, which never falls, and count as done."""
        with self._lock:
            self._expected -= jobs
            self._submitted += jobs
            self._done += jobs

    def end_total(self) -> None:
        """Report from now on that no further job is submitted."""
        self._is_final = True
        self.report_progress()

    def close(self, *, wait: bool = True) -> None:
        """Let submitted jobs finish; without `wait`, those not started raise CancelledError. The client stays open.

        Does nothing if it was called before.
        """
        with self._lock:
            is_closed, self._is_closed = self._is_closed, True
            self._is_abandoned |= not wait
        if is_closed:
            return
        # The executor's own way to cancel jobs leaves those hanging who use `concurrent.futures.wait`.
        self._executor.shutdown(wait=wait)
        with self._reporting:
            # A rate limiter outlives the pool, and may still tell it of waits.
            self._progress = None

    def report_progress(self, finished: int = 0) -> None:
        """Count finished jobs and report progress; also while nothing is finished but the run waits."""
        with self._reporting:
            with self._lock:
                self._done += finished
                done, total = self._done, self._submitted + self._expected
            if self._progress is not None:
                self._progress(RunProgress(done=done, total=total, is_final=self._is_final, limit=self._limit()))
