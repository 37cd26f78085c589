"""lmsconf on services whose every open point is drawn: probe, two applies, empty plans, undo."""

from __future__ import annotations

from pathlib import Path

import pytest

from .points import drawn
from .scenario import opened, play

pytestmark = pytest.mark.sampled
SEEDS = range(200)


@pytest.mark.parametrize("seed", SEEDS)
def test_a_service_of_any_kind_is_probed_and_converges(
    seed: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The probe leaves all as it was, the plan after each apply is empty, and nobody loses what was not announced."""
    with opened(drawn(seed), seed, tmp_path, monkeypatch) as project:
        outcome = play(project)
    assert (outcome.left, outcome.lost) == ([], [])
    assert outcome.kind == "converged", f"{outcome.stage}: {outcome.changed}\n{outcome.output}"
