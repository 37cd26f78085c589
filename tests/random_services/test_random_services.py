"""lmsconf on services whose every open point is drawn: probe, two applies, empty plans, undo."""

from pathlib import Path

import pytest

from .points import drawn, made_of
from .scenario import bare, facts, opened, play, play_unprobed

SEEDS = range(200)


@pytest.mark.sampled(day=600, gate=6)
@pytest.mark.parametrize("seed", SEEDS)
def test_a_service_of_any_kind_is_probed_and_converges(
    seed: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The probe leaves all as it was, the plan after each apply is empty, and nobody loses what was not announced."""
    with opened(drawn(seed), seed, tmp_path, monkeypatch) as project:
        outcome = play(project)
    assert (outcome.left, outcome.lost) == ([], [])
    assert outcome.kind == "converged", f"{outcome.stage}: {outcome.changed}\n{outcome.output}"


# lmsconf on services that it knows nothing of, without a probe: a wrong guess takes nothing from anybody.


CHANGED = "content_targets: [{content: GDPR basics, assign_to: [{group: Coaches, mandatory: true}, everyone]}]\n"


@pytest.mark.slow  # some seconds each
@pytest.mark.sampled(gate=40)
@pytest.mark.parametrize("seed", SEEDS)
def test_a_service_is_found_out_without_a_probe(seed: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """After each stop the lines that it says are pasted, and the next run goes on: at most six rounds to an empty plan.

    Nobody loses anything, and each stop leaves at most one resource astray for each key that it names.
    """
    with opened(drawn(seed), seed, tmp_path, monkeypatch) as project:
        outcome = play_unprobed(project)
    assert (outcome.lost, outcome.astray) == ([], []), f"{outcome.stage}: {outcome.changed}\n{outcome.output}"
    assert outcome.kind == "converged", f"{outcome.stage}: {outcome.changed}\n{outcome.output}"


@pytest.mark.sampled(day=2)
@pytest.mark.parametrize("unknown", ["passed-over", "refused"])
def test_an_assignment_that_is_made_anew_is_not_lost(
    unknown: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where no name that is tried for a part of it is right, the assignment of before is there, or another one."""
    points = made_of({"unknown": unknown, "existing": "ignored", "content-targets.create.mandatory": "binding"})
    with opened(points, 0, tmp_path, monkeypatch) as project:
        project.state({"content-targets.on-existing": "recreate"})
        project.write(CHANGED)
        before = bare(facts(project.service))
        code, output = project.run("apply", "--auto-approve", "--only", "content_target/*Coaches*")
        assert code in (5, 6), output
        assert before <= bare(facts(project.service)), output
