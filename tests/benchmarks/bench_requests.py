"""Requests and memory of a few declared resources in large workspaces, over loopback HTTP.

    python tests/benchmarks/bench_requests.py [--only NAME]

Each line is one process: its requests, its largest memory and its time; the server runs in another one.
"""

from __future__ import annotations

import argparse
import tempfile
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

import yaml
from measuring import LMSCONF, TOKEN, RunningServer, process, served, tell
from workload import plant_into

from lmsconf.api.spec import ApiSpec

SPEC = ApiSpec.default()
_PROJECT = "workspaces: {sandbox: {url: 'sandbox:workspace.db'}}\ndefault_workspace: sandbox\n"
_FIVE = """\
custom_fields: [{name: Country}]
groups:
- {name: G1, members: [p1@acme.example, p1000@acme.example]}
- {name: G2, managers: [p2@acme.example]}
smart_groups: [{name: S1, managers: [p900@acme.example]}]
content_targets: [{content: C1, assign_to: [{group: G1}]}]
"""


class Case(NamedTuple):
    """A command on some manifests in a workspace of a size, and the most requests and MiB aimed at."""

    command: Sequence[str]
    manifests: str
    people: int
    groups: int
    smart_groups: int
    contents: int
    requests: int
    memory: int | None = None


CASES = {
    "drift of five": Case(["drift"], _FIVE, 2_000, 2_000, 1_000, 500, 65),
    "plan of five": Case(["plan"], _FIVE, 2_000, 2_000, 1_000, 500, 65),
    "plan of one assignment": Case(
        ["plan"], "content_targets: [{content: C1, assign_to: [{group: G1}]}]\n", 200_000, 5_000, 5_000, 500, 140, 200
    ),
    "plan of five members": Case(
        ["plan"],
        "groups: [{name: G1, members: [" + ", ".join(f"p{n}@acme.example" for n in range(4_000, 4_005)) + "]}]\n",
        5_000, 20, 0, 0, 10,
    ),
}  # fmt: skip


_APPLIED = """\
custom_fields: [{name: Country}, {name: Site, hidden: false}]
groups: [{name: G1, members: [p1@acme.example, p1000@acme.example]}, {name: G2, managers: [p2@acme.example]}]
smart_groups: [{name: S1, managers: [p900@acme.example]}]
content_targets: [{content: C1, assign_to: [{group: G1}]}]
users: [{email: p7@acme.example, metadata: {cost: "1"}}]
"""
APPLIES = {
    "apply of a field's flag": ("hidden: false", "hidden: true"),
    "apply of one member": ("p1000@acme.example]", "p1000@acme.example, p900@acme.example]"),
    "apply of a smart group's manager": ("p900@acme.example]", "p900@acme.example, p2@acme.example]"),
    "apply of an assignment made mandatory": ("{group: G1}", "{group: G1, mandatory: true}"),
    "apply of a person's metadata": ('cost: "1"', 'cost: "2"'),
    "apply of a group's name": ("name: G2", "name: Second, previously: [G2]"),
    "apply of a new group": ("{name: G2", "{name: New}, {name: G2"),
}
"""What one apply changes: an old and a new text of the manifests."""
EFFECTS = {
    "one member more": ("p1000@acme.example]", "p1000@acme.example, p900@acme.example]", (2_000, 200, 100, 50)),
    "an assignment made mandatory": ("{group: G1}", "{group: G1, mandatory: true}", (2_000, 2_000, 1_000, 500)),
    "conditions of a smart group": (
        "{name: S1,", "{name: S1, conditions: [{field: Country, choices: [SE, 'NO']}],", (5_000, 20, 40, 500)
    ),
    "a person's answer": ('cost: "1"}', 'cost: "1"}, answers: {Country: SE}', (2_000, 200, 100, 500)),
    "a new assignment among many people": ("{group: G1}", "{group: G1}, {group: G2}", (20_000, 500, 500, 500)),
}  # fmt: skip
"""A change in a workspace of so many people, groups, smart groups and contents: what its effects on people ask."""
_AIM = 3
"""The most requests of such an apply beside its plan and its verification."""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", choices=[*CASES, *APPLIES, *EFFECTS], help="measure this alone")
    chosen = parser.parse_args().only
    for name, case in CASES.items():
        if chosen in (None, name):
            _measure(name, case)
    for name, (old, new, size) in EFFECTS.items():
        if chosen in (None, name):
            _measure_effects(name, Case(["plan"], _APPLIED, *size, requests=0), _APPLIED.replace(old, new))
    for name, (old, new) in APPLIES.items():
        if chosen in (None, name):
            for verify in ("all", "touched"):
                _measure_apply(name, _APPLIED, _APPLIED.replace(old, new), verify)


