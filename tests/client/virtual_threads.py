"""Many threads on one made-up clock: only one runs at a time, and time passes when all of them wait."""

from __future__ import annotations

import random
import threading
from collections.abc import Callable, Sequence
from heapq import heappop, heappush

from lmsconf.api.retry import RetryPolicy


class VirtualThreads:
    """A clock for several threads. Who sleeps hands over to whoever wakes first, so every run goes the same way."""

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

    def _wake_next(self) -> None:
        if self._asleep:
            self.time, self._turn = heappop(self._asleep)
            self._passed.notify_all()
