"""How things are measured: whole processes or calls, in turn, and what is told of them is the median."""

from __future__ import annotations

import json
import math
import os
import statistics
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple, TypeAlias

import yaml

from lmsconf.sandbox.seed import fill_workspace
from lmsconf.sandbox.store import Store
from lmsconf.sandbox.synthetic_seed import generate_seed

LMSCONF = str(Path(sys.executable).parent / "lmsconf")
"""The program of the environment that runs the benchmark."""


class Run(NamedTuple):
    """What one process took: seconds on the clock, seconds of computing, and its largest memory in MiB."""

    wall: float
    cpu: float
    memory: float


def process(
    command: Sequence[str], *, env: Mapping[str, str] | None = None, cwd: Path | None = None, expect: int = 0
) -> Run:
    """Run a command to its end, its output thrown away. Raises RuntimeError when it ends with another exit code.

    A small process starts it, since the largest memory of a process includes that of the process that started it.
    """
    starter = [sys.executable, "-S", __file__, *command]
    ended = subprocess.run(starter, env={**os.environ, **(env or {})}, cwd=cwd, stdout=subprocess.PIPE, check=False)
    code, said, *figures = json.loads(ended.stdout)
    if code != expect:
        raise RuntimeError(f"{' '.join(command)} ended with {code}: {said[-2000:]}")
    return Run(*figures)


def _start(command: Sequence[str]) -> tuple[int, str, float, float, float]:
    """Run a command to its end; return its exit code, its stderr, and what it took."""
    begun = time.perf_counter()
    with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE) as running:
        said = running.stderr.read() if running.stderr else b""
        _, status, used = os.wait4(running.pid, 0)
        running.returncode = os.waitstatus_to_exitcode(status)
    wall, cpu = time.perf_counter() - begun, used.ru_utime + used.ru_stime
    return running.returncode, said.decode("utf-8", "replace"), wall, cpu, used.ru_maxrss / 1024


def in_turn(repeat: int, *candidates: Callable[[], Run]) -> list[list[Run]]:
    """The runs of each candidate. They take turns, A B A B, so that a slow minute of the machine meets all of them."""
    for candidate in candidates:
        candidate()  # fills the caches of the file system
    rounds = [[candidate() for candidate in candidates] for _ in range(repeat)]
    return [list(runs) for runs in zip(*rounds, strict=True)]


def middle(runs: Sequence[Run]) -> Run:
    """The median of each figure."""
    return Run(*(statistics.median(figure) for figure in zip(*runs, strict=True)))


def ratio(ours: Sequence[Run], theirs: Sequence[Run]) -> float:
    """The median of the ratios on the clock, round by round."""
    return statistics.median(a.wall / b.wall for a, b in zip(ours, theirs, strict=True))


def exponent(sizes: Sequence[int], costs: Sequence[float]) -> float:
    """k of cost = c · N^k, fitted to all sizes: the slope of the line through the logarithms."""
    xs, ys = [math.log(size) for size in sizes], [math.log(cost) for cost in costs]
    return statistics.linear_regression(xs, ys).slope


def tell(text: str) -> None:
    """A line of the result, at once."""
    sys.stdout.write(text + "\n")
    sys.stdout.flush()


def verdict(figure: float, target: float) -> str:
    """Whether a figure keeps to its target, in words; nothing fails where it does not."""
    return f"target ≤ {target:g}: {'kept' if figure <= target else 'MISSED'}"


if __name__ == "__main__":
    print(json.dumps(_start(sys.argv[1:])))


# The sandbox as a server in another process, and the log of what it was asked.


TOKEN = "sandbox"


class RunningServer(NamedTuple):
    """A server that listens, and where it writes what it was asked, if it does."""

    url: str
    log: Path | None

    def operations(self) -> Counter[str]:
        """How often each operation was asked for since the last time somebody looked."""
        return Counter(self.sequence())

    def sequence(self) -> list[str]:
        """The operations that were asked for since the last time somebody looked, in their order."""
        if self.log is None:
            raise ValueError("this server writes no log")
        lines = self.log.read_text(encoding="utf-8").splitlines()
        self.log.write_text("", encoding="utf-8")
        return [json.loads(line)["operation"] for line in lines]


@contextmanager
def served(database: Path, log: Path | None, *, latency: float = 0.0) -> Iterator[RunningServer]:
    """A workspace behind a free port, each answer late by so many seconds. log: None where the time is measured."""
    command = [LMSCONF, "sandbox", "serve", "--port", "0", "--db", str(database), "--token", TOKEN]
    logging = [] if log is None else ["--log", str(log)]
    with subprocess.Popen(
        [*command, *logging, "--latency", str(latency)], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
    ) as process:
        try:
            said = process.stdout.readline() if process.stdout else ""
            yield RunningServer(said.split()[-1], log)
        finally:
            process.terminate()


# The mix that is measured: a workspace of N resources, and a project whose manifests say all of it.
#
# Of 10,000 resources 10 are custom fields, 2,000 groups, 1,000 smart groups and 6,990 assignments of 500 contents;
# other sizes keep these shares. The manifests list everybody in every group, so nothing is cheap because it is not
# managed.


