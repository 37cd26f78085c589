"""Workspaces that fail, hang or change while others are worked on: each is reported, and holds up no other one."""

import json
import os
import random
import signal
import subprocess
import sys
import threading
import time
from contextlib import suppress

import pytest
from fleet.fleet_project import CALLS, Fleet, ServedFleet, wait_for_orphans, workers
from waiting import HANGS, Interruptions, awaited

from lmsconf.sandbox.faults import Fault, FaultScript
from lmsconf.sandbox.service import LoggedRequest


@pytest.mark.sampled(daily=False)
@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_an_interrupted_apply_reports_what_it_did_and_goes_on_later(
    served: ServedFleet, number: signal.Signals, code: int
) -> None:
    """Workers finish the calls that they have sent; the index says what was done, in which waves; nothing is lost."""
    once = threading.Event()

    def interrupt(call: LoggedRequest) -> None:
        if call.writes and not once.is_set():
            once.set()
            os.kill(os.getpid(), number)

    for name in ("a", "b", "c", "d"):
        labels = "ring=late" if name == "d" else "ring=main"
        served.serve(name, labels, on_log=interrupt if name == "a" else None, latency=0.02)
    served.write("lmsconf.yaml", served.project("waves: [ring=main, '*']\nmax_failures: 5\n"))
    # So many calls, one after the other, that the signal reaches the worker before the last of them.
    groups = [f"Group {number}" for number in range(20)]
    served.write("manifests/b.yaml", json.dumps({"groups": [{"name": name} for name in groups]}))
    served.plan()
    with Interruptions():
        served.apply("--parallelism", "1", code=code)
    exits = served.exits()
    assert exits.keys() == {"a", "b", "c", "d"}
    assert (exits["a"], exits["d"]) == (code, 5)
    assert not served.names("d")
    done = [one for one in served.index(name="a.report.json")["outcomes"] if one["status"] == "done"]
    assert 1 <= len(done) < CALLS + len(groups)
    finish(served, *groups)


@pytest.mark.slow
@pytest.mark.sampled(gate=3)
@pytest.mark.parametrize("seed", range(3))
def test_an_apply_whose_workers_are_killed_converges(served: ServedFleet, seed: int) -> None:
    """However often workers are killed with a write under way: applied again, all is there, and nothing twice."""
    dice = random.Random(seed)  # noqa: S311  the same choices each time
    deaths = [4]

    def murder(call: LoggedRequest) -> None:
        if call.writes and deaths[0] and dice.random() < 0.5:
            deaths[0] -= 1
            with suppress(ProcessLookupError):
                os.kill(dice.choice(workers()), signal.SIGKILL)

    for name in ("a", "b", "c", "d", "e"):
        served.serve(name, on_log=murder, faults=FaultScript(Fault(delay=0.01, times=1000)))
    served.plan()
    served.apply("--max-failures", "5")
    assert deaths[0] < 4
    deaths[0] = 0
    assert set(served.exits()) == {"a", "b", "c", "d", "e"}
    finish(served)


@pytest.mark.slow
def test_a_killed_run_is_continued(served: ServedFleet) -> None:
    """A coordinator that is killed leaves no index: its plans are applied again, and what was done is not repeated."""
    ready = threading.Event()

    def note(call: LoggedRequest) -> None:
        if call.operation == "smart-groups.create":
            ready.set()

    for name in ("a", "b", "c", "d"):
        served.serve(name, on_log=note, latency=0.05)
    served.plan()
    command = [sys.executable, "-m", "lmsconf", "-C", served.root, "fleet", "apply", served.out, "--auto-approve"]
    quiet = subprocess.DEVNULL
    with subprocess.Popen([*command, "--processes", "2"], stdout=quiet, stderr=quiet) as coordinator:
        awaited(ready)
        coordinator.kill()
    wait_for_orphans(served.root)
    assert not (served.out / "apply.json").exists()
    finish(served)
    for service in served.services.values():
        assert sum(call.writes for call in service.log) == CALLS


def finish(served: ServedFleet, *groups: str) -> None:
    """Apply the same plans again: that does what is left, everything is there once, and a plan is empty.

    groups: those beside the one of each fleet.
    """
    served.apply("--max-failures", "9", code=0)
    assert set(served.exits().values()) == {0}
    served.plan("--detailed-exitcode", out="again")
    for name in served.services:
        assert served.names(name) == dict.fromkeys(("Department", "Team", "Sellers", *groups), 1), name


@pytest.mark.sampled(daily=False)
def test_too_many_processes_are_an_error(fleet: Fleet) -> None:
    """Where the system does not start another process, the command ends with that reason and what to pass."""
    rows = "".join(f"w{number},sandbox:,region=eu\n" for number in range(30))
    fleet.write("workspaces.csv", f"name,url,labels\n{rows}")
    command = [sys.executable, "-m", "lmsconf", "-C", str(fleet.root), "fleet", "plan", "--processes", "30"]
    limited = ["/bin/sh", "-c", 'ulimit -n 30; exec "$@"', "sh", *command]
    ran = subprocess.run(limited, capture_output=True, text=True, check=False)
    assert (ran.returncode, ran.stdout) == (1, "")
    assert ran.stderr.startswith("error: a worker process cannot be started: Too many open files [error]\n")
    assert "--processes" in ran.stderr


