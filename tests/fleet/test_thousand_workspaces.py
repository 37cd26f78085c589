"""A thousand workspaces, and many processes at one host."""

from __future__ import annotations

import threading
import time

import pytest

from fleet.served_fleet import ServedFleet
from lmsconf.sandbox.faults import Fault, FaultScript

pytestmark = pytest.mark.slow

MANY = 1_000
COMMENT = 65_536
"""Characters of a comment at GitHub."""


def test_a_few_that_fail_hold_up_no_other_of_a_thousand(served: ServedFleet) -> None:
    """One hangs, one refuses its token, one trips a guard, one was edited: the others are planned and applied in waves.

    A second apply does nothing, and then a plan is empty but for those.
    """
    for number in range(MANY):
        served.add(f"w{number:04}", f"sandbox:w{number:04}.db", "ring=canary" if number < 5 else "ring=main")
    served.hang("hangs")
    served.serve("refuses", takes="another")
    served.serve("guarded")
    served.serve("edited")
    served.ask("guarded", "POST", "/groups", {"name": "Old"})
    guards = "guards: {deletes: {count: 0, share: off}}\nwaves: [ring=canary, '*']\nmax_failures: 4\n"
    served.write("lmsconf.yaml", served.project(guards))
    served.write("manifests/b.yaml", "absent: {groups: [{name: Old, only_in: [guarded]}]}\n")
    troubles = {"hangs": 8, "refuses": 7}
    good = {f"w{number:04}": 0 for number in range(MANY)}
    assert served.plan_served("--time-limit", "20") == 7
    assert served.exits("index.json") == {**dict.fromkeys((*good, "guarded", "edited"), 2), **troubles}
    _, comment, _ = served.run("fleet", "show", served.out, "--format", "markdown")
    assert len(comment) < COMMENT
    assert comment.index("hangs") < comment.index("guarded") < comment.index("1,002 of 1,004")
    served.ask("edited", "POST", "/groups", {"name": "Team"})
    code, text = served.apply("--time-limit", "20")
    assert (code, served.exits()) == (7, {**good, **troubles, "guarded": 4, "edited": 3})
    assert "1,004 workspaces: 1,000 applied or without changes (3,000 API calls), 4 failed." in text
    code, _, _ = served.run("fleet", "plan", "--detailed-exitcode", "--select", "ring=main", "--time-limit", "20")
    assert code == 7
    code, text, _ = served.run("fleet", "plan", "--detailed-exitcode", "--select", "ring=canary")
    assert (code, text.splitlines()[0]) == (0, "5 workspaces: 0 with changes, 5 without.")
    assert "  settle: 0.2 s (default: 30 s), in 5 workspaces: w0000, w0001, w0002 and 2 more" in text


class Bucket(FaultScript):
    """Refuses with 429 and Retry-After what is beyond so many requests a second."""

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
            return Fault(status=429, headers={"retry-after": "1"})


@pytest.mark.parametrize("limit", [None, "25"], ids=["learnt", "--max-rate"])
def test_processes_divide_the_rate(served: ServedFleet, limit: str | None) -> None:
    """Eight processes plan forty workspaces of one host that accepts 30 requests a second.

    With --max-rate, none is refused. Without it, each of them learns.
    """
    bucket = Bucket(30.0)
    service = served.serve("w00", faults=bucket)
    url = (served.root / "workspaces.csv").read_text().split(",")[-2]
    for number in range(1, 40):
        served.add(f"w{number:02}", url)
    begin = time.monotonic()
    arguments = ("fleet", "plan", "--processes", "8", *([] if limit is None else ["--max-rate", limit]))
    code, text, _ = served.run(*arguments)
    assert (code, "40 with changes" in text) == (0, True), text
    assert bucket.answered == len([call for call in service.log if call.status != 429])
    assert bucket.answered <= 30 * (time.monotonic() - begin + 1) + 1
    assert bucket.refused <= (bucket.answered / 4 if limit is None else 0)
