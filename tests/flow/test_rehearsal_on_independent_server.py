"""A rehearsal of what is planned on an independent server, which chooses otherwise wherever the text is silent."""

from __future__ import annotations

import json
from typing import Any

import pytest
from stranger.project import FIRST, Open, ServerProject, opening

from .test_independent_server import CASES, SECOND

pytestmark = pytest.mark.sampled  # some seconds in all

open_desk = pytest.fixture(opening)


@pytest.mark.parametrize("name", CASES)
def test_a_rehearsal_comes_true(open_desk: Open, name: str) -> None:
    """The rehearsed plan is the plan, its apply is not stale, and all that was done on the twin is done."""
    case = CASES[name]
    desk = open_desk(case, FIRST)
    _rehearse_and_apply(desk)
    desk.write(SECOND, case.dialect)
    _rehearse_and_apply(desk)
    assert "No changes." in desk.plans(0)


def _rehearse_and_apply(desk: ServerProject) -> None:
    code, plain = desk.run("plan", "--format", "json")
    assert code == 0, plain + desk.err
    code, out = desk.run("plan", "--rehearse", "--out", str(desk.folder / "plan.json"), "--format", "json")
    assert code == 0, out + desk.err
    document: Any = json.loads(out)
    assert document["rehearsal"]["receipt"]["outcome"] == "success", document["rehearsal"]
    assert document["digest"] == json.loads(plain)["digest"]
    allowed = [f"--allow={guard['allow']}" for guard in document["guards"] if guard["tripped"]]
    code, out = desk.run("apply", str(desk.folder / "plan.json"), "--require-rehearsal", *allowed)
    assert code == 0, out + desk.err
