"""Worker processes on this machine: a bounded number, each with one task at a time.

A worker that dies or exceeds the time limit ends its task alone: the others go on, and a new worker takes its place.
Each has an equal part of the rate of requests, and a thread that waits for its results.
"""

from __future__ import annotations

import signal
import time
from collections import deque
from collections.abc import Generator, Iterator, Mapping, Sequence
from pathlib import Path
from queue import Empty, SimpleQueue
from threading import Thread
from typing import Final

from msgspec import Struct

from lmsconf.documents.document import from_json
from lmsconf.errors import ExitCode, LmsconfError, Problem, Terminated
from lmsconf.fleet.fleet_run import Lost
from lmsconf.fleet.tasks import FleetTask, with_part_of_rate
from lmsconf.fleet.worker import TaskProcess
from lmsconf.model.canonical_json import Json
from lmsconf.model.fleet import FleetAction, FleetEntry
from lmsconf.support.atomic_files import os_error_message

_GRACE: Final = 30.0
"""Seconds in which interrupted workers may finish the calls that they have sent, and write their reports."""


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
        run = _LocalRun(self, tasks)
        try:
            yield from run.results(len(tasks))
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
    """The worker processes of one run, each with the thread that gives it tasks."""

    def __init__(self, engine: LocalEngine, tasks: Sequence[FleetTask]) -> None:
        number = min(engine.processes, len(tasks))
        self._engine = engine
        self._waiting = deque(with_part_of_rate(task, number) for task in tasks)
        self._answers: SimpleQueue[tuple[FleetTask, dict[str, Json]] | LmsconfError] = SimpleQueue()
        self._processes: list[TaskProcess] = []
        self._busy: set[TaskProcess] = set()
        self._threads = [Thread(target=self._work, args=(at,), daemon=True) for at in range(number)]

    def results(self, number: int) -> Iterator[FleetEntry]:
        """Start the workers, and yield the results of all tasks. Raises LmsconfError if a worker cannot be started."""
        for _ in self._threads:
            self._processes.append(self._start())
        for thread in self._threads:
            thread.start()
        for _ in range(number):
            answer = self._answers.get()
            if isinstance(answer, LmsconfError):
                raise answer
            yield _entry(answer[1]) or self._lost(*answer)

    def last_results(self) -> Iterator[FleetEntry]:
        """Yield the results of interrupted workers that return one in time."""
        end = time.monotonic() + _GRACE
        while not self._answers.empty() or any(thread.is_alive() for thread in self._threads):
            try:
                answer = self._answers.get(timeout=min(0.1, max(0.0, end - time.monotonic())))
            except Empty:
                if time.monotonic() >= end:
                    return
                continue
            if not isinstance(answer, LmsconfError) and (entry := _entry(answer[1])) is not None:
                yield entry

    def interrupt(self, number: signal.Signals) -> None:
        """Interrupt the workers that have a task, and let no other task begin."""
        self._waiting.clear()
        for process in tuple(self._busy):
            process.send_signal(number)

    def kill(self) -> None:
        """Kill the workers, and the programs that they have started."""
        for process in self._processes:
            if process.is_alive:
                process.kill()

    def stop(self) -> None:
        """End all workers: those without a task at once, the others once they have written what they did."""
        end = time.monotonic() + _GRACE
        self.interrupt(signal.SIGTERM)
        begun = [thread for thread in self._threads if thread.ident is not None]
        for thread in begun:
            thread.join(max(0.0, end - time.monotonic()))
        self.kill()
        for thread in begun:
            thread.join()
        for process in self._processes:
            process.close()

    def _start(self) -> TaskProcess:
        try:
            return TaskProcess(self._engine.root, self._engine.environ)
        except OSError as error:
            message = f"a worker process cannot be started: {os_error_message(error)}"
            raise LmsconfError(message, hint="Pass a smaller number of --processes.") from error

    def _work(self, at: int) -> None:
        """Give tasks to a worker, one after the other, and to another one where it dies."""
        limit = self._engine.time_limit
        while self._waiting:
            try:
                task = self._waiting.popleft()
                if not self._processes[at].is_alive:
                    self._processes[at].close()
                    self._processes[at] = self._start()
            except IndexError:  # another thread has taken the last one
                break
            except LmsconfError as error:
                self._answers.put(error)
                return
            process = self._processes[at]
            self._busy.add(process)
            process.send(task)
            answer = process.answer(None if limit is None else time.monotonic() + limit)
            self._busy.discard(process)
            self._answers.put((task, answer))
        self._processes[at].close()

    def _lost(self, task: FleetTask, answer: dict[str, Json]) -> FleetEntry:
        late = bool(answer["late"])
        problem = ended_problem(task, int(str(answer["code"])), self._engine.time_limit if late else None)
        return self._engine.lost(task, ExitCode.UNREACHABLE if late else ExitCode.ERROR, problem)


def _entry(answer: Mapping[str, Json]) -> FleetEntry | None:
    """Return the result in an answer; None where the worker died, or was stopped."""
    return from_json(answer["entry"], FleetEntry) if "entry" in answer else None


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
