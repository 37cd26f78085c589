"""Workspaces that fail, hang or change while others are worked on: each is reported, and holds up no other one."""

import json
import os
import random
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Sequence
from contextlib import nullcontext
from pathlib import Path

import pytest
from fleet.fleet_project import CALLS, Fleet, ServedFleet, kill, wait_for_orphans, workers
from msgspec.structs import replace
from waiting import HANGS, Interruptions, awaited

from lmsconf.errors import ExitCode, LmsconfError
from lmsconf.fleet.tasks import FleetTask
from lmsconf.fleet.waves import apply_waves, read_applied
from lmsconf.model.fleet import FleetAction, FleetEntry
from lmsconf.sandbox.faults import Fault, FaultScript
from lmsconf.sandbox.service import LoggedRequest

LIMIT = "15"
"""Seconds for one workspace: far more than it takes on a busy machine, except where a service hangs."""
FAILURES = {"hangs": 8, "refuses": 7}


def troubled(served: ServedFleet) -> None:
    """One workspace hangs, one refuses its token, one trips a guard, one is fine."""
    served.serve("fine")
    served.hang("hangs")
    served.serve("refuses", takes="another")
    served.serve("guarded")
    served.ask("guarded", "POST", "/groups", {"name": "Old"})
    served.write(
        "lmsconf.yaml",
        served.project("guards: {deletes: {count: 0, share: off}}\nwaves: [ring=canary, '*']\n"),
    )
    served.write("manifests/b.yaml", "absent: {groups: [{name: Old, only_in: [guarded]}]}\n")


def test_what_was_applied_before_the_engine_fails_is_kept(tmp_path: Path) -> None:
    """The results of the wave so far stand in apply.json, so that the next run does the rest."""
    planned = [
        FleetEntry(workspace=name, url="sandbox:", labels={}, exit=ExitCode.CHANGES, digest=name, summary={"create": 1})
        for name in ("a", "b")
    ]

    def engine(tasks: Sequence[FleetTask], listener: Callable[[FleetEntry], None]) -> None:
        listener(replace(planned[0], exit=ExitCode.OK))
        raise LmsconfError("the scheduler is lost")

    with pytest.raises(LmsconfError, match="the scheduler is lost"):
        apply_waves(
            {"*": planned},
            None,
            tmp_path,
            None,
            engine=engine,
            make_task=lambda entry: FleetTask(workspace=entry.workspace, action=FleetAction.APPLY, url=entry.url),
            listen=lambda label, tasks: nullcontext(lambda entry: None),
            max_failures=0,
            created_at="",
        )
    applied = read_applied(tmp_path, None)
    assert applied is not None
    assert [(entry.workspace, entry.exit) for entry in applied.entries] == [("a", ExitCode.OK)]


@pytest.mark.slow
def test_each_failure_is_reported_first_and_holds_up_no_other(served: ServedFleet) -> None:
    """A service that hangs, a refused token and a guard are the results of their workspaces; the others have theirs."""
    troubled(served)
    served.serve("canary", "ring=canary")
    served.run("fleet", "plan", "--out", served.out, "--processes", "2", "--time-limit", LIMIT, code=7)
    assert served.exits("index.json") == {"canary": 2, "fine": 2, "guarded": 2, **FAILURES}
    for format in ("text", "markdown"):
        _, text, _ = served.run("fleet", "show", served.out, "--format", format)
        hangs, refuses, stops, changes = (
            text.index(words) for words in ("time limit of 15 seconds", "refuse", "would stop here", "Department")
        )
        assert max(hangs, refuses) < stops < changes
    code, text = served.apply("--time-limit", LIMIT)
    assert (code, served.exits()) == (7, {"canary": 0, "fine": 0, "guarded": 4, **FAILURES})
    assert served.names("fine") == served.names("canary") == {"Department": 1, "Team": 1, "Sellers": 1}
    assert served.names("guarded") == {"Old": 1}
    assert "guard/deletes" in json.dumps(served.index("out", "apply.json"))


@pytest.mark.sampled
def test_a_wave_with_failures_is_the_last_one(served: ServedFleet) -> None:
    """Waves stop where they should: the failure of a canary, and no other one, keeps everything else as it is."""
    served.serve("a", "ring=canary", takes="another")
    served.serve("b", "ring=canary")
    served.serve("c")
    served.write("lmsconf.yaml", served.project("waves: [ring=canary, '*']\n"))
    served.plan_served()
    assert served.apply()[0] == 7
    assert served.exits() == {"a": 7, "b": 0, "c": 5}
    assert not served.names("c")
    assert served.apply("--max-failures", "1")[0] == 7
    assert served.exits() == {"a": 7, "b": 0, "c": 0}
    assert sum(call.writes for call in served.services["b"].log) == CALLS


