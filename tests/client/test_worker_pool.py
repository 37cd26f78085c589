"""The worker pool and the reader over it: side by side, and never a write."""

from __future__ import annotations

import json
import threading
from concurrent.futures import CancelledError, Future
from pathlib import Path

import httpx
import pytest
from waiting import HANGS, awaited

import lmsconf
from lmsconf.api.client import Client
from lmsconf.api.limits import (
    FACTOR,
    ListingLimit,
    OversizedResponse,
    fan_out_memory_limit,
    listing_limit,
    refuse_oversized_body,
)
from lmsconf.api.spec.operations import USERS
from lmsconf.api.worker_pool import ConcurrentReader, WorkerPool
from lmsconf.errors import Rejected
from lmsconf.model.api import ListOperation, ReadArguments
from lmsconf.model.progress import RunProgress

from .network import Answering, Network, client, pages, raw, said


def echo(request: httpx.Request) -> httpx.Response:
    """Answers with the path that was asked for."""
    return said(200, {"userIds": [request.url.path]})


def members(*groups: str) -> list[ReadArguments]:
    """Requests for the members of these groups."""
    return [({"groupId": group}, {}) for group in groups]


def hold(pool: WorkerPool, opened: threading.Event) -> None:
    """Keeps one worker of the pool busy until the event is set."""
    begun = threading.Event()

    def job(_: Client) -> None:
        begun.set()
        awaited(opened)

    pool.submit(job)
    awaited(begun)


@pytest.mark.parametrize("operation", [one.id for one in client(raw(200)).spec.operations.values() if one.writes])
def test_nothing_can_be_written_through_a_reader(operation: str) -> None:
    """Every operation that writes is refused by every way of reading, before anything is sent."""
    network = Network(raw(200))
    with WorkerPool(lambda: client(network=network), parallelism=8) as pool:
        reader = ConcurrentReader(pool)
        for attempt in (
            lambda: reader.get(operation),
            lambda: reader.each(operation, [({}, {})]),
            lambda: reader.rows(ListOperation(operation, "users", "userId")),
        ):
            with pytest.raises(ValueError, match="is a write, and this client is read-only"):
                attempt()
    assert network.requests == []


def test_after_a_failure_no_more_of_a_fan_out_is_sent() -> None:
    """The error is raised at once, and what has not begun never begins."""
    network = Network(answering=lambda request: said(404) if "/3/" in request.url.path else echo(request))
    pool = WorkerPool(lambda: client(network=network), parallelism=1)
    with pool, pytest.raises(Rejected, match="/groups/3/members"):
        ConcurrentReader(pool).each("manual-groups.members", members(*map(str, range(2_000))))
    assert len(network.requests) < 2_000


def test_a_failure_of_a_fan_out_is_raised_while_others_are_under_way() -> None:
    """Nobody waits for an answer that is not wanted any more."""
    begun, raised, waited = threading.Event(), threading.Event(), list[bool]()

    def answering(request: httpx.Request) -> httpx.Response:
        if "/1/" in request.url.path:
            awaited(begun)
            return said(404)
        begun.set()
        waited.append(raised.wait(HANGS))
        return echo(request)

    with WorkerPool(lambda: client(network=Network(answering=answering)), parallelism=2) as pool:
        with pytest.raises(Rejected, match="/groups/1/members"):
            ConcurrentReader(pool).each("manual-groups.members", members("0", "1"))
        raised.set()
    assert waited == [True]


def test_a_page_waits_for_few_of_a_fan_out() -> None:
    """Of a fan-out at most two requests for each worker are queued, and what else is asked for comes after those."""
    order: list[str] = []
    asked, opened = threading.Event(), threading.Event()

    def answering(request: httpx.Request) -> httpx.Response:
        order.append(request.url.path)
        asked.set()
        awaited(opened)
        return echo(request)

    with WorkerPool(lambda: client(network=Network(answering=answering)), parallelism=1) as pool:
        reader = ConcurrentReader(pool)
        fan_out = threading.Thread(
            target=reader.each, args=("manual-groups.members", members(*map(str, range(20)))), daemon=True
        )
        fan_out.start()
        awaited(asked)
        page = pool.submit(lambda by: by.call("manual-groups.members", path={"groupId": "page"}))
        opened.set()
        page.result(HANGS)
        fan_out.join(HANGS)
    assert order.index("/groups/page/members") <= 3
    assert len(order) == 21


