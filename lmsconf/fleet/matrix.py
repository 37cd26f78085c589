"""Documents that make an engine run a fleet in shards: GitHub Actions, GitLab CI, Argo Workflows, Kubernetes.

Each job runs `lmsconf fleet plan --shard I/N --out DIR` and keeps DIR; `lmsconf fleet collect` puts them together.
JSON is valid YAML, so every engine reads it.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from shlex import quote
from typing import Final

from lmsconf.model.canonical_json import Json
from lmsconf.support.lazy_dataclass import dataclass

FORMATS: Final = ("github", "gitlab", "argo", "kubernetes")
NEEDS_IMAGE: Final = ("argo", "kubernetes")
_NAME: Final = "lmsconf-fleet-plan"
_FOLDER: Final = "fleet"
_MOUNT: Final = "/results"
"""Where a container has the volume for its folder."""
_SECRET: Final = "lmsconf-tokens"  # noqa: S105  the name of a Secret


@dataclass(frozen=True, slots=True, kw_only=True)
class Matrix:
    """What the jobs are to run. select: the selector of workspaces. image: the container image with lmsconf."""

    shards: int
    select: str = "*"
    image: str | None = None

    def command(self, shard: str, folder: str = _FOLDER) -> str:
        """Return the command line of one job. shard: its shard, as the shell of the engine expands it."""
        selected = "" if self.select == "*" else f" --select {quote(self.select)}"
        return f'lmsconf fleet plan{selected} --shard "{shard}" --out {folder}'


def matrix_document(matrix: Matrix, format: str) -> str:
    """Return the document for an engine, one of FORMATS."""
    return json.dumps(_DOCUMENTS[format](matrix), indent=None if format == "github" else 2) + "\n"


def _shards(matrix: Matrix) -> list[Json]:
    return [f"{number}/{matrix.shards}" for number in range(1, matrix.shards + 1)]


def _github(matrix: Matrix) -> Json:
    """Return the value of `strategy.matrix`; a job has its shard in `matrix.shard`."""
    return {"shard": _shards(matrix)}


def _gitlab(matrix: Matrix) -> Json:
    """Return a child pipeline; its jobs keep their folders as artifacts."""
    job: dict[str, Json] = {
        "parallel": {"matrix": [{"SHARD": _shards(matrix)}]},
        "script": [matrix.command("$SHARD")],
        "artifacts": {"paths": [f"{_FOLDER}/"], "when": "always", "access": "developer"},
    }
    return {_NAME: job if matrix.image is None else {"image": matrix.image, **job}}


def _argo(matrix: Matrix) -> Json:
    """Return a Workflow; each step keeps its folder as an output artifact."""
    step: Json = {
        "name": "plan",
        "template": "plan",
        "arguments": {"parameters": [{"name": "shard", "value": "{{item}}"}]},
        "withItems": _shards(matrix),
    }
    return {
        "apiVersion": "argoproj.io/v1alpha1",
        "kind": "Workflow",
        "metadata": {"generateName": f"{_NAME}-"},
        "spec": {
            "entrypoint": "shards",
            "templates": [
                {"name": "shards", "steps": [[step]]},
                {
                    "name": "plan",
                    "inputs": {"parameters": [{"name": "shard"}]},
                    "container": {
                        **_container(matrix, "{{inputs.parameters.shard}}"),
                        "volumeMounts": [{"name": "work", "mountPath": _MOUNT}],
                    },
                    "volumes": [{"name": "work", "emptyDir": {}}],
                    "outputs": {"artifacts": [{"name": _FOLDER, "path": f"{_MOUNT}/{_FOLDER}"}]},
                },
            ],
        },
    }


def _kubernetes(matrix: Matrix) -> Json:
    """Return an indexed Job; the folders are on a volume claim, each in a folder with the job's index."""
    container: Json = {
        **_container(matrix, f"$((JOB_COMPLETION_INDEX + 1))/{matrix.shards}"),
        "volumeMounts": [{"name": "work", "mountPath": _MOUNT, "subPathExpr": "$(JOB_COMPLETION_INDEX)"}],
    }
    return {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {"name": _NAME},
        "spec": {
            "completions": matrix.shards,
            "parallelism": matrix.shards,
            "completionMode": "Indexed",
            "backoffLimitPerIndex": 1,
            "template": {
                "spec": {
                    "restartPolicy": "Never",
                    "automountServiceAccountToken": False,
                    "containers": [container],
                    "volumes": [{"name": "work", "persistentVolumeClaim": {"claimName": _NAME}}],
                }
            },
        },
    }


def _container(matrix: Matrix, shard: str) -> dict[str, Json]:
    return {
        "name": "plan",
        "image": matrix.image,
        "command": ["sh", "-c", matrix.command(shard, f"{_MOUNT}/{_FOLDER}")],
        "envFrom": [{"secretRef": {"name": _SECRET}}],
    }


_DOCUMENTS: Final[Mapping[str, Callable[[Matrix], Json]]] = {
    "github": _github,
    "gitlab": _gitlab,
    "argo": _argo,
    "kubernetes": _kubernetes,
}
