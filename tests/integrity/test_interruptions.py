"""Ctrl-C and SIGTERM at every moment of an apply: what was done is always reported."""

from __future__ import annotations

import json
import re
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from operator import itemgetter
from pathlib import Path
from types import FrameType
from typing import Any, Final

import httpx
import pytest
from flow.project import Project
from flow.shell import Ran, lmsconf
from sampling import WHOLE
from waiting import HANGS, HeldResponse

from lmsconf import errors
from lmsconf.apply.run_plan import execute
from lmsconf.apply.scheduler import ApplyEvents
from lmsconf.model.calls import CallStatus, Report
from lmsconf.sandbox.serve import serve
from lmsconf.sandbox.service import LoggedRequest, Sandbox
from lmsconf.workspace.connection import fill_if_empty

from .served_project import OtherAnswers, linked

SEED: Final = "people: [{email: root@acme.example, admin: true}]\n"
GROUPS: Final = ["A", "B", "C"]
MANIFEST: Final = "groups:\n" + "".join(f"  - {{name: {name}}}\n" for name in GROUPS)
WATCHED: Final = tuple(
    str(Path(errors.__file__).parent / part)
    for part in ("apply/", "journal/", "cli/apply", "cli/output", "model/outcomes", "render/")
)
"""The code that runs between the plan and the end of the command."""
TOKEN: Final = "sandbox"


class Moments:
    """Counts the lines that run of the watched code, and sends a signal at one of them.

    last: file and line → the number of the moment at which it ran last.
    """

    def __init__(self, at: int | None = None) -> None:
        self.last: dict[tuple[str, int], int] = {}
        self._seen, self._at = 0, at

    def __enter__(self) -> Moments:
        self._before = sys.gettrace()
        sys.settrace(self._enter)
        return self

    def __exit__(self, *_: object) -> None:
        sys.settrace(self._before)

    def _enter(self, frame: FrameType, event: str, argument: object) -> Callable[..., Any] | None:
        return self._line if frame.f_code.co_filename.startswith(WATCHED) else None

    def _line(self, frame: FrameType, event: str, argument: object) -> Callable[..., Any]:
        # Without a handler of Python the command has ended.
        if event == "line" and callable(signal.getsignal(signal.SIGTERM)):
            self._seen += 1
            self.last[frame.f_code.co_filename, frame.f_lineno] = self._seen
            if self._seen == self._at:
                signal.raise_signal(signal.SIGTERM)
        return self._line


def applied(folder: Path, at: int | None = None) -> tuple[Moments, Ran, list[str]]:
    """Applies three groups, with a signal at that moment; the moments that there were, and which groups there are."""
    it = Project(folder, SEED)
    it.write(MANIFEST)
    with Moments(at) as moments:
        ran = lmsconf(it.root, "apply", "--auto-approve", "--format", "json")
    answer: Any = it.ask("manual-groups.list")
    return moments, ran, [row["name"] for row in answer["groups"]]


# Before the first call, an interruption may leave a file to the garbage collector.
@pytest.mark.sampled(daily=False)
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
def test_at_every_line_what_was_done_is_reported(tmp_path: Path) -> None:
    """Whatever line runs, or the last of each module, stdout lists exactly the calls that were carried out."""
    applied(tmp_path / "first")  # imports what the others have imported then
    moments, ran, there = applied(tmp_path / "whole")
    assert (ran.code, there) == (0, GROUPS)
    last = {file: at for (file, _), at in sorted(moments.last.items(), key=itemgetter(1))}
    more = sorted(moments.last.values())[::5] if WHOLE else []
    seen: set[tuple[int, int]] = set()
    for at in sorted({*last.values(), *more}):
        _, ran, there = applied(tmp_path / str(at), at)
        told = json.loads(ran.out or '{"format": "none"}')  # before the options are read
        outcomes = told.get("outcomes", [])
        done = [one["address"].partition("/")[2] for one in outcomes if one["status"] == "done"]
        assert done == there, (at, ran)
        assert ran.code in (0, 143), (at, ran)
        if told["format"] == "lmsconf.apply/1":
            assert ran.code == told["exit"], (at, ran)
            assert len(outcomes) == len(GROUPS)
        else:
            assert (ran.code, there) == (143, [])
        assert ran.code == 143 or told["converged"], (at, ran)
        seen.add((ran.code, len(there)))
    assert {(143, 0), (143, len(GROUPS)), (0, len(GROUPS))} <= seen


