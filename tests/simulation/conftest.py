"""Says at the end of a test run how many schedules were played, and how they ended."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable

import pytest

from .tally import Schedule, Tally

COUNTS = "simulation"


@pytest.fixture
def played(record_property: Callable[[str, object], None]) -> Callable[[list[Schedule]], None]:
    """Plays schedules, has them counted for the end of the run, and fails where one breaks the law."""

    def played(schedules: list[Schedule]) -> None:
        tally = Tally().play(schedules)
        record_property(COUNTS, dict(tally.counts))
        tally.assert_lawful()

    return played


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """One line for all simulations of the run, from whatever process they ran in."""
    total: Counter[str] = Counter()
    for reports in terminalreporter.stats.values():
        for report in reports:
            if isinstance(report, pytest.TestReport) and report.when == "call":
                for name, counts in report.user_properties:
                    if name == COUNTS and isinstance(counts, dict):
                        total.update(counts)
    if total:
        terminalreporter.write_line(
            f"simulation: {total['converged']:,} schedules converged, {total['lost']} lost, "
            f"{total['duplicated']} duplicated, {total['foreign']} foreign, {total['stops']} named stops, "
            f"{total['leaks']} with a token or a link in anything given away"
        )
