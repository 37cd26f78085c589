"""The workers of a Dask scheduler, in processes of their own, over TLS on loopback."""

import json
import os
import re
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterable, Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from importlib.util import find_spec
from pathlib import Path
from random import Random

import httpx
import pytest
from fleet.fleet_project import DaskCluster, dask_cluster
from sampling import examples

from lmsconf.sandbox.serve import Server
from lmsconf.sandbox.service import Sandbox

psutil = pytest.importorskip("psutil")
if find_spec("distributed") is None:  # which takes a second to import
    pytest.skip("the extra `dask` is not installed", allow_module_level=True)

pytestmark = [pytest.mark.slow, pytest.mark.sampled(gate=3)]  # each has a cluster of its own

NAMES = ("alpha", "beta", "gamma", "delta")
KEY = "canary-plan-key-5f1c0b7e9a3d4c21-and-more"
TOKENS = {name: f"canary-token-{name}-77aa01" for name in NAMES}
ENVIRONMENT = {"LMSCONF_PLAN_KEY": KEY, **{f"LMSCONF_TOKEN_{name}": token for name, token in TOKENS.items()}}
SETTLE = 1.0
PROJECT = f"""\
workspaces: {{file: workspaces.csv, token: {{env: "LMSCONF_TOKEN_$(workspace)"}}}}
settle: {SETTLE:g}s
guards: off
"""
NODES = 2


class DaskFleet:
    """Four served workspaces, a project here, and a copy of it on each of two nodes that share no folder."""

    def __init__(self, root: Path, services: Mapping[str, Sandbox], urls: Mapping[str, str]) -> None:
        self.here = root / "here"
        self.services = services
        self.nodes = [root / f"node-{number}" for number in range(NODES)]
        rows = [f'{name},{urls[name]},"ring={"canary" if name == "alpha" else "main"}"' for name in NAMES]
        self.write("lmsconf.yaml", PROJECT)
        self.write("workspaces.csv", "\n".join(["name,url,labels", *rows]) + "\n")

    @property
    def copies(self) -> list[Path]:
        return [self.here, *(node / "project" for node in self.nodes)]

    def write(self, name: str, text: str) -> None:
        """Write a file of the project, here and on the nodes."""
        for copy in self.copies:
            path = copy / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8")

    def want_groups(self, title: str, number: int) -> None:
        """Want so many groups with this title in each workspace."""
        names = [f"{title} {index}" for index in range(number)]
        self.write("manifests/groups.yaml", json.dumps({"groups": [{"name": name} for name in names]}))

    def start(self, cluster: DaskCluster | None, *arguments: str) -> subprocess.Popen[str]:
        """Start a command, on the cluster if there is one."""
        command = [sys.executable, "-m", "lmsconf", "-C", str(self.here), "fleet", *arguments]
        if cluster is not None:
            command += ["--engine", "dask", "--scheduler", cluster.address]
            command += [] if "--worker-project" in arguments else ["--worker-project", "project"]
        environ = {**os.environ, **ENVIRONMENT, "DASK_DISTRIBUTED__COMM__TIMEOUTS__CONNECT": "5s"}
        environ |= {} if cluster is None else cluster.environ
        return subprocess.Popen(command, env=environ, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)

    def run(self, cluster: DaskCluster | None, *arguments: str) -> tuple[int, str, str]:
        with self.start(cluster, *arguments) as process:
            out, err = process.communicate(timeout=120)
        return process.returncode, out, err

    def index(self, folder: str, name: str = "index.json") -> dict[str, object]:
        document: dict[str, object] = json.loads((self.here / folder / name).read_text())
        return {**document, "created_at": "", "hmac": ""}

    def plan(self, folder: str) -> None:
        code, _, err = self.run(None, "plan", "--out", str(self.here / folder), "--processes", "2")
        assert code == 0, err

    def writes(self) -> int:
        return sum(entry.method != "GET" for service in self.services.values() for entry in service.log)


@pytest.fixture
def fleet(tmp_path: Path) -> Iterator[DaskFleet]:
    services = {name: Sandbox(token=TOKENS[name]) for name in NAMES}
    with ExitStack() as stack:
        servers = {name: stack.enter_context(Server(service, latency=0.03)) for name, service in services.items()}
        yield DaskFleet(tmp_path, services, {name: server.url for name, server in servers.items()})
    for service in services.values():
        service.close_workspace()


