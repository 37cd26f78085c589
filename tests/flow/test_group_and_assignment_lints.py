"""What lints tell of managers, of assignments whose audience lies within another one, and of names; and where."""

from __future__ import annotations

from pathlib import Path

import pytest

from .project import Project

SEED = """
people: [{email: ann@acme.example}, {email: bo@acme.example}]
custom_fields: [{name: Country, type: CHOICE, choices: [SE, FI, DE]}]
groups: [{name: Coaches, managers: [ann@acme.example, bo@acme.example]}]
content: [{name: GDPR}]
"""


def lints(folder: Path, manifests: str, *only: str, seed: str = SEED) -> list[tuple[str, str]]:
    """The address and the code of each finding of a plan. only: what the plan is limited to."""
    plan = Project(folder, seed).plan(manifests, only=only)
    return [(str(one.address), one.code) for one in plan.all_problems if one.code.startswith("lint/")]


@pytest.mark.parametrize(
    ("excluded", "expected"),
    [("ann@acme.example", []), ("ann@acme.example, bo@acme.example", [("group/Coaches", "lint/no-active-manager")])],
)
def test_a_group_that_everybody_manages_may_lose_its_last_manager(
    tmp_path: Path, excluded: str, expected: list[tuple[str, str]]
) -> None:
    """It is told where all people who are live are taken out, and not where one of them stays."""
    assert lints(tmp_path, f"groups: [{{name: Coaches, managers: {{exclude: [{excluded}]}}}}]") == expected


@pytest.mark.parametrize(
    ("choices", "is_within"),
    [("SE", True), ("SE, DE", False)],
)
def test_a_narrower_smart_group_is_overruled_by_a_wider_one(tmp_path: Path, choices: str, is_within: bool) -> None:
    """A smart group whose conditions imply those of another one lies within it; the other one is not told."""
    found = lints(
        tmp_path,
        "smart_groups:\n"
        "  - {name: Nordics, conditions: [{field: Country, choices: [SE, FI]}]}\n"
        f"  - {{name: Swedes, conditions: [{{field: Country, choices: [{choices}]}}]}}\n"
        "content_targets:\n"
        "  - {content: GDPR, assign_to: [{smart_group: Nordics, mandatory: true}, {smart_group: Swedes}]}\n",
    )
    contradiction = ("content_target/GDPR -> smart_group/Swedes", "lint/contradicting-assignments")
    assert [one for one in found if one[1] == contradiction[1]] == [contradiction] * is_within


@pytest.mark.parametrize(
    ("until", "is_within"),
    [("'2997-01-01T00:00:00Z'", True), ("'2999-01-01T00:00:00Z'", False), ("", False)],
    ids=["earlier", "later", "open"],
)
def test_a_window_that_ends_before_that_of_everyone_hides_nothing(tmp_path: Path, until: str, is_within: bool) -> None:
    """Where everyone has the content for longer, the end of a window for a group has no effect."""
    end = f", visible_until: {until}" if until else ""
    found = lints(
        tmp_path,
        "content_targets:\n  - content: GDPR\n    assign_to:\n"
        "      - {everyone: true, visible_until: '2998-01-01T00:00:00Z'}\n"
        f"      - {{group: Coaches{end}}}\n",
    )
    contradiction = ("content_target/GDPR -> group/Coaches", "lint/contradicting-assignments")
    assert found == [contradiction] * is_within


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
