"""A network for tests: answers by script, and what was asked of it."""

import json
import random
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from heapq import heappop, heappush
from operator import attrgetter
from typing import Any

import httpx

from lmsconf.api import Service
from lmsconf.api.client import Client, Exchange
from lmsconf.api.retry_and_rate_limit import Outage, RateLimiter, RetryPolicy
from lmsconf.api.spec import ApiSpec
from lmsconf.errors import Unreachable

CANARY = "token-canary-4711"
Scripted = httpx.Response | Exception
Answering = Callable[[httpx.Request], httpx.Response]


def raw(status: int, body: bytes = b"", /, **headers: str) -> httpx.Response:
    """An answer with these bytes."""
    named = {name.replace("_", "-"): text for name, text in headers.items()}
    return httpx.Response(status, content=body, headers=named)


def said(status: int = 200, value: object = None, /, **headers: str) -> httpx.Response:
    """An answer with a JSON body."""
    return raw(status, json.dumps(value).encode(), **headers)


class Network(httpx.BaseTransport):
    """Gives the scripted answers one after the other, the last one for ever, and keeps the requests."""

    def __init__(self, *script: Scripted, answering: Answering | None = None) -> None:
        self._script = list(script)
        self._answering = answering
        self.requests: list[httpx.Request] = []
        self.closed = False

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        self.requests.append(request)
        if self._answering:
            return self._answering(request)
        answer = self._script.pop(0) if len(self._script) > 1 else self._script[0]
        if isinstance(answer, Exception):
            raise answer
        return answer

    def close(self) -> None:
        self.closed = True


class Clock:
    """Time that passes only by waiting, or when a test says so."""

    def __init__(self) -> None:
        self.waits: list[float] = []
        self.time = 1_000.0

    def __call__(self) -> float:
        return self.time

    def sleep(self, seconds: float) -> None:
        self.waits.append(seconds)
        self.time += seconds

    def retry(self, **changes: float) -> RetryPolicy:
        """The usual patience on this clock, with no luck in the jitter."""
        given = {
            "sleep": self.sleep,
            "wall_clock": lambda: 1_700_000_000.0,
            "clock": self,
            "random_number": lambda: 1.0,
        }
        return RetryPolicy(**(given | changes))


def client(
    *script: Scripted,
    network: Network | None = None,
    clock: Clock | None = None,
    dialect: dict[str, str | int] | None = None,
    told: list[Exchange] | None = None,
    **options: Any,
) -> Client:
    """A client on such a network, never really waiting. options: more of a Client."""
    usual = {
        "spec": ApiSpec(dialect),
        "transport": network or Network(*script),
        "retry": (clock or Clock()).retry(),
        "on_call": None if told is None else told.append,
    }
    return Client("http://sandbox", CANARY, **(usual | options))


def one_call(by: Client, *, writes: bool = False) -> object:
    """One read, or one write whose answer is wanted."""
    if writes:
        return by.call("manual-groups.create", body={"name": "A"})
    return by.call("manual-groups.members", path={"groupId": "g"})


def typed_call(service: Service, method: str, given: Mapping[str, object]) -> object:
    """The answer of a method of the typed client by its name, such as `users.list_all`; of a listing all rows."""
    answer = attrgetter(method)(service)(**given)
    return list(answer) if isinstance(answer, Iterator) else answer


def pages(key: str, id: str, ids: Iterable[str], *, total: str | None = None, cap: int = 100) -> Answering:
    """A listing that honours `skip` and `limit`, with pages of at most `cap` rows."""
    rows = [{id: one, "name": f"name of {one}"} for one in ids]

    def answer(request: httpx.Request) -> httpx.Response:
        skip, limit = int(request.url.params["skip"]), int(request.url.params["limit"])
        page: dict[str, object] = {key: rows[skip : skip + min(limit, cap)]}
        return said(200, {**page, total: len(rows)} if total else page)

    return answer


# Many threads on one made-up clock: only one runs at a time, and time passes when all of them wait.


class VirtualThreads:
    """A clock for several threads: the one that sleeps hands over to the one that wakes first, alike in each run."""

    def __init__(self, seed: int = 1) -> None:
        self.time = 1_000.0
        self._random = random.Random(seed)  # noqa: S311  # it has to be the same each time
        self._asleep: list[tuple[float, int]] = []
        self._passed = threading.Condition()
        self._turn: int | None = None
        self._count = 0

    def __call__(self) -> float:
        return self.time

    def retry(self, **changes: float) -> RetryPolicy:
        """The usual patience on this clock, with a chance that repeats itself."""
        given = {"sleep": self.sleep, "wall_clock": self, "clock": self, "random_number": self._random.random}
        return RetryPolicy(**(given | changes))

    def sleep(self, seconds: float) -> None:
        """Waits for the made-up time."""
        with self._passed:
            self._count += 1
            mine = self._count
            heappush(self._asleep, (self.time + max(seconds, 0.0), mine))
            self._wake_next()
            self._passed.wait_for(lambda: self._turn == mine)

    def run(self, jobs: Sequence[Callable[[], None]]) -> None:
        """Does all jobs side by side, and returns when the last is done. Raises what one of them raised."""
        failures: list[BaseException] = []

        def work(job: Callable[[], None], mine: int) -> None:
            with self._passed:
                self._passed.wait_for(lambda: self._turn == mine)
            try:
                job()
            except BaseException as error:
                failures.append(error)
            with self._passed:
                self._wake_next()

        threads = []
        with self._passed:
            for job in jobs:
                self._count += 1
                heappush(self._asleep, (self.time, self._count))
                threads.append(threading.Thread(target=work, args=(job, self._count), daemon=True))
                threads[-1].start()
            self._wake_next()
        for thread in threads:
            thread.join()
        if failures:
            raise failures[0]

    def read(self, network: Network, *, times: int, width: int, **changes: float) -> list[Unreachable]:
        """So many reads by some clients of one run, side by side; the errors of those that get no answer."""
        retry, todo, errors = self.retry(**changes), iter(range(times)), list[Unreachable]()
        shared = {"rate_limiter": RateLimiter(clock=self, sleep=self.sleep), "outage": Outage(retry)}

        def work() -> None:
            by = client(network=network, retry=retry, **shared)
            for _ in todo:
                try:
                    assert one_call(by) == {"userIds": []}
                except Unreachable as error:
                    errors.append(error)

        self.run([work] * width)
        return errors

    def _wake_next(self) -> None:
        if self._asleep:
            self.time, self._turn = heappop(self._asleep)
            self._passed.notify_all()