def _measure_effects(name: str, case: Case, after: str) -> None:
    """Tell what a plan of a change asks with and without its effects on people."""
    with _running(case) as (folder, server, env):
        command = [LMSCONF, "-C", str(folder)]
        process([*command, "apply", "--auto-approve", "--no-effects", "--allow", "people=unknown"], env=env)
        (folder / "manifests" / "all.yaml").write_text(after, encoding="utf-8")
        server.operations()
        without = process([*command, "plan", "--no-effects"], env=env)
        few = server.operations()
        run = process([*command, "plan"], env=env)
        more = server.operations() - few
    tell(
        f"plan of {name}, {case.people:,} people, {case.groups:,} groups, {case.smart_groups:,} smart groups, "
        f"{case.contents:,} contents: {few.total():,} requests, {more.total():,} more for effects; "
        f"{without.wall:.1f} s, {run.wall:.1f} s; {without.memory:.0f} MiB, {run.memory:.0f} MiB"
    )
    tell("  " + ", ".join(f"{operation} {count}" for operation, count in sorted(more.items())))


def _measure_apply(name: str, before: str, after: str, verify: str) -> None:
    """Tell what an apply asked between its plan and its last call, and for its verification."""
    case = Case(["apply"], before, 2_000, 2_000, 1_000, 500, _AIM)
    with _running(case) as (folder, server, env):
        command = [LMSCONF, "-C", str(folder)]
        process([*command, "apply", "--auto-approve"], env=env)
        (folder / "manifests" / "all.yaml").write_text(after, encoding="utf-8")
        server.operations()
        process([*command, "plan"], env=env)
        planned = server.operations()
        run = process([*command, "apply", "--auto-approve", "--verify", verify], env=env)
        asked = server.sequence()
    writes = [position for position, operation in enumerate(asked) if SPEC[operation].writes]
    beside = Counter(asked[: writes[-1] + 1]) - planned
    verification = Counter(asked[writes[-1] + 1 :])
    tell(
        f"{name} (--verify {verify}): {beside.total()} requests (aim: {_AIM}) beside {planned.total():,} of its plan "
        f"and {verification.total():,} of its verification, {run.memory:.0f} MiB, {run.wall:.1f} s"
    )
    tell("  " + ", ".join(f"{operation} {count}" for operation, count in sorted(beside.items())))


@contextmanager
def _running(case: Case) -> Iterator[tuple[Path, RunningServer, dict[str, str]]]:
    """A project with the manifests of a case, its workspace behind a server, and the environment that names it."""
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        (folder / "manifests").mkdir()
        (folder / "lmsconf.yaml").write_text(_PROJECT, encoding="utf-8")
        (folder / "manifests" / "all.yaml").write_text(case.manifests, encoding="utf-8")
        plant_into(folder / "workspace.db", dict(_seed(case)))
        with served(folder / "workspace.db", folder / "log.jsonl") as server:
            yield folder, server, {"LMSCONF_URL": server.url, "LMSCONF_TOKEN": TOKEN}


def _measure(name: str, case: Case) -> None:
    with _running(case) as (folder, server, env):
        run = process([LMSCONF, "-C", str(folder), *case.command], env=env)
        operations = server.operations()
    total = sum(operations.values())
    aim = f"at most {case.memory} MiB" if case.memory else "no aim for memory"
    tell(f"{name}: {total:,} requests (at most {case.requests}), {run.memory:.0f} MiB ({aim}), {run.wall:.1f} s")
    tell("  " + ", ".join(f"{operation} {count}" for operation, count in sorted(operations.items())))


def _seed(case: Case) -> Iterator[tuple[str, object]]:
    five = yaml.safe_load(_FIVE) if "Country" in case.manifests else yaml.safe_load(case.manifests)
    declared = {one["name"]: one for section in ("groups", "smart_groups") for one in five.get(section, ())}
    condition = {"conditions": [{"field": "Country", "choices": ["SE"]}]}
    yield "people", [{"email": f"p{n}@acme.example", "id": f"u-{n:06}"} for n in range(case.people)]
    fields = [{"name": "Country", "type": "CHOICE", "choices": ["SE", "NO"]}, {"name": "Site", "type": "TEXT"}]
    yield "custom_fields", fields
    yield "groups", [declared.get(f"G{n}", {"name": f"G{n}"}) for n in range(case.groups)]
    yield "smart_groups", [{**declared.get(f"S{n}", {"name": f"S{n}"}), **condition} for n in range(case.smart_groups)]
    yield "content", [{"name": f"C{n}"} for n in range(case.contents)]
    if case.contents:
        yield "content_targets", [{"content": "C1", "assign_to": [{"group": "G1"}]}]


if __name__ == "__main__":
    main()
