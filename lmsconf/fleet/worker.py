"""A process that runs tasks: a JSON line for each task on stdin, and a JSON line for each result on stdout.

`python -m lmsconf.fleet.worker FOLDER` works in the project in FOLDER until stdin ends. LMSCONF_PLAN_KEY signs plans.
With `--bound`, it also ends in the middle of a task, at once: then another machine is given that task. Its result files
are temporary then, and are not synced.

A process is of one run, and waits for its next task until the run ends. Dask runs functions in threads; a process
can be stopped when its time is over, is interrupted by a signal as in a terminal, and dies with the Dask worker.
There it gets its tokens and LMSCONF_PLAN_KEY from the environment of the worker.
"""

from __future__ import annotations

import gc
import json
import os
import selectors
import signal
import subprocess
import sys
import threading
import time
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from queue import Empty, Queue
from typing import IO, Final, cast

import msgspec

from lmsconf.documents.json_documents import from_json
from lmsconf.documents.reports import entry_json
from lmsconf.errors import ExitCode, Problem
from lmsconf.fleet.tasks import OF_ONE_WORKSPACE, FleetTask, TaskRunner
from lmsconf.model.fleet import LOST, FleetAction, FleetEntry
from lmsconf.support.files import os_errors_as
from lmsconf.support.interrupts import Interrupts, raise_terminated

BOUND: Final = "--bound"


def main(arguments: list[str]) -> int:
    """Run each task that is read until stdin ends, and write its result; return the exit code of the process."""
    # What a task prints, such as a token's command, must not stand among the results.
    results = os.fdopen(os.dup(sys.stdout.fileno()), "w", encoding="utf-8")
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())
    signal.signal(signal.SIGTERM, raise_terminated)
    gc.set_threshold(100_000)
    is_bound, signing_key = BOUND in arguments, os.environb.get(b"LMSCONF_PLAN_KEY")
    try:
        runner = TaskRunner(Path(arguments[0]), os.environ, signing_key, durable=not is_bound)
        for line in _bound(sys.stdin) if is_bound else sys.stdin:
            interrupts = Interrupts()
            with interrupts.installed():
                entry = runner.run(msgspec.json.decode(line, type=FleetTask), interrupts)
                results.write(json.dumps(entry_json(entry)) + "\n")
                results.flush()
    except KeyboardInterrupt:
        return 130
    return 0


def _bound(tasks: Iterable[str]) -> Iterator[str]:
    """Yield the lines of stdin; kill this process group where stdin ends before the work on a line does."""
    lines: Queue[str | None] = Queue()

    def read() -> None:
        for line in tasks:
            lines.put(line)
        if lines.unfinished_tasks:
            os.killpg(0, signal.SIGKILL)
        lines.put(None)

    threading.Thread(target=read, daemon=True).start()
    with suppress(Empty):  # the run has ended, or its coordinator was killed
        while (line := lines.get(timeout=_IDLE_SECONDS)) is not None:
            yield line
            lines.task_done()


_IDLE_SECONDS: Final = 30.0
"""Seconds for which a bound process waits for a task; after half of them it is given none."""
_LOOK: Final = 0.5
"""Seconds between two looks at whether the Dask worker still runs."""
_changing = threading.Lock()
_idle: dict[str, list[TaskProcess]] = defaultdict(list)
_running: dict[str, set[TaskProcess]] = defaultdict(set)
interrupted: dict[str, int] = {}
"""Run → the signal that it was interrupted with."""


def interrupt_run(run: str, number: int) -> None:
    """Send a signal to the processes that work on tasks of a run; its other tasks are not begun in this process."""
    with _changing:
        interrupted[run] = number
        for process in _running[run]:
            process.send_signal(number)


def kill_run(run: str) -> None:
    """Kill the processes that work on tasks of a run, and the programs that they have started."""
    with _changing:
        for process in _running[run]:
            process.kill()


