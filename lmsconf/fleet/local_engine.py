"""Worker processes on this machine: a bounded number, each with one task at a time.

A worker that dies or exceeds the time limit ends its task alone: the others go on, and a new worker takes its place.
Each has an equal part of the rate of requests.
"""

from __future__ import annotations

import json
import os
import selectors
import signal
import subprocess
import sys
import time
from collections import deque
from collections.abc import Generator, Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import IO, Final, cast

from msgspec import Struct, field

from lmsconf.documents.document import from_json
from lmsconf.errors import ExitCode, LmsconfError, Problem, Terminated
from lmsconf.fleet.fleet_run import Lost
from lmsconf.fleet.tasks import OF_ONE_WORKSPACE, FleetTask, task_json, with_part_of_rate
from lmsconf.model.fleet import FleetAction, FleetEntry
from lmsconf.support.atomic_files import os_error_message

_GRACE: Final = 30.0
"""Seconds in which interrupted workers may finish the calls that they have sent, and write their reports."""


class _Worker(Struct):
    """A process, and the task that it runs. pending: the part of a result line that was read so far."""

    process: subprocess.Popen[bytes]
    task: FleetTask | None = None
    began: float = 0.0
    pending: bytearray = field(default_factory=bytearray)

    @property
    def stdin(self) -> IO[bytes]:
        return cast("IO[bytes]", self.process.stdin)

    @property
    def stdout(self) -> IO[bytes]:
        return cast("IO[bytes]", self.process.stdout)

    def send(self, line: object) -> None:
        self.stdin.write(json.dumps(line).encode() + b"\n")
        self.stdin.flush()


