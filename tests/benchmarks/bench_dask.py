"""`lmsconf fleet plan` and `apply` by two Dask workers over TLS on loopback, beside two local processes.

python tests/benchmarks/bench_dask.py [--workspaces 500] [--repeat 5]
"""

from __future__ import annotations

import argparse
import shutil
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path

from bench_fleet import _project
from measuring import LMSCONF, Run, in_turn, middle, process, ratio, tell, verdict

sys.path.insert(0, str(Path(__file__).parent.parent / "fleet"))
from dask_cluster import dask_cluster


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--workspaces", type=int, default=500)
    parser.add_argument("--repeat", type=int, default=5)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        root = Path(name, "project")
        root.mkdir()
        _project(root, given.workspaces)
        with dask_cluster(Path(name, "dask"), folders=[root, root], environ={}) as cluster:
            engines = {
                "local, 2 processes": (["--processes", "2"], {}),
                "dask, 2 workers": (["--engine", "dask", "--scheduler", cluster.address], cluster.environ),
            }
            for step in ("plan", "apply"):
                runs = in_turn(given.repeat, *(Step(root, step, *engine) for engine in engines.values()))
                tell(f"fleet {step}, {given.workspaces:,} workspaces")
                for label, taken in zip(engines, runs, strict=True):
                    typical = middle(taken)
                    tell(f"  {label:20} {typical.wall:6.2f} s, {typical.memory:4.0f} MiB of the coordinator")
                overhead = (ratio(runs[1], runs[0]) - 1) * 100
                tell(f"  {'overhead':20} {overhead:6.1f} % {verdict(overhead, 15)}")


class Step:
    """A command with one engine, on workspaces as they were at first."""

    def __init__(self, root: Path, step: str, options: Sequence[str], environ: Mapping[str, str]) -> None:
        self._root, self._step, self._options, self._environ = root, step, list(options), environ

    def __call__(self) -> Run:
        out = self._root / "out"
        if self._step == "plan":
            shutil.rmtree(out, ignore_errors=True)
            return self._run("plan", "--out", str(out))
        for path in [*self._root.glob("*.db*"), out / "apply.json"]:
            path.unlink(missing_ok=True)
        shutil.rmtree(self._root / ".lmsconf", ignore_errors=True)
        return self._run("apply", str(out), "--auto-approve")

    def _run(self, *arguments: str) -> Run:
        command = [LMSCONF, "-C", str(self._root), "fleet", *arguments, *self._options]
        return process(command, env=self._environ, cwd=self._root)


if __name__ == "__main__":
    main()
