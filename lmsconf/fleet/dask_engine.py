"""Run the tasks of a fleet on the workers of an existing Dask scheduler.

What travels: the task, digests of the project's files, and for an apply the plan file; back, the result and its file.
Workers have lmsconf and the project, and take tokens from their own environment. A few tasks for each thread are at
the scheduler at a time. It gives the task of a worker that dies to another one, as often as its own setting
`allowed-failures` says; `apply_again` says what that means for an apply.
"""

from __future__ import annotations

import json
import secrets
import signal
from collections.abc import Iterator, Sequence
from concurrent.futures import CancelledError
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, Final

import msgspec
from msgspec.structs import replace

from lmsconf.documents.json_documents import TOOL, from_json
from lmsconf.errors import ExitCode, LmsconfError, Problem, UsageError, refuse_if
from lmsconf.fleet.dask_worker import DaskJob, DaskResult, ProjectDigests, attempt_event, other_project, run_task
from lmsconf.fleet.fleet_run import Listener, run_in_threads
from lmsconf.fleet.tasks import FleetTask, plan_path, result_files, with_part_of_rate
from lmsconf.fleet.worker import interrupt_run
from lmsconf.model.fleet import LOST, FleetAction, FleetEntry
from lmsconf.support.files import read_text, write_atomically
from lmsconf.support.url_rules import is_loopback

_WORKERS_WITHIN: Final = 60.0


def find_scheduler(address: str | None, *, unencrypted: bool) -> str:
    """Return the address of the scheduler, this one or that of Dask's configuration: `tls://HOST:PORT`.

    unencrypted: whether plans may travel unencrypted. Raises LmsconfError where Dask is not installed, UsageError for
    no address, one without TLS to another machine, and TLS without certificates.
    """
    if address:
        _refuse_unencrypted(address, unencrypted)
    try:
        import dask.config
        import distributed  # noqa: F401  reads its part of the configuration
    except ImportError as missing:
        raise LmsconfError(
            "--engine dask needs the package distributed", hint="Install it with: pip install 'lmsconf[dask]'"
        ) from missing
    configured = dask.config.get("scheduler-address", None) if address is None else address
    refuse_if(
        (
            not configured,
            "--engine dask needs the address of a scheduler",
            "Pass --scheduler tls://HOST:8786, or set DASK_SCHEDULER_ADDRESS.",
        )
    )
    address = _refuse_unencrypted(str(configured), unencrypted)
    refuse_if(
        (
            address.startswith("tls:") and not dask.config.get("distributed.comm.tls.ca-file", None),
            f"{address} needs certificates, and Dask's configuration names none",
            "Set DASK_DISTRIBUTED__COMM__TLS__CA_FILE, DASK_DISTRIBUTED__COMM__TLS__CLIENT__CERT and "
            "DASK_DISTRIBUTED__COMM__TLS__CLIENT__KEY to the paths of PEM files.",
        )
    )
    return address


def run_on_dask(
    scheduler: str,
    digests: ProjectDigests,
    folder: Path,
    most: int | None,
    time_limit: float | None,
    tasks: Sequence[FleetTask],
    listener: Listener,
    *,
    unencrypted: bool,
) -> None:
    """Run tasks on the workers of a scheduler; write the file of each result, and pass it on: an Engine.

    folder: the project's folder on the workers. most: how many tasks run at a time; None: as many as the workers have
    threads. time_limit: seconds for one task; None: no limit. unencrypted: as for `find_scheduler`.

    Raises LmsconfError with exit 8 where the scheduler does not answer, or has no worker.
    """
    with _connected(scheduler, unencrypted) as client:
        # Two for each thread of a worker, so that none waits for its next task.
        most = most or 2 * max(1, sum(client.nthreads().values()))
        workers = _DaskWorkers(client, digests, folder, most, time_limit)
        run_in_threads(workers.run, workers.interrupt, client.close, most, tasks, listener)


