"""How many tests run at a time, and what is told at the end: how many schedules were simulated, and how they ended."""

from __future__ import annotations

import os
from collections import Counter

import pytest


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_auto_num_workers() -> int:
    """What `-n auto` stands for: one more than there are processors, since many wait for processes of their own."""
    return (os.cpu_count() or 1) + 1


SIMULATED = "simulation"
"""The property under which a test tells its counts."""


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """One line for all simulations of the run, from whatever process they ran in."""
    total: Counter[str] = Counter()
    for reports in terminalreporter.stats.values():
        for report in reports:
            if isinstance(report, pytest.TestReport) and report.when == "call":
                for name, counts in report.user_properties:
                    if name == SIMULATED and isinstance(counts, dict):
                        total.update(counts)
    if total:
        terminalreporter.write_line(
            f"simulation: {total['converged']:,} schedules converged, {total['lost']} lost, "
            f"{total['duplicated']} duplicated, {total['foreign']} foreign, {total['stops']} named stops, "
            f"{total['leaks']} with a token or a link in anything given away"
        )