Entry: TypeAlias = "dict[str, object]"
Values: TypeAlias = "dict[str, list[Entry]]"
FIELDS = 10
PEOPLE = 2_000
"""As many in every size: who is in which smart group is the service's to say, and grows with both."""
_A_FILE = 500
"""How many entries stand in one manifest."""
PROJECT = """\
workspaces:
  sandbox: {url: "sandbox:workspace.db"}
default_workspace: sandbox
manifests: manifests
"""


@dataclass(frozen=True, slots=True)
class Size:
    """How many of everything."""

    groups: int
    smart_groups: int
    contents: int
    assignments: int
    people: int

    @classmethod
    def of(cls, resources: int) -> Size:
        """The mix of that many resources."""
        groups, smart_groups = resources // 5, resources // 10
        rest = resources - FIELDS - groups - smart_groups
        return cls(groups, smart_groups, resources // 20, rest, PEOPLE)


def values_of(size: Size) -> Values:
    """A made-up workspace of that size; the same size gives the same one."""
    return generate_seed(
        users=size.people,
        groups=size.groups,
        smart_groups=size.smart_groups,
        fields=FIELDS,
        contents=size.contents,
        assignments=size.assignments,
    )


def make_project(folder: Path, values: Values) -> None:
    """A project whose sandbox holds the values and whose manifests declare them."""
    folder.mkdir(parents=True)
    (folder / "lmsconf.yaml").write_text(PROJECT, encoding="utf-8")
    plant_into(folder / "workspace.db", values)
    write_manifests(folder / "manifests", values)


def plant_into(file: Path, values: Values) -> None:
    """A sandbox workspace in that file."""
    store = Store(file)
    with store.write_transaction() as repository:
        fill_workspace(repository, values)
    store.close()


def record(folder: Path, file: str = "workspace.json") -> Path:
    """The snapshot of a project's workspace, recorded by the program itself."""
    path = folder / file
    subprocess.run([LMSCONF, "-C", str(folder), "snapshot", str(path)], check=True, capture_output=True)
    return path


def write_manifests(folder: Path, values: Values) -> None:
    """The values as people would write them: some files for each kind, an entry with all audiences for each content."""
    folder.mkdir()
    archived = frozenset(str(person["email"]) for person in values["people"] if person.get("archived"))
    declared = {
        "custom_fields": values["custom_fields"],
        "groups": [_without(archived, entry) for entry in values["groups"]],
        "smart_groups": [_without(archived, entry) for entry in values["smart_groups"]],
        "content_targets": list(_by_content(values["content_targets"])),
    }
    for section, entries in declared.items():
        for start in range(0, len(entries), _A_FILE):
            text = _yaml({section: entries[start : start + _A_FILE]})
            (folder / f"{section}-{start:05}.yaml").write_text(text, encoding="utf-8")


def _yaml(values: object) -> str:
    return str(yaml.dump(values, Dumper=_Dumper, allow_unicode=True, sort_keys=False))


class _Dumper(yaml.CSafeDumper):
    """Writes a value that stands in two places twice, as a person would."""

    def ignore_aliases(self, data: object) -> bool:
        return True


def _without(archived: frozenset[str], entry: Entry) -> Entry:
    """The entry without people who have left: nobody declares them, and each would be a warning."""
    return {
        key: [email for email in value if email not in archived]
        if key in ("members", "managers") and isinstance(value, list)
        else value
        for key, value in entry.items()
    }


def _by_content(assignments: Iterable[Entry]) -> Iterator[Entry]:
    """One entry a content, with what each of its audiences has of its own beside it."""
    entries: dict[object, list[object]] = {}
    for one in assignments:
        own = {key: value for key, value in one.items() if key not in ("content", "assign_to")}
        for audience in _listed(one["assign_to"]):
            said = {"everyone": True} if audience == "everyone" else audience
            entries.setdefault(one["content"], []).append({**said, **own} if isinstance(said, dict) else said)
    for content, audiences in entries.items():
        yield {"content": content, "assign_to": audiences}


def _listed(value: object) -> list[object]:
    return value if isinstance(value, list) else [value]


def change_some(folder: Path, share: float) -> None:
    """Gives that share of the groups, smart groups and assignments something to change; fields stay as they are."""
    for path in sorted(folder.glob("*.yaml")):
        section, entries = next(iter(yaml.load(path.read_text(encoding="utf-8"), yaml.CSafeLoader).items()))
        every = round(1 / share)
        if section == "content_targets":
            flat = [audience for entry in entries for audience in entry["assign_to"]]
            for audience in flat[::every]:
                audience["mandatory"] = not audience.get("mandatory", False)
        elif section != "custom_fields":
            for entry in [entry for entry in entries if entry["managers"]][::every]:
                entry["managers"] = entry["managers"][1:]
        path.write_text(_yaml({section: entries}), encoding="utf-8")
