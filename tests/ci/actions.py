"""GitHub Actions in small: jobs of the workflows, step by step as they are written, with a stand-in for GitHub."""

import json
import re
import shutil
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from fnmatch import fnmatch
from pathlib import Path
from typing import Any

import yaml

from .engines import combinations, environment, keep, shell

HERE = Path(__file__).parent
_EXPRESSION = re.compile(r"\$\{\{\s*(.*?)\s*\}\}")
_PIP = f"""#!/bin/sh
# Installs nothing: lmsconf is here. As pip does, it refuses a requirement that is not pinned with its hash.
[ "$1 $2 $3 $4 $5 $6" = "-m pip install --quiet --require-hashes --requirement" ] || exec {sys.executable} "$@"
grep -q "^lmsconf==.* --hash=sha256:" "$7" && ! grep -v "^#" "$7" | grep -qv -- "--hash=sha256:" && exit 0
echo "ERROR: Hashes are required in --require-hashes mode, but they are missing from some requirements"
exit 1
"""


@dataclass(frozen=True, slots=True)
class JobResult:
    """What a job came to: whether it succeeded, its summary, what it said, the folder it worked in, and its outputs."""

    success: bool
    summary: str
    log: str
    folder: Path
    outputs: dict[str, str] = field(default_factory=dict)


