"""How the computing of whole processes grows with the changes of a plan, from 2,000 to 20,000.

    python tests/benchmarks/bench_growth.py [--repeat 2] [--sizes 2000 5000 10000 20000] [--only apply]

Half of the groups and smart groups, and what is assigned to them, is to be created; nearly all else differs. The
embedded sandbox computes in the same process. Counted are the changes of the saved plan, and of each command the least
computing of its runs, in user and system: on a shared machine the time on the clock says little.
"""

import json
import shutil
import tempfile
from collections.abc import Sequence
from pathlib import Path

from measuring import LMSCONF, Run, exponent, goal, options, process, tell
from workload import PROJECT, Entry, Values, change_some, plant_into, values_of, write_manifests

GOAL = 1.05
SECONDS = {"apply without effects": 16.0}
"""The goal for the computing of a command on 10,000 resources."""
SIZES = (2_000, 5_000, 10_000, 20_000)
"""How many resources; nearly as many are changes."""
_PLAN = "saved.plan.json"
_VIEWS = ("markdown", "html", "json")
COMMANDS: dict[str, Sequence[str]] = {
    "plan": ["plan", "--out", _PLAN],
    "plan without effects": ["plan", "--no-effects"],
    **{f"plan as {view}": ["plan", "--format", view] for view in _VIEWS},
    "show": ["show", _PLAN],
    **{f"show as {view}": ["show", _PLAN, "--format", view] for view in _VIEWS},
    "drift": ["drift"],
    **{f"drift as {view}": ["drift", "--format", view] for view in _VIEWS},
    "export": ["export", "exported"],
    "snapshot": ["snapshot", "saved.snapshot.json"],
    "plan of a snapshot": ["plan", "--snapshot", "saved.snapshot.json"],
    "export of a snapshot": ["export", "exported-too", "--snapshot", "saved.snapshot.json"],
    "apply without effects": ["apply", "--auto-approve", "--no-effects"],
    "apply": ["apply", "--auto-approve"],
    "runs": ["runs"],
    "runs latest": ["runs", "latest"],
    "runs latest as json": ["runs", "latest", "--format", "json"],
}
"""Name → the command, in the order of running: some need what an earlier one wrote."""
_NEEDED = ("plan", "snapshot", "apply")
_EXPECTED = {"drift": 2}


def main() -> None:
    parser = options(__doc__, 2)
    parser.add_argument("--sizes", type=int, nargs="+", default=SIZES, help="how many resources")
    parser.add_argument("--only", choices=COMMANDS, action="append", help="tell only this; can be given again")
    given = parser.parse_args()
    told = given.only or COMMANDS
    names = [name for name in COMMANDS if name in (*told, *_NEEDED)]
    costs: dict[str, list[Run]] = {name: [] for name in names}
    changes = []
    with tempfile.TemporaryDirectory() as temporary:
        for size in given.sizes:
            folder = Path(temporary) / str(size)
            _make_project(folder, size)
            rounds = [_round(folder, names) for _ in range(given.repeat)]
            changes.append(len(json.loads((folder / _PLAN).read_text(encoding="utf-8"))["changes"]))
            for name in names:
                costs[name].append(min((runs[name] for runs in rounds), key=lambda run: run.cpu))
            shutil.rmtree(folder)
    for name in told:
        _tell(name, given.sizes, changes, costs[name])


def _tell(name: str, sizes: Sequence[int], changes: Sequence[int], runs: Sequence[Run]) -> None:
    """The computing and memory of each size, the exponent of all sizes beside its goal, and that of the last two."""
    computing = [run.cpu for run in runs]
    each = zip(changes, runs, strict=True)
    tell(f"{name}: " + ", ".join(f"{n:,}: {run.cpu:.2f} s, {run.memory:.0f} MiB" for n, run in each))
    for size, n, used in zip(sizes, changes, computing, strict=True):
        if size == 10_000 and name in SECONDS:
            tell(f"  {n:,} changes: {used:.1f} s  {goal(used, SECONDS[name])}")
    if len(changes) < 2:
        return
    found, last = exponent(changes, computing), exponent(changes[-2:], computing[-2:])
    tell(f"  N^{found:.2f} (the last two: N^{last:.2f})  {goal(found, GOAL)}")


def _round(folder: Path, names: Sequence[str]) -> dict[str, Run]:
    """Run each command once; those before the runs of an apply, and each apply, on the workspace as it was seeded."""
    for made in ("exported", "exported-too", ".lmsconf"):
        shutil.rmtree(folder / made, ignore_errors=True)
    return {name: _run(folder, name) for name in names}


def _run(folder: Path, name: str) -> Run:
    if not name.startswith("runs"):
        for file in folder.glob("workspace.db*"):
            file.unlink()
        shutil.copyfile(folder / "seeded.db", folder / "workspace.db")
    return process([LMSCONF, *COMMANDS[name]], cwd=folder, expect=_EXPECTED.get(name.partition(" as ")[0], 0))


def _make_project(folder: Path, size: int) -> None:
    """A project whose manifests declare everything, and a workspace that lacks half and differs in the rest."""
    folder.mkdir()
    (folder / "lmsconf.yaml").write_text(PROJECT + "guards: off\n", encoding="utf-8")
    values = values_of(size)
    plant_into(folder / "seeded.db", _half(values))
    write_manifests(folder / "manifests", values)
    change_some(folder / "manifests", 1)


def _half(values: Values) -> Values:
    """The workspace with every other group and smart group, and what is assigned to these."""
    kept = {section: values[section][::2] for section in ("groups", "smart_groups")}
    gone = {
        (kind, entry["name"])
        for kind, section in (("group", "groups"), ("smart_group", "smart_groups"))
        for entry in values[section][1::2]
    }
    targets = [entry for entry in values["content_targets"] if not _audiences(entry) & gone]
    return {**values, **kept, "content_targets": targets, "participations": [], "certificates": []}


def _audiences(entry: Entry) -> set[tuple[str, object]]:
    listed = entry["assign_to"] if isinstance(entry["assign_to"], list) else [entry["assign_to"]]
    return {pair for audience in listed if isinstance(audience, dict) for pair in audience.items()}


if __name__ == "__main__":
    main()
