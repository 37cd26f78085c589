"""Worker processes on this machine: a bounded number, each with one task at a time.

A worker that dies or exceeds the time limit ends its task alone: the others go on, and a new worker takes its place.
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
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import field
from pathlib import Path
from typing import IO, Final, cast

from lmsconf.documents.document import JsonObjectReader
from lmsconf.documents.fleet_file import entry_from_json
from lmsconf.errors import ExitCode, Problem
from lmsconf.fleet.tasks import OF_ONE_WORKSPACE, FleetTask, task_json
from lmsconf.model.fleet import FleetEntry
from lmsconf.support.lazy_dataclass import dataclass

_GRACE: Final = 30.0
"""Seconds for which an interrupted worker may finish the call that it has sent, and write its report."""
Lost = Callable[[FleetTask, ExitCode, Problem], FleetEntry]
"""Make the result of a task whose worker did not return one."""


@dataclass(slots=True)
class _Worker:
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


@dataclass(frozen=True, slots=True, kw_only=True)
class LocalEngine:
    """Run tasks in worker processes. processes: how many. time_limit: seconds for one task; None: no limit.

    lost: makes the result of a task whose worker died or was stopped.
    """

    root: Path
    environ: Mapping[str, str]
    processes: int
    lost: Lost
    time_limit: float | None = None

    def run(self, tasks: Sequence[FleetTask]) -> Iterator[FleetEntry]:
        """Yield the result of each task, as they end. Interrupted, it stops the workers and raises again."""
        waiting = deque(tasks)
        with selectors.DefaultSelector() as selector:
            workers = [self._start(selector) for _ in range(min(self.processes, len(tasks)))]
            try:
                for worker in workers:
                    self._give(worker, waiting)
                while any(worker.task is not None for worker in workers):
                    for key, _ in selector.select(self._wait(workers)):
                        worker = key.data
                        entry = self._read(worker, selector)
                        if entry is not None:
                            yield entry
                            worker = self._living(worker, workers, selector) if waiting else worker
                            self._give(worker, waiting)
                    for worker in workers:
                        if worker.task is not None and self._is_late(worker):
                            _kill(worker)
            finally:
                _stop(workers)

    def _start(self, selector: selectors.BaseSelector) -> _Worker:
        environ = {name: value for name, value in self.environ.items() if name not in OF_ONE_WORKSPACE}
        process = subprocess.Popen(  # noqa: S603  this very program
            [sys.executable, "-P", "-m", "lmsconf.fleet.worker", str(self.root)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            process_group=0,  # so that a token's command ends with its worker
            env={**environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
        )
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

    def _read(self, worker: _Worker, selector: selectors.BaseSelector) -> FleetEntry | None:
        """Return the result of the worker's task once it is complete, or that it is lost; None before."""
        piece = worker.stdout.read()
        if piece:
            worker.pending += piece
            if not worker.pending.endswith(b"\n"):
                return None
            line = bytes(worker.pending)
            worker.pending.clear()
            return entry_from_json(JsonObjectReader(json.loads(line)))
        selector.unregister(worker.stdout)
        worker.process.wait()
        _close(worker)
        return None if worker.task is None else self._lost(worker, worker.task)

    def _lost(self, worker: _Worker, task: FleetTask) -> FleetEntry:
        late = self._is_late(worker)
        code = worker.process.returncode
        message = (
            f"the time limit of {self.time_limit:,.0f} seconds is over"
            if late and self.time_limit is not None
            else f"the process ended with {signal.Signals(-code).name if code < 0 else f'exit code {code}'}"
        )
        hint = f"Run it again with --select workspace={task.workspace}"
        problem = Problem(code="fleet/lost", message=message, hint=hint)
        return self.lost(task, ExitCode.UNREACHABLE if late else ExitCode.ERROR, problem)

    def _living(self, worker: _Worker, workers: list[_Worker], selector: selectors.BaseSelector) -> _Worker:
        """Return the worker, or a new one in the place of one that has died."""
        if worker.process.poll() is None:
            return worker
        new = self._start(selector)
        workers[workers.index(worker)] = new
        return new

    def _is_late(self, worker: _Worker) -> bool:
        return self.time_limit is not None and time.monotonic() - worker.began >= self.time_limit

    def _wait(self, workers: Sequence[_Worker]) -> float | None:
        """Return the seconds until the first time limit is over."""
        if self.time_limit is None:
            return None
        begun = [worker.began for worker in workers if worker.task is not None]
        return max(0.0, min(begun) + self.time_limit - time.monotonic()) if begun else 0.0


def _stop(workers: Sequence[_Worker]) -> None:
    """End all workers: those without a task at once, the others once they have written what they did."""
    for worker in workers:
        if worker.process.poll() is None and worker.task is not None:
            worker.process.terminate()
        with suppress(BrokenPipeError):
            worker.stdin.close()
    for worker in workers:
        try:
            worker.process.wait(_GRACE)
        except subprocess.TimeoutExpired:
            _kill(worker)
            worker.process.wait()
        _close(worker)


def _kill(worker: _Worker) -> None:
    """Kill a worker, and the programs that it has started."""
    with suppress(ProcessLookupError):
        os.killpg(worker.process.pid, signal.SIGKILL)


def _close(worker: _Worker) -> None:
    with suppress(BrokenPipeError):  # what it has not read is lost with it
        worker.stdin.close()
    worker.stdout.close()