class Actions:
    """A repository on GitHub, `clone` is a clone of it. What else is on GitHub is in `state`.

    alerts   what was uploaded last as SARIF
    unused   job → permissions that it was given and no run of it has used
    """

    def __init__(self, root: Path, secrets: Mapping[str, str], variables: Mapping[str, str] | None = None) -> None:
        """What is in the folder `clone` of the root is what the repository begins with."""
        self._root, self.clone, self._origin = root, root / "clone", root / "origin.git"
        self._secrets, self._variables = secrets, variables or {}
        self._older = self._count = 0
        self._state, self._bin = root / "github.json", root / "bin"
        self._bin.mkdir()
        self._program("gh", f'#!/bin/sh\nexec {sys.executable} {HERE / "gh.py"} "$@"\n')
        self._program("python", _PIP)
        self.alerts: list[dict[str, Any]] = []
        self.unused: dict[str, set[str]] = {}
        begun = {"comments": [], "statuses": {}, "pulls": {}, "issues": [], "labels": [], "artifacts": [], "runs": {}}
        self._state.write_text(json.dumps({**begun, "permissions": {}, "used": {}}), encoding="utf-8")
        git(root, "init", "--quiet", "--bare", str(self._origin))
        git(self.clone, "init", "--quiet")
        git(self.clone, "remote", "add", "origin", str(self._origin))
        self.push_all("main")

    def push_all(self, branch: str) -> None:
        """Commit what is in the clone, and push it."""
        commit(self.clone)
        git(self.clone, "push", "--quiet", "--force", "origin", f"HEAD:refs/heads/{branch}")

    def requested(self, workflow: str, ref: str, head: str, *, fork: bool = False) -> dict[str, JobResult]:
        """Run what a pull request runs. head: the commit that it asks to merge; ref: what its jobs check out."""
        pull = {"number": 7, "head": {"sha": head, "repo": {"full_name": "mallory/lms" if fork else "acme/lms"}}}
        return self.run(workflow, ref, {"pull_request": pull}, fork=fork)

    def _program(self, name: str, text: str) -> None:
        (self._bin / name).write_text(text, encoding="utf-8")
        (self._bin / name).chmod(0o755)

    @property
    def state(self) -> dict[str, Any]:
        """All that is on GitHub beside the repository."""
        found: dict[str, Any] = json.loads(self._state.read_text(encoding="utf-8"))
        return found

    def write(self, **changes: object) -> None:
        """Changes what is on GitHub."""
        self._state.write_text(json.dumps({**self.state, **changes}), encoding="utf-8")

    def run(self, workflow: str, ref: str, event: Mapping[str, Any], *, fork: bool = False) -> dict[str, JobResult]:
        """Runs the jobs of a workflow whose `if` holds, at a ref of the repository. A fork has no secrets.

        Of a job with a matrix, the result of each is there by the job's name and the values: `plan (1/2)`.
        """
        document = yaml.safe_load(git(self._origin, "show", f"{ref}:.github/workflows/{workflow}"))
        assert document["permissions"] == {}
        pull, runs = event.get("pull_request"), self.state["runs"]
        run = {
            "path": f".github/workflows/{workflow}@{ref}",
            "event": "pull_request" if pull else "workflow_dispatch" if event else "push",
            "head_sha": pull["head"]["sha"] if pull else git(self._origin, "rev-parse", ref),
        }
        self.write(runs={**runs, str(len(runs) + 1): run})
        self._older = len(self.state["artifacts"])
        found: dict[str, JobResult] = {}
        results: dict[str, dict[str, Any]] = {}
        for name, job in document["jobs"].items():
            needed = [job["needs"]] if "needs" in job else []
            contexts = {
                "github": {
                    "event": event,
                    "repository": "acme/lms",
                    "token": "github-token",
                    "server_url": "https://github.example",
                    "run_id": str(len(runs) + 1),
                    "event_name": "pull_request" if pull else "push",
                },
                "secrets": {} if fork else self._secrets if "environment" in job else {},
                "vars": self._variables if "environment" in job else {},
                "inputs": event.get("inputs", {}),
                "needs": {one: results[one] for one in needed},
                "steps": {},
            }
            held = any(results[one]["result"] != "success" for one in needed)
            results[name] = {"result": "skipped", "outputs": {}}
            if holds(job.get("if", "success()"), contexts, failed=held):
                ran = self._matrix(name, job, ref, contexts, fork)
                passed = all(one.success for one in ran.values())
                (*_, last) = ran.values()
                results[name] = {"result": "success" if passed else "failure", "outputs": last.outputs}
                found |= ran
        return found

    def _matrix(
        self, name: str, job: Mapping[str, Any], ref: str, contexts: dict[str, Any], fork: bool
    ) -> dict[str, JobResult]:
        """Runs a job, or one for each of its matrix: also after one that failed, where it says so."""
        if "strategy" not in job:
            return {name: self._job(name, job, ref, contexts, fork)}
        assert job["strategy"]["fail-fast"] is False
        ran = {}
        for index, values in enumerate(combinations(json.loads(filled(job["strategy"]["matrix"], contexts)))):
            more = {"matrix": values, "strategy": {"job-index": index}, "steps": {}}
            ran[f"{name} ({', '.join(values.values())})"] = self._job(name, job, ref, {**contexts, **more}, fork)
        return ran

    def _job(self, name: str, job: Mapping[str, Any], ref: str, contexts: dict[str, Any], fork: bool) -> JobResult:
        self._count += 1
        permissions = {name: "read" if fork else level for name, level in job["permissions"].items()}
        self.write(permissions=permissions, used={})
        folder = self._root / f"run-{self._count}"
        folder.mkdir()
        (folder / "summary").touch()
        failed, log = False, ""
        for step in job["steps"]:
            outcome, outputs = "skipped", {}
            if holds(step.get("if", "success()"), contexts, failed=failed):
                if "uses" in step:
                    code, said = self._uses(step, folder, ref, contexts, fork), ""
                else:
                    code, said, outputs = self._shell(step, folder, ref, contexts)
                outcome = "failure" if code else "success"
                failed, log = failed or code != 0, f"{log}== {step['name']}\n{said}"
            if "id" in step:
                contexts["steps"][step["id"]] = {"outcome": outcome, "outputs": outputs}
        self.unused[name] = self.unused.get(name, set(permissions) - {"contents"}) - set(self.state["used"])
        summary = (folder / "summary").read_text(encoding="utf-8")
        outputs = {name: filled(text, contexts) for name, text in job.get("outputs", {}).items()}
        return JobResult(not failed, summary, log, folder / "work", outputs)

    def _shell(
        self, step: Mapping[str, Any], folder: Path, ref: str, contexts: Mapping[str, Any]
    ) -> tuple[int, str, dict[str, str]]:
        """Runs a script as GitHub does, and gives exit code, output, and the outputs of the step."""
        assert "${{" not in step["run"], "an expression in a script could be code"
        (folder / "output").write_text("", encoding="utf-8")
        variables = {
            "PATH": f"{self._bin}:{environment()['PATH']}",
            "HOME": str(folder),
            "CI": "true",
            "GITHUB_ACTOR": "anna",
            "GITHUB_OUTPUT": str(folder / "output"),
            "GITHUB_REPOSITORY": "acme/lms",
            "GITHUB_SHA": git(self._origin, "rev-parse", ref),
            "GITHUB_STATE": str(self._state),
            "GITHUB_STEP_SUMMARY": str(folder / "summary"),
            **{name: filled(str(value), contexts) for name, value in step.get("env", {}).items()},
        }
        code, said = shell(["bash", "-e", "-c", step["run"]], folder / "work", variables)
        lines = (folder / "output").read_text(encoding="utf-8").splitlines()
        return code, said, dict(line.split("=", 1) for line in lines)

    def _uses(self, step: Mapping[str, Any], folder: Path, ref: str, contexts: Mapping[str, Any], fork: bool) -> int:
        """What the actions of others do, as far as it matters here."""
        action, options = step["uses"].partition("@")[0], step.get("with", {})
        work = folder / "work"
        if action == "actions/checkout":
            depth = options.get("fetch-depth", 1)
            git(folder, "init", "--quiet", "work")
            git(work, "fetch", "--quiet", f"--depth={depth}", self._origin.as_uri(), ref)
            git(work, "checkout", "--quiet", "FETCH_HEAD")
        elif action == "actions/upload-artifact":
            self._keep(filled(options["name"], contexts), work, options["path"].split(), ref, fork)
        elif action == "actions/download-artifact":
            return self._fetch(options, work)
        elif action == "github/codeql-action/upload-sarif":
            # The repository is private, as one with plans should be: there the action also asks about its own run.
            needed = {"actions": "read", "security-events": "write"}
            if not needed.items() <= self.state["permissions"].items():
                return 1
            self.write(used={**self.state["used"], **needed})
            self.alerts = json.loads((work / options["sarif_file"]).read_text(encoding="utf-8"))["runs"][0]["results"]
        else:
            assert action == "actions/setup-python"
        return 0

    def _keep(self, name: str, work: Path, paths: Sequence[str], ref: str, fork: bool) -> None:
        folder = self._root / f"artifact-{self._count}-{name}"
        folder.mkdir()
        alone = len(paths) == 1 and (work / paths[0]).is_dir()  # which is the root of the artifact
        keep(work / paths[0] if alone else work, ["."] if alone else paths, folder)
        run = {"id": self._count, "head_branch": ref, "repository_id": 1, "head_repository_id": 2 if fork else 1}
        kept = {"name": name, "expired": False, "folder": str(folder), "workflow_run": run}
        self.write(artifacts=[*self.state["artifacts"], kept])

    def _fetch(self, options: Mapping[str, str], work: Path) -> int:
        """Fetches artifacts of this run; several go into folders with their names, unless they are merged."""
        wanted = options.get("pattern") or options["name"]
        kept = [one for one in self.state["artifacts"][self._older :] if fnmatch(one["name"], wanted)]
        into = work / options.get("path", ".")
        for one in kept:
            apart = len(kept) > 1 and not options.get("merge-multiple", False)
            shutil.copytree(one["folder"], into / one["name"] if apart else into, dirs_exist_ok=True)
        return int(not kept and "name" in options)


