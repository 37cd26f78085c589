"""What a Dask worker does for a fleet: `run_tasks`, which runs each task in a process of its own.

It takes and returns JSON and raises nothing: Dask writes exceptions, and what led to them, into logs.
"""

from __future__ import annotations

import hashlib
import json
import os
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import lru_cache, partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final, NamedTuple, TypeVar, cast

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from lmsconf.documents.document import TOOL, JsonObjectReader
from lmsconf.errors import LmsconfError, Problem, ProblemsFound
from lmsconf.fleet.tasks import FleetTask, begun_plans, plan_path, to_path
from lmsconf.fleet.worker import TaskProcess, TaskProcesses, is_interrupted
from lmsconf.journal.journal_folder import ensure_folder
from lmsconf.manifest.file_set import ManifestFileReader
from lmsconf.model.canonical_json import Json, sha256
from lmsconf.model.fleet import FleetAction
from lmsconf.project.config_file import FILE, ProjectFile, expand_pattern
from lmsconf.project.settings import DEFAULT_MANIFESTS
from lmsconf.support.atomic_files import read_text, write_atomically

Result = TypeVar("Result")
AGAIN: Final = "again"
"""Key of the result of a task that was not begun, or stopped, as the time for all tasks of a batch was over.

An apply is never stopped for that.
"""
_ENDING: Final = ("closing", "closed", "failed", "stopping")
"""The statuses of a Dask worker whose tasks another one gets."""
_ATTEMPTS: Final = "attempts"


class _Batch(NamedTuple):
    """What is the same for the tasks of a batch. limit: seconds for one task. end: when no other task is begun, and one
    that reads is stopped, on the monotonic clock; None: never.

    goes_on: whether the Dask worker still runs. scratch: the folder for files of the batch. differing: the files of the
    project that differ from those of a digest, once compared. processes: keeps the process until the batch ends.
    attempts: the attempts files of the applies that have ended.
    """

    root: Path
    run: str
    limit: float | None
    end: float | None
    goes_on: Callable[[], bool]
    scratch: Path
    differing: dict[ProjectDigest, tuple[str, ...]]
    processes: TaskProcesses
    attempts: list[Path]


class DaskJob(Struct, frozen=True, kw_only=True):
    """What travels for one task. project: the digest of the coordinator's. plan: the plan file to apply."""

    project: ProjectDigest
    task: FleetTask
    plan: str | None = None


class DaskBatch(Struct, frozen=True, kw_only=True):
    """The document of a batch. root: the project's folder on the worker. seconds: after which no other task begins.

    jobs: each as JSON, since a worker of another version may not be able to read it.
    """

    tool: Any
    run: str
    root: str
    time_limit: float | None
    seconds: float | None
    jobs: tuple[msgspec.Raw, ...]


def run_tasks(document: str) -> str:
    """Run the tasks of a batch from `lmsconf.fleet.dask_engine`; return their results in the same order, as JSON."""
    from distributed import get_worker

    began, worker = time.monotonic(), get_worker()
    given = msgspec.json.decode(document, type=DaskBatch)
    root = Path(given.root).absolute()
    with (
        TemporaryDirectory(prefix="lmsconf-", dir=worker.local_directory) as folder,
        TaskProcesses(root, given.run) as processes,
    ):
        batch = _Batch(
            root=root,
            run=given.run,
            limit=given.time_limit,
            end=None if given.seconds is None else began + given.seconds,
            goes_on=lambda: worker.status.name not in _ENDING,
            scratch=Path(folder),
            differing={},
            processes=processes,
            attempts=[],
        )
        results: list[Json] = [*_results(batch, given.jobs if given.tool == TOOL else ())]
        if given.tool != TOOL:
            message = "the worker has another version of lmsconf"
            results = [_refused("fleet/worker-tool", message, "Install the same version.") for _ in given.jobs]
        # If the results are lost with this worker from here on, the next attempt waits as if journals were missing.
        for file in batch.attempts:
            file.unlink(missing_ok=True)
    return json.dumps({"seconds": str(time.monotonic() - began), "results": results})


def _results(batch: _Batch, jobs: tuple[msgspec.Raw, ...]) -> Iterator[dict[str, Json]]:
    """Yield the result of each task. The process works on the next one while a result is read."""
    before: Callable[[], dict[str, Json]] | None = None
    for job in jobs:
        begun = _begun_or_refused(batch, job)
        if before is not None:
            yield _safely(before)
        if isinstance(begun, _BegunTask):
            answer = begun.process.answer(begun.end, batch.goes_on)
            before = partial(_finished, batch, begun, answer)
        else:
            before = partial(dict, begun)
    if before is not None:
        yield _safely(before)


