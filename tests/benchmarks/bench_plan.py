"""Planning unchanged resources from a recorded snapshot, beside octoDNS with as many unchanged records.

    python tests/benchmarks/bench_plan.py [--octodns PATH/TO/octodns-sync] [--repeat 5]

Both are whole processes that go from files to a rendered answer: load, validate, plan, show. Without --octodns, octoDNS
is installed from the package index into an environment that is thrown away.
"""

import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from measuring import LMSCONF, Run, figures, in_turn, middle, options, process, ratio, tell, verdict
from workload import change_some, make_project, values_of

OCTODNS = "octodns==1.22.0"
COMPARED = 10_000


def main() -> None:
    parser = options(__doc__, 5)
    parser.add_argument("--octodns", metavar="PATH", help="the octodns-sync program to compare with")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        _beside_octodns(folder, given.octodns or _install(folder / "octodns-env"), given.repeat)


def _beside_octodns(folder: Path, octodns: str, repeat: int) -> None:
    unchanged, changed = folder / "unchanged", folder / "changed"
    _recorded(unchanged, COMPARED)
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
        tell(f"  {label:22} {figures(runs)}")
    tell(f"  lmsconf : octoDNS      {ratio(same, theirs):.2f}  {verdict(ratio(same, theirs), 0.25)}")
    tell(f"  1 % changed : octoDNS  {ratio(few, theirs):.2f}")
    tell(f"  memory                 {middle(same).memory:.0f} MiB  {verdict(middle(same).memory, 160)}")


def _recorded(folder: Path, resources: int) -> None:
    """A project, and a snapshot of its workspace."""
    make_project(folder, values_of(resources))
    process([LMSCONF, "-C", str(folder), "snapshot", str(folder / "workspace.json")])


def plan(project: Path) -> Run:
    """One plan from the recorded snapshot."""
    return process([LMSCONF, "-C", str(project), "plan", "--snapshot", str(project / "workspace.json")])


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
