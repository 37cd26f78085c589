"""What lints tell of managers, of assignments whose audience lies within another one, and of names; and where."""

from collections.abc import Iterable, Sequence
from pathlib import Path

import pytest
import yaml
from texts import text_of

from .project import Project
from .shell import lmsconf

SEED = """
people: [{email: ann@acme.example}, {email: bo@acme.example}]
custom_fields: [{name: Country, type: CHOICE, choices: [SE, FI, DE]}]
groups: [{name: Coaches, managers: [ann@acme.example, bo@acme.example]}]
content: [{name: GDPR}]
"""

MANY = text_of(__file__, "group_and_assignment_lints_many.yaml")
GROUPS = text_of(__file__, "group_and_assignment_lints_groups.yaml")
CODES = ("closed-window", "archived-assignee", "empty-mandatory", "contradicting-assignments")


def lints(folder: Path, manifests: str, *only: str, seed: str = SEED) -> list[tuple[str, str]]:
    """The address and the code of each finding of a plan. only: what the plan is limited to."""
    plan = Project(folder, seed).plan(manifests, only=only)
    return [(str(one.address), one.code) for one in plan.all_problems if one.code.startswith("lint/")]


def test_assignments_of_two_contents_with_one_name_are_not_compared(tmp_path: Path) -> None:
    """One content can be mandatory for everyone and another one of that name optional for a group."""
    manifests = (
        "content_targets:\n  - {content: {name: GDPR, id: c-1}, mandatory: true, assign_to: [everyone]}\n"
        "  - {content: {name: GDPR, id: c-2}, assign_to: [{group: Coaches}]}\n"
    )
    seed = SEED.replace("{name: GDPR}", "{name: GDPR, id: c-1}, {name: GDPR, id: c-2}")
    assert lints(tmp_path, manifests, seed=seed) == []


def test_a_plan_of_a_part_tells_no_finding_about_the_rest(tmp_path: Path) -> None:
    """With `--only`, findings about other resources are left out."""
    manifests = "groups: [{name: “Coaches”}, {name: “Others”}]"
    assert lints(tmp_path, manifests, "group/“Others”") == [("group/“Others”", "lint/suspicious-name")]


def test_names_that_no_manifest_gives_are_not_suspicious(tmp_path: Path) -> None:
    """Content has its name from the workspace, and a person is named by an e-mail: only new names are told."""
    seed = SEED.replace("GDPR", "“GDPR”").replace("bo@acme.example", "b\u043e@acme.example")
    manifests = (
        "groups: [{name: “Others”}]\n"
        "users: [{email: b\u043e@acme.example, first_name: Bo}]\n"
        "content_targets: [{content: “GDPR”, assign_to: [everyone]}]\n"
    )
    assert lints(tmp_path, manifests, seed=seed) == [("group/“Others”", "lint/suspicious-name")]


def test_every_assignment_is_looked_at_beside_those_of_its_content(tmp_path: Path) -> None:
    """What is told of each: over, for nobody, or overruled by an assignment to a larger audience; of others nothing.

    The comment beside an audience in the manifest is what is told of it.
    """
    contents = ", ".join(f"{{name: {one['content']}}}" for one in yaml.safe_load(GROUPS)["content_targets"])
    it = Project(tmp_path, f"{MANY}content: [{contents}]\n", "timezone: Europe/Stockholm\n")
    codes = {f"lint/{code}" for code in CODES}
    told = [one.message for one in it.plan(GROUPS).all_problems if one.code in codes]
    assert sorted(told) == sorted(line.partition("  # ")[2] for line in GROUPS.splitlines() if "  # " in line)


# A lint of plans: the custom fields that no smart group uses, told once all ten of a workspace are taken.


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
    ("number", "used", "expected"),
    [(10, [0], [f"Field {n}" for n in range(1, 10)]), (10, range(10), []), (9, [0], [])],
    ids=["one is used", "all are used", "there is room for another"],
)
def test_a_field_that_no_condition_uses(
    tmp_path: Path, number: int, used: Sequence[int], expected: Sequence[str]
) -> None:
    """It is told once all ten are taken, by a plan alone, and only if the plan reads the smart groups."""
    both = listed(number) + smart_groups((f"Group {n}", n) for n in used)
    assert unused(tmp_path, both, both) == [f"custom_field/{name}" for name in expected]
    validated = lmsconf(tmp_path, "validate")
    assert "unused-field" not in validated.out + validated.err
    assert unused(tmp_path, both, listed(number)) == []
