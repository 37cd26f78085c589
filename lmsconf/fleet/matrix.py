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


_RESULTS: Final = "/results"
"""Where a container has the volume for its folder."""
_OUT: Final = f"{_RESULTS}/fleet"
_SHARDS: Final = "/shards"
"""Where the container that collects has the folders of all shards."""
_SECRET: Final = "lmsconf-tokens"  # noqa: S105  the name of a Secret
_TOKENS: Final = "/run/secrets/lmsconf"
_KEY_SECRET: Final = "lmsconf-plan-key"  # noqa: S105  the name of a Secret
_USER: Final = 10001
_PROCESSES: Final = 4
"""Worker processes of a pod. Without a number there would be two for each core of the node, not of the pod's limit."""
_UNREACHABLE: Final = 8
_LONGEST: Final = 6 * 60 * 60
"""Seconds after which an engine ends pods that hang, or that never start."""


def _argo(matrix: Matrix) -> Json:
    """Return a Workflow: a pod for each shard, and one that collects.

    Pods that failed leave their folder too, and do not stop the others. The folders are artifacts with a key alone, so
    the repository of artifacts is the one that the cluster has.
    """
    key = "{{workflow.name}}/shards"
    plan: Json = {
        "name": "plan",
        "template": "plan",
        "arguments": {"parameters": [{"name": "shard", "value": "{{item}}"}]},
        "withItems": [*matrix.numbers],
        "continueOn": {"failed": True, "error": True},
    }
    shard = "{{inputs.parameters.shard}}"
    return {
        "apiVersion": "argoproj.io/v1alpha1",
        "kind": "Workflow",
        "metadata": {"generateName": f"{_JOB}-"},
        "spec": {
            "entrypoint": "fleet",
            "activeDeadlineSeconds": _LONGEST,
            "securityContext": _pod_security(),
            "volumes": [_tokens_volume()],
            "templates": [
                {"name": "fleet", "steps": [[plan], [{"name": "collect", "template": "collect"}]]},
                {
                    "name": "plan",
                    "inputs": {"parameters": [{"name": "shard"}]},
                    "container": _planning("main", matrix, shard),
                    "volumes": [_empty("results"), _empty("tmp")],
                    "outputs": {
                        "artifacts": [
                            {"name": "fleet", "path": _OUT, "archive": {"none": {}}, "s3": {"key": f"{key}/{shard}"}}
                        ]
                    },
                },
                {
                    "name": "collect",
                    "inputs": {"artifacts": [{"name": "shards", "path": _SHARDS, "s3": {"key": key}}]},
                    "container": _container(
                        "main",
                        matrix,
                        f"exec lmsconf fleet collect {_SHARDS}/*/* --out {_OUT}",
                        [_mount("results", _RESULTS)],
                        [],
                    ),
                    "volumes": [_empty("results"), _empty("tmp")],
                    "outputs": {"artifacts": [{"name": "fleet", "path": _OUT}]},
                },
            ],
        },
    }


def _kubernetes(matrix: Matrix) -> Json:
    """Return an indexed Job; the folders are on a volume claim, each in a folder with the job's index.

    A shard is tried again where its node was drained, and once where a service did not answer; the new pod finds the
    folder of the old one, and replaces it. Other failures would come again. Each index goes on without the others.
    """
    shard = f"$((JOB_COMPLETION_INDEX + 1))/{matrix.shards}"
    container = _planning("plan", matrix, shard, f"rm -rf {_OUT} && ", subPathExpr="$(JOB_COMPLETION_INDEX)")
    drained: Json = {"action": "Ignore", "onPodConditions": [{"type": "DisruptionTarget", "status": "True"}]}
    hopeless: Json = {
        "action": "FailIndex",
        "onExitCodes": {"containerName": "plan", "operator": "NotIn", "values": [0, _UNREACHABLE]},
    }
    return {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {"name": _JOB},
        "spec": {
            "activeDeadlineSeconds": _LONGEST,
            "completions": matrix.shards,
            "parallelism": matrix.shards,
            "completionMode": "Indexed",
            "backoffLimitPerIndex": 1,
            "podFailurePolicy": {"rules": [drained, hopeless]},
            "template": {
                "spec": {
                    "restartPolicy": "Never",
                    "automountServiceAccountToken": False,
                    "securityContext": _pod_security(),
                    "containers": [container],
                    "volumes": [
                        {"name": "results", "persistentVolumeClaim": {"claimName": _JOB}},
                        _empty("tmp"),
                        _tokens_volume(),
                    ],
                }
            },
        },
    }


def _planning(name: str, matrix: Matrix, shard: str, before: str = "", **mount: Json) -> Json:
    """Return the container that plans a shard; the tokens are mounted into no other.

    before: what its shell runs first. mount: more keys of the mount of its results.
    """
    command = f"{before}exec {matrix.command(shard, _OUT)} --processes {_PROCESSES}"
    tokens: Json = {**_mount("tokens", _TOKENS), "readOnly": True}
    allowed: Json = {"name": "LMSCONF_TOKEN_DIRS", "value": _TOKENS}
    return _container(name, matrix, command, [{**_mount("results", _RESULTS), **mount}, tokens], [allowed])


def _container(name: str, matrix: Matrix, command: str, mounts: list[Json], env: list[Json]) -> Json:
    """Return a container that runs a command line. `exec` in it lets the signals of the engine reach lmsconf."""
    key: Json = {"name": _KEY_SECRET, "key": "key", "optional": True}
    return {
        "name": name,
        "image": matrix.image,
        "command": ["sh", "-c", command],
        "env": [*env, {"name": "LMSCONF_PLAN_KEY", "valueFrom": {"secretKeyRef": key}}],
        "volumeMounts": [*mounts, _mount("tmp", "/tmp")],  # noqa: S108  of the container
        "resources": {
            "requests": {"cpu": "100m", "memory": "256Mi"},
            "limits": {"cpu": "1", "memory": "1Gi"},
        },
        "securityContext": {
            "allowPrivilegeEscalation": False,
            "readOnlyRootFilesystem": True,
            "capabilities": {"drop": ["ALL"]},
        },
    }


def _pod_security() -> Json:
    return {
        "runAsNonRoot": True,
        "runAsUser": _USER,
        "runAsGroup": _USER,
        "fsGroup": _USER,
        "seccompProfile": {"type": "RuntimeDefault"},
    }


def _mount(name: str, path: str) -> dict[str, Json]:
    return {"name": name, "mountPath": path}


def _empty(name: str) -> Json:
    return {"name": name, "emptyDir": {}}


def _tokens_volume() -> Json:
    return {"name": "tokens", "secret": {"secretName": _SECRET, "defaultMode": 0o440}}


_DOCUMENTS: Final[Mapping[str, Callable[[Matrix], Json]]] = {
    "github": _github,
    "gitlab": _gitlab,
    "argo": _argo,
    "kubernetes": _kubernetes,
}
