"""How far the people who lose content have come, from results as services may list them."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from flow.altered_service import Edit, plan_altered
from flow.project import Project

from effects.test_whole_effects import SEED

ANN, BO = "u-1", "u-2"
STATES = ("not_started", "in_progress", "approved", "failed", "expired")


def result(person: str, state: str, revision: int | None = None, expires: int | None = None, **more: str) -> object:
    """A result for the content A. expires: in how many days its certificate ends."""
    row: dict[str, object] = {"userId": person, "contentId": "c-1", "state": state, **more}
    row |= {} if revision is None else {"contentRevision": revision}
    return (
        row
        if expires is None
        else {**row, "certificateExpiresAt": int((datetime.now(UTC) + timedelta(days=expires)).timestamp()) * 1000}
    )


def lost(tmp_path: Path, edit: Edit) -> Any:
    """The effects on A, which Ann and Bo lose, and the reasons why something is not known."""
    it = Project(tmp_path, SEED, "guards: off\n")
    effects = plan_altered(
        it, "absent: {content_targets: [{content: A, assign_to: [{group: Team}]}]}", {"/analyse/results": edit}
    ).effects
    [found] = effects.contents
    return found, effects.reasons


@pytest.mark.parametrize(
    ("rows", "states"),
    [
        ([], "not_started not_started"),
        ([result(ANN, "FAILED")], "failed not_started"),
        ([result(ANN, "FAILED", 2), result(ANN, "APPROVED", 1)], "failed not_started"),
        ([result(ANN, "APPROVED", 1), result(ANN, "FAILED", 2)], "failed not_started"),
        ([result(ANN, "APPROVED", 1), result(ANN, "FAILED", 1)], "failed not_started"),
        ([result(ANN, "APPROVED"), result(ANN, "FAILED", 0)], "failed not_started"),
        ([result(ANN, "APPROVED", 0), result(ANN, "FAILED")], "failed not_started"),
        ([result(ANN, "FAILED", 1), result(ANN, "APPROVED")], "failed not_started"),
        ([result(ANN, "FAILED", 1), result(BO, "EXPIRED", 2)], "failed expired"),
        ([result(ANN, "FAILED", contentId="c-2"), result("u-3", "FAILED")], "not_started not_started"),
        ([result(ANN, "FAILED", 1), result(ANN, "APPROVED", 2, contentId="c-2")], "failed not_started"),
    ],
)
def test_the_latest_result_for_the_lost_content_counts(tmp_path: Path, rows: list[object], states: str) -> None:
    """A result without a revision is the oldest; results of other people and for other contents do not count."""
    found, reasons = lost(tmp_path, lambda said: said.update(list=rows))
    assert found.progress == {state: states.split().count(state) for state in STATES}
    assert reasons == ()


def test_a_result_in_an_unknown_state_makes_the_progress_unknown(tmp_path: Path) -> None:
    """The numbers of people rest on no result."""
    found, _ = lost(tmp_path, lambda said: said.update(list=[result(ANN, "RETIRED")]))
    assert (found.progress, found.counts.lose) == (None, 2)


def test_results_without_a_list_are_not_taken_for_none(tmp_path: Path) -> None:
    """The plan says why the progress is not known."""
    found, reasons = lost(tmp_path, lambda said: said.pop("list"))
    assert (found.progress, found.certificates_expiring, found.counts.lose) == (None, None, 2)
    assert reasons == (
        "the progress of those who lose content was not read: a response is missing its list of results",
    )


@pytest.mark.parametrize(
    ("days", "expiring"),
    [
        (-1, (0, 0, 0)),
        (29, (1, 1, 1)),
        (31, (0, 1, 1)),
        (59, (0, 1, 1)),
        (61, (0, 0, 1)),
        (89, (0, 0, 1)),
        (91, (0, 0, 0)),
    ],
)
def test_certificates_that_end_soon_are_counted(tmp_path: Path, days: int, expiring: tuple[int, ...]) -> None:
    """Those that end in the next 30, 60 and 90 days, and not those that have ended."""
    rows = [result(ANN, "APPROVED", 1, days), result(BO, "APPROVED", 1)]
    found, _ = lost(tmp_path, lambda said: said.update(list=rows))
    assert found.certificates_expiring == dict(zip((30, 60, 90), expiring, strict=True))
