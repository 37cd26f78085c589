"""Documents that make an engine run a fleet in shards: GitHub Actions, GitLab CI, Argo Workflows, Kubernetes.

Each job runs `lmsconf fleet plan --shard I/N --out DIR` and keeps DIR; `lmsconf fleet collect` puts them together.
JSON is valid YAML, so every engine reads it.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from shlex import quote
from typing import Final

from msgspec import Struct

from lmsconf.errors import UsageError
from lmsconf.fleet.pod_matrix import PodCommands, argo_workflow, kubernetes_job
from lmsconf.model.canonical_json import Json

_NEEDS_IMAGE: Final = ("argo", "kubernetes")
_MOST: Final = {"github": 256, "gitlab": 200}
"""The most jobs that an engine makes of one matrix."""
_LEAST_RATE: Final = 0.1
"""The least --max-rate that `lmsconf fleet plan` takes."""
_JOB: Final = "lmsconf-fleet-plan"
_FOLDER: Final = "fleet"


class Matrix(Struct, frozen=True, kw_only=True):
    """What the jobs are to run.

    select: the selector of workspaces. image: the container image with lmsconf. max_rate: requests a second of all jobs
    together.
    """

    shards: int
    select: str = "*"
    image: str | None = None
    max_rate: float | None = None

    @property
    def numbers(self) -> list[Json]:
        """The shards: `1/3`, `2/3`, `3/3`."""
        return [f"{number}/{self.shards}" for number in range(1, self.shards + 1)]

    @property
    def rate(self) -> str | None:
        """The requests a second of one job."""
        return None if self.max_rate is None else f"{self.max_rate / self.shards:g}"

    def command(self, shard: str, folder: str) -> str:
        """Return the command line of one job. shard: its shard, as the shell of the engine expands it."""
        selected = "" if self.select == "*" else f" --select {quote(self.select)}"
        limited = "" if self.rate is None else f" --max-rate {self.rate}"
        return f'lmsconf fleet plan{selected}{limited} --shard "{shard}" --out "{folder}"'


def matrix_document(matrix: Matrix, format: str) -> str:
    """Return the document for an engine, `github`, `gitlab`, `argo` or `kubernetes`.

    Raises UsageError for what that engine cannot run.
    """
    if format in _NEEDS_IMAGE and matrix.image is None:
        raise UsageError(f"--format {format} needs --image", hint="Name it by its digest: registry/lmsconf@sha256:…")
    most = _MOST.get(format, matrix.shards)
    if matrix.shards > most:
        message = f"--shards {matrix.shards}: {format} runs at most {most} jobs of one matrix"
        raise UsageError(message, hint=f"Pass --shards {most}.")
    if matrix.max_rate is not None and matrix.max_rate / matrix.shards < _LEAST_RATE:
        message = f"--max-rate {matrix.max_rate:g}: less than {_LEAST_RATE} for each of {matrix.shards} jobs"
        raise UsageError(message, hint="Pass a higher rate, or fewer --shards.")
    return json.dumps(_DOCUMENTS[format](matrix), indent=None if format == "github" else 2) + "\n"


def _github(matrix: Matrix) -> Json:
    """Return the value of `strategy.matrix`: a job has its shard in `matrix.shard`, and what else is given beside it.

    What is the same for all jobs is a list with one value, which does not multiply them.
    """
    keys: dict[str, Json] = {"shard": matrix.numbers}
    if matrix.select != "*":
        keys["select"] = [matrix.select]
    if matrix.rate is not None:
        keys["max-rate"] = [matrix.rate]
    if matrix.image is not None:
        keys["image"] = [matrix.image]
    return keys


def _gitlab(matrix: Matrix) -> Json:
    """Return a child pipeline. Each job has a folder of its own, because a job that needs them gets all at once.

    The rules make it run in pipelines of merge requests too. The log shows the plan with people masked; the masked one
    cannot be saved, so it is shown in a second step, which also follows a failure.
    """
    folder = f"{_FOLDER}/${{SHARD%/*}}"
    job: dict[str, Json] = {
        "parallel": {"matrix": [{"SHARD": matrix.numbers}]},
        "script": [f"{matrix.command('$SHARD', folder)} --output plan.txt"],
        "after_script": [f'lmsconf --mask-people fleet show "{folder}"'],
        "artifacts": {"paths": [f"{_FOLDER}/"], "when": "always", "access": "developer"},
    }
    return {
        "workflow": {"rules": [{"when": "always"}]},
        _JOB: job if matrix.image is None else {"image": matrix.image, **job},
    }


def _argo(matrix: Matrix) -> Json:
    return argo_workflow(_JOB, matrix.numbers, _pod_commands(matrix))


def _kubernetes(matrix: Matrix) -> Json:
    return kubernetes_job(_JOB, matrix.shards, _pod_commands(matrix))


def _pod_commands(matrix: Matrix) -> PodCommands:
    return PodCommands(image=str(matrix.image), plan=matrix.command)


_DOCUMENTS: Final[Mapping[str, Callable[[Matrix], Json]]] = {
    "github": _github,
    "gitlab": _gitlab,
    "argo": _argo,
    "kubernetes": _kubernetes,
}
