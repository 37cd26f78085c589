"""Rate limiter shared by processes of this machine: what it has learnt is in a file, which is locked while it is used.

Each process waits for its own turns, in their order. A turn is taken when it is due, not before, so that a refusal or a
faster rate holds for all processes at once, and a process that dies holds up no other one.
"""

from __future__ import annotations

import math
import os
import time
from array import array
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from hashlib import sha256
from pathlib import Path
from typing import Final
from urllib.parse import urlsplit

from lmsconf.api.accepted_rate import AcceptedRate, LearntRate
from lmsconf.api.rate_limiter import NOTICED, TOLD_EVERY, RateLimiter, Turn
from lmsconf.errors import LmsconfError

_NUMBER: Final = array("d").itemsize
_COUNTS: Final = ("learnt", "accepted", "answered")
"""What the file begins with: how many numbers each of these has. Two times follow, then the numbers."""
_LARGEST: Final = 4096
"""Bytes that hold all numbers, since each list of them is bounded."""


def rate_file(folder: Path, url: str) -> Path:
    """Return the file for the rate of a URL's host and port."""
    parts = urlsplit(url)
    host = (parts.hostname or "").rstrip(".")
    port = parts.port or (443 if parts.scheme == "https" else 80)
    return folder / sha256(f"{host}:{port}".encode()).hexdigest()[:32]


class SharedRateLimiter(RateLimiter):
    """RateLimiter of all processes that have the same file. Thread-safe; FIFO within a process.

    path: the file, created if missing. All processes need the same `limit`, and the monotonic clock of this machine.
    """

    def __init__(
        self,
        path: Path,
        limit: float | None = None,
        *,
        clock: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], None] = time.sleep,
        wall_clock: Callable[[], float] = time.time,
    ) -> None:
        """Raises LmsconfError on a system without file locks, OSError if the file cannot be opened."""
        super().__init__(limit, clock=clock, sleep=sleep, wall_clock=wall_clock)
        try:
            import fcntl
        except ImportError as missing:
            hint = "Use Linux, macOS or WSL."
            raise LmsconfError("this system has no file locks, which several processes need", hint=hint) from missing
        self._known = b""
        self._flock, self._exclusive, self._unlock = fcntl.flock, fcntl.LOCK_EX, fcntl.LOCK_UN
        self._file: int | None = os.open(path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)

    def wait_turn(self, seconds_left: Callable[[], float]) -> bool:
        """Wait for the caller's turn. Return False once no time is left, at once if a Retry-After takes it all."""
        if self._limit is None and not self._has_learnt():
            return True
        turn = Turn()
        try:
            while True:
                with self._locked():
                    now, left = self._clock(), seconds_left()
                    if turn not in self._waiting:
                        self._begin(turn, now)
                    gap, place, pause = self._gap(), self._waiting.index(turn), self._since - now
                    if left <= 0 or pause >= left:
                        return False
                    turn.at = max(self._last + gap, self._since)
                    if turn.at <= now and place == 0:
                        self._last = turn.at
                        return True
                wait = max(turn.at - now, 0.0) + place * gap
                self._nap(min(wait, left, TOLD_EVERY, max(pause, wait / 2, NOTICED)))
                self._slept = self._clock()
        finally:
            with self._lock, suppress(ValueError):  # an error before it began to wait
                self._waiting.remove(turn)

    def record_response(self) -> None:
        """Record a response that is not transient."""
        with self._locked():
            now = self._clock()
            self._answered.append(now)
            if not self._free:
                self._accepted.add(now)

    def close(self) -> None:
        """Leave the other processes: from now on, it limits this one alone."""
        with self._lock:
            if self._file is not None:
                os.close(self._file)
            self._file = None

    def _begin(self, turn: Turn, now: float) -> None:
        """Add a request to those that wait. If none waited, the time since the last turn earns no further turns, and
        what the service would have accepted in it is not known.
        """
        self._accepted.begin(now)
        gap = self._gap()
        if not self._waiting and now > (free := self._last + gap):
            self._accepted.skip(now - free if free > -math.inf else 0.0)
            self._last = now - gap
        self._waiting.append(turn)

    def _schedule(self, now: float) -> None:
        """Do nothing: each turn is computed when it is looked at."""

    def _has_learnt(self) -> bool:
        """Whether a process has seen a refusal. Reads one number without a lock: a moment later is early enough."""
        with self._lock:
            if self._file is None:
                return self._learnt is not None
            return bool(any(os.pread(self._file, _NUMBER, 0)))

    @contextmanager
    def _locked(self) -> Iterator[None]:
        """Lock the file, and have what it says; write it back at the end."""
        with self._lock:
            if self._file is None:
                yield
                return
            self._flock(self._file, self._exclusive)
            try:
                content = os.pread(self._file, _LARGEST, 0)
                if not self._known or content[: len(self._known)] != self._known:
                    self._load(array("d", content))
                self._known = b""  # until what is done now is written
                yield
                numbers = self._numbers().tobytes()
                os.pwrite(self._file, numbers, 0)
                self._known = numbers
            finally:
                self._flock(self._file, self._unlock)

    def _load(self, numbers: array[float]) -> None:
        if not numbers:
            return
        learnt, accepted, answered = map(int, numbers[: len(_COUNTS)])
        self._since, self._last = numbers[3:5]
        begin = 5
        self._learnt = LearntRate.from_numbers(numbers[begin : (begin := begin + learnt)]) if learnt else None
        self._accepted = AcceptedRate.from_numbers(numbers[begin : (begin := begin + accepted)])
        self._answered.clear()
        self._answered.extend(numbers[begin : begin + answered])
        self._free = self._limit is None and not learnt

    def _numbers(self) -> array[float]:
        learnt = [] if self._learnt is None else self._learnt.numbers()
        accepted = self._accepted.numbers()
        counts = [len(learnt), len(accepted), len(self._answered)]
        return array("d", [*counts, self._since, self._last, *learnt, *accepted, *self._answered])
