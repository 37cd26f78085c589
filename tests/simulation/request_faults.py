"""Everything that can happen to a request: whether the service carries it out, and what the caller gets to see."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from enum import Enum
from random import Random
from typing import Final, Protocol

import httpx

from lmsconf.journal.journal_writer import Journal
from lmsconf.journal.kept_runs import Retention
from lmsconf.model.calls import Call
from lmsconf.model.outcomes import CallOutcome

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


@dataclass(frozen=True, slots=True, kw_only=True)
class RequestFault:
    """One way for one request to go wrong.

    late    seconds until it is done, where that is later
    stale   how many reads after it see the workspace as it was before it
    takes   seconds until the caller sees anything
    names_a_stop   whether it may end in a stop that names both twins, instead of converging
    """

    name: str
    done: ServiceEffect
    show: Show
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


def _kinds() -> Iterator[tuple[str, tuple[RequestFault, ...]]]:
    cut = {"lost": httpx.ReadError, "hung-up": httpx.RemoteProtocolError, "unsent": httpx.WriteError}
    yield "not-sent", (_of("not-sent", ServiceEffect.NOT, _breaks(httpx.ConnectError)),)
    for when, done in (("before", ServiceEffect.NOT), ("after", ServiceEffect.ONCE)):
        yield f"lost-{when}", tuple(_of(f"{name}-{when}", done, _breaks(error)) for name, error in cut.items())
        yield f"timeout-{when}", (_of(f"timeout-{when}", done, _breaks(httpx.ReadTimeout), takes=30.0),)
        yield f"5xx-{when}", tuple(_of(f"{status}-{when}", done, _says(status)) for status in (500, 502, 503, 504))
        yield f"html-{when}", (_of(f"html-{when}", done, _body(lambda real: _PORTAL, "text/html")),)
    yield "429", (_of("429", ServiceEffect.NOT, _says(429)), _of("429-retry-after", ServiceEffect.NOT, _says(429, "7")))
    dated = _says(503, "Thu, 01 Jan 2026 00:00:09 GMT")
    yield (
        "503-later",
        (_of("503-seconds", ServiceEffect.NOT, _says(503, "3")), _of("503-date", ServiceEffect.NOT, dated)),
    )
    yield "401", (_of("401", ServiceEffect.NOT, _says(401)),)
    yield "403", (_of("403", ServiceEffect.NOT, _says(403)),)
    yield (
        "4xx-after",
        tuple(_of(f"{status}-after", ServiceEffect.ONCE, _says(status)) for status in (404, 409, 410, 400)),
    )
    yield "truncated", (_of("truncated", ServiceEffect.ONCE, _body(lambda real: real[: len(real) // 2])),)
    yield "empty", (_of("empty", ServiceEffect.ONCE, _body(lambda real: b"")),)
    yield (
        "wrong-type",
        (
            _of("a-list", ServiceEffect.ONCE, _body(lambda real: json.dumps([SAID]).encode())),
            _of("another-object", ServiceEffect.ONCE, _body(lambda real: json.dumps({"simulated": SAID}).encode())),
            _of("null", ServiceEffect.ONCE, _body(lambda real: b"null")),
        ),
    )
    yield "torn", (_of("torn", ServiceEffect.ONCE, _torn),)
    yield "slow", (_of("slow", ServiceEffect.ONCE, _as_is, takes=25.0),)
    reset = _breaks(httpx.ReadError)
    yield (
        "late",
        tuple(_of(f"late-{seconds:g}", ServiceEffect.LATE, reset, late=seconds) for seconds in (0.1, 3.0, 20.0, 29.0)),
    )
    # Later than anybody looks: what it makes is there by then, and is there twice when it comes.
    too_late = (_of(f"late-{seconds:g}", ServiceEffect.LATE, reset, late=seconds) for seconds in (31.0, 45.0, 600.0))
    yield "too-late", tuple(replace(one, names_a_stop=True) for one in too_late)
    twice = (_of("twice", ServiceEffect.TWICE, _as_is), _of("twice-lost", ServiceEffect.TWICE, reset))
    yield "twice", tuple(replace(one, names_a_stop=True) for one in twice)
    stale = (replace(_of(f"stale-{reads}", ServiceEffect.ONCE, _as_is), stale=reads) for reads in (1, 2, 3, 4, 5))
    yield "stale", (*stale, replace(_of("stale-lost", ServiceEffect.ONCE, reset), stale=2))
    yield "killed-before", (_of("killed-before", ServiceEffect.NOT, _dies),)
    yield "killed-after", (_of("killed-after", ServiceEffect.ONCE, _dies),)
    yield "killed-late", (_of("killed-late", ServiceEffect.LATE, _dies, late=20.0),)


def _of(name: str, done: ServiceEffect, show: Show, *, late: float = 0.0, takes: float = 0.0) -> RequestFault:
    return RequestFault(name=name, done=done, show=show, late=late, takes=takes)


KINDS: Final = dict(_kinds())
"""Every kind of mishap: the ways in which it can come, which take turns from call to call."""
MISHAPS: Final = {one.name: one for ways in KINDS.values() for one in ways}
"""Every single way, by name."""
LIKE_ANOTHER: Final = frozenset(
    {"timeout-before", "html-before", "html-after", "5xx-before", "503-later", "401", "403", "empty", "slow"}
)
"""Kinds that lmsconf meets as it meets another one of the list: in everyday runs they strike every sixth call."""
KILLED_UNRECORDED: Final = "killed-unrecorded"
"""The third place to die: the answer is here, and what came of the call is not told to anybody yet."""


def at_call(kind: str, call: int) -> RequestFault:
    """The way in which that kind comes at that call; a single way always comes as it is."""
    ways = KINDS.get(kind) or (MISHAPS[kind],)
    return ways[call % len(ways)]


# A journal whose process dies.


KEPT = Retention(keep=50, settle=30.0)


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


_IN_STORMS: Final = sorted(KINDS)


@dataclass(frozen=True, slots=True)
class Place:
    """A request among all of a schedule: `write` counts those that write, from 1; None for one that reads."""

    write: int | None
    what: str


class Script(Protocol):
    """What strikes a request, if anything does."""

    def strike(self, place: Place) -> RequestFault | None: ...


class Calm:
    """Nothing goes wrong."""

    def strike(self, place: Place) -> RequestFault | None:
        return None


@dataclass(frozen=True, slots=True)
class ScriptedFaults:
    """Mishaps by the number of the write that they strike."""

    at: Mapping[int, RequestFault]

    def strike(self, place: Place) -> RequestFault | None:
        return None if place.write is None else self.at.get(place.write)


@dataclass(slots=True)
class Storm:
    """Every request may be struck, by anything. The dice know only the request itself and how often it was made.

    So the order in which reads are sent side by side decides nothing, and the same seed gives the same storm.
    """

    seed: int
    chance: float
    _seen: Counter[str] = field(default_factory=Counter)

    def strike(self, place: Place) -> RequestFault | None:
        self._seen[place.what] += 1
        dice = Random(f"{self.seed} {self._seen[place.what]} {place.what}")  # noqa: S311  weather is no secret
        if dice.random() >= self.chance:
            return None
        return dice.choice(KINDS[dice.choice(_IN_STORMS)])