@pytest.mark.sampled
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

    served.serve("a", on_log=interrupt, latency=0.02)
    served.serve("b", latency=0.02)
    served.serve("c", latency=0.02)
    served.serve("d", "ring=late", latency=0.02)
    served.write("lmsconf.yaml", served.project("waves: [ring=main, '*']\nmax_failures: 5\n"))
    # So many calls, one after the other, that the signal reaches the worker before the last of them.
    groups = [f"Group {number}" for number in range(20)]
    served.write("manifests/b.yaml", json.dumps({"groups": [{"name": name} for name in groups]}))
    served.plan_served()
    with Interruptions():
        assert served.apply("--parallelism", "1")[0] == code
    exits = served.exits()
    assert exits.keys() == {"a", "b", "c", "d"}
    assert exits["a"] == code
    assert exits["d"] == 5
    assert not served.names("d")
    report = json.loads((served.root / "out" / "a.report.json").read_text())
    done = [one for one in report["outcomes"] if one["status"] == "done"]
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
            kill(dice.choice(workers()))

    for name in ("a", "b", "c", "d", "e"):
        served.serve(name, on_log=murder, faults=FaultScript(Fault(delay=0.01, times=1000)))
    served.plan_served()
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
    served.plan_served()
    command = [sys.executable, "-m", "lmsconf", "-C", str(served.root), "fleet", "apply", served.out]
    with subprocess.Popen(
        [*command, "--auto-approve", "--processes", "2"], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    ) as coordinator:
        awaited(ready)
        coordinator.kill()
    wait_for_orphans(served.root)
    assert not (served.root / "out" / "apply.json").exists()
    finish(served)
    for service in served.services.values():
        assert sum(call.writes for call in service.log) == CALLS


def finish(served: ServedFleet, *groups: str) -> None:
    """Apply the same plans again: that does what is left, everything is there once, and a plan is empty.

    groups: those beside the one of each fleet.
    """
    code, text = served.apply("--max-failures", "9")
    assert code == 0, text
    assert set(served.exits().values()) == {0}
    assert served.plan_served("--detailed-exitcode", out=str(served.root / "again")) == 0
    for name in served.services:
        assert served.names(name) == dict.fromkeys(("Department", "Team", "Sellers", *groups), 1), name


@pytest.mark.sampled
def test_too_many_processes_are_an_error(fleet: Fleet) -> None:
    """Where the system does not start another process, the command ends with that reason and what to pass."""
    rows = "".join(f"w{number},sandbox:,region=eu\n" for number in range(30))
    fleet.write("workspaces.csv", f"name,url,labels\n{rows}")
    command = [sys.executable, "-m", "lmsconf", "-C", str(fleet.root), "fleet", "plan", "--processes", "30"]
    ran = subprocess.run(
        ["/bin/sh", "-c", 'ulimit -n 30; exec "$@"', "sh", *command],
        capture_output=True,
        text=True,
        check=False,
    )
    assert (ran.returncode, ran.stdout) == (1, "")
    assert ran.stderr.startswith("error: a worker process cannot be started: Too many open files [error]\n")
    assert "--processes" in ran.stderr


@pytest.mark.sampled
def test_an_apply_whose_time_is_over_may_have_done_a_part(served: ServedFleet) -> None:
    """Its exit code is that of a part, and its calls are not counted as none; the next apply does what is left."""
    answers = threading.Event()
    served.serve("a", on_log=lambda call: call.writes and answers.wait(HANGS))
    served.plan_served()
    code, text = served.apply("--time-limit", "3")
    answers.set()
    assert code == 5
    assert text.startswith("1 workspace: 0 applied or without changes (at least 0 API calls), 1 failed.\n")
    assert "(http://127.0.0.1:" in text
    assert "): applied in part, or not at all\n  error: the time limit of 3 seconds is over [fleet/lost]\n" in text
    assert "What it has done is not done twice." in text
    finish(served)


class RequestTimes(FaultScript):
    """No fault, but the time of each request."""

    def __init__(self) -> None:
        super().__init__()
        self.times: list[float] = []

    def take_fault(self, operation: str, *, writes: bool = False) -> Fault | None:
        """Keep the time."""
        self.times.append(time.monotonic())
        return None