def git(folder: Path, *arguments: str) -> str:
    """What git says."""
    identity = ("-c", "user.name=Anna", "-c", "user.email=anna@acme.example", "-c", "init.defaultBranch=main")
    ended = subprocess.run(
        ["git", *identity, "-C", str(folder), *arguments],
        stdout=subprocess.PIPE,
        text=True,
        check=True,
    )
    return ended.stdout.strip()


def commit(folder: Path) -> None:
    """Commits what is there."""
    git(folder, "add", ".")
    git(folder, "commit", "--quiet", "--message", "Change")


def filled(text: str, contexts: Mapping[str, Any]) -> str:
    """The text with its expressions evaluated."""
    return _EXPRESSION.sub(lambda found: value(found[1], contexts), text)


def value(expression: str, contexts: Mapping[str, Any]) -> str:
    """A literal, or what a context holds; nothing where it holds nothing."""
    expression = expression.removeprefix("fromJSON(").removesuffix(")")  # the text is read where it is used
    if expression.startswith("'"):
        return expression.strip("'")
    first, *path = expression.split(".")
    found: Any = contexts[first]
    for step in path:
        found = found.get(step, "") if isinstance(found, Mapping) else ""
    return str(found)


def holds(condition: str, contexts: Mapping[str, Any], *, failed: bool) -> bool:
    """Whether an `if` lets a job or step run. Without a word about the status, nothing may have failed."""
    whole = _EXPRESSION.fullmatch(condition)
    text = whole[1] if whole else condition
    states = {"success()": not failed, "failure()": failed, "!cancelled()": True}
    implied = not failed or any(state in text for state in states)
    return implied and any(
        all(states[term] if term in states else _compared(term, contexts) for term in either.split(" && "))
        for either in text.split(" || ")
    )


def _compared(term: str, contexts: Mapping[str, Any]) -> bool:
    left, operator, right = term.split(" ")
    assert operator in ("==", "!=")
    return (value(left, contexts) == value(right, contexts)) is (operator == "==")