@pytest.mark.sampled(daily=False)
def test_an_apply_whose_time_is_over_may_have_done_a_part(served: ServedFleet) -> None:
    """Its exit code is that of a part, and its calls are not counted as none; the next apply does what is left."""
    answers = threading.Event()
    served.serve("a", on_log=lambda call: call.writes and answers.wait(HANGS))
    served.plan()
    text = served.apply("--time-limit", "3", code=5).out
    answers.set()
    assert text.startswith("1 workspace: 0 applied or without changes (at least 0 API calls), 1 failed.\n")
    assert "(http://127.0.0.1:" in text
    assert "): applied in part, or not at all\n  error: the time limit of 3 seconds is over [fleet/lost]\n" in text
    assert "What it has done is not done twice." in text
    finish(served)


# Two hundred workspaces, and many processes at one host.


@pytest.mark.slow
def test_a_few_that_fail_hold_up_no_other_of_hundreds(served: ServedFleet) -> None:
    """One hangs, one refuses its token, one trips a guard, one was edited: the others are planned and applied in waves.

    Then a plan is empty but for those. Each failure is reported first.
    """
    good = {f"w{number:04}": 0 for number in range(200)}
    for name in good:
        served.add(name, f"sandbox:{name}.db", "ring=canary" if name < "w0005" else "ring=main")
    served.hang("hangs")
    served.serve("refuses", takes="another")
    served.serve("guarded")
    served.serve("edited")
    served.ask("guarded", "POST", "/groups", {"name": "Old"})
    guards = "guards: {deletes: {count: 0, share: off}}\nwaves: [ring=canary, '*']\nmax_failures: 4\n"
    served.write("lmsconf.yaml", served.project(guards))
    served.write("manifests/b.yaml", "absent: {groups: [{name: Old, only_in: [guarded]}]}\n")
    troubles = {"hangs": 8, "refuses": 7}
    served.plan("--time-limit", "20", code=7)
    assert served.exits("index.json") == {**dict.fromkeys((*good, "guarded", "edited"), 2), **troubles}
    for view in ("text", "markdown"):
        shown = served.show(view)
        assert len(shown) < 65_536  # characters of a comment at GitHub
        hangs, refuses, stops, changes = map(
            shown.index, ("time limit of 20 seconds", "refuse", "would stop here", "202 of 204")
        )
        assert max(hangs, refuses) < stops < changes
    served.ask("edited", "POST", "/groups", {"name": "Team"})
    text = served.apply("--time-limit", "20", code=7).out
    assert served.exits() == {**good, **troubles, "guarded": 4, "edited": 3}
    assert "204 workspaces: 200 applied or without changes (600 API calls), 4 failed." in text
    assert "guard/deletes" in json.dumps(served.index(name="apply.json"))
    assert served.names("guarded") == {"Old": 1}
    served.command("plan", "--detailed-exitcode", "--select", "ring=main", "--time-limit", "20", code=7)
    text = served.command("plan", "--detailed-exitcode", "--select", "ring=canary", code=0).out
    assert text.splitlines()[0] == "5 workspaces: 0 with changes, 5 without."
    assert "  settle: 0.2 s (default: 30 s), in 5 workspaces: w0000, w0001, w0002 and 2 more" in text


class Bucket(FaultScript):
    """Keeps the time of each request; refuses with 429 and Retry-After what is beyond so many requests a second."""

    def __init__(self, rate: float) -> None:
        super().__init__()
        self._rate, self._held, self._at = rate, rate, time.monotonic()
        self._turn = threading.Lock()
        self.answered: list[float] = []
        self.refused = 0

    def take_fault(self, operation: str, *, writes: bool = False) -> Fault | None:
        """Count a request, and return its refusal if it is one too many."""
        with self._turn:
            now = time.monotonic()
            self._held, self._at = min(self._rate, self._held + (now - self._at) * self._rate), now
            if self._held >= 1:
                self._held -= 1
                self.answered.append(now)
                return None
            self.refused += 1
            return Fault(status=429, headers={"retry-after": "1"})


def plan_of_one_host(served: ServedFleet, bucket: Bucket, number: int, *arguments: str) -> str:
    """Plan so many workspaces that are at one host; return what that printed."""
    url = served.serve("w00", faults=bucket)
    for other in range(1, number):
        served.add(f"w{other:02}", url)
    return served.command("plan", *arguments, code=0).out


@pytest.mark.sampled(daily=False)
def test_processes_keep_to_a_limit_together(served: ServedFleet) -> None:
    """Two processes that plan four workspaces of one host send no more requests a second than --max-rate says."""
    bucket = Bucket(1000.0)
    plan_of_one_host(served, bucket, 4, "--max-rate", "20")
    # Each process may send its first request at once.
    assert len(bucket.answered) - 2 <= 20 * (bucket.answered[-1] - bucket.answered[0])


@pytest.mark.slow
def test_processes_divide_the_rate_that_they_learn(served: ServedFleet) -> None:
    """Eight processes plan forty workspaces of one host that accepts 30 requests a second."""
    bucket, begin = Bucket(30.0), time.monotonic()
    assert "40 with changes" in plan_of_one_host(served, bucket, 40, "--processes", "8")
    answered = len(bucket.answered)
    assert answered == len([call for call in served.services["w00"].log if call.status != 429])
    assert answered <= 30 * (time.monotonic() - begin + 1) + 1
    assert bucket.refused <= answered / 4