def test_the_total_counts_pages_before_they_are_asked_for_and_never_falls() -> None:
    """A first page that counts 2,500 rows makes 25 requests known; none are taken back where the listing ends early."""
    for rows in (2_500, 700):
        told: list[RunProgress] = []
        answer = pages("users", "userId", map(str, range(rows)), total="matchCount")

        def counted(request: httpx.Request, answer: Answering = answer) -> httpx.Response:
            page = json.loads(answer(request).content)
            return said(200, page | {"matchCount": 2_500})

        with WorkerPool(
            lambda: client(network=Network(answering=counted)), parallelism=8, progress=told.append
        ) as pool:
            reader = ConcurrentReader(pool)
            reader.rows(USERS)
            reader.end_total()
        totals = [now.total for now in told]
        assert totals == sorted(totals)
        assert 25 in totals[:2]
        assert (told[-1].is_final, told[-1].done) == (True, told[-1].total)


def test_a_crew_that_is_abandoned_ends_at_once() -> None:
    """After an interrupt, what has not begun is cancelled and nobody waits for what runs."""
    opened = threading.Event()

    def interrupted() -> None:
        with WorkerPool(lambda: client(raw(200)), parallelism=1) as pool:
            hold(pool, opened)
            waiting.append(pool.submit(lambda _: None))
            raise KeyboardInterrupt

    waiting: list[Future[None]] = []
    with pytest.raises(KeyboardInterrupt):
        interrupted()  # the job that it leaves waits for what is set only now
    opened.set()
    with pytest.raises(CancelledError):
        waiting[0].result(HANGS)


# The pool for a service in this process: each job runs at once, in the thread that submits it.


def test_an_embedded_workspace_is_read_without_workers(tmp_path: Path) -> None:
    """The thread of each kind asks for itself."""
    (tmp_path / "lmsconf.yaml").write_text('workspaces: {main: {url: "sandbox:"}}\ndefault_workspace: main\n')
    (tmp_path / "manifests").mkdir()
    (tmp_path / "manifests" / "groups.yaml").write_text("groups: [{name: Sales, members: []}]\n")
    threads: set[str] = set()
    lmsconf.open(tmp_path).plan(progress=lambda _: threads.add(threading.current_thread().name))
    assert any(name.startswith("lmsconf-job") for name in threads)
    assert not any(name.startswith("lmsconf-request") for name in threads)


# How much memory answers may take: an estimate that grows with what is kept, and one quota for a fan-out.


MIB = 2**20


@pytest.mark.parametrize(("sign", "size"), [(b",", 100), (b"[", 100), (b"{", 400)], ids=str)
@pytest.mark.parametrize(("paged", "mib"), [(True, 32), (False, 64)])
def test_a_body_may_hold_so_many_values(sign: bytes, size: int, paged: bool, mib: int) -> None:
    """32 MiB of values in a page of a listing, 64 MiB in any other response; with one value more it is refused."""
    fits = mib * MIB // size
    refuse_oversized_body((sign * fits).ljust(MIB), paged=paged)
    with pytest.raises(OversizedResponse, match=f"more values than fit in {mib} MiB of memory"):
        refuse_oversized_body((sign * (fits + 1)).ljust(MIB), paged=paged)


@pytest.mark.parametrize(("value", "factor"), [("3", 3), ("", 1), ("0", 1), ("1.5", 1), ("many", 1), ("1000", 1)])
def test_the_environment_raises_the_limits(value: str, factor: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """By a whole number, for a workspace that is larger; what is no such number raises nothing."""
    monkeypatch.setenv(FACTOR, value)
    assert listing_limit("users.list", whole_rows=False) == ListingLimit(factor * 250_000, factor * 128 * MIB)
    assert fan_out_memory_limit(whole_responses=False) == factor * 96 * MIB
