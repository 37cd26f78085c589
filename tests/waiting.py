"""How tests wait: for an event, never for a time, and not for a socket. Only a program that hangs takes `HANGS`."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Callable
from email.utils import formatdate
from functools import partial
from types import FrameType
from typing import Final
from urllib.parse import SplitResult, urlsplit

import httpx
import pytest

from lmsconf.api import transport
from lmsconf.api.retry_and_rate_limit import RetryPolicy
from lmsconf.documents.journal.journal_reader import wait_for_pending_writes
from lmsconf.sandbox.serve import Server, serve
from lmsconf.sandbox.service import LoggedRequest, Sandbox
from lmsconf.workspace.reader import WaitClock

HANGS: Final = 60.0
"""Seconds after which what a test waits for will not come any more. Nothing else is judged by it."""
_NUDGED: Final = 0.05


def awaited(event: threading.Event) -> None:
    """Comes back once the event is set; fails where it never is."""
    assert event.wait(HANGS), "it never came"


class HeldResponse:
    """Hears of the requests that a sandbox was asked, and keeps back the answer to the first that fits.

    Inside of `with` that request has been carried out and not been answered.
    """

    def __init__(self, fits: Callable[[LoggedRequest], bool]) -> None:
        self._fits, self._asked, self._let_go = fits, threading.Event(), threading.Event()

    def __call__(self, call: LoggedRequest) -> None:
        if self._fits(call):
            self._asked.set()
            awaited(self._let_go)

    def __enter__(self) -> None:
        awaited(self._asked)

    def __exit__(self, *_: object) -> None:
        self._let_go.set()


class Interruptions:
    """Ctrl-C for this process, sent from any thread: back only once the main thread has begun to handle it.

    A thread that is just about to wait for a lock does not hear of a signal before it has the lock. Another signal, of
    which nothing comes, wakes it.
    """

    def __enter__(self) -> Interruptions:
        self._begun = threading.Event()
        handlers = {signal.SIGINT: self._handle, signal.SIGUSR1: lambda *_: None}
        self._before = {number: signal.signal(number, handler) for number, handler in handlers.items()}
        return self

    def __exit__(self, *_: object) -> None:
        for number, handler in self._before.items():
            signal.signal(number, handler)

    def send(self) -> None:
        """One more of them."""
        self._begun.clear()
        os.kill(os.getpid(), signal.SIGINT)
        for _ in range(int(HANGS / _NUDGED)):
            if self._begun.wait(_NUDGED):
                return
            signal.pthread_kill(threading.main_thread().ident or 0, signal.SIGUSR1)
        raise AssertionError("it was never heard")

    def _handle(self, number: int, frame: FrameType | None) -> None:
        self._begun.set()
        raise KeyboardInterrupt


class VirtualClock:
    """A clock on which time passes only by waiting."""

    def __init__(self) -> None:
        self._now, self._lock = 0.0, threading.Lock()

    def now(self) -> float:
        """Seconds since it was made."""
        return self._now

    def sleep(self, seconds: float, stop_waiting: threading.Event | None = None) -> None:
        """Lets so many seconds have passed."""
        with self._lock:
            self._now += seconds


def retry_in_virtual_time() -> RetryPolicy:
    """Retries that take no time: its clock passes with its sleep alone, and a limiter looks at it after each sleep."""
    clock = VirtualClock()
    return RetryPolicy(clock=clock.now, sleep=clock.sleep)


def nobody_waits(monkeypatch: pytest.MonkeyPatch) -> None:
    """Commands that run in this process wait for a service on a clock of their own, which takes no time."""
    clock = VirtualClock()
    policy = partial(RetryPolicy, clock=clock.now, sleep=clock.sleep)
    monkeypatch.setattr("lmsconf.workspace.connection.RetryPolicy", policy)
    monkeypatch.setattr(
        "lmsconf.apply.apply.wait_for_pending_writes", partial(wait_for_pending_writes, sleep=clock.sleep)
    )
    monkeypatch.setattr("lmsconf.apply.apply.WaitClock", partial(WaitClock, now=clock.now, sleep=clock.sleep))


class _Direct(httpx.BaseTransport):
    """The way to a service of this process, which gives its responses the date as a server does."""

    def __init__(self, service: Sandbox) -> None:
        self._service = service

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        response = self._service.handle_request(request)
        response.headers["Date"] = formatdate(usegmt=True)
        return response


def served(service: Sandbox, monkeypatch: pytest.MonkeyPatch) -> Server:
    """The service behind a port. Commands of this process reach it without the socket, which takes half their time."""
    server = serve(service)
    opened, direct = transport._open_client, _Direct(service)

    def client(parts: SplitResult, given: httpx.BaseTransport | None) -> httpx.Client:
        return opened(parts, direct if given is None and parts.netloc == urlsplit(server.url).netloc else given)

    monkeypatch.setattr(transport, "_open_client", client)
    return server
