"""Engines in small: what GitLab, Argo and Kubernetes make of a document, each job run by the shell that it names.

A container is a process here, whose working directory is the image's project: paths below its mounts are replaced by
folders of this machine. Keys that an engine would refuse are the business of its schema; these follow what is there.
"""

import itertools
import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

IMAGE = f"registry.example/lms-config@sha256:{'0' * 64}"
TEMPORARY = "/tmp"  # noqa: S108  of a container, which has nothing else to write to
_TAG = re.compile(r"\{\{\s*([^}]+?)\s*\}\}")
_REFERENCE = re.compile(r"\$\$|\$\(([A-Za-z_][A-Za-z0-9_]*)\)")


def environment(**variables: str) -> dict[str, str]:
    """The variables of a process: those of an image, and some more."""
    ours = {name: os.environ[name] for name in ("PYTHONPATH",) if name in os.environ}
    return {"PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}", **ours, **variables}


def shell(words: Sequence[object], folder: Path, variables: Mapping[str, str]) -> tuple[int, str]:
    """Run a program in a folder, with these variables alone; return its exit code and what it printed."""
    ended = subprocess.run(
        list(map(str, words)),
        cwd=folder,
        env=environment(**variables),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=120,
        check=False,
    )
    return ended.returncode, ended.stdout


VARYING = re.compile(r'"(?:created_at|expires_at|seal)": ?"[^"]+"|(?<="GET )/[a-z-]+| \(tried \d times\)')
"""Times, the seal over them, which of concurrent requests is the first to fail, and after how many tries."""


def contents(folder: Path) -> dict[str, str]:
    """Each file of a folder, but for what varies from run to run."""
    return {path.name: VARYING.sub("", path.read_text()) for path in folder.iterdir()}


@dataclass
class Machine:
    """What runs containers. root: where its volumes are. project: a folder that each container gets a copy of.

    log: what all containers have printed. secrets: name of a Secret → its keys.
    """

    root: Path
    project: Path
    secrets: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    log: str = ""
    count: int = 0

    def folder(self, name: str) -> Path:
        """A new folder."""
        self.count += 1
        path = self.root / f"{self.count}-{name}"
        path.mkdir()
        return path

    def copy(self) -> Path:
        """The project, as one job has it."""
        return Path(shutil.copytree(self.project, self.folder("project"), dirs_exist_ok=True))

    def shell(self, words: Sequence[object], folder: Path, variables: Mapping[str, str]) -> int:
        """Run a program in a folder; return its exit code."""
        code, said = shell(words, folder, variables)
        self.log += said
        return code

    def container(
        self,
        container: Mapping[str, Any],
        volumes: Mapping[str, Path],
        inputs: Mapping[str, Path] | None = None,
        **more: str,
    ) -> tuple[int, dict[str, Path]]:
        """Run a container; return its exit code, and path in it → folder. more: variables that the engine sets."""
        variables = {**{one["name"]: self._value(one) for one in container["env"]}, **more}
        mounts = dict(inputs or {})
        for mount in container["volumeMounts"]:
            inside = volumes[mount["name"]] / expanded(mount.get("subPathExpr", "."), variables)
            inside.mkdir(exist_ok=True)
            mounts[mount["mountPath"]] = inside
        words = [outside(expanded(word, variables), mounts) for word in container["command"]]
        variables = {name: outside(value, mounts) for name, value in variables.items() if value}
        return self.shell(words, self.copy(), {**variables, "TMPDIR": outside(TEMPORARY, mounts)}), mounts

    def _value(self, variable: Mapping[str, Any]) -> str:
        if "value" in variable:
            return str(variable["value"])
        reference = variable["valueFrom"]["secretKeyRef"]
        keys = self.secrets.get(reference["name"], {})
        assert reference["key"] in keys or reference["optional"]
        return keys.get(reference["key"], "")

    def volumes(self, pod: Mapping[str, Any], claims: Mapping[str, Path]) -> dict[str, Path]:
        """The volumes of a pod: name → folder."""
        found = {}
        for volume in pod.get("volumes", []):
            name = volume["name"]
            if "persistentVolumeClaim" in volume:
                found[name] = claims[volume["persistentVolumeClaim"]["claimName"]]
            else:
                found[name] = self.folder(name)
            for key, text in self.secrets[volume["secret"]["secretName"]].items() if "secret" in volume else ():
                (found[name] / key).write_text(text)
        return found


def expanded(text: str, variables: Mapping[str, str]) -> str:
    """A text as Kubernetes expands it: `$(NAME)` of a variable that there is, `$$` as `$`, and nothing else."""
    return _REFERENCE.sub(lambda found: variables.get(found[1], found[0]) if found[1] else "$", text)


def outside(text: str, mounts: Mapping[str, Path]) -> str:
    """A text with the paths of mounts replaced by those of this machine."""
    paths = "|".join(map(re.escape, sorted(mounts, key=len, reverse=True)))
    return re.sub(rf"(?:{paths})(?=[/\s\"']|$)", lambda found: str(mounts[found[0]]), text)


def run_job(machine: Machine, job: Mapping[str, Any], claims: Mapping[str, Path]) -> dict[int, list[int]]:
    """Run a Job of Kubernetes, indexed or not; return the exit codes of each index, one for each of its pods."""
    spec = job["spec"]
    codes: dict[int, list[int]] = {}
    for index in range(spec.get("completions", 1)):
        codes[index] = []
        while not codes[index] or _again(spec, codes[index]):
            pod = spec["template"]["spec"]
            (container,) = pod["containers"]
            indexed = {"JOB_COMPLETION_INDEX": str(index)} if spec.get("completionMode") == "Indexed" else {}
            code, _ = machine.container(container, machine.volumes(pod, claims), **indexed)
            codes[index].append(code)
    return codes


