"""What a Dask worker does for a fleet: `run_task`, which runs a task in a process of its own.

It takes and returns JSON and raises nothing: Dask writes exceptions, and what led to them, into logs.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping, Sequence
from functools import cache, lru_cache, partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from lmsconf.documents.json_documents import TOOL, json_at, to_json, value_at
from lmsconf.errors import LmsconfError, Problem, ProblemsFound, raise_found, refuse_if
from lmsconf.fleet.tasks import FleetTask, begun_plans, plan_path
from lmsconf.fleet.worker import BOUND, interrupted, task_process
from lmsconf.manifest.file_set import MANIFESTS, PROJECT_FILE, ManifestFileReader, files_digest
from lmsconf.model.canonical_json import Json, sha256, sha256_of_bytes
from lmsconf.model.fleet import LOST, FleetEntry
from lmsconf.project.config_file import ProjectFile, expand_pattern
from lmsconf.render.resource_wording import name_list
from lmsconf.support.files import os_errors_as, read_text, write_atomically

_ENDING: Final = ("closing", "closed", "failed", "stopping")
"""The statuses of a Dask worker whose tasks another one gets."""


class DaskJob(Struct, frozen=True, kw_only=True):
    """What travels for one task.

    run: the name of the run. root: the project's folder on the worker. project: the digests of files and folders
    of the coordinator's, by name. time_limit: seconds for the task. plan: the plan file to apply.
    """

    run: str
    root: str
    project: Mapping[str, str]
    task: FleetTask
    time_limit: float | None = None
    plan: str | None = None


class DaskResult(Struct, frozen=True, kw_only=True):
    """What travels back: the entry, and the text of its file; or a problem."""

    entry: FleetEntry | None = None
    text: str | None = None
    problem: Problem | None = None


def run_task(tool: Json, document: str) -> str:
    """Run the task of a DaskJob for a coordinator of this version; return a DaskResult, both as JSON."""
    try:
        refuse_if(
            (tool != TOOL, "the worker has another version of lmsconf", "Install the same version."),
            error=partial(LmsconfError, code="fleet/worker-tool"),
        )
        result = _result(msgspec.json.decode(document, type=DaskJob))
    except LmsconfError as error:
        result = DaskResult(problem=error.problems[0])
    except Exception as error:  # its text may hold a value, and Dask would log it
        result = DaskResult(problem=Problem(code=LOST, message=f"the worker failed with {type(error).__name__}"))
    return json.dumps(to_json(result))


def _result(job: DaskJob) -> DaskResult:
    """Let a process run a task; return its entry, with the text of the file that it has written."""
    from distributed import get_worker

    worker, root = get_worker(), Path(job.root).absolute()
    _refuse_other_project(root, job)
    with TemporaryDirectory(prefix="lmsconf-", dir=worker.local_directory) as folder:
        task = replace(job.task, out=folder)
        if job.plan is not None:
            write_atomically(plan_path(folder, task.workspace), job.plan, durable=False)
            task = _attempted(task, root, job.run)
        with task_process(job.run, root, os.environ, BOUND) as process:
            entry = process.run(task, job.time_limit, lambda: worker.status.name not in _ENDING)
        text = None if entry.file is None else read_text(Path(folder, Path(entry.file).name))
    return DaskResult(entry=entry, text=text)


def _refuse_other_project(root: Path, job: DaskJob) -> None:
    """Raise LmsconfError where a task is not begun: its run was interrupted, or the coordinator has other files."""
    if job.run in interrupted:
        raise LmsconfError("the run was interrupted", code=LOST)
    refuse_if(
        (
            not (root / PROJECT_FILE).is_file(),
            f"the worker has no project in {root}",
            "Name its folder on the workers with --worker-project.",
        ),
        error=partial(LmsconfError, code="fleet/worker-project"),
    )
    differing = [name for name, digest in job.project.items() if _digest(root, name) != digest]
    raise_found([other_project(differing)] if differing else [])


def attempt_event(run: str, workspace: str) -> str:
    """Return the name of the event that is set at the scheduler once a worker begins to apply a plan."""
    return f"{run}-{workspace}"


def _attempted(task: FleetTask, root: Path, run: str) -> FleetTask:
    """Return the task with its attempt: a later one where another worker, or an earlier run, may have begun the plan.

    A scheduler gives the task of a dead worker to another one, with the same arguments. So the first attempt is noted
    at the scheduler before it begins. Its journal may be in another folder than this one.
    """
    from distributed import Event

    event = Event(attempt_event(run, task.workspace))
    is_first = not event.is_set()
    event.set()
    is_begun_here = task.digest in _begun_plans(root, run)
    is_begun = is_begun_here or task.attempt > 1
    return replace(
        task,
        attempt=2 if is_begun or not is_first else 1,
        has_journals=is_first and is_begun_here is is_begun,
    )


@lru_cache(maxsize=8)
def _begun_plans(root: Path, run: str) -> frozenset[str]:
    """Return the digests of the plans that have begun before this worker's first task of a run. Raises LmsconfError."""
    return begun_plans(root)


