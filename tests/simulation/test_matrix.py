"""Every call of every reference apply, struck by every kind of mishap; every sixth by those that are like another."""

import logging
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from random import Random
from shutil import copy, rmtree
from typing import Any, Final

import pytest
from flow.shell import lmsconf
from sampling import PARTS, of_today, schedules_of_today

from lmsconf.api.transport import HttpResponse, HttpTransport
from lmsconf.apply.ambiguous_writes import AmbiguousWriteResolver, IssuedRequest, WriteStatus
from lmsconf.errors import InvalidResponse, WriteOutcomeUnknown
from lmsconf.model.canonical_json import Json
from lmsconf.sandbox.serve import Server
from lmsconf.sandbox.service import Sandbox
from lmsconf.workspace.fill_sandbox import fill_workspace

from .references import MANIFESTS, REFERENCES, scene, seed
from .request_faults import KILLED_UNRECORDED, KINDS, LIKE_ANOTHER
from .run_schedule import PAIRS, STORMS, WHOLE, Schedule, play_all
from .workspace_state import Portrait, compare, ids, portrait


def struck(kind: str, calls: int) -> range:
    """The numbers of the calls that a kind strikes."""
    return range(1, calls + 1, 6 if kind in LIKE_ANOTHER and not WHOLE else 1)


SAMPLES: Final = {PAIRS: 3000 if WHOLE else 144, STORMS: 1008 if WHOLE else 48}
"""Two mishaps in one schedule, and storms in which any request may be struck. SIMULATION=all plays the whole sample."""