@pytest.fixture
def cluster(tmp_path: Path, fleet: DaskFleet) -> Iterator[DaskCluster]:
    with dask_cluster(tmp_path / "dask", folders=fleet.nodes, environ=ENVIRONMENT, allowed_failures=20) as cluster:
        yield cluster


def test_the_index_is_that_of_the_local_engine(fleet: DaskFleet, cluster: DaskCluster) -> None:
    """Byte for byte, but for the time and the signature of it; so is each plan, and the result of an apply."""
    fleet.want_groups("Team", 3)
    fleet.plan("local")
    code, _, err = fleet.run(cluster, "plan", "--out", str(fleet.here / "dask"))
    assert (code, err) == (0, "")
    assert fleet.index("dask") == fleet.index("local")
    texts = [(fleet.here / folder / "index.json").read_text() for folder in ("local", "dask")]
    first, second = (re.sub(r'"(created_at|hmac)": ?"[^"]*"', "", text) for text in texts)
    assert first == second
    for folder in ("drift", "validate", "test"):
        alike = [fleet.run(where, folder, "--format", "json") for where in (None, cluster)]
        assert alike[0][0] == alike[1][0]
        assert {**json.loads(alike[0][1]), "created_at": ""} == {**json.loads(alike[1][1]), "created_at": ""}
    code, out, err = fleet.run(cluster, "apply", str(fleet.here / "dask"), "--auto-approve")
    assert (code, err) == (0, "")
    assert out == "4 workspaces: 4 applied or without changes (12 API calls).\n"
    assert json.loads((fleet.here / "dask" / "beta.report.json").read_text())["converged"] is True
    assert [path.stat().st_mode & 0o077 for path in (fleet.here / "dask").iterdir()] == [0] * 10
    assert fleet.run(cluster, "plan", "--detailed-exitcode")[0] == 0


def test_another_project_on_the_workers_is_refused(fleet: DaskFleet, cluster: DaskCluster) -> None:
    """Workers plan from their own copy, so a copy with other files makes no plan."""
    fleet.want_groups("Team", 1)
    for node in fleet.nodes:
        (node / "project" / "manifests" / "more.yaml").write_text("groups: [{name: Not here}]\n")
    code, out, _ = fleet.run(cluster, "plan")
    assert code == 1
    assert "the project on the worker differs from the one here, in some of: manifests" in out
    for node in fleet.nodes:
        (node / "project" / "lmsconf.yaml").write_text(PROJECT + "timezone: Europe/Oslo\n")
    code, out, _ = fleet.run(cluster, "plan")
    assert "the one here, in some of: lmsconf.yaml, manifests" in out
    for node in fleet.nodes:
        (node / "project" / "lmsconf.yaml").unlink()
    for node in fleet.nodes:
        (node / "project" / "lmsconf.yaml").write_text(PROJECT)
        (node / "project" / "manifests" / "more.yaml").unlink()
    fleet.write(
        "manifests/leaders.yaml",
        "groups: [{name: Leaders, members: {file: ../people/leaders.csv, column: email, allow_empty: true}}]",
    )
    fleet.write("people/leaders.csv", "email\n")
    for number, node in enumerate(fleet.nodes):
        (node / "project" / "people" / "leaders.csv").write_text("email\n" + "\n" * (number + 1))
    code, out, _ = fleet.run(cluster, "plan")
    assert code == 1
    assert "in some of: manifests/groups.yaml, manifests/leaders.yaml, people/leaders.csv" in out
    for node in fleet.nodes:
        (node / "project" / "lmsconf.yaml").unlink()
    assert "the worker has no project in " in fleet.run(cluster, "plan")[1]
    assert fleet.writes() == 0


def test_a_scheduler_that_does_not_answer(fleet: DaskFleet, cluster: DaskCluster) -> None:
    """Is exit code 8, with the address."""
    fleet.want_groups("Team", 1)
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        port = unused.getsockname()[1]
    nobody = DaskCluster(f"tls://127.0.0.1:{port}", cluster.environ, 0, "", cluster.log)
    code, _, err = fleet.run(nobody, "plan")
    assert code == 8
    assert f"the Dask scheduler tls://127.0.0.1:{port} cannot be reached" in err


