"""The way to the sandbox: an httpx transport on which a script strikes, and where a request can arrive late."""

from __future__ import annotations

import threading
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

import httpx

from lmsconf.sandbox.faults import Fault, FaultScript
from lmsconf.sandbox.service import Sandbox

from .request_faults import Calm, Killed, Place, RequestFault, Script, ServiceEffect

BEGIN: Final = 1_767_225_600.0  # 2026-01-01T00:00:00Z
BOUND: Final = 4 * 3600.0


class HungRun(AssertionError):
    """A run that waits longer, or asks more often, than any run should."""


class Clock:
    """Virtual seconds since the beginning of a schedule."""

    def __init__(self) -> None:
        self.seconds = 0.0

    def reset(self) -> None:
        self.seconds = 0.0

    def now(self) -> float:
        """Seconds since the epoch."""
        return BEGIN + self.seconds

    def monotonic(self) -> float:
        return self.seconds

    def sleep(self, seconds: float) -> None:
        """Lets time pass. Raises Hung when a schedule takes hours."""
        self.seconds += seconds
        if self.seconds > BOUND:
            raise HungRun(f"{self.seconds:.0f} virtual seconds have passed")


REQUESTS_AT_MOST: Final = 20_000
LATENCY: Final = 0.4
"""Virtual seconds that a request takes, so that what is late can come between any two."""
_STALE: Final = Fault(stale=True)


class StaleReads(FaultScript):
    """Lets the next reads see the workspace as it was before one write; nothing else goes wrong."""

    def __init__(self) -> None:
        super().__init__()
        self.reads = 0

    def take_fault(self, operation: str, *, writes: bool = False) -> Fault | None:
        if writes or not self.reads:
            return None
        self.reads -= 1
        return _STALE


@dataclass(frozen=True, slots=True)
class LoggedRequest:
    """One line of the log."""

    seconds: float
    write: int | None
    method: str
    target: str
    mishap: str | None
    came: str

    def __str__(self) -> str:
        number = "" if self.write is None else f"#{self.write}"
        struck = f"  <- {self.mishap}" if self.mishap else ""
        return f"{self.seconds:9.2f}s {number:>5} {self.method:6} {self.target}  {self.came}{struck}"


class Network(httpx.BaseTransport):
    """All requests of a schedule pass through here, one at a time."""

    def __init__(self, clock: Clock) -> None:
        self.past = StaleReads()
        self.script: Script = Calm()
        self.log: list[LoggedRequest] = []
        self.writes = 0
        self._clock = clock
        self._late: list[tuple[float, httpx.Request]] = []
        self._lock = threading.Lock()
        self._dead = False

    def lead_to(self, sandbox: Sandbox) -> None:
        """Where requests arrive."""
        self._sandbox = sandbox

    def reset(self, script: Script) -> None:
        """A new schedule begins."""
        self.script, self.log, self.writes = script, [], 0
        self.past.reads, self.past.has_stale_reads = 0, False
        self._late = []
        self._dead = False

    def calm(self) -> None:
        """Nothing strikes any more, and the process may have been started again. What is late still comes."""
        self.script = Calm()
        self._dead = False

    def revive(self) -> None:
        """The process is started again."""
        self._dead = False

    def arrive(self) -> None:
        """What was late and is due by now is done, in the order it is due."""
        for due, request in sorted(self._late, key=lambda one: one[0]):
            if due <= self._clock.seconds:
                self._late.remove((due, request))
                self._note(request, None, None, f"arrives late: {self._sandbox.handle_request(request).status_code}")

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        with self._lock:
            if self._dead:
                raise Killed
            if len(self.log) > REQUESTS_AT_MOST:
                raise HungRun(f"{len(self.log)} requests were sent")
            self._clock.sleep(LATENCY)
            self.arrive()
            return self._answer(request)

    def _answer(self, request: httpx.Request) -> httpx.Response:
        target = request.url.raw_path.decode("ascii")
        write = None
        if self._is_write(request):
            self.writes += 1
            write = self.writes
        mishap = self.script.strike(Place(write, f"{request.method} {target}"))
        came = "no answer"
        try:
            answer = self._sandbox.handle_request(request) if mishap is None else self._struck(mishap, request)
            came = str(answer.status_code)
            return answer
        except Killed:
            self._dead, came = True, "the process dies"
            raise
        finally:
            self._note(request, write, mishap, came)

    def _struck(self, mishap: RequestFault, request: httpx.Request) -> httpx.Response:
        """The answer as the mishap has it, after what it does at the service."""
        answer = httpx.Response(500)
        self.past.has_stale_reads = self.past.has_stale_reads or bool(mishap.stale)
        for _ in range({ServiceEffect.ONCE: 1, ServiceEffect.TWICE: 2}.get(mishap.done, 0)):
            answer = self._sandbox.handle_request(request)
        if mishap.done is ServiceEffect.LATE:
            self._late.append((self._clock.seconds + mishap.late, request))
        if mishap.stale and self._is_write(request):
            self.past.reads = mishap.stale
        self.past.has_stale_reads = False
        self._clock.sleep(mishap.takes)
        return mishap.show(request, answer)

    @staticmethod
    def _is_write(request: httpx.Request) -> bool:
        # Results are read with a POST.
        return request.method != "GET" and not request.url.path.startswith("/analyse/")

    def _note(self, request: httpx.Request, write: int | None, mishap: RequestFault | None, came: str) -> None:
        target = request.url.raw_path.decode("ascii")
        name = mishap.name if mishap else None
        self.log.append(LoggedRequest(self._clock.seconds, write, request.method, target, name, came))


def told(log: Iterable[LoggedRequest]) -> str:
    """The log as text."""
    return "\n".join(map(str, log))
