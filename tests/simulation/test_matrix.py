"""Every call of every reference apply, struck by every kind of mishap; every sixth by those that are like another."""

import logging
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from datetime import date
from pathlib import Path
from random import Random
from shutil import rmtree
from typing import Any, Final

import pytest
from sampling import PARTS, of_today, schedules_of_today

from lmsconf.api.transport import HttpResponse, HttpTransport
from lmsconf.apply.ambiguous_writes import AmbiguousWriteResolver, IssuedRequest, WriteStatus
from lmsconf.apply.run_plan import execute
from lmsconf.documents.journal.journal_reader import read_runs, wait_for_pending_writes
from lmsconf.errors import InvalidResponse, WriteOutcomeUnknown
from lmsconf.model.canonical_json import Json
from lmsconf.model.outcomes import CallState
from lmsconf.project.settings import load_settings
from lmsconf.sandbox.serve import Server
from lmsconf.sandbox.service import Sandbox
from lmsconf.workspace.connection import Connection
from lmsconf.workspace.fill_sandbox import fill_workspace
from lmsconf.workspace.project_manifests import load_manifests
from lmsconf.workspace.reader import WorkspaceReader

from .references import COURSES, PEOPLE, REFERENCES, TEAMS, Document, alone, scene, seed, yaml_lines
from .request_faults import (
    KEPT,
    KILLED_UNRECORDED,
    KINDS,
    LIKE_ANOTHER,
    Calm,
    Killed,
    MortalJournal,
    ScriptedFaults,
    at_call,
)
from .run_schedule import PAIRS, STORMS, WHOLE, Schedule, ScheduleCounts, ways
from .workspace_state import Portrait, compare, ids, portrait

Played = Callable[[list[Schedule]], None]


def struck(kind: str, calls: int) -> range:
    """The numbers of the calls that a kind strikes."""
    return range(1, calls + 1, 6 if kind in LIKE_ANOTHER and not WHOLE else 1)


SAMPLES: Final = {PAIRS: 3000 if WHOLE else 144, STORMS: 1008 if WHOLE else 48}
"""Two mishaps in one schedule, and storms in which any request may be struck. SIMULATION=all plays the whole sample."""


