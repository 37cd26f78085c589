"""The workers of a Dask scheduler, in processes of their own, over TLS on loopback."""

import json
import os
import re
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, suppress
from importlib.util import find_spec
from pathlib import Path
from random import Random
from typing import NamedTuple

import httpx
import pytest
from fleet.fleet_project import ServedFleet
from flow.shell import Ran
from sampling import examples
from self_signed import make_certificate

from lmsconf.sandbox.service import Sandbox

psutil = pytest.importorskip("psutil")
if find_spec("distributed") is None:  # which takes a second to import
    pytest.skip("the extra `dask` is not installed", allow_module_level=True)

pytestmark = [pytest.mark.slow, pytest.mark.sampled(gate=3)]  # each has a cluster of its own

NAMES = ("alpha", "beta", "gamma", "delta")
KEY = "canary-plan-key-5f1c0b7e9a3d4c21-and-more"
TOKENS = {name: f"canary-token-{name}-77aa01" for name in NAMES}
PROJECT = """\
workspaces: {file: workspaces.csv, token: {env: "LMSCONF_TOKEN_$(workspace)"}}
settle: 1s
guards: off
"""


class DaskCluster(NamedTuple):
    """What runs. address: of the scheduler. environ: what a client needs to connect. log: of all processes."""

    address: str
    environ: Mapping[str, str]
    scheduler: int
    dashboard: str
    log: Path