class ProjectDigests:
    """The digests of one project; each of its files and folders is read once."""

    def __init__(self, root: Path, project: ProjectFile) -> None:
        self._root, self._project = root, project
        self._digest = cache(partial(_digest, root))
        self._digest_of_read = cache(partial(_digest_of_read, root))

    def of(self, workspace: str) -> dict[str, str]:
        """Return the digests of what decides about a workspace: project file, table and folders, by name."""
        values = self._project.pattern_values(workspace)
        folders = [expand_pattern(name, values) for name in self._project.folders(workspace)] or [MANIFESTS]
        table = self._project.places.at("workspaces", workspace, "url").file
        return {name: self._digest(name) for name in (PROJECT_FILE, table, *folders)}

    def made_elsewhere(self, plan: str) -> tuple[str, ...]:
        """Return the files that a plan file was made from, if any differs here; empty if none does."""
        # Manifests can name tables of people anywhere in the project, which nothing but a plan lists.
        document = json.loads(plan)
        names = value_at(document, tuple[str, ...], "manifests", "files")
        return () if self._digest_of_read(names) == json_at(document, "manifests", "digest") else names


def _digest_of_read(root: Path, names: tuple[str, ...]) -> str | None:
    """Return the digest of files as plans have it; None if one cannot be read."""
    reader = ManifestFileReader(root)
    try:
        for name in names:
            reader.read_table(root / name)
    except ProblemsFound:
        return None
    return files_digest(reader.digests)


def other_project(names: Sequence[str]) -> Problem:
    """Return the problem of a worker with other files than those here."""
    return Problem(
        code="fleet/worker-project",
        message=f"the project on the worker differs from the one here, in some of: {name_list(names, 5)}",
        hint="Update the project on the workers, and run it again.",
    )


def _digest(root: Path, name: str) -> str:
    """Return a digest of the content of a file, or of path and content of all files below a folder."""
    path = root / name
    files = sorted(_below(path)) if path.is_dir() else [path]
    return sha256([[file.relative_to(root).as_posix(), _content_digest(file)] for file in files])


def _below(folder: Path) -> Iterator[Path]:
    """Yield the manifests and tables below a folder; names that begin with `.` are skipped."""
    for path in folder.rglob("*"):
        is_hidden = any(name.startswith(".") for name in path.relative_to(folder).parts)
        if path.suffix in (".yaml", ".yml", ".csv", ".tsv", ".xlsx", ".ods") and not is_hidden:
            yield path


def _content_digest(path: Path) -> str | None:
    """Return the digest of a file's content; None for what is not a file. Raises LmsconfError."""
    with os_errors_as(f"{path} cannot be read", "Check its permissions."):
        return sha256_of_bytes(path.read_bytes()) if path.is_file() else None
