"""`lmsconf fleet plan`, `show` and `apply` over many embedded workspaces: computing a workspace, and the coordinator.

    python tests/benchmarks/bench_fleet.py [--sizes 100 1000]

At the end, the share of the embedded service in it.
"""

import argparse
import json
import resource
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

from measuring import exponent, options, tell, verdict

from lmsconf.fleet.tasks import FleetTask, TaskRunner
from lmsconf.model.fleet import FleetAction
from lmsconf.sandbox.service import Sandbox

MANIFEST = """\
custom_fields:
  - {name: Department, type: CHOICE, choices: [Sales, Support, IT]}
groups:
  - {name: "Team $(workspace_name)", members: []}
smart_groups:
  - {name: All sales, conditions: [{field: Department, choices: [Sales]}]}
"""
STEPS = (
    ("plan", "--out", "out"),
    ("show", "out", "--format", "markdown"),
    ("apply", "out", "--auto-approve"),
    ("plan",),
)


_APART = 60
_WARM = 10


class Figures(NamedTuple):
    """Seconds of computing of all processes, and MiB of the coordinator alone."""

    cpu: float
    memory: float


def main() -> None:
    parser = options(__doc__)
    parser.add_argument("--sizes", type=int, nargs="+", default=[100, 1000], help="numbers of workspaces")
    parser.add_argument("--step", nargs=argparse.REMAINDER, help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.step:
        _coordinate(given.step)
        return
    costs: dict[int, list[Figures]] = {}
    for size in given.sizes:
        with tempfile.TemporaryDirectory() as folder:
            _project(Path(folder), size)
            costs[size] = [_measured(Path(folder), step) for step in STEPS]
    for number, step in enumerate(STEPS):
        tell(f"fleet {' '.join(step)}")
        for size in given.sizes:
            cpu, memory = costs[size][number]
            a_workspace = cpu * 1000 / size
            tell(f"  {size:6,} workspaces {a_workspace:6.1f} ms of computing each {verdict(a_workspace, 40)}")
            tell(f"                    {memory:6.0f} MiB of the coordinator {verdict(memory, 150)}")
        if len(given.sizes) > 1:
            tell(f"  growth N^{exponent(given.sizes, [costs[size][number].cpu for size in given.sizes]):.2f}")
    with tempfile.TemporaryDirectory() as folder:
        _project(Path(folder), _APART)
        _tell_apart(Path(folder))


def _tell_apart(folder: Path) -> None:
    """Plan and apply in this process, one workspace after the other, and tell what the embedded service took of it."""
    spent, begun, lock = [0.0], 0.0, threading.Lock()

    def timed(work: Callable[..., Any]) -> Callable[..., Any]:
        """The function, whose computing is counted in all threads."""

        def counted(*args: Any, **named: Any) -> Any:
            since = time.thread_time()
            try:
                return work(*args, **named)
            finally:
                with lock:
                    spent[0] += time.thread_time() - since

        return counted

    for name in ("__init__", "answer", "close_workspace"):
        setattr(Sandbox, name, timed(getattr(Sandbox, name)))
    runner, digests = TaskRunner(folder, {}), dict[str, str | None]()
    for action in (FleetAction.PLAN, FleetAction.APPLY):
        for number in range(_APART):
            if number == _WARM:
                begun, spent[0] = time.process_time(), 0.0
            name = f"w{number:05}"
            entry = runner.run(
                FleetTask(
                    workspace=name, action=action, url=f"sandbox:{name}.db", out=str(folder), digest=digests.get(name)
                )
            )
            digests[name] = entry.digest
        each = [seconds * 1000 / (_APART - _WARM) for seconds in (time.process_time() - begun, spent[0])]
        tell(f"{action}: {each[0]:.1f} ms of computing each, of which the embedded service {each[1]:.1f} ms")


def _project(folder: Path, size: int) -> None:
    rows = [
        f'w{n:05},sandbox:w{n:05}.db,"ring={"canary" if n < 5 else "main"}",workspace_name=w{n:05}' for n in range(size)
    ]
    (folder / "workspaces.csv").write_text("\n".join(["name,url,labels,vars", *rows]) + "\n", encoding="utf-8")
    text = "workspaces: {file: workspaces.csv}\nwaves: [ring=canary, '*']\n"
    (folder / "lmsconf.yaml").write_text(text, encoding="utf-8")
    (folder / "manifests").mkdir()
    (folder / "manifests" / "a.yaml").write_text(MANIFEST, encoding="utf-8")


def _measured(folder: Path, step: tuple[str, ...]) -> Figures:
    done = subprocess.run(
        [sys.executable, __file__, "--step", *step], cwd=folder, capture_output=True, check=True, text=True
    )
    return Figures(*json.loads(done.stdout.splitlines()[-1]))


def _coordinate(step: list[str]) -> None:
    """Run one step in this process, and print what it and its workers took."""
    from lmsconf.cli import app, run_command_line

    width = [] if step[0] == "show" else ["--processes", "2"]
    code = run_command_line(app, ["fleet", *step, "--output", "result.txt", *width])
    if code:
        raise SystemExit(f"lmsconf fleet {' '.join(step)} ended with {code}")
    own, workers = resource.getrusage(resource.RUSAGE_SELF), resource.getrusage(resource.RUSAGE_CHILDREN)
    cpu = own.ru_utime + own.ru_stime + workers.ru_utime + workers.ru_stime
    tell(json.dumps([cpu, own.ru_maxrss / 1024]))


if __name__ == "__main__":
    main()
