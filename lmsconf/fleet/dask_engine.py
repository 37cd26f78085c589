"""Run the tasks of a fleet on the workers of an existing Dask scheduler.

What travels: the task, digests of the project's files, and for an apply the plan file; back, the result and its file.
Workers have lmsconf and the project, and take tokens from their own environment. A few batches for each thread are at
the scheduler at a time. It gives the batch of a worker that dies to another one, as often as its own setting
`allowed-failures` says; see `attempts` for what that means for an apply.

A batch is one workspace, or several that take milliseconds each: Dask needs 20 ms of computing for a batch. After some
seconds a batch begins no other workspace, and stops the one that it reads; these are submitted again, each by itself.
"""

from __future__ import annotations

import json
import secrets
import signal
import time
from collections import deque
from collections.abc import Generator, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, Final

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from lmsconf.documents.document import TOOL, JsonObjectReader
from lmsconf.errors import ExitCode, LmsconfError, Problem, Terminated, UsageError
from lmsconf.fleet.dask_worker import AGAIN, DaskBatch, DaskJob, ProjectDigests, other_project, run_tasks
from lmsconf.fleet.fleet_run import Lost
from lmsconf.fleet.local_engine import ended_problem
from lmsconf.fleet.tasks import FleetTask, plan_path, result_files, with_part_of_rate
from lmsconf.fleet.worker import interrupt_run
from lmsconf.model.fleet import FleetAction, FleetEntry
from lmsconf.support.atomic_files import read_text, write_atomically
from lmsconf.support.url_rules import is_loopback

_INSTALL: Final = "Install it with: pip install 'lmsconf[dask]'"
_ENCRYPTED: Final = ("tls", "wss")
_FOR_EACH_THREAD: Final = 2
"""Tasks at the scheduler for each thread of a worker, so that no thread waits for the next one."""
_BATCH_TAKES: Final = 2.0
_APPLIES_TAKE: Final = 0.5
_BATCH_ENDS_AFTER: Final = 10.0
"""Seconds that a batch of several tasks should take, one of applies likewise, and after which it ends.

Of a worker that dies, all applies of the batch are attempted again: each waits for what the first attempt has sent.
"""
_LARGEST_BATCH: Final = 32
_WORKERS_WITHIN: Final = 60.0
_GRACE: Final = 30.0
"""Seconds in which interrupted workers may finish the calls that they have sent, and write their reports."""


class SchedulerUnavailable(LmsconfError):
    """The Dask scheduler cannot be reached, or has no worker."""

    code = "fleet/scheduler"
    exit = ExitCode.UNREACHABLE


class DaskScheduler(Struct, frozen=True, kw_only=True):
    """An existing scheduler. address: `tls://HOST:PORT`. unencrypted: whether plans may travel unencrypted."""

    address: str
    unencrypted: bool = False


def find_scheduler(address: str | None, *, unencrypted: bool) -> DaskScheduler:
    """Return the scheduler with this address, or the one that Dask's configuration names.

    Raises LmsconfError where Dask is not installed, UsageError for no address, one without TLS to another machine, and
    TLS without certificates.
    """
    if address is not None:
        address = _refuse_unencrypted(address, unencrypted)
    try:
        import dask.config
        import distributed  # noqa: F401  reads its part of the configuration
    except ImportError as missing:
        raise LmsconfError("--engine dask needs the package distributed", hint=_INSTALL) from missing
    if address is None:
        configured = dask.config.get("scheduler-address", None)
        if not configured:
            hint = "Pass --scheduler tls://HOST:8786, or set DASK_SCHEDULER_ADDRESS."
            raise UsageError("--engine dask needs the address of a scheduler", hint=hint)
        address = _refuse_unencrypted(str(configured), unencrypted)
    if address.startswith("tls:") and not dask.config.get("distributed.comm.tls.ca-file", None):
        hint = (
            "Set DASK_DISTRIBUTED__COMM__TLS__CA_FILE, DASK_DISTRIBUTED__COMM__TLS__CLIENT__CERT and "
            "DASK_DISTRIBUTED__COMM__TLS__CLIENT__KEY to the paths of PEM files."
        )
        raise UsageError(f"{address} needs certificates, and Dask's configuration names none", hint=hint)
    return DaskScheduler(address=address, unencrypted=unencrypted)


class DaskEngine(Struct, frozen=True, kw_only=True):
    """Run tasks on the workers of a scheduler.

    folder: the project's folder on the workers. most: how many tasks run at a time; None: as many as the workers have
    threads. time_limit: seconds for one task; None: no limit. lost: makes the result of a task that has none.
    """

    scheduler: DaskScheduler
    digests: ProjectDigests
    folder: Path
    lost: Lost
    most: int | None = None
    time_limit: float | None = None

    def run(self, tasks: Sequence[FleetTask]) -> Generator[FleetEntry]:
        """Yield the result of each task, as they end, and write its file.

        Interrupted, it interrupts the tasks that run, yields the results of those that end nevertheless, and raises
        again. Raises SchedulerUnavailable.
        """
        with _connected(self.scheduler) as client:
            run = _DaskRun(self, client)
            try:
                yield from run.results(deque(tasks))
            except KeyboardInterrupt as cut:
                run.interrupt(signal.SIGTERM if isinstance(cut, Terminated) else signal.SIGINT)
                yield from run.results(deque(), _GRACE)
                raise
            except BaseException:
                run.interrupt(signal.SIGTERM)
                raise