class _BegunTask(NamedTuple):
    """A task that a process works on. end: when it is stopped, on the monotonic clock; None: never."""

    task: FleetTask
    process: TaskProcess
    end: float | None


def _begun_or_refused(batch: _Batch, raw: msgspec.Raw) -> _BegunTask | dict[str, Json]:
    """Give a task to the process; return the reason instead where it is not begun."""

    def begin() -> _BegunTask | dict[str, Json]:
        job = msgspec.json.decode(raw, type=DaskJob, dec_hook=to_path)
        return _refusal(batch, job.project) or _begin(batch, job)

    return _safely(begin)


def _safely(work: Callable[[], Result]) -> Result | dict[str, Json]:
    """Return a result; that of a task without one where an exception is raised."""
    try:
        return work()
    except LmsconfError as error:
        return _refused(error.code, error.message, error.hint)
    except Exception as error:  # its text may hold a value, and Dask would log it
        return _refused("fleet/lost", f"the worker failed with {type(error).__name__}")


def _refusal(batch: _Batch, wanted: ProjectDigest) -> dict[str, Json] | None:
    """Return why a task is not begun; None if it can be."""
    if is_interrupted(batch.run):
        return _refused("interrupted", "the run was interrupted")
    if batch.end is not None and time.monotonic() >= batch.end:
        return {AGAIN: True}
    if not (batch.root / FILE).is_file():
        hint = "Name its folder on the workers with --worker-project."
        return _refused("fleet/worker-project", f"the worker has no project in {batch.root}", hint)
    if wanted not in batch.differing:
        batch.differing[wanted] = differing_files(batch.root, wanted)
    differing = batch.differing[wanted]
    return _problem(other_project(differing)) if differing else None


def _begin(batch: _Batch, job: DaskJob) -> _BegunTask:
    """Give a task to the process."""
    task = replace(job.task, out=batch.scratch)
    if job.plan is not None:
        write_atomically(plan_path(batch.scratch, task.workspace), job.plan, durable=False)
        task = _attempted(task, batch.root, batch.run)
    process = batch.processes.get(job.project.settings)
    process.send(task)
    late = None if batch.limit is None else time.monotonic() + batch.limit
    ends = [late] if task.action is FleetAction.APPLY else [late, batch.end]
    return _BegunTask(task, process, min((end for end in ends if end is not None), default=None))


def _finished(batch: _Batch, begun: _BegunTask, answer: dict[str, Json]) -> dict[str, Json]:
    """Return the result of a task: an entry of the index and the text of its file, or the reason why there is none."""
    if answer.get("late") and begun.end == batch.end:
        return {AGAIN: True}
    if begun.task.action is FleetAction.APPLY:
        answer["attempt"] = begun.task.attempt
        if "entry" in answer:
            batch.attempts.append(_attempts_file(batch.root, batch.run, begun.task))
    file = cast("dict[str, Json]", answer.get("entry") or {}).get("file")
    if isinstance(file, str):
        answer["text"] = read_text(batch.scratch / Path(file).name)
    return answer


def _attempts_file(root: Path, run: str, task: FleetTask) -> Path:
    """Return the file with a line for each attempt to apply a plan that began in this folder."""
    return ensure_folder(root, _ATTEMPTS) / f"{run}-{task.workspace}"


def _attempted(task: FleetTask, root: Path, run: str) -> FleetTask:
    """Return the task with its attempt.

    A scheduler gives the task of a dead worker to another one, with the same arguments. So each attempt is noted at the
    scheduler before it begins, and in the project's folder: a folder with all earlier attempts has their journals too.
    An earlier run that has begun the plan is an attempt more; its journal may be in another folder than this one.
    """
    is_begun_here = task.digest in _begun_plans(root, run)
    is_begun = is_begun_here or task.attempt > 1
    attempt = 1
    while not _first_to_set(f"{run}-{task.workspace}-{attempt}"):
        attempt += 1
    with _attempts_file(root, run, task).open("a+", encoding="ascii") as notes:
        notes.seek(0)
        earlier = len(notes.readlines())
        notes.write(f"{attempt}\n")
    has_journals = earlier == attempt - 1 and is_begun_here is is_begun
    return replace(task, attempt=attempt + is_begun, has_journals=has_journals)


@lru_cache(maxsize=8)
def _begun_plans(root: Path, run: str) -> frozenset[str]:
    """Return the digests of the plans that have begun before this worker's first task of a run. Raises LmsconfError."""
    return begun_plans(root)