class LocalEngine(Struct, frozen=True, kw_only=True):
    """Run tasks in worker processes. processes: how many. time_limit: seconds for one task; None: no limit.

    lost: makes the result of a task whose worker died or was stopped.
    """

    root: Path
    environ: Mapping[str, str]
    processes: int
    lost: Lost
    time_limit: float | None = None

    def run(self, tasks: Sequence[FleetTask]) -> Generator[FleetEntry]:
        """Yield the result of each task, as they end.

        Interrupted, it stops the workers, yields the results of those that end their tasks nevertheless, and raises
        again.
        """
        number = min(self.processes, len(tasks))
        waiting = deque(with_part_of_rate(task, number) for task in tasks)
        with selectors.DefaultSelector() as selector:
            workers: list[_Worker] = []
            try:
                yield from self._run(waiting, workers, selector)
            except KeyboardInterrupt as cut:
                _interrupt(workers, signal.SIGTERM if isinstance(cut, Terminated) else signal.SIGINT)
                try:
                    yield from self._ended(selector)
                finally:  # the time is over, or a second interrupt says that nobody waits for them
                    _kill_all(workers)
                raise
            finally:
                _stop(workers)

    def _run(
        self, waiting: deque[FleetTask], workers: list[_Worker], selector: selectors.BaseSelector
    ) -> Iterator[FleetEntry]:
        """Start workers, give them tasks, and yield the results."""
        for _ in range(min(self.processes, len(waiting))):
            workers.append(self._start(selector))
            self._give(workers[-1], waiting)
        while any(worker.task is not None for worker in workers):
            for key, _ in selector.select(self._wait(workers)):
                worker: _Worker = key.data
                entry = _read(worker, selector)
                if entry is None and worker.process.returncode is not None and worker.task is not None:
                    entry = self._lost(worker, worker.task)
                if entry is None:
                    continue
                worker.task = None
                yield entry
                if waiting and worker.process.poll() is not None:
                    workers[workers.index(worker)] = worker = self._start(selector)
                self._give(worker, waiting)
            for worker in workers:
                if worker.task is not None and self._is_late(worker):
                    _kill(worker)

    def _ended(self, selector: selectors.BaseSelector) -> Iterator[FleetEntry]:
        """Yield the results of interrupted workers that return one in time."""
        end = time.monotonic() + _GRACE
        while selector.get_map() and (left := end - time.monotonic()) > 0:
            for key, _ in selector.select(left):
                entry = _read(key.data, selector)
                if entry is not None:
                    key.data.task = None
                    yield entry

    def _start(self, selector: selectors.BaseSelector) -> _Worker:
        environ = {name: value for name, value in self.environ.items() if name not in OF_ONE_WORKSPACE}
        try:
            process = subprocess.Popen(  # noqa: S603  this very program
                [sys.executable, "-P", "-m", "lmsconf.fleet.worker", str(self.root)],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                process_group=0,  # so that a token's command ends with its worker
                env={**environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
            )
        except OSError as error:
            message = f"a worker process cannot be started: {os_error_message(error)}"
            raise LmsconfError(message, hint="Pass a smaller number of --processes.") from error
        worker = _Worker(process)
        os.set_blocking(worker.stdout.fileno(), False)
        selector.register(worker.stdout, selectors.EVENT_READ, worker)
        return worker

    def _give(self, worker: _Worker, waiting: deque[FleetTask]) -> None:
        """Give a worker the next task; without one, end its stdin, so that it exits."""
        worker.task = waiting.popleft() if waiting else None
        worker.began = time.monotonic()
        with suppress(BrokenPipeError):  # it has died: its stdout says so, where its task is lost
            if worker.task is not None:
                worker.send(task_json(worker.task))
            else:
                worker.stdin.close()

    def _lost(self, worker: _Worker, task: FleetTask) -> FleetEntry:
        late = self._is_late(worker)
        problem = ended_problem(task, worker.process.returncode, self.time_limit if late else None)
        return self.lost(task, ExitCode.UNREACHABLE if late else ExitCode.ERROR, problem)

    def _is_late(self, worker: _Worker) -> bool:
        return self.time_limit is not None and time.monotonic() - worker.began >= self.time_limit

    def _wait(self, workers: Sequence[_Worker]) -> float | None:
        """Return the seconds until the first time limit is over."""
        if self.time_limit is None:
            return None
        begun = [worker.began for worker in workers if worker.task is not None]
        return max(0.0, min(begun) + self.time_limit - time.monotonic()) if begun else 0.0


def ended_problem(task: FleetTask, code: int, time_limit: float | None) -> Problem:
    """Return why a task has no result: the exit code of its process, or the time limit that is over."""
    message = (
        f"the process ended with {signal.Signals(-code).name if code < 0 else f'exit code {code}'}"
        if time_limit is None
        else f"the time limit of {time_limit:,.0f} seconds is over"
    )
    hint = f"Run it again with --select workspace={task.workspace}"
    if task.action is FleetAction.APPLY:
        hint += ". What it has done is not done twice."
    return Problem(code="fleet/lost", message=message, hint=hint)


def _read(worker: _Worker, selector: selectors.BaseSelector) -> FleetEntry | None:
    """Return the result of the worker's task once it is complete; None before, and when the worker has ended."""
    piece = worker.stdout.read()
    if piece:
        worker.pending += piece
        if not worker.pending.endswith(b"\n"):
            return None
        line = bytes(worker.pending)
        worker.pending.clear()
        return from_json(json.loads(line), FleetEntry)
    selector.unregister(worker.stdout)
    worker.process.wait()
    _close(worker)
    return None


def _interrupt(workers: Sequence[_Worker], number: signal.Signals) -> None:
    """Interrupt the workers that have a task, and let the others end."""
    for worker in workers:
        if worker.process.poll() is None and worker.task is not None:
            worker.process.send_signal(number)
        with suppress(BrokenPipeError):
            worker.stdin.close()


def _stop(workers: Sequence[_Worker]) -> None:
    """End all workers: those without a task at once, the others once they have written what they did."""
    _interrupt(workers, signal.SIGTERM)
    end = time.monotonic() + _GRACE
    for worker in workers:
        try:
            worker.process.wait(max(0.0, end - time.monotonic()))
        except subprocess.TimeoutExpired:
            _kill(worker)
            worker.process.wait()
        _close(worker)


def _kill_all(workers: Sequence[_Worker]) -> None:
    for worker in workers:
        if worker.process.poll() is None and worker.task is not None:
            _kill(worker)


def _kill(worker: _Worker) -> None:
    """Kill a worker, and the programs that it has started."""
    with suppress(ProcessLookupError):
        os.killpg(worker.process.pid, signal.SIGKILL)


def _close(worker: _Worker) -> None:
    with suppress(BrokenPipeError):  # what it has not read is lost with it
        worker.stdin.close()
    worker.stdout.close()
