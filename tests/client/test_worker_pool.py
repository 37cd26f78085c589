"""The worker pool and the reader over it: side by side, and never a write."""

from __future__ import annotations

import json
import socket
import threading
from collections.abc import Iterator
from concurrent.futures import CancelledError, Future, wait
from contextlib import contextmanager
from pathlib import Path

import httpx
import pytest
from waiting import HANGS, awaited

import lmsconf
from lmsconf.api.client import Client
from lmsconf.api.spec.operations import USERS
from lmsconf.api.worker_pool import ConcurrentReader, InlineExecutor, WorkerPool
from lmsconf.errors import LmsconfError, Rejected, Unreachable
from lmsconf.model.api import Api, ListOperation, ReadArguments
from lmsconf.model.progress import RunProgress

from .network import CANARY, Answering, Clock, Network, client, pages, raw, said


class BarrierNetwork(Network):
    """Answers no request before so many are there, and remembers whose threads they were."""

    def __init__(self, width: int, **more: object) -> None:
        super().__init__(**more)
        self._met = threading.Barrier(width, timeout=HANGS)
        self.threads: set[int] = set()

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        self.threads.add(threading.get_ident())
        self._met.wait()
        return super().handle_request(request)


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


@contextmanager
def gate() -> Iterator[tuple[WorkerPool, threading.Event]]:
    """A pool of one worker, which is held until the event is set."""
    opened = threading.Event()
    with WorkerPool(lambda: client(network=Network(answering=echo)), parallelism=1) as pool:
        hold(pool, opened)
        yield pool, opened


def test_answers_come_in_the_order_of_their_requests() -> None:
    """However the pool runs them, each answer stands where its request stood, and never too many run at once."""
    network = BarrierNetwork(3, answering=echo)
    with WorkerPool(lambda: client(network=network), parallelism=3) as pool:
        reader = ConcurrentReader(pool)
        answers = reader.each("manual-groups.members", members(*map(str, range(30))))
        assert reader.requests == 30
    assert answers == [{"userIds": [f"/groups/{number}/members"]} for number in range(30)]
    assert len(network.threads) == 3


def test_the_reader_is_what_the_core_reads_through() -> None:
    """It keeps the core's protocol."""
    with WorkerPool(lambda: client(said(200, {"userIds": []})), parallelism=8) as pool:
        api: Api = ConcurrentReader(pool)
        assert api.get("manual-groups.members", path={"groupId": "g"}) == {"userIds": []}
        assert api.each("manual-groups.members", []) == []


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


def test_a_crew_that_goes_on_has_forgotten_a_failed_fan_out() -> None:
    """What was cancelled is not sent later either, before what is asked for next."""
    network = Network(answering=lambda request: said(404) if "/3/" in request.url.path else echo(request))
    with WorkerPool(lambda: client(network=network), parallelism=1) as pool:
        reader = ConcurrentReader(pool)
        with pytest.raises(Rejected):
            reader.each("manual-groups.members", members(*map(str, range(2_000))))
        reader.each("manual-groups.members", members("last"))
        assert len(network.requests) < 2_000


def test_jobs_run_side_by_side_and_all_end() -> None:
    """Jobs that wait for each other's answers do not block the pool; a failure is raised once all have ended."""
    ended = []
    with WorkerPool(lambda: client(network=Network(answering=echo)), parallelism=1) as pool:
        reader = ConcurrentReader(pool)
        meeting = threading.Barrier(8, timeout=HANGS)

        def job(number: int) -> object:
            meeting.wait()
            answer = reader.get("manual-groups.members", path={"groupId": str(number)})
            ended.append(number)
            return answer

        def fail() -> object:
            raise Unreachable("gone")

        found = reader.together({str(number): lambda number=number: job(number) for number in range(8)})
        assert found["3"] == {"userIds": ["/groups/3/members"]}
        ended.clear()
        with pytest.raises(Unreachable, match="gone"):
            reader.together({"fails": fail, **{str(number): lambda number=number: job(number) for number in range(8)}})
    assert sorted(ended) == list(range(8))


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


def test_progress_counts_up_to_what_was_asked() -> None:
    """The number of requests is told before the first one, and each that is finished, never two at a time."""
    told: list[RunProgress] = []
    with WorkerPool(lambda: client(network=Network(answering=echo)), parallelism=8, progress=told.append) as pool:
        ConcurrentReader(pool).each("manual-groups.members", members(*map(str, range(20))))
    assert [(now.done, now.total) for now in told] == [(done, 20) for done in range(21)]
    assert not told[-1].is_final


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


