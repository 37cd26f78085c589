"""A plan of the mix under a rate limit takes hardly longer than its requests, and says soon how long."""

import re
from pathlib import Path

import pytest
from rate_limited import IdleClock, RateLimitFaults, bucket, limit_sandboxes
from workload import make_project, values_of

import lmsconf
from lmsconf.cli.terminal import LimitWording
from lmsconf.model.calls import RunProgress

LEFT = re.compile(r"([\d,]+) left, about (?:(\d+) hours?)? ?(?:(\d+) minutes?)? ?(?:(\d+) seconds?)?")


@pytest.mark.sampled(gate=6)
@pytest.mark.parametrize("resources", [2_000, pytest.param(10_000, marks=pytest.mark.slow)])
@pytest.mark.parametrize(
    ("rate", "burst"), [(10.0, 10.0), (2_000 / 3_600, 100.0)], ids=["10 a second", "2,000 an hour"]
)
@pytest.mark.parametrize("tells", [True, False], ids=["with Retry-After", "without"])
def test_a_plan_takes_as_long_as_its_requests_and_tells_it_in_time(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, resources: int, rate: float, burst: float, tells: bool
) -> None:
    """At most 1.1 times requests / rate; after a tenth of them the estimate is within a fifth of what it then takes."""
    project = tmp_path / "project"
    make_project(project, values_of(resources))
    lines: list[tuple[float, int, str]] = []
    words = LimitWording()
    with IdleClock() as clock:
        faults = RateLimitFaults(clock, bucket(clock, rate, burst), tells=tells)
        limit_sandboxes(monkeypatch, clock, faults)

        def tell(now: RunProgress) -> None:
            if line := words.due_line(now):
                lines.append((clock.now, now.done, line))

        lmsconf.open(project).plan(progress=tell)
        took = clock.now
    requests = faults.answered
    assert took <= 1.1 * requests / rate
    assert faults.refused <= requests / 5
    after = [(at, LEFT.search(line)) for at, done, line in lines if done >= max(requests / 10, burst + 20)]
    assert after
    for at, match in after:
        assert match is not None
        hours, minutes, seconds = (int(match[number] or 0) for number in (2, 3, 4))
        told = 3_600 * hours + 60 * minutes + seconds
        assert told == pytest.approx(took - at, rel=0.2, abs=5)
