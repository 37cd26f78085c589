"""The sandbox has two doors, in process and a loopback port, and the same is behind both."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import httpx
import pytest

from conformance.scenario import SCRIPT, ObservedResponse, Step, as_text, opened, told
from lmsconf.api.spec import ApiSpec
from lmsconf.sandbox.faults import ALWAYS, Fault, FaultScript
from lmsconf.sandbox.serve import serve
from lmsconf.sandbox.service import Sandbox


@contextmanager
def in_process(sandbox: Sandbox) -> Iterator[httpx.Client]:
    """A client that calls it without a network."""
    with httpx.Client(transport=sandbox, base_url="http://sandbox") as client:
        yield client
    sandbox.close_workspace()


@contextmanager
def over_loopback(sandbox: Sandbox) -> Iterator[httpx.Client]:
    """A client that calls it through a port."""
    with serve(sandbox) as server, httpx.Client(base_url=server.url) as client:
        yield client
    sandbox.close_workspace()


DOORS = {"in process": in_process, "over loopback": over_loopback}
every_door = pytest.mark.parametrize("door", DOORS.values(), ids=DOORS)


def mishaps(seed: int) -> FaultScript:
    """All sorts of faults, as the dice of that seed throw them."""
    return FaultScript(
        Fault(chance=0.08, seed=seed, times=ALWAYS, status=429, headers={"retry-after": "2"}),
        Fault(chance=0.08, seed=seed + 1, times=ALWAYS, cut=True),
        Fault(chance=0.08, seed=seed + 2, times=ALWAYS, lose_answer=True),
        Fault(chance=0.08, seed=seed + 3, times=ALWAYS, spoil="truncated"),
        Fault(chance=0.08, seed=seed + 4, times=ALWAYS, spoil="html"),
        Fault(chance=0.08, seed=seed + 5, times=ALWAYS, stale=True),
    )


def run(seed: int | None) -> tuple[str, str]:
    """The request log and the answers of one run in process, as text; with the mishaps of a seed, or none."""
    log: list[str] = []
    sandbox = opened(None if seed is None else mishaps(seed), log.append)
    with in_process(sandbox) as client:
        answers = [as_text(heard) for _, heard in told(client)]
    return "\n".join(log), "\n".join(answers)


@every_door
def test_each_step_is_answered_as_the_description_says(door):
    """Every operation succeeds, and every documented refusal has its status, through either door."""
    sandbox = opened()
    with door(sandbox) as client:
        wrong = [(step, heard) for step, heard in told(client) if heard.status != step.status]
    assert wrong == []
    done = {entry.operation for entry in sandbox.log if 200 <= entry.status < 300}
    assert done == ApiSpec.default().operations.keys()


@pytest.mark.parametrize("seed", [None, 7], ids=["all well", "with mishaps"])
def test_both_doors_give_the_same(seed):
    """Status, headers and bytes of every answer are the same through both doors, and so is the log."""
    heard: list[list[tuple[Step, ObservedResponse]]] = []
    logs = []
    for door in DOORS.values():
        sandbox = opened(None if seed is None else mishaps(seed))
        with door(sandbox) as client:
            heard.append(list(told(client)))
        logs.append(sandbox.log)
    assert heard[0] == heard[1]
    assert logs[0] == logs[1]
    assert len(logs[0]) == len(SCRIPT)


@pytest.mark.sampled
def test_the_same_seed_gives_the_same_log():
    """Twenty runs with the mishaps of one seed have one log and one set of answers; another seed has others."""
    assert len({run(7) for _ in range(20)}) == 1
    assert run(8)[0] != run(7)[0]
    assert run(None)[0] != run(7)[0]