class DaskFleet(ServedFleet):
    """Four served workspaces, a project here, and a copy of it on each of two nodes that share no folder."""

    def __init__(self, root: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
        self.nodes = [root / f"node-{number}" / "project" for number in range(2)]
        super().__init__(root / "here", capsys, monkeypatch)
        self.write("lmsconf.yaml", PROJECT)
        monkeypatch.setenv("LMSCONF_PLAN_KEY", KEY)
        monkeypatch.setenv("LMSCONF_TOKEN_silent", "token")  # for the workers, which start before it is added
        for name, token in TOKENS.items():
            self.serve(name, "ring=canary" if name == "alpha" else "ring=main", token=token, latency=0.03)

    def write(self, name: str, text: str) -> None:
        """Write a file of the project, here and on the nodes."""
        super().write(name, text)
        self.write_on_nodes(name, text)

    def write_on_nodes(self, name: str, text: str) -> None:
        """Write a file of the copies alone."""
        for node in self.nodes:
            (node / name).parent.mkdir(parents=True, exist_ok=True)
            (node / name).write_text(text)

    def want_groups(self, title: str, number: int) -> None:
        """Want so many groups with this title in each workspace, and nothing else."""
        self.write("manifests/a.yaml", json.dumps({"groups": [{"name": f"{title} {n}"} for n in range(number)]}))

    def start(self, cluster: DaskCluster, *arguments: object) -> subprocess.Popen[str]:
        """Start a command on the cluster."""
        command = [sys.executable, "-m", "lmsconf", "-C", self.root, "fleet", *map(str, arguments)]
        command += ["--engine", "dask", "--scheduler", cluster.address, "--worker-project", "project"]
        environ = {**os.environ, **cluster.environ, "DASK_DISTRIBUTED__COMM__TIMEOUTS__CONNECT": "5s"}
        return subprocess.Popen(command, env=environ, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)

    def start_apply(self, cluster: DaskCluster, *arguments: str) -> subprocess.Popen[str]:
        """Start to apply the plans in `out`, and wait until some calls were sent."""
        process = self.start(cluster, "apply", self.out, "--auto-approve", "--parallelism", "1", *arguments)
        _until(lambda: self.writes() > 4)
        return process

    def on(self, cluster: DaskCluster, *arguments: object) -> Ran:
        """Run a command on the cluster."""
        with self.start(cluster, *arguments) as process:
            out, err = process.communicate(timeout=120)
        return Ran(process.returncode, out, err)

    def writes(self) -> int:
        return sum(entry.method != "GET" for service in self.services.values() for entry in service.log)


@pytest.fixture
def fleet(tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Iterator[DaskFleet]:
    fleet = DaskFleet(tmp_path, capsys, monkeypatch)
    with fleet.servers:
        yield fleet


@pytest.fixture
def cluster(tmp_path: Path, fleet: DaskFleet) -> Iterator[DaskCluster]:
    """A scheduler that knows no token, and a worker of one thread on each node, which has them all."""
    certificate, _ = make_certificate(tmp_path, "127.0.0.1")
    files = {"ca-file": certificate, "cert": certificate, "key": tmp_path / "key.pem"}
    options = [word for name, file in files.items() for word in (f"--tls-{name}", str(file))]
    tls = "DASK_DISTRIBUTED__COMM__TLS__"
    client = {
        f"{tls}CA_FILE": str(certificate),
        f"{tls}CLIENT__CERT": str(certificate),
        f"{tls}CLIENT__KEY": str(files["key"]),
    }
    base = {name: value for name, value in os.environ.items() if not name.startswith("LMSCONF_")}
    base["DASK_DISTRIBUTED__SCHEDULER__ALLOWED_FAILURES"] = "20"
    found, log = tmp_path / "scheduler.json", tmp_path / "dask.log"
    with ExitStack() as stack:
        output = stack.enter_context(log.open("ab"))

        def start(program: str, *arguments: str, cwd: Path, env: Mapping[str, str]) -> subprocess.Popen[bytes]:
            command = [sys.executable, "-m", f"distributed.cli.{program}", *options, "--host", "127.0.0.1", *arguments]
            process = subprocess.Popen(
                [*command, "--dashboard-address", "127.0.0.1:0"], cwd=cwd, env=env, stdout=output, stderr=output
            )
            stack.callback(_end, process)
            return process

        arguments = ("--port", "0", "--protocol", "tls", "--scheduler-file", str(found))
        scheduler = start("dask_scheduler", *arguments, cwd=tmp_path, env=base)
        _until(lambda: scheduler.poll() is not None or (found.is_file() and found.read_text()))
        assert scheduler.poll() is None, log.read_text()
        document = json.loads(found.read_text())
        for node in fleet.nodes:
            arguments = (document["address"], "--nthreads", "1", "--local-directory", str(tmp_path / "dask"))
            start("dask_worker", *arguments, cwd=node.parent, env={**os.environ, **base})
        port = document["services"]["dashboard"]
        yield DaskCluster(document["address"], client, scheduler.pid, f"http://127.0.0.1:{port}", log)


def _end(process: subprocess.Popen[bytes]) -> None:
    process.terminate()
    try:
        process.wait(20)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()


def test_the_index_is_that_of_the_local_engine(fleet: DaskFleet, cluster: DaskCluster) -> None:
    """Byte for byte, but for the time and the signature of it; so is each plan, and the result of an apply."""
    fleet.want_groups("Team", 3)
    fleet.plan()
    dask = fleet.root / "dask"
    assert fleet.on(cluster, "plan", "--out", dask)[::2] == (0, "")
    texts = [(folder / "index.json").read_text() for folder in (fleet.out, dask)]
    first, second = (re.sub(r'"(created_at|hmac)": ?"[^"]*"', "", text) for text in texts)
    assert first == second
    for command in ("drift", "validate", "test"):
        alike = [run(command, "--format", "json") for run in (fleet.command, lambda *w: fleet.on(cluster, *w))]
        assert alike[0].code == alike[1].code
        assert {**alike[0].document, "created_at": ""} == {**alike[1].document, "created_at": ""}
    applied = "4 workspaces: 4 applied or without changes (12 API calls).\n"
    assert fleet.on(cluster, "apply", dask, "--auto-approve") == (0, applied, "")
    assert json.loads((dask / "beta.report.json").read_text())["converged"] is True
    assert [path.stat().st_mode & 0o077 for path in dask.iterdir()] == [0] * 10
    assert fleet.on(cluster, "plan", "--detailed-exitcode").code == 0


def test_another_project_on_the_workers_is_refused(fleet: DaskFleet, cluster: DaskCluster) -> None:
    """Workers plan from their own copy, so a copy with other files makes no plan."""

    def differs() -> str:
        code, out, _ = fleet.on(cluster, "plan")
        assert code == 1
        return out.partition("the project on the worker differs from the one here, in some of: ")[2]

    fleet.write_on_nodes("manifests/more.yaml", "groups: [{name: Not here}]\n")
    assert differs().startswith("manifests")
    fleet.write_on_nodes("lmsconf.yaml", PROJECT + "timezone: Europe/Oslo\n")
    assert differs().startswith("lmsconf.yaml, manifests")
    fleet.write_on_nodes("lmsconf.yaml", PROJECT)
    leaders = "groups: [{name: Leaders, members: {file: ../people/leaders.csv, column: email, allow_empty: true}}]"
    fleet.write("manifests/more.yaml", leaders)
    fleet.write("people/leaders.csv", "email\n")
    for number, node in enumerate(fleet.nodes):
        (node / "people" / "leaders.csv").write_text("email\n" + "\n" * (number + 1))
    assert differs().startswith("manifests/a.yaml, manifests/more.yaml, people/leaders.csv")
    for node in fleet.nodes:
        (node / "lmsconf.yaml").unlink()
    assert "the worker has no project in " in fleet.on(cluster, "plan").out
    assert fleet.writes() == 0


def test_what_does_not_answer_is_exit_code_8(fleet: DaskFleet, cluster: DaskCluster) -> None:
    """A scheduler is named by its address; a workspace is ended by its time, and the others have their results."""
    url = fleet.hang("silent")
    code, out, _ = fleet.on(cluster, "plan", "--select", "workspace!=delta", "--time-limit", "10")
    assert code == 8
    assert f"Workspace silent ({url})" in out
    assert "the time limit of 10 seconds is over" in out
    assert "3 with changes, 0 without, 1 failed." in out
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        address = f"tls://127.0.0.1:{unused.getsockname()[1]}"
    code, _, err = fleet.on(cluster._replace(address=address), "plan")
    assert code == 8
    assert f"the Dask scheduler {address} cannot be reached" in err


def test_an_interrupted_apply_stops_on_the_workers(fleet: DaskFleet, cluster: DaskCluster) -> None:
    """Ctrl-C ends the calls that were sent, sends no other one, and brings the reports of what was done."""
    fleet.want_groups("Team", 40)
    fleet.plan()
    with fleet.start_apply(cluster) as process:
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=60)
    assert process.returncode == 130, out + err
    written = fleet.writes()
    assert 4 < written < 80
    assert list(fleet.exits().values()) == [130] * 4
    assert sum(one["summary"].get("done", 0) for one in fleet.index(name="apply.json")["workspaces"]) == written
    outcomes = [one["status"] for path in fleet.out.glob("*.report.json") for one in _report(path)["outcomes"]]
    assert outcomes.count("done") == written
    time.sleep(2)
    assert fleet.writes() == written


def test_work_ends_with_its_scheduler(fleet: DaskFleet, cluster: DaskCluster) -> None:
    """Without a scheduler nobody gets the results, and another worker may be given the task: no more calls are sent."""
    fleet.want_groups("Team", 300)
    fleet.plan()
    with fleet.start_apply(cluster) as process:
        os.kill(cluster.scheduler, signal.SIGKILL)
        out, err = process.communicate(timeout=60)
    assert process.returncode == 5, out + err  # calls were sent
    assert "the Dask scheduler has lost the task" in out
    _until(lambda: not _processes("lmsconf.fleet.worker"))
    assert fleet.writes() < 4 * 300


def test_no_secret_is_at_the_scheduler(fleet: DaskFleet, cluster: DaskCluster) -> None:
    """Tokens and the key of plans are in no memory, page, log or result of Dask, also where a token is refused."""
    fleet.want_groups("Known to the scheduler", 20)
    fleet.plan()
    fleet.services["delta"].keys = Sandbox(token="another").keys
    with fleet.start_apply(cluster, "--max-failures", "9") as process:
        with ExitStack() as stack:  # an apply that ended would be on no page
            for worker in _processes("lmsconf.fleet.worker"):
                with suppress(psutil.NoSuchProcess):  # it has ended meanwhile
                    worker.suspend()
                    stack.callback(worker.resume)
            dumps = [memory(cluster.scheduler), pages(cluster.dashboard)]
        out, err = process.communicate(timeout=60)
    assert process.returncode == 7, out + err
    dumps += [memory(cluster.scheduler), pages(cluster.dashboard), cluster.log.read_bytes(), (out + err).encode()]
    dumps += [path.read_bytes() for path in fleet.out.iterdir()]
    assert b"Known to the scheduler 7" in dumps[0], "the search finds what is there"
    assert b"lmsconf-apply" in dumps[1]
    for canary in (KEY, *TOKENS.values()):
        assert [number for number, dump in enumerate(dumps) if canary.encode() in dump] == []


def memory(pid: int) -> bytes:
    """What a process has in its memory."""
    pieces = []
    process = Path("/proc") / str(pid)
    with (process / "maps").open() as maps, (process / "mem").open("rb", 0) as mem:
        for line in maps:
            start, end = (int(part, 16) for part in line.split()[0].split("-"))
            if line.split()[1].startswith("rw"):
                with suppress(OSError):  # a region that was freed since, or is not memory
                    mem.seek(start)
                    pieces.append(mem.read(end - start))
    return b"".join(pieces)


LINK = re.compile(r'href="(?:\.\./)*((?:task|worker|call-stack|logs|worker-logs)[^"]*)"')


def pages(dashboard: str) -> bytes:
    """Every page that a scheduler serves, and those that they link to."""
    seen: dict[str, str] = {}
    with httpx.Client(base_url=dashboard, timeout=10, follow_redirects=True) as client:
        left = [path for path in client.get("/sitemap.json").json()["paths"] if not {"{", "("} & set(path)]
        while left and len(seen) < 200:
            path = left.pop()
            if path not in seen:
                seen[path] = client.get(path).text
                left += [f"/info/{link}" for link in LINK.findall(seen[path])]
    return "\n".join([*seen, *seen.values()]).encode()


def test_workers_killed_at_random_leave_nothing_undone_and_nothing_twice(
    fleet: DaskFleet, cluster: DaskCluster
) -> None:
    """Each apply converges, each workspace has each group once, and no creation is carried out twice."""
    dice = Random(17)  # noqa: S311  the same choices each time, as far as real processes allow
    groups, rounds, kills, continued = 12, examples(5), 0, 0
    planned = groups * len(NAMES)
    for number in range(rounds):
        fleet.want_groups(f"Round {number}", groups)
        out = fleet.root / f"out-{number}"
        fleet.plan(out=out.name)
        for service in fleet.services.values():
            service.log.clear()
        with fleet.start(cluster, "apply", out, "--auto-approve", "--parallelism", "2") as process:
            for moment in sorted(dice.sample(range(1, planned - 4), dice.choice((3, 4)))):
                _until(lambda moment=moment: fleet.writes() >= moment or process.poll() is not None)
                kills += kill_worker(dice)
            said, err = process.communicate(timeout=180)
        assert process.returncode == 0, f"round {number}: {said}{err}"
        assert said == f"4 workspaces: 4 applied or without changes ({planned} API calls).\n"
        for name, service in fleet.services.items():
            # Of a process that is killed while it sends, the service may get half a request, which it refuses.
            carried_out = [entry.operation for entry in service.log if entry.writes and entry.status == 200]
            assert carried_out == ["manual-groups.create"] * groups, f"round {number}, {name}"
        continued += sum(len(_report(path)["outcomes"]) < groups for path in out.glob("*.report.json"))
        fleet.command("plan", "--detailed-exitcode", code=0)
    assert kills >= 3 * rounds
    assert continued, "no plan was finished by a second attempt"


def kill_worker(dice: Random) -> bool:
    """Kill the process of one Dask worker, which its nanny starts again; wait for one while none is running."""
    _until(lambda: _processes("spawn_main"))
    workers = _processes("spawn_main")
    if workers:
        dice.choice(sorted(workers, key=lambda process: process.pid)).kill()
    return bool(workers)


def _processes(word: str) -> list[psutil.Process]:
    """What this process and others below it have started, with that word in the command line."""
    found = []
    for process in psutil.Process().children(recursive=True):
        with suppress(psutil.Error):  # it has ended meanwhile
            if word in " ".join(process.cmdline()):
                found.append(process)
    return found


def _report(path: Path) -> dict[str, list[dict[str, object]]]:
    report: dict[str, list[dict[str, object]]] = json.loads(path.read_text())
    return report


def _until(holds: Callable[[], object], seconds: float = 60) -> None:
    end = time.monotonic() + seconds
    while not holds():
        assert time.monotonic() < end
        time.sleep(0.01)