def test_what_a_job_raises_is_raised_where_it_is_waited_for() -> None:
    """A worker outlives the failures of its jobs."""
    with WorkerPool(lambda: client(raw(200)), parallelism=1) as pool:
        broken = pool.submit(lambda _: 1 // 0)
        with pytest.raises(ZeroDivisionError):
            broken.result()
        assert pool.submit(lambda each: repr(each)).result() == "Client(sandbox)"


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


def test_a_closed_crew_takes_no_more() -> None:
    """Work for nobody is refused, not forgotten; a pool of nobody as well."""
    pool = WorkerPool(lambda: client(raw(200)), parallelism=8)
    pool.close()
    with pytest.raises(RuntimeError, match="closed"):
        pool.submit(lambda _: None)
    with pytest.raises(ValueError, match="greater than 0"):
        WorkerPool(lambda: client(raw(200)), parallelism=0)


def test_a_wrong_url_is_told_to_whoever_asks() -> None:
    """A client that cannot be made is an error of the request, not a silent worker."""
    with (
        WorkerPool(lambda: Client("http://lms.example", CANARY), parallelism=8) as pool,
        pytest.raises(LmsconfError, match="url"),
    ):
        pool.submit(lambda _: None)


@contextmanager
def server(*answers: bytes) -> Iterator[str]:
    """A real socket on this machine that gives each connection the next of these bytes, and hangs up."""
    with socket.create_server(("127.0.0.1", 0)) as listening:

        def serve() -> None:
            for answer in answers:
                connection, _ = listening.accept()
                with connection:
                    connection.recv(65_536)
                    connection.sendall(answer)

        thread = threading.Thread(target=serve, daemon=True)
        thread.start()
        yield f"http://127.0.0.1:{listening.getsockname()[1]}/api"
        thread.join(HANGS)


def test_a_real_connection_is_spoken_over() -> None:
    """Without a transport the client opens its own; an answer that breaks off is tried again, nobody is unreachable."""
    whole = b'HTTP/1.1 200 OK\r\nContent-Length: 15\r\nConnection: close\r\n\r\n{"userIds": []}'
    with server(whole[:-5], b"", whole) as url, Client(url, CANARY, retry=Clock().retry()) as spoken:
        assert spoken.call("manual-groups.members", path={"groupId": "g"}) == {"userIds": []}
    with Client(url, CANARY, retry=Clock().retry()) as nobody, pytest.raises(Unreachable):
        nobody.call("manual-groups.members", path={"groupId": "g"})


def test_those_who_wait_for_a_cancelled_job_are_told() -> None:
    """Also by `concurrent.futures.wait`, as programs do that read concurrently."""
    begun, let_go = threading.Event(), threading.Event()

    def hold(_: Client) -> None:
        begun.set()
        awaited(let_go)

    pool = WorkerPool(lambda: client(network=Network(answering=echo)), parallelism=1)
    futures = [pool.submit(hold), *(pool.submit(lambda _: None) for _ in range(2))]
    awaited(begun)
    pool.close(wait=False)
    let_go.set()
    assert wait(futures[1:], timeout=HANGS).done == set(futures[1:])
    assert all(isinstance(future.exception(), CancelledError) for future in futures[1:])


# The pool for a service in this process: each job runs at once, in the thread that submits it.


def inline(*script: httpx.Response) -> WorkerPool:
    """Such a pool, over a network that answers so."""
    return WorkerPool(lambda: client(*script), parallelism=1, executor=InlineExecutor())


def test_a_job_has_run_when_it_is_submitted() -> None:
    """Its result, or what it raised, is there at once."""
    with inline(raw(200)) as pool:
        good, bad = pool.submit(lambda _: threading.get_ident()), pool.submit(lambda _: 1 // 0)
        assert (good.done(), bad.done()) == (True, True)
        assert good.result() == threading.get_ident()
        assert isinstance(bad.exception(), ZeroDivisionError)


def test_nothing_is_asked_after_a_failure() -> None:
    """The request that fails is the last one that is sent, and those after it count as done."""
    network = Network(answering=lambda request: said(404) if "/3/" in request.url.path else echo(request))
    told: list[RunProgress] = []
    with WorkerPool(
        lambda: client(network=network), parallelism=1, executor=InlineExecutor(), progress=told.append
    ) as pool:
        with pytest.raises(Rejected, match="/groups/3/members"):
            ConcurrentReader(pool).each("manual-groups.members", members(*map(str, range(20))))
        assert len(network.requests) == 4
        pool.end_total()
    assert (told[0].done, told[0].total) == (0, 20)
    assert (told[-1].done, told[-1].total) == (20, 20)


def test_a_closed_pool_takes_no_more() -> None:
    """Work for it is refused."""
    pool = inline(raw(200))
    pool.close()
    with pytest.raises(RuntimeError, match="closed"):
        pool.submit(lambda _: None)


def test_an_embedded_workspace_is_read_without_workers(tmp_path: Path) -> None:
    """The thread of each kind asks for itself."""
    (tmp_path / "lmsconf.yaml").write_text('workspaces: {main: {url: "sandbox:"}}\ndefault_workspace: main\n')
    (tmp_path / "manifests").mkdir()
    (tmp_path / "manifests" / "groups.yaml").write_text("groups: [{name: Sales, members: []}]\n")
    threads: set[str] = set()
    lmsconf.open(tmp_path).plan(progress=lambda _: threads.add(threading.current_thread().name))
    assert any(name.startswith("lmsconf-job") for name in threads)
    assert not any(name.startswith("lmsconf-request") for name in threads)
