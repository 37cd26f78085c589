"""What `lmsconf fleet matrix` prints, played through as the engine would: the result is that without shards."""

import json
import shutil
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

from .engines import IMAGE, Machine, Pipeline, artifacts, contents, environment, run_job, run_workflow, shell
from .test_workflows import CI, REPOSITORY

pytestmark = [
    pytest.mark.slow,
    pytest.mark.sampled(gate=3),
    pytest.mark.skipif(not shutil.which("bash"), reason="the jobs of GitLab need bash"),
]
SELECT = "region=us,!closed"
ERROR, UNREACHABLE, USAGE = 1, 8, 64


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    """The project with forty workspaces, and two more in the selection: one has no variable, one is not reachable."""
    project = Path(shutil.copytree(REPOSITORY / "examples" / "fleet", tmp_path / "project"))
    text = (project / "lmsconf.yaml").read_text()
    text = text.replace("workspaces:\n", "workspaces:\n  token: {file: token}\n")
    (project / "lmsconf.yaml").write_text(f"{text}max_failures: 2\n")
    (project / "token").write_text("sandbox\n")
    (project / "token").chmod(0o600)
    with (project / "workspaces.csv").open("a") as table:
        table.write('albany,http://127.0.0.1:9,"ring=main, region=us",site=Albany\n')
        table.write('buffalo,sandbox:,"ring=main, region=us",\n')
    (tmp_path / "machine").mkdir()
    return Machine(tmp_path / "machine", project, {"lmsconf-tokens": {"oslo": "t"}})


def document(machine: Machine, format: str, *arguments: str, select: str = SELECT) -> Any:
    """What is printed for an engine."""
    words = ("lmsconf", "fleet", "matrix", "--format", format, "--select", select, *arguments)
    code, printed = shell(words, machine.project, {})
    assert code == 0, printed
    return json.loads(printed)


def lmsconf(machine: Machine, *arguments: str | Path) -> int:
    """Run a command in the project."""
    return machine.shell(["lmsconf", *arguments], machine.project, {})


def on_kubernetes(machine: Machine, shards: int, select: str = SELECT) -> tuple[dict[int, list[int]], int, Path]:
    """Run the Job and the one that collects; return the exit codes of both, and the folder of what is collected."""
    claims = {"lmsconf-fleet-plan": machine.folder("claim")}
    job = document(machine, "kubernetes", "--shards", str(shards), "--image", IMAGE, select=select)
    codes = run_job(machine, job, claims)
    collect = yaml.safe_load((CI / "kubernetes" / "fleet-collect.yaml").read_text())
    ((collected,),) = run_job(machine, collect, claims).values()
    return codes, collected, claims["lmsconf-fleet-plan"] / "collected"


def without_shards(machine: Machine, select: str = SELECT) -> dict[str, str]:
    """The files of a run without shards."""
    assert lmsconf(machine, "fleet", "plan", "--select", select, "--out", machine.root / "whole") != USAGE
    return contents(machine.root / "whole")


def test_gitlab(machine: Machine) -> None:
    """The jobs of the child pipeline keep their folders apart, and the recipe collects and applies them."""
    shared = yaml.safe_load((CI / "gitlab" / "fleet-shards.yml").read_text())
    pipeline = Pipeline(machine, shared, document(machine, "gitlab", "--shards", "3"))
    assert sorted(pipeline.run("lmsconf-fleet-plan")) == [0, ERROR, UNREACHABLE]
    assert pipeline.run("collect") == [ERROR]
    assert contents(pipeline.kept("collect") / "collected") == without_shards(machine)
    assert pipeline.run("apply", CI_COMMIT_SHA="1a2b3c", GITLAB_USER_LOGIN="anna") == [ERROR]
    applied = json.loads((pipeline.kept("apply") / "collected" / "apply.json").read_text())
    assert sum(one["exit"] == 0 for one in applied["workspaces"]) == 15
    assert "@" not in machine.log  # people are masked


def test_argo(machine: Machine) -> None:
    """Shards that failed leave their folders, and a last step collects; it fails, so the Workflow does too."""
    phase, codes = run_workflow(machine, document(machine, "argo", "--shards", "3", "--image", IMAGE))
    assert phase == "Failed"
    assert sorted(codes.values()) == [0, ERROR, ERROR, UNREACHABLE]
    assert codes["collect"] == ERROR
    assert contents(artifacts(machine) / "fleet") == without_shards(machine)


def test_kubernetes(machine: Machine) -> None:
    """An index whose service did not answer is tried once more, in the folder of the first try; others go on."""
    codes, collected, out = on_kubernetes(machine, 3)
    assert sorted(codes.values()) == [[0], [ERROR], [UNREACHABLE, UNREACHABLE]]
    assert collected == ERROR
    assert contents(out) == without_shards(machine)


CANARIES = "ring=canary"


def test_kubernetes_with_more_pods_than_workspaces(machine: Machine) -> None:
    """A pod without a workspace succeeds, and what is collected is the whole; it can be applied, and all is done."""
    codes, collected, out = on_kubernetes(machine, 4, CANARIES)
    assert (codes, collected) == ({n: [0] for n in range(4)}, 0)
    assert contents(out) == without_shards(machine, CANARIES)
    assert lmsconf(machine, "fleet", "apply", out, "--auto-approve") == 0
    assert lmsconf(machine, "fleet", "plan", "--select", CANARIES, "--detailed-exitcode") == 0


def test_argo_succeeds_with_all_shards_and_says_which_is_missing(machine: Machine) -> None:
    """A pod that ended without its folder is an error of its step alone; the step that collects names the shard."""
    workflow = document(machine, "argo", "--shards", "4", "--image", IMAGE, select=CANARIES)
    phase, codes = run_workflow(machine, workflow)
    assert (phase, set(codes.values())) == ("Succeeded", {0})
    assert contents(artifacts(machine) / "fleet") == without_shards(machine, CANARIES)
    shutil.rmtree(artifacts(machine))
    plan = next(template for template in workflow["spec"]["templates"] if template["name"] == "plan")
    command = plan["container"]["command"]
    command[2] = f'[ "{{{{inputs.parameters.shard}}}}" != 2/4 ] && {command[2]}'
    phase, codes = run_workflow(machine, workflow)
    assert (phase, codes["collect"]) == ("Failed", ERROR)
    assert "1 of 4 shards missing: 2/4" in machine.log


def test_the_script_for_kubernetes(machine: Machine) -> None:
    """It makes the volume, plans, collects, shows what the plans share, and fails as the job that collects."""
    (machine.root / "kubectl.json").write_text(json.dumps({"project": str(machine.project), "objects": {}, "log": ""}))
    (machine.root / "bin").mkdir()
    kubectl = machine.root / "bin" / "kubectl"
    kubectl.write_text(f'#!/bin/sh\nexec {sys.executable} {Path(__file__).parent / "kubectl.py"} "$@"\n')
    kubectl.chmod(0o755)
    shutil.copytree(CI / "kubernetes", machine.project / "fleet")
    paths = f"{kubectl.parent}:{environment()['PATH']}"
    for shards in ("3", "2"):
        words = ["sh", "fleet/fleet.sh", IMAGE, shards]
        assert machine.shell(words, machine.project, {"PATH": paths, "KUBECTL_STATE": str(machine.root)}) == 1
    assert machine.log.count("42 workspaces: 40 with changes, 0 without, 2 failed.") == 2
