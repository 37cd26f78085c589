"""Worker processes on this machine: a bounded number, each with one task at a time.

A worker that dies or exceeds the time limit ends its task alone: the others go on, and a new worker takes its place.
Each has an equal part of the rate of requests, and a thread that waits for its results.
"""

from __future__ import annotations

import signal
from collections.abc import Generator, Mapping, Sequence
from pathlib import Path
from queue import SimpleQueue

from lmsconf.fleet.fleet_run import run_in_threads
from lmsconf.fleet.tasks import FleetTask, with_part_of_rate
from lmsconf.fleet.worker import TaskProcess
from lmsconf.model.fleet import FleetEntry
from lmsconf.support.atomic_files import os_errors_as


def run_locally(
    root: Path, environ: Mapping[str, str], processes: int, time_limit: float | None, tasks: Sequence[FleetTask]
) -> Generator[FleetEntry]:
    """Run tasks in so many worker processes; yield the result of each, as they end: an Engine.

    time_limit: seconds for one task; None: no limit. Raises LmsconfError if a worker process cannot be started.
    """
    number, workers = max(1, min(processes, len(tasks))), _LocalWorkers(root, environ, time_limit)
    try:
        for _ in tasks[:number]:
            workers.idle.put(workers.start())
        yield from run_in_threads(workers, number, [with_part_of_rate(task, number) for task in tasks])
    finally:
        workers.close()


class _LocalWorkers:
    """The worker processes of one run."""

    def __init__(self, root: Path, environ: Mapping[str, str], time_limit: float | None) -> None:
        self._root, self._environ, self._time_limit = root, environ, time_limit
        self.idle: SimpleQueue[TaskProcess] = SimpleQueue()
        self._processes: list[TaskProcess] = []
        self._busy: set[TaskProcess] = set()
        self._signal: signal.Signals | None = None

    def start(self) -> TaskProcess:
        """Start a worker. Raises LmsconfError."""
        with os_errors_as("a worker process cannot be started", "Pass a smaller number of --processes."):
            process = TaskProcess(self._root, self._environ)
        self._processes.append(process)
        return process

    def run(self, task: FleetTask) -> FleetEntry:
        """Let a worker run a task, another one where it has died, and wait for its result."""
        process = self.idle.get()
        try:
            if not process.is_alive:
                process.close()
                process = self.start()
            self._busy.add(process)
            process.send(task)
            if self._signal is not None:  # the run was interrupted as the task was taken
                process.send_signal(self._signal)
            return process.result(task, self._time_limit)
        finally:
            self._busy.discard(process)
            self.idle.put(process)

    def interrupt(self, number: signal.Signals) -> None:
        """Interrupt the workers that have a task."""
        self._signal = number
        for process in tuple(self._busy):
            process.send_signal(number)

    def kill(self) -> None:
        """Kill the workers, and the programs that they have started."""
        for process in tuple(self._processes):
            if process.is_alive:
                process.kill()

    def close(self) -> None:
        """End all workers."""
        self.kill()
        for process in self._processes:
            process.close()
