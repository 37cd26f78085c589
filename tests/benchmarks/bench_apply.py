"""Applying N creations of groups, smart groups and assignments to the sandbox, and how its cost grows with N.

    python tests/benchmarks/bench_apply.py [--repeat 3] [--sizes 1000 2000 …]

In this process: the calls are sent to the sandbox without a socket, and at the end all is read back and compared.
"""

from __future__ import annotations

import argparse
import os
import statistics
import tempfile
import time
from pathlib import Path

from measuring import exponent, tell, verdict
from workload import Size, Values, plant_into, values_of, write_manifests

from lmsconf.apply.run import execute
from lmsconf.project.settings import load_settings
from lmsconf.workspace.connection import Connection
from lmsconf.workspace.project_manifests import load_manifests
from lmsconf.workspace.reader import WorkspaceReader

SIZES = (1_000, 2_000, 5_000, 10_000, 20_000)
_PROJECT = """\
workspaces:
  sandbox: {url: "sandbox:workspace.db"}
default_workspace: sandbox
manifests: manifests
"""


def main() -> None:
    options = _options()
    costs = []
    tell(f"apply of as many creations, medians of {options.repeat}")
    with tempfile.TemporaryDirectory() as temporary:
        runs: dict[int, list[tuple[int, float, float]]] = {size: [] for size in options.sizes}
        for number in range(options.repeat):
            for size in options.sizes:
                runs[size].append(_apply(Path(temporary) / f"{size}-{number}", size))
    for size, mine in runs.items():
        calls, seconds, computing = (statistics.median(column) for column in zip(*mine, strict=True))
        costs.append(computing)
        tell(
            f"  {size:6,} resources  {calls:8,.0f} calls  {seconds:7.2f} s  {computing:7.2f} s of computing"
            f"  {computing / calls * 1000:.2f} ms a call"
        )
    found = exponent(options.sizes, costs)
    tell(f"  cost grows as N^{found:.2f}  {verdict(found, 1.05)}")


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--repeat", type=int, default=3, help="applies of each size")
    parser.add_argument("--sizes", type=int, nargs="+", default=SIZES, help="how many resources")
    return parser.parse_args()


def _apply(folder: Path, size: int) -> tuple[int, float, float]:
    """How many calls it took to fill a workspace, in how many seconds, and how many of those were computing."""
    folder.mkdir()
    (folder / "lmsconf.yaml").write_text(_PROJECT, encoding="utf-8")
    values = values_of(Size.of(size))
    write_manifests(folder / "manifests", values)
    plant_into(folder / "workspace.db", _empty(values))
    settings = load_settings(folder, None, {})
    with Connection(settings) as connection:
        workspace = WorkspaceReader(settings=settings, connection=connection)
        plan = workspace.plan(load_manifests(settings), settings.policy)
        begun, used = time.perf_counter(), _used()
        report = execute(workspace, plan, meta={})
        took = time.perf_counter() - begun, _used() - used
    if report.converged is not True:
        raise RuntimeError(f"it did not converge: {report.exit}")
    return len(plan.calls), *took


def _used() -> float:
    used = os.times()
    return used.user + used.system


def _empty(values: Values) -> Values:
    """The workspace before anything of it was made: people, fields and content."""
    return {name: values[name] for name in ("people", "custom_fields", "content")}


if __name__ == "__main__":
    main()
