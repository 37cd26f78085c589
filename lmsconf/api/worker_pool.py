"""Thread pool, one connection per thread; chained requests such as pages are served before fan-out requests."""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import Future
from time import perf_counter
from typing import TYPE_CHECKING, Any, Final, Generic, TypeVar

from lmsconf.api.priority_queue import Priority, PriorityQueue
from lmsconf.model.progress import RateLimit, Report, RunProgress

if TYPE_CHECKING:
    from lmsconf.api.client import Client

T = TypeVar("T")
_LINGER: Final = 0.1
"""How long to wait for the next request of a chain, as a fraction of the time that the last one took."""


class Job(Generic[T]):
    """A job and the future of its result."""

    def __init__(self, job: Callable[[Client], T]) -> None:
        self._job = job
        self.future: Future[T] = Future()

    def run(self, client: Client) -> None:
        """Run the job unless its future was cancelled; its exception is set on the future."""
        if not self.future.set_running_or_notify_cancel():
            return
        try:
            result = self._job(client)
        except BaseException as error:
            self.future.set_exception(error)
        else:
            self.future.set_result(result)

    def cancel(self) -> None:
        """Cancel the future and notify its waiters."""
        self.future.cancel()
        self.future.set_running_or_notify_cancel()


class WorkerPool:
    """Runs jobs on at most `parallelism` clients, by priority, FIFO among equals.

    Threads start on demand, and are daemons: they do not keep the process alive.

    limit: what limits the rate of requests now, for `progress`. clock: how long a job took.
    """

    def __init__(
        self,
        open_client: Callable[[], Client],
        *,
        parallelism: int,
        progress: Report | None = None,
        limit: Callable[[], RateLimit | None] = lambda: None,
        clock: Callable[[], float] = perf_counter,
    ) -> None:
        if parallelism < 1:
            raise ValueError("a worker pool needs at least one worker")
        self._open_client = open_client
        self._parallelism = parallelism
        self._progress, self._limit, self._clock = progress, limit, clock
        self._queue: PriorityQueue[Job[Any] | None] = PriorityQueue()
        self._lock, self._reporting = threading.Lock(), threading.Lock()
        self._workers: list[threading.Thread] = []
        self._closed = False
        self._busy = self._done = self._submitted = self._expected = 0
        self._is_final = False

    def __enter__(self) -> WorkerPool:
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        self.close(wait=kind is None)

    def submit(
        self, job: Callable[[Client], T], priority: Priority = Priority.FAN_OUT, *, is_expected: bool = False
    ) -> Future[T]:
        """Queue `job`, to be called with a client; return the future of its result. Raises RuntimeError once closed.

        is_expected: it is one of those that `expect` added to the total.
        """
        task = Job(job)
        with self._lock:
            self._refuse_closed()
            if self._busy >= len(self._workers) < self._parallelism:
                self._start_worker()
            self._count(is_expected)
            self._queue.put(priority, task)
        return task.future

    def _refuse_closed(self) -> None:
        if self._closed:
            raise RuntimeError("the worker pool is closed")

    def _count(self, is_expected: bool) -> None:
        """Count a job that is submitted. Call it with the lock held."""
        self._busy += 1
        self._submitted += 1
        self._expected -= is_expected

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
        """Stop the workers. With `wait`, submitted jobs finish first; without, those not started are cancelled.

        Does nothing if it was called before.
        """
        with self._lock:
            if self._closed:
                return
            self._closed = True
        for task in () if wait else self._queue.clear():
            if task is not None:
                task.cancel()
        for _ in self._workers:
            # Served last, since nothing is submitted any more.
            self._queue.put(Priority.FAN_OUT, None)
        for worker in self._workers if wait else ():
            worker.join()
        with self._reporting:
            # A rate limiter outlives the pool, and may still tell it of waits.
            self._progress = None

    def _start_worker(self) -> None:
        """Start one more worker. Its client is opened here, so that `submit` raises for an invalid URL."""
        name = f"lmsconf-{len(self._workers)}"
        worker = threading.Thread(target=self._work, args=(self._open_client(),), name=name, daemon=True)
        self._workers.append(worker)
        worker.start()

    def _work(self, client: Client) -> None:
        """Run jobs until None is dequeued."""
        with client:
            linger: float | None = None
            while True:
                priority, task = self._queue.get(linger)
                if task is None:
                    return
                start = self._clock()
                task.run(client)
                linger = (self._clock() - start) * _LINGER if priority is Priority.CHAIN else None
                self.report_progress(finished=1)

    def report_progress(self, finished: int = 0) -> None:
        """Count finished jobs and report progress; also while nothing is finished but the run waits."""
        with self._reporting:
            with self._lock:
                self._busy -= finished
                self._done += finished
                done, total = self._done, self._submitted + self._expected
            if self._progress is not None:
                self._progress(RunProgress(done=done, total=total, is_final=self._is_final, limit=self._limit()))


class InlinePool(WorkerPool):
    """Runs each job at once, in the thread that submits it, one at a time: for a service in this process.

    Workers would only wait there for each other.
    """

    def __init__(
        self,
        open_client: Callable[[], Client],
        *,
        progress: Report | None = None,
        limit: Callable[[], RateLimit | None] = lambda: None,
    ) -> None:
        super().__init__(open_client, parallelism=1, progress=progress, limit=limit)
        self._client: Client | None = None
        self._turn = threading.Lock()

    def submit(
        self, job: Callable[[Client], T], priority: Priority = Priority.FAN_OUT, *, is_expected: bool = False
    ) -> Future[T]:
        """Run `job`, and return the future of its result, which is done. Raises RuntimeError once closed."""
        task = Job(job)
        with self._turn:
            # A client of a service in this process holds nothing that must be closed.
            self._client = self._client or self._open_client()
            with self._lock:
                self._refuse_closed()
                self._count(is_expected)
            task.run(self._client)
        self.report_progress(finished=1)
        return task.future