def _again(spec: Mapping[str, Any], codes: Sequence[int]) -> bool:
    """Whether Kubernetes starts another pod for an index."""
    for rule in spec.get("podFailurePolicy", {}).get("rules", []):
        on = rule.get("onExitCodes")
        if on is not None and codes[-1] != 0 and (codes[-1] in on["values"]) is (on["operator"] == "In"):
            assert rule["action"] == "FailIndex"
            return False
    limit = spec.get("backoffLimitPerIndex", spec.get("backoffLimit"))
    return codes[-1] != 0 and len(codes) <= limit


def run_workflow(machine: Machine, workflow: Mapping[str, Any]) -> tuple[str, dict[str, int]]:
    """Run a Workflow of Argo; return its phase, and node → exit code. Artifacts are in the folder `artifacts`."""
    spec = workflow["spec"]
    templates = {template["name"]: template for template in spec["templates"]}
    values = {"workflow.name": f"{workflow['metadata']['generateName']}x7k2p"}
    codes: dict[str, int] = {}
    for group in templates[spec["entrypoint"]]["steps"]:
        stopped = False
        for step in group:
            for number, item in enumerate(step.get("withItems", [None])):
                arguments = filled(step.get("arguments", {}), {"item": item})
                given = {f"inputs.parameters.{one['name']}": one["value"] for one in arguments.get("parameters", [])}
                code, error = _pod(machine, spec, filled(templates[step["template"]], {**values, **given}))
                codes[f"{step['name']}({number}:{item})" if item else step["name"]] = code
                go_on = step.get("continueOn", {})
                stopped |= (error and not go_on.get("error")) or (code != 0 and not go_on.get("failed"))
        if stopped:
            return "Failed", codes
    return "Succeeded", codes


def _pod(machine: Machine, spec: Mapping[str, Any], template: Mapping[str, Any]) -> tuple[int, bool]:
    """Run a pod of Argo; return its exit code, and whether an artifact could not be kept. A failed one is kept too."""
    inputs = {}
    for artifact in template.get("inputs", {}).get("artifacts", []):
        inputs[artifact["path"]] = machine.folder(artifact["name"])
        shutil.copytree(artifacts(machine) / artifact["s3"]["key"], inputs[artifact["path"]], dirs_exist_ok=True)
    volumes = machine.volumes(spec, {}) | machine.volumes(template, {})
    code, mounts = machine.container(template["container"], volumes, inputs)
    for artifact in template.get("outputs", {}).get("artifacts", []):
        path = Path(outside(artifact["path"], mounts))
        if not path.exists():
            return code, True
        assert ("s3" in artifact) is ("archive" in artifact), "what is read as a folder is no archive"
        shutil.copytree(path, artifacts(machine) / artifact.get("s3", {}).get("key", artifact["name"]))
    return code, False


def artifacts(machine: Machine) -> Path:
    """The repository of artifacts: a key is a path."""
    return machine.root / "artifacts"


def filled(value: Any, values: Mapping[str, Any]) -> Any:
    """A part of a Workflow with its tags replaced; one that stands for nothing is an error, as there."""
    return json.loads(_TAG.sub(lambda found: json.dumps(values[found[1]])[1:-1], json.dumps(value)))


SCRIPT = ("bash", "-eo", "pipefail", "-c")
"""How GitLab runs the lines of a job."""


class Pipeline:
    """A child pipeline of GitLab. Each job has a copy of the project, and the artifacts of the jobs that it needs."""

    def __init__(self, machine: Machine, *files: Mapping[str, Any]) -> None:
        self._machine = machine
        self._jobs: dict[str, Any] = {}
        for file in files:
            self._jobs = merged(self._jobs, file)
        self._kept: dict[str, list[Path]] = {}

    def run(self, name: str, **variables: str) -> list[int]:
        """Run a job, each of its matrix; return the exit codes."""
        job, codes = self._jobs[name], []
        matrix = job["parallel"]["matrix"] if "parallel" in job else [{}]
        for values in itertools.chain.from_iterable(map(combinations, matrix)):
            folder = self._machine.copy()
            for kept in itertools.chain.from_iterable(self._kept[needed] for needed in job.get("needs", [])):
                shutil.copytree(kept, folder, dirs_exist_ok=True)
            code, _ = (
                self._machine.shell([*SCRIPT, "\n".join(lines)], folder, {**variables, **values})
                for lines in (job["script"], job.get("after_script", []))
            )
            codes.append(code)
            if code == 0 or job["artifacts"]["when"] == "always":
                kept = self._machine.folder("artifacts")
                keep(folder, job["artifacts"]["paths"], kept)
                self._kept.setdefault(name, []).append(kept)
        return codes

    def kept(self, name: str) -> Path:
        """What the only job of a name has kept."""
        (folder,) = self._kept[name]
        return folder


def keep(folder: Path, paths: Sequence[str], kept: Path) -> None:
    """Copies what there is of a job's artifacts."""
    for path in paths:
        if (folder / path).is_dir():
            shutil.copytree(folder / path, kept / path, dirs_exist_ok=True)
        elif (folder / path).exists():
            shutil.copy(folder / path, kept / path)


def combinations(axes: Mapping[str, Sequence[str]]) -> Iterator[dict[str, str]]:
    """The values of each job of a matrix."""
    for values in itertools.product(*axes.values()):
        yield dict(zip(axes, values, strict=True))


def merged(first: Any, second: Any) -> Any:
    """Two files of a pipeline as one: mappings key by key, of anything else the second."""
    if not (isinstance(first, dict) and isinstance(second, dict)):
        return second
    return {**first, **{key: merged(first[key], value) if key in first else value for key, value in second.items()}}