def test_a_workspace_that_hangs_is_ended_by_its_time(fleet: DaskFleet, cluster: DaskCluster) -> None:
    """The others have their results."""
    fleet.want_groups("Team", 1)
    with socket.socket() as silent:
        silent.bind(("127.0.0.1", 0))
        silent.listen()
        table = (fleet.here / "workspaces.csv").read_text()
        url = f"http://127.0.0.1:{silent.getsockname()[1]}"
        fleet.write("workspaces.csv", re.sub(r"gamma,[^,]*", f"gamma,{url}", table))
        code, out, _ = fleet.run(cluster, "plan", "--time-limit", "4")
    assert code == 8
    assert f"Workspace gamma ({url}): the time limit of 4 seconds is over" in " ".join(out.split()) or (
        "the time limit of 4 seconds is over" in out
    )
    assert "3 with changes, 0 without, 1 failed." in out


def test_an_interrupted_apply_stops_on_the_workers(fleet: DaskFleet, cluster: DaskCluster) -> None:
    """Ctrl-C ends the calls that were sent, sends no other one, and brings the reports of what was done."""
    fleet.want_groups("Team", 40)
    fleet.plan("out")
    with fleet.start(cluster, "apply", str(fleet.here / "out"), "--auto-approve", "--parallelism", "1") as process:
        _until(lambda: fleet.writes() > 4)
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=60)
    assert process.returncode == 130, out + err
    written = fleet.writes()
    assert 4 < written < 80
    index = json.loads((fleet.here / "out" / "apply.json").read_text())
    assert [one["exit"] for one in index["workspaces"]] == [130] * 4
    assert sum(one["summary"].get("done", 0) for one in index["workspaces"]) == written
    reports = list((fleet.here / "out").glob("*.report.json"))
    outcomes = [one["status"] for path in reports for one in json.loads(path.read_text())["outcomes"]]
    assert outcomes.count("done") == written
    time.sleep(2)
    assert fleet.writes() == written


def test_work_ends_with_its_scheduler(fleet: DaskFleet, cluster: DaskCluster) -> None:
    """Without a scheduler nobody gets the results, and another worker may be given the task: no more calls are sent."""
    fleet.want_groups("Team", 300)
    fleet.plan("out")
    with fleet.start(cluster, "apply", str(fleet.here / "out"), "--auto-approve", "--parallelism", "1") as process:
        _until(lambda: fleet.writes() > 4)
        os.kill(cluster.scheduler, signal.SIGKILL)
        out, err = process.communicate(timeout=60)
    assert process.returncode == 5, out + err  # calls were sent
    assert "the Dask scheduler has lost the task" in out
    _until(lambda: not list(_task_processes()))
    assert fleet.writes() < 4 * 300


@contextmanager
def _stopped(processes: Iterable[psutil.Process]) -> Iterator[None]:
    """Let processes wait until the block ends, and at least one of them."""
    stopped = []
    for process in processes:
        with suppress(psutil.NoSuchProcess):  # it has ended meanwhile
            process.suspend()
            stopped.append(process)
    assert stopped
    try:
        yield
    finally:
        for process in stopped:
            process.resume()


def _task_processes() -> Iterator[psutil.Process]:
    for process in psutil.Process().children(recursive=True):
        with suppress(psutil.Error):
            if "lmsconf.fleet.worker" in process.cmdline():
                yield process


