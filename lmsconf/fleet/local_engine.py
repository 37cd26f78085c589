"""Worker processes on this machine: a bounded number, each with one task at a time.

A worker that dies or exceeds the time limit ends its task alone: the others go on, and a new worker takes its place.
Each has an equal part of the rate of requests, and a thread that waits for its results.
"""

from __future__ import annotations

import signal
from collections.abc import Generator, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, as_completed, wait
from contextlib import suppress
from pathlib import Path
from queue import SimpleQueue
from typing import Final

from lmsconf.errors import Terminated
from lmsconf.fleet.tasks import FleetTask, with_part_of_rate
from lmsconf.fleet.worker import TaskProcess
from lmsconf.model.fleet import FleetEntry
from lmsconf.support.atomic_files import os_errors_as

_GRACE: Final = 30.0
"""Seconds in which interrupted workers may finish the calls that they have sent, and write their reports."""


def run_locally(
    root: Path, environ: Mapping[str, str], processes: int, time_limit: float | None, tasks: Sequence[FleetTask]
) -> Generator[FleetEntry]:
    """Run tasks in so many worker processes; yield the result of each, as they end.

    time_limit: seconds for one task; None: no limit. Interrupted, it stops the workers, yields the results of those
    that end their tasks nevertheless, and raises again.
    """
    run = _LocalRun(root, environ, processes, time_limit, tasks)
    try:
        yield from run.results()
    except KeyboardInterrupt as cut:
        run.interrupt(signal.SIGTERM if isinstance(cut, Terminated) else signal.SIGINT)
        try:
            yield from run.last_results()
        finally:  # the time is over, or a second interrupt says that nobody waits for them
            run.kill()
        raise
    finally:
        run.stop()


class _LocalRun:
    """The worker processes of one run, and as many threads that give them tasks."""

    def __init__(
        self,
        root: Path,
        environ: Mapping[str, str],
        processes: int,
        time_limit: float | None,
        tasks: Sequence[FleetTask],
    ) -> None:
        self._root, self._environ, self._time_limit = root, environ, time_limit
        self._number = max(1, min(processes, len(tasks)))
        self._tasks = [with_part_of_rate(task, self._number) for task in tasks]
        self._threads = ThreadPoolExecutor(self._number)
        self._results: set[Future[FleetEntry]] = set()
        self._idle: SimpleQueue[TaskProcess] = SimpleQueue()
        self._processes: list[TaskProcess] = []
        self._busy: set[TaskProcess] = set()
        self._signal: signal.Signals | None = None

    def results(self) -> Iterator[FleetEntry]:
        """Start the workers, and yield the results of all tasks. Raises LmsconfError if a worker cannot be started."""
        for _ in self._tasks[: self._number]:
            self._idle.put(self._start())
        self._results = {self._threads.submit(self._result, task) for task in self._tasks}
        for result in as_completed(self._results):
            self._results.remove(result)
            yield result.result()

    def last_results(self) -> Iterator[FleetEntry]:
        """Yield the results of interrupted workers that return one in time."""
        with suppress(TimeoutError):
            for result in as_completed(self._begun(), timeout=_GRACE):
                if result.exception() is None and not result.result().is_lost:
                    yield result.result()

    def _begun(self) -> list[Future[FleetEntry]]:
        return [result for result in self._results if not result.cancelled()]

    def interrupt(self, number: signal.Signals) -> None:
        """Interrupt the workers that have a task, and let no other task begin."""
        self._signal = number
        self._threads.shutdown(wait=False, cancel_futures=True)
        for process in tuple(self._busy):
            process.send_signal(number)

    def kill(self) -> None:
        """Kill the workers, and the programs that they have started."""
        for process in tuple(self._processes):
            if process.is_alive:
                process.kill()

    def stop(self) -> None:
        """End all workers: those without a task at once, the others once they have written what they did."""
        self.interrupt(signal.SIGTERM)
        wait(self._begun(), timeout=_GRACE)
        self.kill()
        self._threads.shutdown()
        for process in self._processes:
            process.close()

    def _start(self) -> TaskProcess:
        with os_errors_as("a worker process cannot be started", "Pass a smaller number of --processes."):
            process = TaskProcess(self._root, self._environ)
        self._processes.append(process)
        return process

    def _result(self, task: FleetTask) -> FleetEntry:
        """Let a worker run a task, another one where it has died, and wait for its result."""
        process = self._idle.get()
        try:
            if not process.is_alive:
                process.close()
                process = self._start()
            self._busy.add(process)
            process.send(task)
            if self._signal is not None:  # the run was interrupted as the task was taken
                process.send_signal(self._signal)
            return process.result(task, self._time_limit)
        finally:
            self._busy.discard(process)
            self._idle.put(process)
