"""A network for tests: answers by script, and what was asked of it."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable

import httpx

from lmsconf.api.client import Client, Exchange
from lmsconf.api.retry import RetryPolicy
from lmsconf.api.spec import ApiSpec

CANARY = "token-canary-4711"
Scripted = httpx.Response | Exception
Answering = Callable[[httpx.Request], httpx.Response]


def said(status: int = 200, value: object = None, /, **headers: str) -> httpx.Response:
    """An answer with a JSON body."""
    named = {name.replace("_", "-"): text for name, text in headers.items()}
    return httpx.Response(status, content=json.dumps(value).encode(), headers=named)


def raw(status: int, body: bytes = b"", /, **headers: str) -> httpx.Response:
    """An answer with these bytes."""
    return httpx.Response(
        status, content=body, headers={name.replace("_", "-"): text for name, text in headers.items()}
    )


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
) -> Client:
    """A client on such a network, never really waiting."""
    return Client(
        "http://sandbox",
        CANARY,
        spec=ApiSpec(dialect),
        transport=network or Network(*script),
        retry=(clock or Clock()).retry(),
        on_call=None if told is None else told.append,
    )


def one_call(by: Client, *, writes: bool) -> object:
    """One read, or one write whose answer is wanted."""
    if writes:
        return by.call("manual-groups.create", body={"name": "A"})
    return by.call("manual-groups.members", path={"groupId": "g"})


def pages(key: str, id: str, ids: Iterable[str], *, total: str | None = None, cap: int = 100) -> Answering:
    """A listing that honours `skip` and `limit`, with pages of at most `cap` rows."""
    rows = [{id: one, "name": f"name of {one}"} for one in ids]

    def answer(request: httpx.Request) -> httpx.Response:
        skip, limit = int(request.url.params["skip"]), int(request.url.params["limit"])
        page: dict[str, object] = {key: rows[skip : skip + min(limit, cap)]}
        return said(200, {**page, total: len(rows)} if total else page)

    return answer