@pytest.mark.parametrize("reference", REFERENCES)
def test_whatever_strikes_the_next_runs_converge(
    reference: str, record_property: Callable[[str, object], None]
) -> None:
    """Run again, and nothing is lost, doubled, or touched that no manifest names.

    Strikes one call, whichever it is; two, of which the second may be of the next run; or up to every fifth request.
    After the latter two, the workspace converges or twins are named.
    """
    calls, schedules = scene(reference).calls, list[Schedule]()
    for kind in (*KINDS, KILLED_UNRECORDED):
        # A kind whose ways take turns from call to call, or all of its ways.
        ways = [one.name for one in KINDS[kind]] if WHOLE and kind in KINDS else [kind]
        of_kind = [Schedule(reference, way, call) for way in ways for call in struck(kind, calls)]
        schedules += schedules_of_today(of_kind, f"{reference}-{kind}")
    for kind, size in SAMPLES.items():
        numbers = of_today(range(size // len(REFERENCES)), PARTS, f"{reference}-{kind}")
        schedules += [Schedule(reference, kind, number) for number in numbers]
    counts, broken = play_all(schedules)
    record_property("simulation", dict(counts))
    assert not broken, f"{len(broken)} of {len(schedules)} schedules:\n" + "\n".join(broken[:3])


@pytest.mark.sampled(day=8, daily=False)
def test_the_developers_guide_says_how_many_there_are() -> None:
    """Its number of calls, kinds and schedules is the one that is played."""
    counts = [scene(name).calls for name in REFERENCES]
    kinds = [*KINDS, KILLED_UNRECORDED]
    played = sum(len(range(1, calls + 1, 6 if kind in LIKE_ANOTHER else 1)) for kind in kinds for calls in counts)
    page = (Path(__file__).parent.parent.parent / "CONTRIBUTING.md").read_text(encoding="utf-8")
    often = len(kinds) - len(LIKE_ANOTHER)
    assert f"each of the {sum(counts)} calls of six applies with {often} kinds of mishap" in page
    assert f"every sixth with {len(LIKE_ANOTHER)} more" in page
    assert f"All {played:,} schedules converge" in page


# The simulation can fail: a sender that settles lost answers carelessly is found out, and one that gives secrets away.


def _blindly(self: AmbiguousWriteResolver, sent: IssuedRequest, send: Callable[[], Json]) -> Json:
    with suppress(WriteOutcomeUnknown, InvalidResponse):
        return send()
    return send()


def _once(self: AmbiguousWriteResolver, seconds: float) -> Iterator[None]:
    yield


_SEND: Final = HttpTransport.send


def _chatty(self: HttpTransport, *args: Any, **more: Any) -> HttpResponse:
    logging.getLogger("chatty").debug("%s", dict(self._headers))
    return _SEND(self, *args, **more)


CARELESS: Final = {
    "sends again whatever has no answer": (
        *(AmbiguousWriteResolver, "resolve", _blindly),
        *("create", "lost-after", "something was made twice", 3),
    ),
    "sends again after one look": (
        *(AmbiguousWriteResolver, "poll_times", _once),
        *("create", "late-20", "something was made twice", 1),
    ),
    "takes for done what has no answer": (
        *(AmbiguousWriteResolver, "_status_now", lambda self, sent: WriteStatus.DONE),
        *("delete", "lost-before", "a call was reported done that never was", 1),
    ),
    "quotes the service as it is": (
        *(HttpTransport, "redact", lambda self, text: text),
        *("create", "403", "it gave away ('token+0815', 'canary-link-4711')", 3),
    ),
    "logs the headers of a request": (
        *(HttpTransport, "send", _chatty),
        *("create", "slow", "it gave away ('token+0815',)", 3),
    ),
}
"""What is careless, and in its place; which mishap of which reference tells so, in which words, how often of three."""


@pytest.mark.slow
@pytest.mark.parametrize("careless", CARELESS)
def test_a_careless_sender_is_found_out(monkeypatch: pytest.MonkeyPatch, careless: str) -> None:
    """What it makes twice, reports and gives away breaks the law."""
    owner, name, instead, reference, kind, said, least = CARELESS[careless]
    calls = enumerate(scene(reference).plan.calls, 1)  # planned by a sender that is careful
    struck = [number for number, call in calls if call.operation == f"manual-groups.{reference}"][:3]
    monkeypatch.setattr(owner, name, instead)
    _, broken = play_all(Schedule(reference, kind, call) for call in struck)
    assert sum(said in one for one in broken) >= least


# Fifty real processes that are killed in the middle of an apply, against a sandbox behind a port.


KILLS: Final = 50
_KILLED_BATCHES: Final = 5
_LATENCY: Final = 0.005
_ENVIRONMENT: Final = {"LMSCONF_TOKEN": "sandbox"}
_PROJECT: Final = """
workspaces: {{served: {{url: "{url}", token: {{env: LMSCONF_TOKEN}}}}}}
timezone: Europe/Stockholm
settle: 100ms
guards: off
"""


@pytest.mark.slow
@pytest.mark.sampled(gate=5)
@pytest.mark.parametrize("batch", range(_KILLED_BATCHES))
def test_a_killed_process_leaves_nothing_that_the_next_run_cannot_finish(tmp_path: Path, batch: int) -> None:
    """Killed around whatever call, with its journal or without: the next run ends where one run would have."""
    dice, killed = Random(batch), 0  # noqa: S311  the same moments each time, as far as a real process allows
    service = Sandbox()
    with service.store.write_transaction() as repository:
        fill_workspace(repository, seed())
        old = ids(repository)
    service.store.checkpoint("start")

    def sent() -> int:
        return sum(one.writes for one in service.log)

    def converged() -> Portrait:
        lmsconf(tmp_path, "apply", "--auto-approve", env=_ENVIRONMENT, code=0)
        lmsconf(tmp_path, "plan", "--detailed-exitcode", env=_ENVIRONMENT, code=0)
        with service.store.read_transaction() as repository:
            return portrait(repository, old)

    with Server(service, latency=_LATENCY) as server:
        (tmp_path / "lmsconf.yaml").write_text(_PROJECT.format(url=server.url), encoding="utf-8")
        (tmp_path / "manifests").mkdir()
        copy(MANIFESTS / "mixed.yaml", tmp_path / "manifests")
        wanted, calls = converged(), sent()
        for attempt in range(3 * KILLS):
            if killed == KILLS // _KILLED_BATCHES:
                break
            service.store.restore("start")
            service.log.clear()
            after = dice.randint(1, calls - 1)
            command = [sys.executable, "-m", "lmsconf", "apply", "--auto-approve", "--parallelism", "2"]
            nowhere = dict.fromkeys(("stdout", "stderr"), subprocess.DEVNULL)
            with subprocess.Popen(command, cwd=tmp_path, env=os.environ | _ENVIRONMENT, **nowhere) as process:
                until = time.monotonic() + 30
                while sent() < after and process.poll() is None and time.monotonic() < until:
                    time.sleep(0.001)
                time.sleep(dice.uniform(0, 1.5 * _LATENCY))
                process.kill()
            killed += process.returncode == -signal.SIGKILL and sent() < calls
            if attempt % 3 == 0:
                rmtree(tmp_path / ".lmsconf", ignore_errors=True)
                time.sleep(10 * _LATENCY)  # less than it takes to start a process again
            assert not compare(wanted, converged()), f"batch {batch}, attempt {attempt}"
    service.close_workspace()
    assert killed == KILLS // _KILLED_BATCHES
