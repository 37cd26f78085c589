"""`lmsconf fleet plan`, `show` and `apply` over many embedded workspaces: computing a workspace, and memory.

python tests/benchmarks/bench_fleet.py [--sizes 100 1000]
"""

import tempfile
from pathlib import Path

from measuring import LMSCONF, Run, exponent, options, process, tell, verdict

MANIFEST = """\
custom_fields:
  - {name: Department, type: CHOICE, choices: [Sales, Support, IT]}
groups:
  - {name: "Team $(workspace_name)", members: []}
smart_groups:
  - {name: All sales, conditions: [{field: Department, choices: [Sales]}]}
"""
STEPS = (
    ("plan", "--processes", "2", "--out", "out"),
    ("show", "out", "--format", "markdown"),
    ("apply", "out", "--processes", "2", "--auto-approve"),
    ("plan", "--processes", "2"),
)


def main() -> None:
    parser = options(__doc__)
    parser.add_argument("--sizes", type=int, nargs="+", default=[100, 1000], help="numbers of workspaces")
    sizes = parser.parse_args().sizes
    costs: dict[int, list[Run]] = {}
    for size in sizes:
        with tempfile.TemporaryDirectory() as folder:
            _project(Path(folder), size)
            costs[size] = [
                process([LMSCONF, "fleet", *step, "--output", "result.txt"], cwd=Path(folder)) for step in STEPS
            ]
    for number, step in enumerate(STEPS):
        tell(f"fleet {' '.join(step)}")
        for size in sizes:
            _, cpu, memory = costs[size][number]
            a_workspace = cpu * 1000 / size
            tell(f"  {size:6,} workspaces {a_workspace:6.1f} ms of computing each {verdict(a_workspace, 40)}")
            tell(f"                    {memory:6.0f} MiB of the largest process {verdict(memory, 150)}")
        if len(sizes) > 1:
            tell(f"  growth N^{exponent(sizes, [costs[size][number].cpu for size in sizes]):.2f}")


def _project(folder: Path, size: int) -> None:
    rows = [
        f'w{n:05},sandbox:w{n:05}.db,"ring={"canary" if n < 5 else "main"}",workspace_name=w{n:05}' for n in range(size)
    ]
    (folder / "workspaces.csv").write_text("\n".join(["name,url,labels,vars", *rows]) + "\n", encoding="utf-8")
    text = "workspaces: {file: workspaces.csv}\nwaves: [ring=canary, '*']\n"
    (folder / "lmsconf.yaml").write_text(text, encoding="utf-8")
    (folder / "manifests").mkdir()
    (folder / "manifests" / "a.yaml").write_text(MANIFEST, encoding="utf-8")


if __name__ == "__main__":
    main()
