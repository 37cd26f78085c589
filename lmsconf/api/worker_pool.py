"""A bounded crew of threads, each with a connection of its own, that takes requests in order of urgency.

One connection a thread is what httpx is fast at; the queue stands outside of it.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import Future
from time import perf_counter
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from lmsconf.api.priority_queue import Priority, PriorityQueue

if TYPE_CHECKING:
    from lmsconf.api.client import Client

T = TypeVar("T")
_LINGER = 0.1
"""How long to wait for the next link of a chain, as a part of what the last one took."""
Progress = Callable[[int, int], None]
"""Hears how many requests are done, of how many that were asked for so far. Calls never overlap."""


class Job(Generic[T]):
    """A job and the future of what it comes to."""

    def __init__(self, job: Callable[[Client], T]) -> None:
        self._job = job
        self.future: Future[T] = Future()

    def run(self, client: Client) -> None:
        """Does the job, unless nobody wants it any more. What it raises belongs to whoever waits for the future."""
        if not self.future.set_running_or_notify_cancel():
            return
        try:
            result = self._job(client)
        except BaseException as error:
            self.future.set_exception(error)
        else:
            self.future.set_result(result)

    def cancel(self) -> None:
        """Lets everybody who waits for it know that it will not be done."""
        self.future.cancel()
        self.future.set_running_or_notify_cancel()


class WorkerPool:
    """Runs what it is given on at most `parallelism` clients, the urgent first, in order among equals.

    Threads start when there is work for them, and none of them keeps a program from ending.
    """

    def __init__(
        self, open_client: Callable[[], Client], *, parallelism: int = 4, progress: Progress | None = None
    ) -> None:
        if parallelism < 1:
            raise ValueError("a crew needs at least one worker")
        self._open_client = open_client
        self._parallelism = parallelism
        self._progress = progress
        self._queue: PriorityQueue[Job[Any] | None] = PriorityQueue()
        self._lock = threading.Lock()
        self._workers: list[threading.Thread] = []
        self._closed = False
        self._busy = self._done = self._submitted = 0

    def __enter__(self) -> WorkerPool:
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        self.close(wait=kind is None)

    def submit(self, job: Callable[[Client], T], priority: Priority = Priority.FAN_OUT) -> Future[T]:
        """The future of what `job` returns or raises, given a client of its own. Raises RuntimeError once closed."""
        task = Job(job)
        with self._lock:
            if self._closed:
                raise RuntimeError("the crew has been closed")
            if self._busy >= len(self._workers) < self._parallelism:
                self._start_worker()
            self._busy += 1
            self._submitted += 1
            self._queue.put(priority, task)
        return task.future

    def close(self, *, wait: bool = True) -> None:
        """Ends the crew. With `wait`, what was submitted is done first; without, what has not begun is cancelled."""
        with self._lock:
            self._closed = True
        for task in () if wait else self._queue.clear():
            if task is not None:
                task.cancel()
        for _ in self._workers:
            self._queue.put(Priority.END, None)
        for worker in self._workers if wait else ():
            worker.join()

    def _start_worker(self) -> None:
        """One more worker. Its client is made here, so that a wrong URL is told to whoever submits."""
        worker = threading.Thread(
            target=self._work, args=(self._open_client(),), name=f"lmsconf-{len(self._workers)}", daemon=True
        )
        self._workers.append(worker)
        worker.start()

    def _work(self, client: Client) -> None:
        """One worker's life: a job after the other, until the end is next."""
        with client:
            linger = 0.0
            while True:
                priority, task = self._queue.get(linger)
                if task is None:
                    return
                start = perf_counter()
                task.run(client)
                linger = (perf_counter() - start) * _LINGER if priority is Priority.CHAIN else 0.0
                self._tell()

    def _tell(self) -> None:
        """Counts one more job as done, and says so."""
        with self._lock:
            self._busy -= 1
            self._done += 1
            if self._progress:
                self._progress(self._done, self._submitted)
