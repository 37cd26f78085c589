"""A plan of the mix under a service that takes so many requests a second, beside the time that so many requests take.

    python tests/benchmarks/bench_limited.py [--rate 10] [--resources 10000]

On the real clock, over the embedded workspace: the limit is a bucket that holds a second's requests, and a refusal is
429 with a Retry-After in whole seconds. The estimate is the first line after a tenth of the requests.
"""

from __future__ import annotations

import argparse
import math
import re
import tempfile
import threading
import time
from functools import partial
from pathlib import Path

from measuring import tell, verdict
from workload import Size, make_project, values_of

import lmsconf
from lmsconf.cli.progress import LimitWording
from lmsconf.model.progress import RunProgress
from lmsconf.sandbox import service
from lmsconf.sandbox.faults import Fault, FaultScript

_LEFT = re.compile(r"left, about (?:(\d+) hours?)? ?(?:(\d+) minutes?)? ?(?:(\d+) seconds?)?")


class RefusalsBeyondRate(FaultScript):
    """Refuses with 429 what is beyond so many requests a second."""

    def __init__(self, rate: float) -> None:
        super().__init__()
        self._rate, self._held, self._at = rate, rate, time.monotonic()
        self._turn = threading.Lock()
        self.answered = self.refused = 0

    def take_fault(self, operation: str, *, writes: bool = False) -> Fault | None:
        """Count a request, and return its refusal if it is one too many."""
        with self._turn:
            now = time.monotonic()
            self._held, self._at = min(self._rate, self._held + (now - self._at) * self._rate), now
            if self._held >= 1:
                self._held -= 1
                self.answered += 1
                return None
            self.refused += 1
            return Fault(status=429, headers={"retry-after": str(math.ceil((1 - self._held) / self._rate))})


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rate", type=float, default=10.0, help="requests a second that the service takes")
    parser.add_argument("--resources", type=int, default=10_000, help="the size of the mix")
    chosen = parser.parse_args()
    with tempfile.TemporaryDirectory() as temporary:
        project = Path(temporary) / "project"
        make_project(project, values_of(Size.of(chosen.resources)))
        _measure(project, chosen.rate)


def _measure(project: Path, rate: float) -> None:
    faults, words = RefusalsBeyondRate(rate), LimitWording()
    lines: list[tuple[float, int, str]] = []
    opened = service.Sandbox
    service.Sandbox = partial(opened, faults=faults)  # type: ignore[misc,assignment]  # the server makes its service by this name
    start = time.monotonic()

    def progress(now: RunProgress) -> None:
        if line := words.due_line(now):
            tell(f"  {time.monotonic() - start:6.1f} s  {line}")
            lines.append((time.monotonic() - start, now.done, line))

    try:
        lmsconf.open(project).plan(progress=progress)
    finally:
        service.Sandbox = opened  # type: ignore[misc]  # as it was
    took, least = time.monotonic() - start, faults.answered / rate
    tell(f"{faults.answered:,} requests at {rate:g} a second, {faults.refused} refused")
    tell(f"  {took:.1f} s, least {least:.1f} s  ratio {took / least:.3f}  {verdict(took / least, 1.1)}")
    for at, done, line in lines:
        if done >= faults.answered / 10 and (match := _LEFT.search(line)):
            hours, minutes, seconds = (int(part or 0) for part in match.groups())
            told = 3_600 * hours + 60 * minutes + seconds
            wrong = abs(told - (took - at)) / (took - at)
            tell(f"  first estimate after a tenth: {told} s, it took {took - at:.0f} s: wrong by {wrong:.1%}")
            tell(f"  {verdict(wrong, 0.2)}")
            return


if __name__ == "__main__":
    main()