class _DaskWorkers:
    """The tasks of one run at a scheduler. Their keys, which dashboards show, hold the names of workspaces."""

    def __init__(self, client: Any, digests: ProjectDigests, folder: Path, most: int, time_limit: float | None) -> None:
        self._client, self._name, self._most = client, secrets.token_hex(6), most
        self._digests, self._folder, self._time_limit = digests, folder, time_limit

    def run(self, task: FleetTask) -> FleetEntry:
        """Submit a task, and wait for its result; write its file."""
        from distributed import Event

        try:
            job = self._job(task)
        except LmsconfError as error:
            return task.lost(error.exit, error.problems[0])
        # A tuple of a name for all tasks of a run, and one for each. Any other key would be a digest of the arguments,
        # and give the result of an equal task that is still known.
        future = self._client.submit(
            run_task,
            TOOL,
            msgspec.json.encode(job).decode(),
            key=(f"lmsconf-{task.action}-{self._name}", task.workspace),
            pure=False,
        )
        try:
            result = from_json(json.loads(future.result()), DaskResult)
        except Exception as error:  # of the scheduler, or whatever a worker raised
            return _lost_by_scheduler(task, error)
        finally:
            future.release()
        if job.plan is not None:
            with suppress(OSError):  # the scheduler has ended, and what it noted with it
                Event(attempt_event(self._name, task.workspace), client=self._client).clear()
        if result.entry is not None:
            return self._kept(task, result.entry, str(result.text))
        if result.problem is not None:
            return task.lost(ExitCode.ERROR, result.problem)
        return _lost_by_scheduler(task, CancelledError())

    def interrupt(self, number: signal.Signals) -> None:
        """Interrupt the tasks that run, and let no other one begin."""
        with suppress(OSError):
            self._client.run(interrupt_run, self._name, int(number), on_error="ignore")

    def _job(self, task: FleetTask) -> DaskJob:
        is_apply = task.action is FleetAction.APPLY
        return DaskJob(
            run=self._name,
            root=str(self._folder),
            project=self._digests.of(task.workspace),
            task=replace(with_part_of_rate(task, self._most), out=None),
            time_limit=self._time_limit,
            plan=read_text(plan_path(str(task.out), task.workspace), regular=True) if is_apply else None,
        )

    def _kept(self, task: FleetTask, entry: FleetEntry, text: str) -> FleetEntry:
        """Return the entry of a task, after its file is written here."""
        if entry.workspace != task.workspace or entry.file not in (None, *result_files(task.workspace)):
            raise LmsconfError(f"a Dask worker has returned the result of another task than {task.workspace}")
        if entry.file is None or task.out is None:
            return entry
        is_plan = entry.file == plan_path(task.out, task.workspace).name
        if is_plan and (differing := self._digests.made_elsewhere(text)):
            return task.lost(ExitCode.ERROR, other_project(differing))
        write_atomically(Path(task.out, entry.file), text)
        return entry


def _lost_by_scheduler(task: FleetTask, error: Exception) -> FleetEntry:
    """Return the entry of a task that Dask has no result of. error: of the scheduler or the worker."""
    message, code = "the Dask scheduler has lost the task", ExitCode.UNREACHABLE
    if not isinstance(error, CancelledError):
        name = type(error).__name__
        message, code = _FAILURES.get(name, f"the Dask worker failed with {name}"), ExitCode.ERROR
    return task.lost(
        code, Problem(code=LOST, message=message, hint=f"Run it again with --select workspace={task.workspace}")
    )


_FAILURES: Final = {
    "KilledWorker": "the Dask workers that ran it died, more often than the scheduler's allowed-failures",
    "ModuleNotFoundError": "the Dask worker cannot import lmsconf",
}


@contextmanager
def _connected(address: str, unencrypted: bool) -> Iterator[Any]:
    """Connect to the scheduler. Raises LmsconfError where it does not answer, or has no worker in time."""
    from distributed import Client

    try:
        client = Client(address, set_as_default=False, name="lmsconf")
    except (OSError, ValueError, TypeError) as error:
        raise LmsconfError(
            f"the Dask scheduler {address} cannot be reached: {type(error).__name__}",
            hint="Check the address, that it runs, and the certificates in Dask's configuration.",
            code="fleet/scheduler",
            exit=ExitCode.UNREACHABLE,
        ) from error
    with client:
        try:
            client.wait_for_workers(1, timeout=_WORKERS_WITHIN)
        except TimeoutError as error:
            raise LmsconfError(
                f"the Dask scheduler {address} has no worker after {_WORKERS_WITHIN:.0f} seconds",
                hint="Start workers, with lmsconf and the project.",
                code="fleet/scheduler",
                exit=ExitCode.UNREACHABLE,
            ) from error
        for worker in client.nthreads():
            _refuse_unencrypted(worker, unencrypted)
        yield client


def _refuse_unencrypted(address: str, unencrypted: bool) -> str:
    """Return an address with its scheme. Raises UsageError where what travels there leaves this machine unencrypted."""
    address = address if "://" in address else f"tcp://{address}"
    scheme, _, rest = address.partition("://")
    host = rest.rpartition(":")[0].strip("[]")
    if unencrypted or scheme in ("tls", "wss") or (scheme == "tcp" and is_loopback(host)):
        return address
    raise UsageError(
        f"plans would travel unencrypted to {address}",
        hint="Start Dask with TLS and pass tls://HOST:8786, or pass --allow-unencrypted in a network that you trust.",
    )
