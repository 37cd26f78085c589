"""Everything that can happen to a request: whether the service carries it out, and what the caller gets to see."""

import json
import threading
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from enum import Enum
from random import Random
from typing import Final

import httpx

from lmsconf.documents.journal.journal_writer import Journal
from lmsconf.model.calls import Call
from lmsconf.model.outcomes import CallOutcome
from lmsconf.sandbox.faults import Fault, FaultScript
from lmsconf.sandbox.service import Sandbox

from .workspace_state import SAID

_PORTAL: Final = f"<!doctype html><title>Sign in</title><p>Please sign in to the network: {SAID}</p>".encode()


class Killed(BaseException):
    """The process dies here: nothing is caught, tidied or written after it."""


class ServiceEffect(Enum):
    """What becomes of the request at the service."""

    NOT = "not done"
    ONCE = "done"
    TWICE = "done twice"
    LATE = "done later"


Show = Callable[[httpx.Request, httpx.Response], httpx.Response]
"""What the caller sees in the place of the real answer: another one, or an exception."""


@dataclass(frozen=True, slots=True)
class RequestFault:
    """One way for one request to go wrong.

    kind    what kind of mishap it is a way of, if that has several
    late    seconds until it is done, where that is later
    stale   how many reads after it see the workspace as it was before it
    takes   seconds until the caller sees anything
    names_a_stop   whether it may end in a stop that names both twins, instead of converging
    """

    name: str
    done: ServiceEffect
    show: Show
    kind: str = ""
    late: float = 0.0
    stale: int = 0
    takes: float = 0.0
    names_a_stop: bool = False


def _as_is(request: httpx.Request, answer: httpx.Response) -> httpx.Response:
    return answer


def _breaks(error: type[httpx.TransportError]) -> Show:
    """The connection fails before an answer has come."""

    def show(request: httpx.Request, answer: httpx.Response) -> httpx.Response:
        raise error(f"simulated: {SAID}", request=request)

    return show


def _says(status: int, retry_after: str | None = None) -> Show:
    """Another answer than the real one."""
    headers = {} if retry_after is None else {"retry-after": retry_after}
    return lambda request, answer: httpx.Response(status, headers=headers, json={"message": f"simulated: {SAID}"})


def _body(make: Callable[[bytes], bytes], content_type: str = "application/json") -> Show:
    """A success whose body is not the real one."""

    def show(request: httpx.Request, answer: httpx.Response) -> httpx.Response:
        return httpx.Response(200, headers={"content-type": content_type}, content=make(answer.read()))

    return show