@pytest.mark.parametrize("reference", REFERENCES)
def test_whatever_strikes_the_next_runs_converge(reference: str, played: Played) -> None:
    """Run again, and nothing is lost, doubled, or touched that no manifest names.

    Strikes one call, whichever it is; two, of which the second may be of the next run; or up to every fifth request.
    After the latter two, the workspace converges or twins are named.
    """
    calls = scene(reference).calls
    for kind in (*KINDS, KILLED_UNRECORDED):
        schedules = [Schedule(reference, way, call) for way in ways(kind) for call in struck(kind, calls)]
        played(schedules_of_today(schedules, f"{reference}-{kind}"))
    for kind, size in SAMPLES.items():
        numbers = of_today(range(size // len(REFERENCES)), PARTS, f"{reference}-{kind}")
        played([Schedule(reference, kind, number) for number in numbers])


@pytest.mark.sampled(day=8)
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


# A process that dies at any of three places around a call leaves a journal that names that call, and no other.


@pytest.mark.sampled
@pytest.mark.parametrize("kind", ["killed-before", "killed-after", KILLED_UNRECORDED])
def test_the_journal_tells_which_call_was_in_flight(tmp_path: Path, kind: str) -> None:
    """Wherever the process dies: all calls before are done, the one is in flight, and the run has no end."""
    stage = scene("mixed")
    for number in range(1, stage.calls + 1, 4):
        root = tmp_path / str(number)
        root.mkdir()
        stage.reset(Calm() if kind == KILLED_UNRECORDED else ScriptedFaults({number: at_call(kind, number)}))
        with alone(), MortalJournal.begin(root, stage.plan, meta={}, **KEPT) as journal:
            assert isinstance(journal, MortalJournal)
            journal.dies_at = number if kind == KILLED_UNRECORDED else None
            with pytest.raises(Killed):
                execute(stage.workspace, stage.plan, meta={}, journal=journal)
        [run] = read_runs(root)
        states = [call.state for call in run.calls]
        assert states == [*[CallState.DONE] * (number - 1), CallState.IN_FLIGHT]
        assert run.ending is None


# The simulation can fail: a sender that settles lost answers carelessly is found out.


def _broken(reference: str, kind: str, calls: list[int]) -> str:
    """How the schedules break the law, once the scene has been set by a sender that is careful."""
    return "\n".join(ScheduleCounts().play(Schedule(reference, kind, call) for call in calls).broken)


def _creations(reference: str) -> list[int]:
    """The numbers of a few calls that create a group."""
    calls = enumerate(scene(reference).plan.calls, 1)
    return [number for number, call in calls if call.operation == "manual-groups.create"][:3]


@pytest.mark.slow
def test_a_blind_retry_is_found_out(monkeypatch: pytest.MonkeyPatch) -> None:
    """A call that is sent again because its answer was lost makes twins."""

    def blindly(self: AmbiguousWriteResolver, sent: IssuedRequest, send: Callable[[], Json]) -> Json:
        with suppress(WriteOutcomeUnknown, InvalidResponse):
            return send()
        return send()

    calls = _creations("create")
    monkeypatch.setattr(AmbiguousWriteResolver, "resolve", blindly)
    assert _broken("create", "lost-after", calls).count("something was made twice") == len(calls)


@pytest.mark.slow
def test_impatience_is_found_out(monkeypatch: pytest.MonkeyPatch) -> None:
    """A call that is sent again after one look makes twins with one that only was late."""

    def once(self: AmbiguousWriteResolver, seconds: float) -> Iterator[None]:
        yield

    calls = _creations("create")
    monkeypatch.setattr(AmbiguousWriteResolver, "poll_times", once)
    assert "something was made twice" in _broken("create", "late-20", calls)


@pytest.mark.slow
def test_optimism_is_found_out(monkeypatch: pytest.MonkeyPatch) -> None:
    """A call that is taken for done because its answer was lost is one that never was."""

    def surely(self: AmbiguousWriteResolver, sent: IssuedRequest) -> WriteStatus:
        return WriteStatus.DONE

    calls = list(range(1, scene("delete").calls, 7))
    monkeypatch.setattr(AmbiguousWriteResolver, "_status_now", surely)
    assert "a call was reported done that never was" in _broken("delete", "lost-before", calls)


@pytest.mark.slow
def test_a_service_that_is_quoted_as_it_is_is_found_out(monkeypatch: pytest.MonkeyPatch) -> None:
    """An error that repeats what the service says gives token and link away in the report."""
    calls = _creations("create")
    monkeypatch.setattr(HttpTransport, "redact", lambda self, text: text)
    assert _broken("create", "403", calls).count("it gave away ('token+0815', 'canary-link-4711')") == len(calls)


@pytest.mark.slow
def test_a_careless_log_is_found_out(monkeypatch: pytest.MonkeyPatch) -> None:
    """A line at debug level with the headers of a request gives the token away."""
    ask, calls = HttpTransport.send, _creations("create")

    def chatty(self: HttpTransport, *args: Any, **more: Any) -> HttpResponse:
        logging.getLogger("chatty").debug("%s", dict(self._headers))
        return ask(self, *args, **more)

    monkeypatch.setattr(HttpTransport, "send", chatty)
    assert _broken("create", "slow", calls).count("it gave away ('token+0815',)") == len(calls)


# Fifty real processes that are killed in the middle of an apply, against a sandbox behind a port.


KILLS: Final = 50
_KILLED_BATCHES: Final = 5
_LATENCY: Final = 0.005
_ENVIRONMENT: Final = {"LMSCONF_TOKEN": "sandbox"}
_PROJECT: Final = """
workspaces: {{served: {{url: "{url}", token: {{env: LMSCONF_TOKEN}}}}}}
settle: 100ms
guards: off
"""
_MANIFEST: Final[Document] = {
    "custom_fields": [{"name": "Site", "type": "CHOICE", "choices": ["North", "South"]}],
    "groups": [
        *({"name": f"New {number}", "members": PEOPLE[number : number + 4]} for number in range(4)),
        {"name": "Team zero", "previously": [TEAMS[0]], "members": PEOPLE[2:6]},
    ],
    "smart_groups": [{"name": "North", "conditions": [{"field": "Site", "choices": ["North"]}]}],
    "content_targets": [{"content": COURSES[1], "assign_to": [{"group": "New 1"}, {"smart_group": "North"}]}],
    "absent": {"groups": [TEAMS[11]]},
}


@dataclass(frozen=True, slots=True)
class ServedWorkspace:
    """A served workspace with a project that wants something of it."""

    root: Path
    service: Sandbox
    calls: int
    wanted: Portrait
    old: frozenset[str]

    def portrait(self) -> Portrait:
        with self.service.store.read_transaction() as repository:
            return portrait(repository, self.old)

    def writes(self) -> int:
        return sum(one.writes for one in self.service.log)

    def killed(self, dice: Random) -> bool:
        """Applies in a process of its own, and kills it somewhere around a call. Whether it had not ended by then."""
        self.service.store.restore("start")
        self.service.log.clear()
        after = dice.randint(1, self.calls - 1)
        with subprocess.Popen(
            [sys.executable, "-m", "lmsconf", "apply", "--auto-approve", "--parallelism", "2"],
            cwd=self.root,
            env={**os.environ, **_ENVIRONMENT},
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        ) as process:
            until = time.monotonic() + 30
            while self.writes() < after and process.poll() is None and time.monotonic() < until:
                time.sleep(0.001)
            time.sleep(dice.uniform(0, 1.5 * _LATENCY))
            process.kill()
        return process.returncode == -signal.SIGKILL and self.writes() < self.calls

    def converges(self) -> bool:
        """One more run, as anybody would start it; whether there is nothing left to do then."""
        settings = load_settings(self.root, None, _ENVIRONMENT, today=date(2026, 1, 1))
        wait_for_pending_writes(self.root, settings.workspace.url, settings.policy.settle, notify=lambda text: None)
        with Connection(settings) as connection:
            workspace = WorkspaceReader(settings=settings, connection=connection)
            manifests = load_manifests(settings)
            execute(workspace, workspace.plan(manifests, settings.policy), meta={})
            return not workspace.plan(manifests, settings.policy).calls


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServedWorkspace]:
    """The workspace, which has been through the whole apply once and is as it was before."""
    root = tmp_path_factory.mktemp("sigkill")
    service = Sandbox()
    with service.store.write_transaction() as repository:
        fill_workspace(repository, seed())
        old = ids(repository)
    service.store.checkpoint("start")
    with Server(service, latency=_LATENCY) as server:
        (root / "lmsconf.yaml").write_text(_PROJECT.format(url=server.url), encoding="utf-8")
        (root / "manifests").mkdir()
        (root / "manifests" / "all.yaml").write_text("\n".join(yaml_lines(_MANIFEST)), encoding="utf-8")
        undisturbed = ServedWorkspace(root, service, 0, Portrait(), old)
        assert undisturbed.converges()
        yield ServedWorkspace(root, service, undisturbed.writes(), undisturbed.portrait(), old)
    service.close_workspace()


@pytest.mark.slow
@pytest.mark.sampled(gate=5)
@pytest.mark.parametrize("batch", range(_KILLED_BATCHES))
def test_a_killed_process_leaves_nothing_that_the_next_run_cannot_finish(site: ServedWorkspace, batch: int) -> None:
    """Killed around whatever call, with its journal or without: the next run ends where one run would have."""
    dice = Random(batch)  # noqa: S311  the same moments each time, as far as a real process allows
    killed = 0
    for attempt in range(3 * KILLS):
        if killed == KILLS // _KILLED_BATCHES:
            break
        killed += site.killed(dice)
        if attempt % 3 == 0:
            rmtree(site.root / ".lmsconf", ignore_errors=True)
            time.sleep(10 * _LATENCY)  # less than it takes to start a process again
        assert site.converges(), f"batch {batch}, attempt {attempt}"
        assert not compare(site.wanted, site.portrait()), f"batch {batch}, attempt {attempt}"
    assert killed == KILLS // _KILLED_BATCHES
