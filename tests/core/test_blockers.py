"""What stands where apply would stop: the first five reasons of a guard, and how many more there are."""

from __future__ import annotations

from pathlib import Path

import pytest
from flow.project import Project
from msgspec.structs import replace

from lmsconf.errors import Problem
from lmsconf.model.blockers import blockers

SEED = "groups: [" + ", ".join(f"{{name: G{n}}}" for n in range(3)) + "]\n"


@pytest.mark.parametrize(("number", "more"), [(4, None), (5, None), (6, "… and 1 more"), (9, "… and 4 more")])
def test_five_reasons_are_listed(tmp_path: Path, number: int, more: str | None) -> None:
    """Five of them one by one, the rest as a count."""
    plan = Project(tmp_path, SEED, "guards: {deletes: {count: 0}}\n").plan("absent: {groups: [G0]}")
    guard = replace(next(one for one in plan.guards if one.tripped), name="answers")
    problems = tuple(Problem(code="custom-field/answers-lost", message=f"reason {n}") for n in range(number))
    [blocker] = blockers(replace(plan, guards=(guard,), problems=problems))
    lines = (blocker.hint or "").splitlines()
    assert lines[:5] == [f"reason {n}." for n in range(min(number, 5))]
    assert lines[5:] == ([more] if more else [])
