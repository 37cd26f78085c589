"""Plans told whole: who and what an entry means, what is owned, what becomes of people, and what guards stop."""

from pathlib import Path

import pytest

from .plan_tables import PlanCase, assert_planned, plan_cases

pytestmark = pytest.mark.sampled(day=8)

TABLES = ("identity", "ownership", "people", "migration", "guard")
CASES = [case for name in TABLES for case in plan_cases(f"{name}_plans.txt")]


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.title)
def test_a_plan_is_as_its_table_says_and_settles(tmp_path: Path, case: PlanCase) -> None:
    """Changes, calls, what guards count and what is reported; carried out, it leaves nothing to do."""
    assert_planned(tmp_path, case)