def _without_result(task: FleetTask, code: int, limit: float | None) -> FleetEntry:
    """Return the entry of a task whose process has ended. limit: the seconds after which it was killed, if it was."""
    message, exit = f"the process ended with exit code {code}", ExitCode.ERROR
    if limit is not None:
        message, exit = f"the time limit of {limit:,.0f} seconds is over", ExitCode.UNREACHABLE
    elif code < 0:
        message = f"the process ended with {signal.Signals(-code).name}"
    done = ". What it has done is not done twice." if task.action is FleetAction.APPLY else ""
    again = f"Run it again with --select workspace={task.workspace}{done}"
    return task.lost(exit, Problem(code=LOST, message=message, hint=again))


class TaskProcess(subprocess.Popen[bytes]):
    """A process that runs tasks of one project, one after the other."""

    idle_since = 0.0

    def __init__(self, root: Path, environ: Mapping[str, str], *options: str) -> None:
        """Start it. options: of `lmsconf.fleet.worker`. Raises OSError."""
        environ = {name: value for name, value in environ.items() if name not in OF_ONE_WORKSPACE}
        super().__init__(
            [sys.executable, "-P", "-m", "lmsconf.fleet.worker", str(root), *options],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            process_group=0,  # so that a token's command ends with it
            env={**environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
        )

    def run(self, task: FleetTask, limit: float | None, goes_on: Callable[[], bool] = lambda: True) -> FleetEntry:
        """Give it a task, and return its result; one that is lost if it dies.

        It is killed after the time limit, in seconds, and once `goes_on` returns False.
        """
        stdin, stdout = cast("IO[bytes]", self.stdin), cast("IO[bytes]", self.stdout)
        with suppress(BrokenPipeError):  # it has died: its stdout says so
            stdin.write(msgspec.json.encode(task) + b"\n")
            stdin.flush()
        end = None if limit is None else time.monotonic() + limit
        line, is_late = b"", False
        with selectors.DefaultSelector() as selector:
            selector.register(stdout, selectors.EVENT_READ)
            while not line.endswith(b"\n"):
                if selector.select(_LOOK if end is None else max(0.0, min(_LOOK, end - time.monotonic()))):
                    piece = os.read(stdout.fileno(), 1 << 16)
                    if not piece:
                        break
                    line += piece
                elif (is_late := end is not None and time.monotonic() >= end) or not goes_on():
                    self.kill()
        if line.endswith(b"\n"):
            return from_json(json.loads(line), FleetEntry)
        return _without_result(task, self.wait(), limit if is_late else None)

    def kill(self) -> None:
        """Kill it, and the programs that it has started."""
        with suppress(ProcessLookupError):
            os.killpg(self.pid, signal.SIGKILL)

    def close(self) -> None:
        """End it, and the programs that it has started. It has no task."""
        with suppress(BrokenPipeError), self:  # what it has not read is lost with it
            self.kill()


@contextmanager
def task_process(run: str, root: Path, environ: Mapping[str, str], *options: str) -> Iterator[TaskProcess]:
    """Yield an idle process of a run, or a new one; then it is idle again. Raises LmsconfError if none starts.

    root, environ, options: of a new one.
    """
    with _changing:
        too_old = time.monotonic() - _IDLE_SECONDS / 2
        stale = [one for waiting in _idle.values() for one in waiting if one.idle_since < too_old]
        for waiting in _idle.values():
            waiting[:] = [process for process in waiting if process not in stale]
        process = _idle[run].pop() if _idle[run] else None
    for one in stale:
        one.close()
    with os_errors_as("a worker process cannot be started", "Pass a smaller number of --processes."):
        process = process or TaskProcess(root, environ, *options)
    with _changing:
        _running[run].add(process)
        if run in interrupted:
            process.send_signal(interrupted[run])
    try:
        yield process
    finally:
        with _changing:
            _running[run].discard(process)
            is_reusable = process.poll() is None and run not in interrupted
            if is_reusable:
                process.idle_since = time.monotonic()
                _idle[run].append(process)
        if not is_reusable:
            process.close()


def end_idle(run: str) -> None:
    """End the processes that wait for tasks of a run."""
    with _changing:
        waiting = _idle.pop(run, [])
    for process in waiting:
        process.close()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
