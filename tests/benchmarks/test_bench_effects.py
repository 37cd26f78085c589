"""The benchmark of effects on people runs, on a hundredth of its size."""

from __future__ import annotations

import pytest
from benchmarks.bench_effects import measure


def test_a_hundredth_of_the_benchmark_computes_who_loses(capsys: pytest.CaptureFixture[str]) -> None:
    """Of five contents somebody loses each; nothing is said of time."""
    measure(2_000, 0.01, rows=True)
    _, _, contents, people, rows = capsys.readouterr().out.split()
    assert (contents, int(people) > 0, int(rows) > 0) == ("5", True, True)
