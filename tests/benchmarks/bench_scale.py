"""Time, computing, largest memory and requests of each command in a very large workspace, over loopback HTTP.

    python tests/benchmarks/bench_scale.py [--share 0.02] [--only plan --only snapshot] [--keep FOLDER]

There are 200,000 people, 5,000 groups of which one has half of the people, 5,000 smart groups and 20,000 assignments of
500 contents. All groups, smart groups and assignments are declared, and about 2,000 of them are changed. Each line is
one process; the server is another one. A whole run takes many minutes; `--share` takes that share of everything.
"""

import shutil
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import cast

from bench_growth import COMMANDS
from measuring import LMSCONF, TOKEN, RunningServer, goal, options, process, served, tell, verdict
from workload import FIELDS, PROJECT, Entry, Values, change_some, plant_into, write_manifests

from lmsconf.sandbox.synthetic_seed import generate_seed

MEBIBYTES = 1_024
"""The most memory of any process."""
_PEOPLE, _GROUPS, _CONTENTS, _ASSIGNMENTS = 200_000, 5_000, 500, 20_000
_CONDITIONS = 4
_CHANGED = 1 / 13
"""The share of groups with managers, of smart groups with managers and of assignments that is changed: 2,000 of all."""
_BIG, _LEAVE = "people.csv", 10
"""The file of the members of the largest group, and how many of them leave it."""
NAMES = (
    *("drift as json", "plan without effects", "plan", "plan as markdown", "plan as html", "show as markdown"),
    *("show as html", "show as json", "snapshot", "export", "apply"),
)
"""In the order of running: the last one ends the changes."""


def main() -> None:
    parser = options(__doc__)
    parser.add_argument("--share", type=float, default=1.0, help="the share of people, groups and assignments")
    parser.add_argument("--only", choices=NAMES, action="append", help="measure this command; can be given again")
    parser.add_argument("--keep", type=Path, help="seed the workspace in this folder, or use what is there from before")
    given = parser.parse_args()
    names = [name for name in NAMES if given.only is None or name in given.only]
    if "plan" not in names and any(name.startswith("show") for name in names):
        parser.error("--only plan has to be given too")
    with tempfile.TemporaryDirectory() as temporary, _running(given.keep or Path(temporary), given.share) as running:
        folder, server = running
        env = {"LMSCONF_URL": server.url, "LMSCONF_TOKEN": TOKEN}
        server.operations()
        memory = {}
        for name in names:
            run = process([LMSCONF, *COMMANDS[name]], env=env, cwd=folder, expect=2 if name.startswith("drift") else 0)
            memory[name] = run.memory
            tell(
                f"  {name:21} {run.wall:7.1f} s {run.cpu:7.1f} s of computing {run.memory:7,.0f} MiB "
                f"{server.operations().total():8,} requests  {verdict(run.memory, MEBIBYTES)}"
            )
    most = max(memory, key=memory.__getitem__)
    tell(f"  largest memory: {memory[most]:,.0f} MiB ({most}), {goal(memory[most], MEBIBYTES)}")


@contextmanager
def _running(folder: Path, share: float) -> Iterator[tuple[Path, RunningServer]]:
    """The folder with the project, and a server of a copy of its seeded workspace."""
    folder.mkdir(parents=True, exist_ok=True)
    seeded, database = folder / "seeded.db", folder / "workspace.db"
    if not seeded.exists():
        _make_project(folder, share)
    shutil.copyfile(seeded, database)
    shutil.rmtree(folder / "exported", ignore_errors=True)
    for saved in folder.glob("saved.*.json"):
        saved.unlink()
    with served(database, folder / "log.jsonl") as server:
        yield folder, server


def _make_project(folder: Path, share: float) -> None:
    """Seed the workspace, declare all of it, and change about 2,000 declarations."""
    values = _values(share)
    (folder / "lmsconf.yaml").write_text(PROJECT + "guards: off\n", encoding="utf-8")
    planted = folder / "planting.db"
    plant_into(planted, values)
    archived = {person["email"] for person in values["people"] if person.get("archived")}
    big = values["groups"][0]
    members = [str(one) for one in cast("list[object]", big["members"]) if one not in archived]
    big["members"] = {"file": _BIG, "column": "email"}
    write_manifests(folder / "manifests", values)
    change_some(folder / "manifests", _CHANGED)
    (folder / "manifests" / _BIG).write_text("\n".join(["email", *members[_LEAVE:], ""]), encoding="utf-8")
    planted.rename(folder / "seeded.db")


def _values(share: float) -> Values:
    people, groups = int(_PEOPLE * share), int(_GROUPS * share)
    values = generate_seed(
        users=people,
        groups=groups,
        smart_groups=groups,
        fields=FIELDS,
        contents=int(_CONTENTS * share),
        assignments=int(_ASSIGNMENTS * share),
        participations=0,
    )
    values["groups"][0]["members"] = [person["email"] for person in values["people"][: people // 2]]
    fields = [field for field in values["custom_fields"] if field.get("choices")]
    for number, group in enumerate(values["smart_groups"]):
        group["conditions"] = [_condition(fields, number, place) for place in range(_CONDITIONS)]
    return values


def _condition(fields: Sequence[Entry], group: int, place: int) -> Entry:
    """One of the conditions of a smart group: they are narrow, so that a person is in a few of them."""
    field = fields[(group + place) % len(fields)]
    choices = cast("list[object]", field["choices"])
    return {"field": field["name"], "choices": [choices[(group // len(fields) + place * group) % len(choices)]]}


if __name__ == "__main__":
    main()