def _first_to_set(name: str) -> bool:
    """Set an event at the scheduler; return False if it was set before."""
    from distributed import Event

    event = Event(name)
    if event.is_set():
        return False
    event.set()
    return True


def _refused(code: str, message: str, hint: str | None = None) -> dict[str, Json]:
    """Return the result of a task that was not begun, or has none."""
    return _problem(Problem(code=code, message=message, hint=hint))


def _problem(problem: Problem) -> dict[str, Json]:
    return {"problem": {"code": problem.code, "message": problem.message, "hint": problem.hint}}


_ENDINGS: Final = (".yaml", ".yml", ".csv", ".tsv", ".xlsx", ".ods")
"""Of manifests, and of tables that they name."""
_SHOWN: Final = 5


class ProjectDigest(Struct, frozen=True, kw_only=True):
    """The files of a project that decide about one workspace.

    files: the project file and its table of workspaces. folders: those of the workspace's manifests. settings,
    manifests: the digest of both.
    """

    files: tuple[str, ...]
    folders: tuple[str, ...]
    settings: str
    manifests: str


class ProjectDigests:
    """The digests of one project; each set of folders is read once."""

    def __init__(self, root: Path, project: ProjectFile) -> None:
        self._root, self._project = root, project
        self._known: dict[tuple[str, ...], str] = {}
        self._read: dict[tuple[str, ...], str] = {}

    def of(self, workspace: str) -> ProjectDigest:
        """Return the digest of what decides about a workspace."""
        values = self._project.pattern_values(workspace)
        named = [expand_pattern(name, values) for name in self._project.folders(workspace)]
        files = tuple(sorted({FILE, self._project.places.at("workspaces", workspace, "url").file}))
        folders = tuple(named or [DEFAULT_MANIFESTS])
        return ProjectDigest(
            files=files, folders=folders, settings=self._digest(files), manifests=self._digest(folders)
        )

    def made_elsewhere(self, plan: str) -> tuple[str, ...]:
        """Return the files that a plan file was made from, if any differs here; empty if none does.

        Manifests can name tables of people anywhere in the project, which nothing but a plan lists.
        """
        manifests = JsonObjectReader(JsonObjectReader(json.loads(plan)).json("manifests"))
        names = manifests.value("files", tuple[str, ...])
        if names not in self._read:
            reader = ManifestFileReader(self._root)
            try:
                for name in names:
                    reader.read_table(self._root / name)
            except ProblemsFound:
                return names
            self._read[names] = reader.content_digest
        return () if self._read[names] == manifests.text("digest") else names

    def _digest(self, names: tuple[str, ...]) -> str:
        if names not in self._known:
            self._known[names] = _digest(self._root, names)
        return self._known[names]


def differing_files(root: Path, wanted: ProjectDigest) -> tuple[str, ...]:
    """Return which files or folders of a project differ from those of a digest; empty if none does."""
    if _digest(root, wanted.files) != wanted.settings:
        return wanted.files
    return () if _digest(root, wanted.folders) == wanted.manifests else wanted.folders


def other_project(names: Sequence[str]) -> Problem:
    """Return the problem of a worker with other files than those here."""
    some = f"{', '.join(names[:_SHOWN])}{f' and {len(names) - _SHOWN:,} more' if len(names) > _SHOWN else ''}"
    hint = "Update the project on the workers, and run it again."
    message = f"the project on the worker differs from the one here, in some of: {some}"
    return Problem(code="fleet/worker-project", message=message, hint=hint)


def _digest(root: Path, names: Iterable[str]) -> str:
    """Return a digest of path and content of files, and of all files below folders."""
    lines: list[Json] = []
    for name in names:
        path = root / name
        files = sorted(_below(path)) if path.is_dir() else [path]
        lines += [[file.relative_to(root).as_posix(), _content_digest(file)] for file in files]
    return sha256(lines)


def _below(folder: Path) -> Iterator[Path]:
    """Yield the manifests and tables below a folder; names that begin with `.` are skipped."""
    for parent, folders, files in os.walk(folder):
        folders[:] = [name for name in folders if not name.startswith(".")]
        for name in files:
            if name.endswith(_ENDINGS) and not name.startswith("."):
                yield Path(parent, name)


def _content_digest(path: Path) -> str | None:
    """Return the digest of a file's content; None for what is not a readable file."""
    try:
        if not path.is_file():
            return None
        with path.open("rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()
    except OSError:
        return None
