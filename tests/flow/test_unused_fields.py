"""A lint of plans: the custom fields that no smart group uses, told once all ten of a workspace are taken."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path

import pytest

from lmsconf.model.lints import RULES

from .project import Project
from .shell import lmsconf

NINE_OTHERS = [f"Field {n}" for n in range(1, 10)]


def listed(number: int) -> str:
    """So many custom fields."""
    fields = "".join(f"  - {{name: Field {n}, type: CHOICE, choices: [A]}}\n" for n in range(number))
    return f"custom_fields:\n{fields}"


def smart_groups(conditions: Iterable[tuple[str, int]]) -> str:
    """A smart group for each pair: its name, and the field that its condition uses."""
    groups = (f"  - {{name: {name}, conditions: [{{field: Field {n}, choices: [A]}}]}}\n" for name, n in conditions)
    return f"smart_groups:\n{''.join(groups)}"


def unused(folder: Path, live: str, manifests: str) -> list[str]:
    """The fields that a plan of these manifests calls unused."""
    plan = Project(folder, f"people: [{{email: ann@acme.example}}]\n{live}").plan(manifests)
    return [str(one.address) for one in plan.all_problems if one.code == "lint/unused-field"]


@pytest.mark.parametrize(
    ("used", "expected"),
    [([0], NINE_OTHERS), (range(10), [])],
    ids=["one is used", "all are used"],
)
def test_a_field_that_no_condition_uses(tmp_path: Path, used: Sequence[int], expected: Sequence[str]) -> None:
    """It is told once all ten are taken, by a plan alone, and only if the plan reads the smart groups."""
    both = listed(10) + smart_groups((f"Group {n}", n) for n in used)
    assert unused(tmp_path, both, both) == [f"custom_field/{name}" for name in expected]
    validated = lmsconf(tmp_path, "validate")
    assert "unused-field" not in validated.out + validated.err
    assert unused(tmp_path, both, listed(10)) == []


def test_no_field_is_called_unused_while_there_is_room_for_another(tmp_path: Path) -> None:
    """A workspace of nine fields is told of none."""
    both = listed(9) + smart_groups([("A", 0)])
    assert unused(tmp_path, both, both) == []


def test_what_the_plan_deletes_uses_no_field_and_takes_no_room(tmp_path: Path) -> None:
    """A deleted field makes room for another, and the conditions of a deleted smart group are none."""
    live = listed(10) + smart_groups([("A", 0)])
    assert unused(tmp_path, live, listed(9) + "absent: {custom_fields: [{name: Field 9}]}\n") == []
    every = [f"custom_field/Field {n}" for n in range(10)]
    assert unused(tmp_path, live, listed(10) + "absent: {smart_groups: [{name: A}]}\n") == every


def test_the_hint_of_a_lint_says_what_to_do_and_where_to_read_more(tmp_path: Path) -> None:
    """It is the one that `lmsconf explain` prints, with the command for the rest of its text."""
    rule = RULES["lint/unused-field"]
    live = listed(10) + smart_groups([("A", 0)])
    plan = Project(tmp_path, f"people: [{{email: ann@acme.example}}]\n{live}").plan(live)
    assert {one.hint for one in plan.all_problems if one.code == rule.code} == {
        f"{rule.remedy} More: lmsconf explain lint/unused-field"
    }
    assert rule.remedy in " ".join(lmsconf(tmp_path, "explain", rule.code).out.split())


def test_a_field_that_a_condition_still_uses(tmp_path: Path) -> None:
    """Neither a field of live conditions that the plan replaces is told, nor one of the new conditions."""
    live, declared = (listed(10) + smart_groups([("A", n)]) for n in (1, 0))
    assert unused(tmp_path, live, declared) == [f"custom_field/Field {n}" for n in range(2, 10)]


def test_a_smart_group_without_declared_conditions_uses_the_fields_of_its_live_ones(tmp_path: Path) -> None:
    """A manifest may leave the conditions to the workspace."""
    live = listed(10) + smart_groups([("A", 0)])
    assert unused(tmp_path, live, listed(10) + "smart_groups: [{name: A}]\n") == [
        f"custom_field/{name}" for name in NINE_OTHERS
    ]