class _DaskRun:
    """The tasks of one run at a scheduler. Their keys, which dashboards show, hold the names of workspaces."""

    def __init__(self, engine: DaskEngine, client: Any) -> None:
        from distributed import as_completed

        self._engine, self._client, self._name = engine, client, secrets.token_hex(6)
        self._batches: dict[object, list[FleetTask]] = {}
        self._is_interrupted = False
        self._completed = as_completed(loop=client.loop, with_results=True, raise_errors=False)
        threads = sum(client.nthreads().values())
        self._most = engine.most or _FOR_EACH_THREAD * max(1, threads)
        self._slow: deque[FleetTask] = deque()
        self._size, self._submitted = 1, 0

    def results(self, waiting: deque[FleetTask], seconds: float | None = None) -> Iterator[FleetEntry]:
        """Submit tasks, a few at a time, and yield the results; with `seconds`, of those that end in this time."""
        end = None if seconds is None else time.monotonic() + seconds
        while waiting or self._slow or self._batches:
            yield from self._submit_more(waiting)
            while self._completed.has_ready():
                future, answer = next(self._completed)
                batch = self._batches.pop(future.key)
                entries = self._entries(batch, future.status, answer)
                future.release()
                yield from self._submit_more(waiting)
                yield from entries
            if end is not None and time.monotonic() >= end:
                return
            if self._batches:
                self._wait()

    def _submit_more(self, waiting: deque[FleetTask]) -> Iterator[FleetEntry]:
        """Submit as many batches as fit; yield the results of tasks that have no plan to apply."""
        while (waiting or self._slow) and len(self._batches) < self._most and not self._is_interrupted:
            if self._slow:
                yield from self._submit([self._slow.popleft()])
                continue
            # Smaller batches towards the end let all workers end at the same time.
            size = max(1, min(self._size, len(waiting) // self._most))
            yield from self._submit([waiting.popleft() for _ in range(size)])

    def _wait(self) -> None:
        """Wait until a batch ends, or a little."""
        with self._completed.thread_condition:
            if not self._completed.has_ready():
                self._completed.thread_condition.wait(timeout=0.1)

    def interrupt(self, number: signal.Signals) -> None:
        """Interrupt the tasks that run, and let no other one begin."""
        self._is_interrupted = True
        self._slow.clear()
        with suppress(OSError):
            self._client.run(interrupt_run, self._name, int(number), on_error="ignore")

    def _submit(self, tasks: list[FleetTask]) -> Iterator[FleetEntry]:
        """Submit a batch; yield the results of tasks that have no plan to apply."""
        batch, jobs = [], []
        for task in tasks:
            try:
                jobs.append(self._job(task))
                batch.append(task)
            except LmsconfError as error:
                yield self._engine.lost(task, error.exit, error.problems[0])
        if not batch:
            return
        document = DaskBatch(
            tool=TOOL,
            run=self._name,
            root=str(self._engine.folder),
            time_limit=self._engine.time_limit,
            seconds=None if len(batch) == 1 else _BATCH_ENDS_AFTER,
            jobs=tuple(jobs),
        )
        # A tuple of a name for all batches of a run, and one for each. Any other key would be a digest of the
        # arguments, and give the result of an equal batch that is still known.
        self._submitted += 1
        key = (f"lmsconf-{batch[0].action}-{self._name}", f"{batch[0].workspace}-{self._submitted}")
        future = self._client.submit(run_tasks, msgspec.json.encode(document).decode(), key=key, pure=False)
        self._batches[key] = batch
        self._completed.add(future)

    def _job(self, task: FleetTask) -> msgspec.Raw:
        plan = None
        if task.action is FleetAction.APPLY and task.out is not None:
            plan = read_text(plan_path(task.out, task.workspace), regular=True)
        job = DaskJob(
            project=self._engine.digests.of(task.workspace),
            task=replace(with_part_of_rate(task, self._most), out=None),
            plan=plan,
        )
        return msgspec.Raw(msgspec.json.encode(job))

    def _entries(self, batch: list[FleetTask], status: str, answer: Any) -> list[FleetEntry]:
        """Return the entries of the index for a batch that has ended, with the files written."""
        if status != "finished":
            return [] if self._is_interrupted else [self._failed(task, status, answer) for task in batch]
        document = JsonObjectReader(json.loads(answer))
        self._adapt(float(document.text("seconds")) / len(batch), batch[0].action)
        entries = []
        for task, result in zip(batch, document.each("results", lambda at: at), strict=True):
            if result.has(AGAIN):
                if not self._is_interrupted:
                    self._slow.append(task)
            elif (entry := self._entry(task, result)) is not None:
                entries.append(entry)
        return entries

    def _adapt(self, seconds: float, action: FleetAction) -> None:
        """Choose the size of the next batches by how long a task has taken."""
        takes = _APPLIES_TAKE if action is FleetAction.APPLY else _BATCH_TAKES
        self._size = int(min(_LARGEST_BATCH, takes / max(seconds, 0.001)))

    def _failed(self, task: FleetTask, status: str, answer: Any) -> FleetEntry:
        """Return the entry of a task whose batch has no result."""
        hint = f"Run it again with --select workspace={task.workspace}"
        if status == "error":
            name = answer[0].__name__ if isinstance(answer, tuple) else type(answer).__name__
            message = _FAILURES.get(name, f"the Dask worker failed with {name}")
            return self._engine.lost(task, ExitCode.ERROR, Problem(code="fleet/lost", message=message, hint=hint))
        problem = Problem(code="fleet/lost", message="the Dask scheduler has lost the task", hint=hint)
        return self._engine.lost(task, ExitCode.UNREACHABLE, problem)

    def _entry(self, task: FleetTask, result: JsonObjectReader) -> FleetEntry | None:
        """Return the entry of the index, or that of a task without a result; None if an interruption is the reason."""
        if result.has("attempt"):
            self._forget_attempts(task, result.number("attempt"))
        if result.has("entry"):
            return self._kept(task, result)
        if self._is_interrupted:
            return None
        if result.has("problem"):
            at = result.reader("problem")
            problem = Problem(code=at.text("code"), message=at.text("message"), hint=at.maybe("hint", at.text))
            return self._engine.lost(task, ExitCode.ERROR, problem)
        limit = self._engine.time_limit if result.flag("late") else None
        code = ExitCode.ERROR if limit is None else ExitCode.UNREACHABLE
        return self._engine.lost(task, code, ended_problem(task, result.number("code"), limit))

    def _kept(self, task: FleetTask, result: JsonObjectReader) -> FleetEntry:
        entry = result.value("entry", FleetEntry)
        if entry.workspace != task.workspace or entry.file not in (None, *result_files(task.workspace)):
            raise LmsconfError(f"a Dask worker has returned the result of another task than {task.workspace}")
        if entry.file is None or task.out is None:
            return entry
        text = result.text("text")
        if task.out / entry.file == plan_path(task.out, task.workspace):
            differing = self._engine.digests.made_elsewhere(text)
            if differing:
                return self._engine.lost(task, ExitCode.ERROR, other_project(differing))
        write_atomically(task.out / entry.file, text)
        return entry

    def _forget_attempts(self, task: FleetTask, attempts: int) -> None:
        from distributed import Event

        with suppress(OSError):  # the scheduler has ended, and what it noted with it
            for attempt in range(1, attempts + 1):
                Event(f"{self._name}-{task.workspace}-{attempt}", client=self._client).clear()


_FAILURES: Final = {
    "KilledWorker": "the Dask workers that ran it died, more often than the scheduler's allowed-failures",
    "ModuleNotFoundError": "the Dask worker cannot import lmsconf",
}


@contextmanager
def _connected(scheduler: DaskScheduler) -> Iterator[Any]:
    """Connect to the scheduler. Raises SchedulerUnavailable where it does not answer, or has no worker in time."""
    from distributed import Client

    try:
        client = Client(scheduler.address, set_as_default=False, name="lmsconf")
    except (OSError, ValueError, TypeError) as error:
        raise SchedulerUnavailable(
            f"the Dask scheduler {scheduler.address} cannot be reached: {type(error).__name__}",
            hint="Check the address, that it runs, and the certificates in Dask's configuration.",
        ) from error
    with client:
        try:
            client.wait_for_workers(1, timeout=_WORKERS_WITHIN)
        except TimeoutError as error:
            message = f"the Dask scheduler {scheduler.address} has no worker after {_WORKERS_WITHIN:.0f} seconds"
            raise SchedulerUnavailable(message, hint="Start workers, with lmsconf and the project.") from error
        for worker in client.nthreads():
            _refuse_unencrypted(worker, scheduler.unencrypted)
        yield client


def _refuse_unencrypted(address: str, unencrypted: bool) -> str:
    """Return an address with its scheme. Raises UsageError where what travels there leaves this machine unencrypted."""
    address = address if "://" in address else f"tcp://{address}"
    scheme, _, rest = address.partition("://")
    host = rest.rpartition(":")[0].strip("[]")
    if unencrypted or scheme in _ENCRYPTED or (scheme == "tcp" and is_loopback(host)):
        return address
    hint = "Start Dask with TLS and pass tls://HOST:8786, or pass --allow-unencrypted in a network that you trust."
    raise UsageError(f"plans would travel unencrypted to {address}", hint=hint)
