"""No test waits by sleeping or judges by seconds, which a busy machine makes more of. What has to is listed here."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

TESTS = Path(__file__).parent.parent
_READ = ("time", "monotonic", "perf_counter", "process_time", "thread_time")
CLOCKS = frozenset(f"{name}{unit}" for name in _READ for unit in ("", "_ns"))
SHORT = 30
"""Seconds; what waits longer waits for an event, and ends a test that hangs."""

REASONS = {
    "benchmarks/": "they measure seconds, and no test runs them",
    "examples/first_hour.py follow_on_terminal": "tells how long each command took; eight minutes are ten times that",
    "examples/first_hour.py install_seconds": "tells how long an installation took, and no test runs it",
    "planted/forked.py Forks.judged": "tells how long a mutant took to be found, and decides nothing by it",
    "planted/source_copy.py SourceCopy.judged": "tells how long a fault took to be found, and decides nothing by it",
    "client/test_redact.py test_long_answers_take_no_time": (
        "a pattern runs inside of C, where no steps can be counted: CPU time, a hundred times what it takes"
    ),
    "client/test_sockets.py after_the_request.answer": "a drip takes time; however long, the deadline is first",
    "client/test_sockets.py ended": "the deadline of a socket is the system's; nothing is judged by how long it took",
    "client/test_sockets.py listening": "how often a server looks whether the test is over",
    "client/test_sockets.py test_nothing_is_sent_on_a_connection_that_was_idle": (
        "a connection is idle for at least so long; load makes it longer"
    ),
    "fleet/dask_cluster.py _end": "how long Dask's processes may take to end before they are killed",
    "fleet/dask_cluster.py dask_cluster": "Dask tells nobody when it listens, but writes a file",
    "fleet/test_dask.py _until": "a process is looked at until it has done something; only a hang takes long",
    "fleet/test_dask.py pages": "how long a page may take; only a hang takes long",
    "fleet/test_dask.py test_an_interrupted_apply_stops_on_the_workers": (
        "for so long nothing may be written; load can only hide it"
    ),
    "fleet/test_failing_workspaces.py RequestTimes.take_fault": "a limit is never exceeded; load only slows requests",
    "fleet/served_fleet.py wait_for_orphans": "processes are looked at until they have ended; only a hang takes long",
    "fleet/test_thousand_workspaces.py Bucket.__init__": "processes share a service with a limit; load only slows them",
    "fleet/test_thousand_workspaces.py Bucket.take_fault": "the same limit: so many requests a second",
    "fleet/test_thousand_workspaces.py test_processes_divide_the_rate": (
        "no more can be answered than the limit allows; load makes it fewer"
    ),
    "judges/prism.py _awaited": "the log of a program of others, which tells nobody when it writes",
    "sandbox/test_sandbox_serve.py test_latency_comes_before_each_answer": "at least so long; load makes it longer",
    "simulation/test_sigkill.py ServedWorkspace.killed": "the moment of a kill is chosen by chance, and may be any",
    "simulation/test_sigkill.py test_a_killed_process_leaves_nothing_that_the_next_run_cannot_finish": (
        "what a dead process sent arrives in between; the test holds whether it does or not"
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
        if file.startswith("benchmarks/") or path == Path(__file__):
            continue
        found |= {f"{file} {name}" for name in real_seconds(ast.parse(path.read_text(encoding="utf-8")))}
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
