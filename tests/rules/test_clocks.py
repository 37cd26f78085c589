"""No test waits by sleeping or judges by seconds, which a busy machine makes more of. What has to is listed here."""

import ast
import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from itertools import chain
from pathlib import Path

import pytest
from sampling import GATES, PARTS, first_part, number_of

TESTS = Path(__file__).parent.parent
_READ = ("time", "monotonic", "perf_counter", "process_time", "thread_time")
CLOCKS = frozenset(f"{name}{unit}" for name in _READ for unit in ("", "_ns"))
MAY_WAIT = re.compile(r"\btime\.|\bfrom time\b|timeout=\d|\.(?:wait|join|settimeout|sigtimedwait)\(\s*\d")
"""What a file has in which something may be found: the others, most of them, are not parsed."""
SHORT = 30
"""Seconds; what waits longer waits for an event, and ends a test that hangs."""

REASONS = {
    "benchmarks/": "they measure seconds, and no test runs them",
    "planted/source_copy.py SourceCopy.judged": "tells how long it took to find a fault, and decides nothing by it",
    "client/test_redact.py test_long_answers_take_no_time": (
        "a pattern runs inside of C, where no steps can be counted: CPU time, a hundred times what it takes"
    ),
    "client/test_sockets.py after_the_request.answer": "a drip takes time; however long, the deadline is first",
    "client/test_sockets.py ended": "the deadline of a socket is the system's; nothing is judged by how long it took",
    "client/test_sockets.py test_nothing_is_sent_on_a_connection_that_was_idle": (
        "the clock of connections, put forward; load makes them idle for longer"
    ),
    "fleet/test_dask.py _end": "how long Dask's processes may take to end before they are killed",
    "fleet/test_dask.py _until": "a process is looked at until it has done something; only a hang takes long",
    "fleet/test_dask.py pages": "how long a page may take; only a hang takes long",
    "fleet/test_dask.py test_an_interrupted_apply_stops_on_the_workers": (
        "for so long nothing may be written; load can only hide it"
    ),
    "fleet/fleet_project.py wait_for_orphans": "processes are looked at until they have ended; only a hang takes long",
    "fleet/test_failing_workspaces.py Bucket.__init__": "processes share a service with a limit; load only slows them",
    "fleet/test_failing_workspaces.py Bucket.take_fault": "the same limit: so many requests a second",
    "fleet/test_failing_workspaces.py test_processes_divide_the_rate_that_they_learn": (
        "no more can be answered than the limit allows; load makes it fewer"
    ),
    "judges/test_prism.py _awaited": "the log of a program of others, which tells nobody when it writes",
    "simulation/test_matrix.py test_a_killed_process_leaves_nothing_that_the_next_run_cannot_finish": (
        "the moment of a kill is chosen by chance; what the process sent arrives in between or not, and either holds"
    ),
    "rate_limited.py IdleClock._drive": "time passes once no thread works; too early for one is as if it was slow",
    "views/browser.py Browser.until": "Chromium is asked until something is on the page; only a hang takes long",
    "views/browser.py browser": "how long Chromium may take to go by itself before it is killed",
}


def real_seconds(tree: ast.AST, name: str = "") -> Iterator[str]:
    """The functions in which the code sleeps, looks at a clock, or waits for a short time."""
    for node in ast.iter_child_nodes(tree):
        inner = name
        if isinstance(node, ast.FunctionDef | ast.ClassDef):
            inner = f"{name}.{node.name}" if name else node.name
        if _is_of_time(node) or _is_short_wait(node):
            yield inner
        yield from real_seconds(node, inner)


def _is_of_time(node: ast.AST) -> bool:
    """Whether it is `time.sleep` or a clock, called or passed on, or imports one by name."""
    if isinstance(node, ast.ImportFrom):
        return node.module == "time"
    return (
        isinstance(node, ast.Attribute)
        and isinstance(node.value, ast.Name)
        and node.value.id == "time"
        and node.attr in {"sleep", *CLOCKS}
    )


def _is_short_wait(node: ast.AST) -> bool:
    """Whether a call waits for a few seconds, whatever comes."""
    if not isinstance(node, ast.Call):
        return False
    method = node.func.attr if isinstance(node.func, ast.Attribute) else ""
    given = [word.value for word in node.keywords if word.arg == "timeout"]
    given += node.args[:1] if method in {"wait", "join", "settimeout", "sigtimedwait"} else []
    said = [one.value for one in given if isinstance(one, ast.Constant)]
    return any(isinstance(seconds, int | float) and seconds < SHORT for seconds in said)


def places() -> set[str]:
    """Every place in the tests at which real seconds count."""
    found = set()
    for path in sorted(TESTS.rglob("*.py")):
        file = path.relative_to(TESTS).as_posix()
        text = path.read_text(encoding="utf-8")
        if file.startswith("benchmarks/") or path == Path(__file__) or not MAY_WAIT.search(text):
            continue
        found |= {f"{file} {name}" for name in real_seconds(ast.parse(text))}
    return found