class Cut:
    """An apply in a process of its own against a served sandbox, with signals where a request is held back."""

    def __init__(self, folder: Path) -> None:
        self.it = Project(folder, SEED)
        self.it.write(MANIFEST)

    def run(self, fits: Callable[[LoggedRequest], bool], *signals: int) -> tuple[Ran, int]:
        """Sends the signals while the answer to the first such request is held back; also how many calls came."""
        held = HeldResponse(fits)
        service = fill_if_empty(Sandbox(token=TOKEN, on_log=held), self.it.root / "workspace.yaml")
        with serve(service) as server:
            running = self.started(server.url, stderr=subprocess.PIPE)
            with held:
                for number in signals:
                    running.send_signal(number)
                    while running.poll() is None and _is_pending(running.pid, number):
                        pass  # signals that are pending together arrive in any order
                if len(signals) > 1:
                    running.wait(int(HANGS))  # it ends without the answer
            out, err = running.communicate(timeout=HANGS)
        return Ran(running.returncode, out, err), sum(one.writes for one in service.log)

    def started(self, url: str, *, stderr: int) -> subprocess.Popen[str]:
        return subprocess.Popen(
            [sys.executable, "-m", "lmsconf", "apply", "--auto-approve", "--parallelism", "1", "--format", "json"],
            cwd=self.it.root,
            env={"LMSCONF_URL": url, "LMSCONF_TOKEN": TOKEN},
            stdout=subprocess.PIPE,
            stderr=stderr,
            text=True,
        )


def _is_pending(pid: int, number: int) -> bool:
    """Whether no thread of the process has taken a signal yet, as far as the system tells."""
    status = Path(f"/proc/{pid}/status")
    pending = re.search(r"^ShdPnd:\s*(\w+)", status.read_text() if status.exists() else "", re.MULTILINE)
    return pending is not None and bool(int(pending[1], 16) >> (number - 1) & 1)


@pytest.mark.sampled(daily=False)
@pytest.mark.parametrize("after", [False, True], ids=["last call", "read-back"])
def test_after_the_last_call_all_calls_are_reported(tmp_path: Path, after: bool) -> None:
    """In the last call and in the read-back, SIGTERM ends the run with all calls done and nothing verified."""
    left = len(GROUPS)

    def is_meant(request: LoggedRequest) -> bool:
        nonlocal left
        was_left, left = left, left - request.writes
        return was_left == 0 if after else was_left > left == 0

    ran, calls = Cut(tmp_path).run(is_meant, signal.SIGTERM)
    assert (ran.code, calls) == (143, len(GROUPS))
    report = ran.document
    assert (report["exit"], report["converged"]) == (143, None)
    assert report["summary"] == {"done": 3, "failed": 0, "blocked": 0, "not_attempted": 0}


def test_ctrl_c_after_the_last_answer_is_told(tmp_path: Path) -> None:
    """Where all calls were refused and nothing is verified, which would hear of it, the exit code is that of Ctrl-C."""

    @contextmanager
    def phase(label: str) -> Iterator[Report]:
        yield lambda progress: None
        signal.raise_signal(signal.SIGINT)

    with linked(tmp_path, SEED, MANIFEST) as it:
        way = it.reader(OtherAnswers(it.sandbox, lambda one: None if one.method == "GET" else httpx.Response(409)))
        report = execute(way, it.plan(way), meta={}, progress=ApplyEvents(phase=phase))
    assert (report.exit, report.summary[CallStatus.FAILED]) == (130, len(GROUPS))


def test_a_second_signal_ends_the_run_with_its_report(tmp_path: Path) -> None:
    """Ctrl-C and SIGTERM in a call that is not answered, as a CI sends them: that call is told as not known."""
    ran, _ = Cut(tmp_path).run(lambda request: request.writes, signal.SIGINT, signal.SIGTERM)
    assert ran.code == 130
    report: Any = ran.document
    assert [one["status"] for one in report["outcomes"]] == ["failed", "not_attempted", "not_attempted"]
    assert "interrupted twice" in report["outcomes"][0]["reason"]


@pytest.mark.sampled(daily=False)
def test_while_the_report_is_written_it_is_written_whole(tmp_path: Path) -> None:
    """Nothing is left to interrupt: the report is complete, and the exit code is the one that it states."""
    cut = Cut(tmp_path)
    cut.it.write("groups:\n" + "".join(f"  - {{name: {'G' * 180} {number}}}\n" for number in range(400)))
    with (
        serve(fill_if_empty(Sandbox(token=TOKEN), cut.it.root / "workspace.yaml")) as server,
        cut.started(server.url, stderr=subprocess.DEVNULL) as running,
    ):
        assert running.stdout is not None
        first = running.stdout.read(1)  # the rest is more than a pipe holds, so that the process still writes it
        running.send_signal(signal.SIGTERM)
        report = json.loads(first + running.stdout.read())
    assert (running.returncode, report["exit"], report["summary"]["done"]) == (0, 0, 400)
