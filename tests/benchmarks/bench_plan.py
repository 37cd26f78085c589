"""Planning unchanged resources from a recorded snapshot, beside octoDNS with as many unchanged records.

    python tests/benchmarks/bench_plan.py [--octodns PATH/TO/octodns-sync] [--repeat 5]

Both are whole processes that go from files to a rendered answer: load, validate, plan, show. Without --octodns, octoDNS
is installed from the package index into an environment that is thrown away.
"""

import argparse
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from functools import partial
from pathlib import Path

from measuring import LMSCONF, Run, exponent, in_turn, middle, process, ratio, tell, verdict
from workload import Size, change_some, make_project, record, values_of

OCTODNS = "octodns==1.22.0"
SIZES = (1_000, 2_000, 5_000, 10_000, 20_000)
COMPARED = 10_000


def main() -> None:
    options = _options()
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        octodns = options.octodns or _install(folder / "octodns-env")
        _beside_octodns(folder, octodns, options.repeat)
        _growth(folder, options.repeat)


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--octodns", metavar="PATH", help="the octodns-sync program to compare with")
    parser.add_argument("--repeat", type=int, default=5, help="counted runs of each")
    return parser.parse_args()


def _beside_octodns(folder: Path, octodns: str, repeat: int) -> None:
    unchanged, changed = folder / "unchanged", folder / "changed"
    make_project(unchanged, values_of(Size.of(COMPARED)))
    record(unchanged)
    shutil.copytree(unchanged, changed)
    change_some(changed / "manifests", 0.01)
    zone = _zone(folder / "octodns", COMPARED)
    same, few, theirs = in_turn(
        repeat,
        lambda: plan(unchanged),
        lambda: plan(changed),
        lambda: process([octodns, "--config-file", str(zone)]),
    )
    tell(f"{COMPARED:,} resources from files, medians of {repeat} runs in turn")
    for label, runs in (("lmsconf, unchanged", same), ("lmsconf, 1 % changed", few), ("octoDNS, unchanged", theirs)):
        tell(f"  {label:22} {_figures(runs)}")
    tell(f"  lmsconf : octoDNS      {ratio(same, theirs):.2f}  {verdict(ratio(same, theirs), 0.25)}")
    tell(f"  1 % changed : octoDNS  {ratio(few, theirs):.2f}")
    tell(f"  memory                 {middle(same).memory:.0f} MiB  {verdict(middle(same).memory, 160)}")


def _growth(folder: Path, repeat: int) -> None:
    """How the cost of planning grows with the number of resources."""
    projects = [folder / str(size) for size in SIZES]
    for project, size in zip(projects, SIZES, strict=True):
        make_project(project, values_of(Size.of(size)))
        record(project)
    runs = in_turn(repeat, *(partial(plan, project) for project in projects))
    tell("growth of planning")
    for size, mine in zip(SIZES, runs, strict=True):
        tell(f"  {size:6,} {_figures(mine)}")
    # What starting costs is the same for all sizes and flatters the slope, so the large ones are looked at alone too.
    found = exponent(SIZES, [middle(mine).cpu for mine in runs])
    upper = exponent(SIZES[2:], [middle(mine).cpu for mine in runs[2:]])
    tell(f"  cost grows as N^{found:.2f}, from {SIZES[2]:,} on as N^{upper:.2f}  {verdict(max(found, upper), 1.05)}")


def plan(project: Path) -> Run:
    """One plan from the recorded snapshot."""
    return process([LMSCONF, "-C", str(project), "plan", "--snapshot", str(project / "workspace.json")])


def _figures(runs: Sequence[Run]) -> str:
    found = middle(runs)
    return f"{found.wall:6.2f} s  {found.cpu:6.2f} s of computing  {found.memory:4.0f} MiB"


def _zone(folder: Path, records: int) -> Path:
    """Two equal zones in YAML, and the configuration that compares them."""
    lines = ["---"]
    for number in range(records):
        value = f"10.{number >> 16 & 255}.{number >> 8 & 255}.{number & 255}"
        lines += [f"host-{number:06}:", "  ttl: 300", "  type: A", f"  value: {value}"]
    for side in ("source", "target"):
        (folder / side).mkdir(parents=True)
        (folder / side / "example.com.yaml").write_text("\n".join(lines) + "\n", encoding="utf-8")
    config = folder / "octodns.yaml"
    config.write_text(_OCTODNS_CONFIG.replace("FOLDER", str(folder)), encoding="utf-8")
    return config


_OCTODNS_CONFIG = """\
providers:
  source: {class: octodns.provider.yaml.YamlProvider, directory: FOLDER/source, default_ttl: 300}
  target: {class: octodns.provider.yaml.YamlProvider, directory: FOLDER/target, default_ttl: 300}
zones:
  example.com.: {sources: [source], targets: [target]}
"""


def _install(folder: Path) -> str:
    """octoDNS in an environment of its own."""
    subprocess.run([sys.executable, "-m", "venv", str(folder)], check=True)
    subprocess.run([str(folder / "bin" / "pip"), "install", "--quiet", OCTODNS], check=True)
    return str(folder / "bin" / "octodns-sync")


if __name__ == "__main__":
    main()