class _Torn(httpx.SyncByteStream):
    """A body that breaks off half-way."""

    def __init__(self, body: bytes) -> None:
        self._body = body

    def __iter__(self) -> Iterator[bytes]:
        yield self._body[: len(self._body) // 2]
        raise httpx.ReadError(f"simulated: reset in the middle of the body: {SAID}")


def _torn(request: httpx.Request, answer: httpx.Response) -> httpx.Response:
    body = answer.read()
    headers = {"content-type": "application/json", "content-length": str(len(body) or 2)}
    return httpx.Response(200, headers=headers, stream=_Torn(body))


def _dies(request: httpx.Request, answer: httpx.Response) -> httpx.Response:
    raise Killed


def _ways() -> Iterator[RequestFault]:
    not_done, done, later, twice = ServiceEffect.NOT, ServiceEffect.ONCE, ServiceEffect.LATE, ServiceEffect.TWICE
    cut = {"lost": httpx.ReadError, "hung-up": httpx.RemoteProtocolError, "unsent": httpx.WriteError}
    yield RequestFault("not-sent", not_done, _breaks(httpx.ConnectError))
    for when, effect in (("before", not_done), ("after", done)):
        for name, error in cut.items():
            yield RequestFault(f"{name}-{when}", effect, _breaks(error), f"lost-{when}")
        yield RequestFault(f"timeout-{when}", effect, _breaks(httpx.ReadTimeout), takes=30.0)
        for status in (500, 502, 503, 504):
            yield RequestFault(f"{status}-{when}", effect, _says(status), f"5xx-{when}")
        yield RequestFault(f"html-{when}", effect, _body(lambda real: _PORTAL, "text/html"))
    yield RequestFault("429", not_done, _says(429))
    yield RequestFault("429-retry-after", not_done, _says(429, "7"), "429")
    yield RequestFault("503-seconds", not_done, _says(503, "3"), "503-later")
    yield RequestFault("503-date", not_done, _says(503, "Thu, 01 Jan 2026 00:00:09 GMT"), "503-later")
    yield RequestFault("401", not_done, _says(401))
    yield RequestFault("403", not_done, _says(403))
    for status in (404, 409, 410, 400):
        yield RequestFault(f"{status}-after", done, _says(status), "4xx-after")
    yield RequestFault("truncated", done, _body(lambda real: real[: len(real) // 2]))
    yield RequestFault("empty", done, _body(lambda real: b""))
    for name, value in {"a-list": [SAID], "another-object": {"simulated": SAID}, "null": None}.items():
        yield RequestFault(name, done, _body(lambda real, value=value: json.dumps(value).encode()), "wrong-type")
    yield RequestFault("torn", done, _torn)
    yield RequestFault("slow", done, _as_is, takes=25.0)
    reset = _breaks(httpx.ReadError)
    for seconds in (0.1, 3.0, 20.0, 29.0):
        yield RequestFault(f"late-{seconds:g}", later, reset, "late", late=seconds)
    for seconds in (31.0, 45.0, 600.0):
        # Later than anybody looks: what it makes is there by then, and is there twice when it comes.
        yield RequestFault(f"late-{seconds:g}", later, reset, "too-late", late=seconds, names_a_stop=True)
    yield RequestFault("twice", twice, _as_is, names_a_stop=True)
    yield RequestFault("twice-lost", twice, reset, "twice", names_a_stop=True)
    for reads in (1, 2, 3, 4, 5):
        yield RequestFault(f"stale-{reads}", done, _as_is, "stale", stale=reads)
    yield RequestFault("stale-lost", done, reset, "stale", stale=2)
    yield RequestFault("killed-before", not_done, _dies)
    yield RequestFault("killed-after", done, _dies)
    yield RequestFault("killed-late", later, _dies, late=20.0)


MISHAPS: Final = {one.name: one for one in _ways()}
"""Every single way for a request to go wrong, by name."""
KINDS: Final[dict[str, list[RequestFault]]] = {}
"""Every kind of mishap: the ways in which it can come, which take turns from call to call."""
for _way in MISHAPS.values():
    KINDS.setdefault(_way.kind or _way.name, []).append(_way)
LIKE_ANOTHER: Final = frozenset(
    {"timeout-before", "html-before", "html-after", "5xx-before", "503-later", "401", "403", "empty", "slow"}
)
"""Kinds that lmsconf meets as it meets another one of the list: in everyday runs they strike every sixth call."""
KILLED_UNRECORDED: Final = "killed-unrecorded"
"""The third place to die: the answer is here, and what came of the call is not told to anybody yet."""


def at_call(kind: str, call: int) -> RequestFault:
    """The way in which that kind comes at that call; a single way always comes as it is."""
    ways = KINDS.get(kind) or [MISHAPS[kind]]
    return ways[call % len(ways)]


# A journal whose process dies.


KEPT = {"keep": 50, "keep_seconds": 30.0}


class MortalJournal(Journal):
    """Everything is written down until the outcome of that number: then the process dies instead.

    unsent: it dies before that call is sent, with its intent written down.
    """

    dies_at: int | None = None
    unsent: bool = False

    def record_intent(self, call: Call) -> None:
        super().record_intent(call)
        if self.unsent and self.dies_at == 1:
            raise Killed

    def record_outcome(self, outcome: CallOutcome) -> None:
        if self.dies_at is not None:
            self.dies_at -= 1
            if not self.dies_at:
                raise Killed
        super().record_outcome(outcome)


# Which request meets which mishap.


Script = Callable[["int | None", str], "RequestFault | None"]
"""What strikes a request, if anything does: its number among those that write, None for a read; method and target."""


def scripted(at: Mapping[int, RequestFault]) -> Script:
    """Mishaps by the number of the write that they strike."""
    return lambda write, what: None if write is None else at.get(write)


CALM: Final = scripted({})
"""Nothing goes wrong."""


def storm(seed: int, chance: float) -> Script:
    """Every request may be struck, by anything. The dice know only the request itself and how often it was made.

    So the order in which reads are sent side by side decides nothing, and the same seed gives the same storm.
    """
    seen: Counter[str] = Counter()

    def strike(write: int | None, what: str) -> RequestFault | None:
        seen[what] += 1
        dice = Random(f"{seed} {seen[what]} {what}")  # noqa: S311  weather is no secret
        return dice.choice(KINDS[dice.choice(sorted(KINDS))]) if dice.random() < chance else None

    return strike


# The way to the sandbox: an httpx transport on which a script strikes, and where a request can arrive late.


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


class Network(httpx.BaseTransport):
    """All requests of a schedule pass through here, one at a time."""

    sandbox: Sandbox
    """Where requests arrive."""

    def __init__(self, clock: Clock) -> None:
        self.past = StaleReads()
        self.script = CALM
        self.log: list[str] = []
        self.writes = 0
        self._clock = clock
        self._late: list[tuple[float, httpx.Request]] = []
        self._lock = threading.Lock()
        self._dead = False

    def reset(self, script: Script) -> None:
        """A new schedule begins."""
        self.script, self.log, self.writes = script, [], 0
        self.past.reads, self.past.has_stale_reads = 0, False
        self._late, self._dead = [], False

    def revive(self) -> None:
        """The process is started again."""
        self._dead = False

    def arrive(self) -> None:
        """What was late and is due by now is done, in the order it is due."""
        for due, request in sorted(self._late, key=lambda one: one[0]):
            if due <= self._clock.seconds:
                self._late.remove((due, request))
                self._note(request, None, None, f"arrives late: {self.sandbox.handle_request(request).status_code}")

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
        write = None
        if self._is_write(request):
            self.writes += 1
            write = self.writes
        mishap = self.script(write, f"{request.method} {request.url.raw_path.decode('ascii')}")
        came = "no answer"
        try:
            answer = self.sandbox.handle_request(request) if mishap is None else self._struck(mishap, request)
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
            answer = self.sandbox.handle_request(request)
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
        number, struck = f"#{write}" if write else "", f"  <- {mishap.name}" if mishap else ""
        self.log.append(f"{self._clock.seconds:9.2f}s {number:>5} {request.method:6} {target}  {came}{struck}")
