"""The sandbox in process: a call, a start, and a workspace of 100,000 people with three answers each.

    python tests/benchmarks/bench_sandbox.py [--people 100000] [--repeat 5]

A call goes through httpx, as a client's does, but no network. At full size every person is read again page by page, the
log is counted, and a checkpoint is taken, left behind and restored; each is checked to be what it should be.
"""

from __future__ import annotations

import argparse
import gc
import statistics
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple, cast

import httpx
from measuring import tell, verdict

from lmsconf.sandbox.seed import fill_workspace
from lmsconf.sandbox.service import Sandbox
from lmsconf.sandbox.store import IN_MEMORY

FIELDS = {
    "Department": ("CHOICE", ("Sales", "Engineering", "Finance", "Legal")),
    "Country": ("CHOICE", ("SE", "NO", "FI", "DK", "DE")),
    "Badge": ("TEXT", ()),
}
SMALL = 200
"""People in the workspace in which single calls are timed."""
ROUNDS = 300
_STARTS = 21


class Timing(NamedTuple):
    """Seconds on the clock, and seconds of computing: other work on the machine is only in the first."""

    wall: float
    cpu: float


def values(people: int) -> dict[str, list[Mapping[str, object]]]:
    """A workspace of so many people, each with three answers, and a group of each kind."""
    emails = [f"person.{number}@acme.example" for number in range(people)]
    return {
        "custom_fields": [{"name": name, "type": type, "choices": list(of)} for name, (type, of) in FIELDS.items()],
        "people": [
            {"email": email, "first_name": "Per", "last_name": f"Nr {number}", "answers": _answers(number)}
            for number, email in enumerate(emails)
        ],
        "groups": [{"name": "Some", "members": emails[:100], "managers": emails[:1]}],
        "smart_groups": [{"name": "Sales", "conditions": [{"field": "Department", "choices": ["Sales"]}]}],
        "content": [{"name": "Fire safety"}],
        "content_targets": [{"content": "Fire safety", "assign_to": [{"group": "Some"}, "everyone"]}],
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--people", type=int, default=100_000, help="how many people the large workspace has")
    parser.add_argument("--repeat", type=int, default=5, help="counted runs of what takes seconds")
    options = parser.parse_args()
    _tell_starts()
    _tell_calls()
    with tempfile.TemporaryDirectory() as temporary:
        _tell_large(Path(temporary), options.people, options.repeat)


def _tell_calls() -> None:
    with opened(SMALL) as (sandbox, client):
        kinds = {f"{method} {path}": _calls(client, method, path, body) for method, path, body in CALLS}
        every = [took for runs in kinds.values() for took in runs]
        plain = [_timed(lambda: sandbox.answer("GET", "/groups", "", GRANTED, b"")) for _ in range(ROUNDS)]
    tell(f"a call in process, medians of {ROUNDS} each, in a workspace of {SMALL} people")
    for name, runs in {**kinds, "the same GET /groups without httpx": plain, "all of them": every}.items():
        tell(f"  {name:44} {_milliseconds(runs).wall:6.3f} ms, {_milliseconds(runs).cpu:6.3f} ms of computing")
    tell(f"  in milliseconds  {verdict(_milliseconds(every).wall, 0.3)}")


def _tell_starts() -> None:
    starts = [_timed(_start) for _ in range(_STARTS)]  # the first reads the API's description as well
    found = _milliseconds(starts).wall
    tell(f"starting an empty sandbox, until its first answer, median of {_STARTS}")
    tell(f"  {found:.1f} ms, the first in this process {starts[0].wall * 1000:.1f} ms")
    tell(f"  in milliseconds  {verdict(found, 50)}")


def _tell_large(folder: Path, people: int, repeat: int) -> None:
    given = values(people)
    in_memory = [_seeded(IN_MEMORY, given) for _ in range(repeat)]
    in_files = [_seeded(str(folder / f"{number}.db"), given) for number in range(repeat)]
    tell(f"seeding {people:,} people with {people * len(FIELDS):,} answers, medians of {repeat}")
    for label, runs in (("in memory", in_memory), ("in a file", in_files)):
        wall, cpu = (statistics.median(figures) for figures in zip(*runs, strict=True))
        tell(f"  {label}  {wall:.2f} s, {cpu:.2f} s of computing  {verdict(wall, 4)}")
    with opened(people) as (sandbox, client):
        tell(f"a workspace of {people:,} people")
        for label, took in rehearse(sandbox, client, people).items():
            tell(f"  {label:44} {took.wall:6.2f} s, {took.cpu:6.2f} s of computing")


def rehearse(sandbox: Sandbox, client: httpx.Client, people: int) -> dict[str, Timing]:
    """Reads everybody, keeps the workspace, changes it and puts it back. What each took, once it was done right."""
    seen: list[str] = []
    pages = -(-people // 100)
    took = {f"everybody in {pages:,} pages": _timed(lambda: seen.extend(_everybody(client)))}
    assert len(set(seen)) == people
    assert [(one.operation, one.status) for one in sandbox.log[-pages:]] == [("users.list", 200)] * pages
    took["the members of a smart group"] = _timed(lambda: client.get("/smart-groups/sg-1?includeMembers=true"))
    took["a checkpoint"] = _timed(lambda: sandbox.store.checkpoint("before"))
    before, asked = _group(client), len(sandbox.log)
    client.post("/groups/g-1/rename", json={"name": "Other"})
    client.delete(f"/users/{seen[-1]}")
    assert (_count(client), _group(client)) == (people - 1, "Other")
    took["going back to it"] = _timed(lambda: sandbox.store.restore("before"))
    assert (_count(client), _group(client)) == (people, before)
    assert len(sandbox.log) == asked + 6, "the log goes on"
    return took


@contextmanager
def opened(people: int) -> Iterator[tuple[Sandbox, httpx.Client]]:
    """A workspace of so many people in memory, and a client of it."""
    sandbox = Sandbox()
    with sandbox.store.write_transaction() as repository:
        fill_workspace(repository, values(people))
    with httpx.Client(transport=sandbox, base_url="http://sandbox", headers=GRANTED) as client:
        yield sandbox, client
    sandbox.close_workspace()


GRANTED = {"authorization": "Bearer sandbox"}
CALLS: tuple[tuple[str, str, object], ...] = (
    ("GET", "/groups", None),
    ("GET", "/groups/g-1/members", None),
    ("GET", "/smart-groups/sg-1", None),
    ("GET", "/custom-fields", None),
    ("GET", "/users/u-7", None),
    ("GET", "/content/targets?contentId=c-1", None),
    ("POST", "/groups/g-1/rename", {"name": "Others"}),
    ("POST", "/groups/g-1/members", {"userIds": ["u-7", "u-8"]}),
    ("POST", "/users/u-7/update-custom-field-choice", {"f-1": "ch-1", "f-3": "B-7"}),
    ("POST", "/content/targets", {"contentId": "c-1", "userId": "u-7", "mandatory": True}),
    ("POST", "/users/u-7/archive", None),
)
"""What a plan and an apply ask most, but for pages of a hundred people."""


def _calls(client: httpx.Client, method: str, path: str, body: object) -> list[Timing]:
    """The times of one call made again and again, once it is known to go well."""
    assert client.request(method, path, json=body).is_success, path
    return [_timed(lambda: client.request(method, path, json=body)) for _ in range(ROUNDS)]


def _start() -> None:
    sandbox = Sandbox()
    assert sandbox.answer("POST", "/groups", "", {**GRANTED, "content-type": "application/json"}, b'{"name":"x"}')
    sandbox.close_workspace()


def _seeded(place: str, given: Mapping[str, object]) -> Timing:
    gc.collect()  # what the run before left behind is not this one's to clear away
    sandbox = Sandbox(place)
    with sandbox.store.write_transaction() as repository:
        took = _timed(lambda: fill_workspace(repository, given))
    begun = time.perf_counter(), time.process_time()
    sandbox.close_workspace()
    return Timing(took.wall + time.perf_counter() - begun[0], took.cpu + time.process_time() - begun[1])


def _answers(number: int) -> dict[str, str]:
    chosen = {name: of[number % len(of)] for name, (_, of) in FIELDS.items() if of}
    return {**chosen, "Badge": f"B-{number}"}


def _everybody(client: httpx.Client) -> Iterator[str]:
    skip = 0
    while page := client.get("/users", params={"skip": skip, "limit": 100}).json()["users"]:
        yield from (user["userId"] for user in page)
        skip += len(page)
        if len(page) < 100:
            return


def _count(client: httpx.Client) -> int:
    return int(client.get("/users?limit=1").json()["matchCount"])


def _group(client: httpx.Client) -> str:
    return cast(str, client.get("/groups").json()["groups"][0]["name"])


def _timed(work: Callable[[], object]) -> Timing:
    begun = time.perf_counter(), time.process_time()
    work()
    return Timing(time.perf_counter() - begun[0], time.process_time() - begun[1])


def _milliseconds(runs: list[Timing]) -> Timing:
    """The median of each figure, in thousandths of a second."""
    return Timing(*(statistics.median(figure) * 1000 for figure in zip(*runs, strict=True)))


if __name__ == "__main__":
    main()
