"""Documents that run a fleet in pods: a Workflow of Argo, and an indexed Job of Kubernetes.

Pods run as the user of examples/ci/container, who owns no file: what they write is on volumes. The tokens are files of
a Secret.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from msgspec import Struct

from lmsconf.model.canonical_json import Json

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


class PodCommands(Struct, frozen=True, kw_only=True):
    """image: the container image with lmsconf and the project. plan: the command line for a shard and a folder."""

    image: str
    plan: Callable[[str, str], str]


def argo_workflow(name: str, shards: list[Json], commands: PodCommands) -> Json:
    """Return a Workflow: a pod for each shard, and one that collects.

    Pods that failed leave their folder too, and do not stop the others. The folders are artifacts with a key alone, so
    the repository of artifacts is the one that the cluster has.
    """
    key = "{{workflow.name}}/shards"
    plan: Json = {
        "name": "plan",
        "template": "plan",
        "arguments": {"parameters": [{"name": "shard", "value": "{{item}}"}]},
        "withItems": shards,
        "continueOn": {"failed": True, "error": True},
    }
    shard = "{{inputs.parameters.shard}}"
    return {
        "apiVersion": "argoproj.io/v1alpha1",
        "kind": "Workflow",
        "metadata": {"generateName": f"{name}-"},
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
                    "container": _planning("main", commands, shard),
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
                        commands.image,
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


def kubernetes_job(name: str, shards: int, commands: PodCommands) -> Json:
    """Return an indexed Job; the folders are on a volume claim, each in a folder with the job's index.

    A shard is tried again where its node was drained, and once where a service did not answer; the new pod finds the
    folder of the old one, and replaces it. Other failures would come again. Each index goes on without the others.
    """
    shard = f"$((JOB_COMPLETION_INDEX + 1))/{shards}"
    container = _planning("plan", commands, shard, f"rm -rf {_OUT} && ", subPathExpr="$(JOB_COMPLETION_INDEX)")
    drained: Json = {"action": "Ignore", "onPodConditions": [{"type": "DisruptionTarget", "status": "True"}]}
    hopeless: Json = {
        "action": "FailIndex",
        "onExitCodes": {"containerName": "plan", "operator": "NotIn", "values": [0, _UNREACHABLE]},
    }
    return {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {"name": name},
        "spec": {
            "activeDeadlineSeconds": _LONGEST,
            "completions": shards,
            "parallelism": shards,
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
                        {"name": "results", "persistentVolumeClaim": {"claimName": name}},
                        _empty("tmp"),
                        _tokens_volume(),
                    ],
                }
            },
        },
    }


def _planning(name: str, commands: PodCommands, shard: str, before: str = "", **mount: Json) -> Json:
    """Return the container that plans a shard; the tokens are mounted into no other.

    before: what its shell runs first. mount: more keys of the mount of its results.
    """
    command = f"{before}exec {commands.plan(shard, _OUT)} --processes {_PROCESSES}"
    tokens: Json = {**_mount("tokens", _TOKENS), "readOnly": True}
    allowed: Json = {"name": "LMSCONF_TOKEN_DIRS", "value": _TOKENS}
    return _container(name, commands.image, command, [{**_mount("results", _RESULTS), **mount}, tokens], [allowed])


def _container(name: str, image: str, command: str, mounts: list[Json], env: list[Json]) -> Json:
    """Return a container that runs a command line. `exec` in it lets the signals of the engine reach lmsconf."""
    key: Json = {"name": _KEY_SECRET, "key": "key", "optional": True}
    return {
        "name": name,
        "image": image,
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