def test_real_seconds_count_only_where_there_is_a_reason() -> None:
    """Each place is listed above, and no place is listed that is none any more."""
    assert places() == {place for place in REASONS if not place.endswith("/")}


@pytest.mark.parametrize(
    "code",
    [
        "time.sleep(1)",
        "from time import sleep",
        "assert time.monotonic() < end",
        "Client(clock=time.perf_counter_ns)",
        "event.wait(0.2)",
        "process.communicate(timeout=5)",
        "peer.settimeout(1.5)",
    ],
)
def test_real_seconds_are_seen(code: str) -> None:
    """Whether somebody sleeps, looks at a clock, passes one on, or does not wait long."""
    assert list(real_seconds(ast.parse(f"def f():\n    {code}\n"))) == ["f"]


@pytest.mark.parametrize(
    "code", ["event.wait()", "clock.sleep(3)", "process.communicate(timeout=60)", "', '.join(names)", "', '.join('ab')"]
)
def test_made_up_time_and_events_are_not_meant(code: str) -> None:
    """Waiting for an event, and the clocks that tests make up."""
    assert list(real_seconds(ast.parse(f"def f():\n    {code}\n"))) == []


# What every day leaves out is played another day: which part of the cases a run takes.


ROOT = Path(__file__).parent.parent.parent


def git(folder: Path, *arguments: str) -> None:
    """Runs git as somebody."""
    who = ("-c", "user.name=a", "-c", "user.email=a@acme.example")
    subprocess.run(["git", "-C", folder, *who, *arguments], check=True, capture_output=True)


def test_each_commit_takes_the_next_part(tmp_path: Path) -> None:
    """No commit at all takes the first; a clone without history takes one as well."""
    assert number_of(tmp_path) == 0
    git(tmp_path, "init", "--quiet", "origin")
    origin = tmp_path / "origin"
    for number in (1, 2, 3):
        git(origin, "commit", "--quiet", "--allow-empty", "--message", "more")
        assert number_of(origin) == number
    git(tmp_path, "clone", "--quiet", "--depth", "1", origin.as_uri(), "shallow")
    assert number_of(tmp_path / "shallow") > 0


def taken_by(call: str, runs: Sequence[Mapping[str, str]]) -> list[list[int]]:
    """What a call of `sampling` takes in each of the environments."""
    program = (
        "import importlib, json, os, sys, sampling\n"
        "for run in json.loads(sys.argv[1]):\n"
        "    os.environ.update(run)\n"
        "    importlib.reload(sampling)\n"
        f"    print(json.dumps({call}))"
    )
    command = [sys.executable, "-c", program, json.dumps(runs)]
    ran = subprocess.run(command, cwd=ROOT / "tests", capture_output=True, text=True, check=True)
    return [json.loads(line) for line in ran.stdout.splitlines()]


def test_the_environment_chooses_how_much() -> None:
    """All of the examples and cases, or a sixtieth of them."""
    runs = [{"TESTS": said, "SIMULATION": ""} for said in ("all", "7", "")]
    taken = taken_by("[sampling.examples(240), len(sampling.of_today(range(120)))]", runs)
    assert taken == [[240, 120], [4, 2], [4, 2]]


def test_parts_have_nothing_in_common_and_are_all() -> None:
    """Every case is in one part, and the first of a list in the part that its name chooses."""
    runs = [{"TESTS": str(part), "SIMULATION": ""} for part in range(PARTS)]
    taken = taken_by("sampling.of_today(range(154), name='two twins')", runs)
    assert [part for part, cases in enumerate(taken) if 0 in cases] == [first_part("two twins")]
    assert sorted(chain(*taken)) == list(range(154))


def test_so_many_runs_of_ci_play_all_schedules() -> None:
    """Whatever the number of the commit, its run has a part of them, and the next ones the others."""
    runs = [{"TESTS": "all", "SIMULATION": str(number)} for number in range(782, 782 + GATES)]
    taken = taken_by("sampling.schedules_of_today(range(264), 'two twins')", runs)
    assert [len(cases) for cases in taken] == [11] * GATES
    assert sorted(chain(*taken)) == list(range(264))


def collected(file: str, part: str) -> set[str]:
    """The tests of a file that a run of that part would take."""
    command = [sys.executable, "-m", "pytest", "-q", "--collect-only", "-p", "no:cacheprovider", file]
    environ = {**os.environ, "TESTS": part, "SIMULATION": ""}
    ran = subprocess.run(command, cwd=ROOT, env=environ, capture_output=True, text=True, check=True)
    return {line for line in ran.stdout.splitlines() if "::" in line}


@pytest.mark.sampled(daily=False)
def test_sampled_cases_take_turns() -> None:
    """Two parts have none of a test's sampled cases in common, and both have every other test."""
    file, test = "tests/views/test_first_day.py", "test_a_mistake_is_explained["
    whole, one, other = (collected(file, part) for part in ("all", "1", "2"))
    sampled = {name for name in whole if test in name}
    assert 0 < len(one & sampled) < len(sampled) / 5
    assert not one & other & sampled
    assert one - sampled == other - sampled == whole - sampled