@pytest.mark.sampled
def test_processes_keep_to_a_limit_together(served: ServedFleet) -> None:
    """Two processes that plan four workspaces of one host send no more requests a second than --max-rate says."""
    asked = RequestTimes()
    served.serve("w0", faults=asked)
    url = (served.root / "workspaces.csv").read_text().split(",")[-2]
    for number in range(1, 4):
        served.add(f"w{number}", url)
    assert served.run("fleet", "plan", "--processes", "2", "--max-rate", "20")[0] == 0
    # Each process may send its first request at once.
    assert len(asked.times) - 2 <= 20 * (asked.times[-1] - asked.times[0])


# Two hundred workspaces, and many processes at one host.


MANY = 200
COMMENT = 65_536
"""Characters of a comment at GitHub."""


@pytest.mark.slow
def test_a_few_that_fail_hold_up_no_other_of_hundreds(served: ServedFleet) -> None:
    """One hangs, one refuses its token, one trips a guard, one was edited: the others are planned and applied in waves.

    A second apply does nothing, and then a plan is empty but for those.
    """
    for number in range(MANY):
        served.add(f"w{number:04}", f"sandbox:w{number:04}.db", "ring=canary" if number < 5 else "ring=main")
    served.hang("hangs")
    served.serve("refuses", takes="another")
    served.serve("guarded")
    served.serve("edited")
    served.ask("guarded", "POST", "/groups", {"name": "Old"})
    guards = "guards: {deletes: {count: 0, share: off}}\nwaves: [ring=canary, '*']\nmax_failures: 4\n"
    served.write("lmsconf.yaml", served.project(guards))
    served.write("manifests/b.yaml", "absent: {groups: [{name: Old, only_in: [guarded]}]}\n")
    troubles = {"hangs": 8, "refuses": 7}
    good = {f"w{number:04}": 0 for number in range(MANY)}
    assert served.plan_served("--time-limit", "20") == 7
    assert served.exits("index.json") == {**dict.fromkeys((*good, "guarded", "edited"), 2), **troubles}
    _, comment, _ = served.run("fleet", "show", served.out, "--format", "markdown")
    assert len(comment) < COMMENT
    assert comment.index("hangs") < comment.index("guarded") < comment.index("202 of 204")
    served.ask("edited", "POST", "/groups", {"name": "Team"})
    code, text = served.apply("--time-limit", "20")
    assert (code, served.exits()) == (7, {**good, **troubles, "guarded": 4, "edited": 3})
    assert "204 workspaces: 200 applied or without changes (600 API calls), 4 failed." in text
    served.run("fleet", "plan", "--detailed-exitcode", "--select", "ring=main", "--time-limit", "20", code=7)
    code, text, _ = served.run("fleet", "plan", "--detailed-exitcode", "--select", "ring=canary")
    assert (code, text.splitlines()[0]) == (0, "5 workspaces: 0 with changes, 5 without.")
    assert "  settle: 0.2 s (default: 30 s), in 5 workspaces: w0000, w0001, w0002 and 2 more" in text


class Bucket(FaultScript):
    """Refuses with 429 and Retry-After what is beyond so many requests a second."""

    def __init__(self, rate: float) -> None:
        super().__init__()
        self._rate, self._held, self._at = rate, rate, time.monotonic()
        self._turn = threading.Lock()
        self.answered = self.refused = 0

    def take_fault(self, operation: str, *, writes: bool = False) -> Fault | None:
        """Count a request, and return its refusal if it is one too many."""
        with self._turn:
            now = time.monotonic()
            self._held, self._at = min(self._rate, self._held + (now - self._at) * self._rate), now
            if self._held >= 1:
                self._held -= 1
                self.answered += 1
                return None
            self.refused += 1
            return Fault(status=429, headers={"retry-after": "1"})


@pytest.mark.slow
@pytest.mark.parametrize("limit", [None, "25"], ids=["learnt", "--max-rate"])
def test_processes_divide_the_rate(served: ServedFleet, limit: str | None) -> None:
    """Eight processes plan forty workspaces of one host that accepts 30 requests a second."""
    bucket = Bucket(30.0)
    service = served.serve("w00", faults=bucket)
    url = (served.root / "workspaces.csv").read_text().split(",")[-2]
    for number in range(1, 40):
        served.add(f"w{number:02}", url)
    begin = time.monotonic()
    arguments = ("fleet", "plan", "--processes", "8", *([] if limit is None else ["--max-rate", limit]))
    assert "40 with changes" in served.run(*arguments, code=0).out
    assert bucket.answered == len([call for call in service.log if call.status != 429])
    assert bucket.answered <= 30 * (time.monotonic() - begin + 1) + 1
    assert bucket.refused <= (bucket.answered / 4 if limit is None else 0)