def test_no_secret_is_at_the_scheduler(fleet: DaskFleet, cluster: DaskCluster) -> None:
    """Tokens and the key of plans are in no memory, page, log or result of Dask, also where a token is refused."""
    fleet.want_groups("Known to the scheduler", 20)
    fleet.plan("out")
    fleet.services["delta"].keys = Sandbox(token="another").keys
    dumps: list[bytes] = []
    words = ("--auto-approve", "--max-failures", "9", "--parallelism", "1")
    with fleet.start(cluster, "apply", str(fleet.here / "out"), *words) as process:
        _until(lambda: fleet.writes() > 4)
        with _stopped(_task_processes()):  # an apply that ended would be on no page
            dumps += [memory(cluster.scheduler), pages(cluster.dashboard)]
        out, err = process.communicate(timeout=60)
    assert process.returncode == 7, out + err
    dumps += [memory(cluster.scheduler), pages(cluster.dashboard), cluster.log.read_bytes(), (out + err).encode()]
    dumps += [path.read_bytes() for path in (fleet.here / "out").iterdir()]
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
    kills = 0
    groups, rounds = 12, examples(5)
    for number in range(rounds):
        fleet.want_groups(f"Round {number}", groups)
        folder = f"out-{number}"
        fleet.plan(folder)
        for service in fleet.services.values():
            service.log.clear()
        planned = groups * len(NAMES)
        with fleet.start(cluster, "apply", str(fleet.here / folder), "--auto-approve", "--parallelism", "2") as process:
            for moment in sorted(dice.sample(range(1, planned - 4), dice.choice((3, 4)))):
                _until(lambda moment=moment: fleet.writes() >= moment or process.poll() is not None)
                kills += kill_worker(cluster, dice)
            out, err = process.communicate(timeout=180)
        assert process.returncode == 0, f"round {number}: {out}{err}"
        assert out == f"4 workspaces: 4 applied or without changes ({planned} API calls).\n"
        for name, service in fleet.services.items():
            # Of a process that is killed while it sends, the service may get half a request, which it refuses.
            carried_out = [entry.operation for entry in service.log if entry.writes and entry.status == 200]
            assert carried_out == ["manual-groups.create"] * groups, f"round {number}, {name}"
        code, out, err = fleet.run(None, "plan", "--detailed-exitcode", "--processes", "2")
        assert code == 0, out + err
    assert kills >= 3 * rounds


def test_workers_that_die_among_many_applies(fleet: DaskFleet, cluster: DaskCluster) -> None:
    """Of many quick workspaces, those of a dead worker are attempted again, and each is made once."""
    names = [f"w{number:02}" for number in range(60)]
    fleet.write("lmsconf.yaml", "workspaces: {file: workspaces.csv}\n")
    fleet.write("workspaces.csv", "name,url\n" + "".join(f"{name},sandbox:{name}.db\n" for name in names))
    fleet.write("manifests/groups.yaml", json.dumps({"groups": [{"name": f"Team {index}"} for index in range(30)]}))
    fleet.plan("out")
    dice, journals = Random(5), fleet.here / ".lmsconf" / "runs"  # noqa: S311  the same choices each time
    words = ("apply", str(fleet.here / "out"), "--auto-approve", "--worker-project", str(fleet.here))
    with fleet.start(cluster, *words) as process:
        for moment in (12, 25, 40):
            _until(lambda moment=moment: len(list(journals.glob("*/*.jsonl"))) >= moment or process.poll() is not None)
            _until(lambda: kill_worker(cluster, dice) or process.poll() is not None)  # its nanny may be at it
        out, err = process.communicate(timeout=180)
    assert process.returncode == 0, out + err
    assert out == "60 workspaces: 60 applied or without changes (1,800 API calls).\n"
    reports = [json.loads(path.read_text()) for path in (fleet.here / "out").glob("*.report.json")]
    assert any(len(report["outcomes"]) < 30 for report in reports), "no plan was finished by a second attempt"
    # Two groups of one name would be an error of this plan.
    code, out, err = fleet.run(None, "plan", "--detailed-exitcode", "--processes", "2")
    assert code == 0, out + err


def kill_worker(cluster: DaskCluster, dice: Random) -> bool:
    """Kill the process of one Dask worker, which its nanny starts again; wait for one while none is running."""
    _until(_workers)
    workers = _workers()
    if workers:
        dice.choice(sorted(workers, key=lambda process: process.pid)).kill()
    return bool(workers)


def _workers() -> list[psutil.Process]:
    workers = []
    for process in psutil.Process().children(recursive=True):
        with suppress(psutil.Error):  # it has ended meanwhile
            if "spawn_main" in " ".join(process.cmdline()):
                workers.append(process)
    return workers


def _until(condition: object, seconds: float = 60) -> None:
    assert callable(condition)
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.01)
