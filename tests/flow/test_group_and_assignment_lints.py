"""What lints tell of managers, of assignments whose audience lies within another one, and of names; and where."""

from collections.abc import Iterable, Sequence
from pathlib import Path

import pytest
import yaml
from texts import text_of

from lmsconf.model.lint_codes import RULES

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
OPTIONAL = "it is optional, and mandatory for {}, which contains its audience"
LONGER = "its window hides nothing: that of {}, which contains its audience, is open longer"
NOBODY = "it is mandatory, and nobody who is active is in its audience"
BEFORE, EARLY, LATE, AFTER = (f"{year}-01-01T00:00:00Z" for year in (2995, 2996, 2997, 2998))
AUDIENCES: dict[str, dict[str, str | None]] = {
    "over": {
        "{group: Full, visible_until: '2020-01-01T00:00:00Z'}": "its window closed at 2020-01-01T01:00:00+01:00",
        "{user: bo@acme.example}": OPTIONAL.format("everyone"),
        "{everyone: true, mandatory: true}": None,
    },
    "archived": {"{user: old@acme.example}": "old@acme.example is archived", "{user: ann@acme.example}": None},
    "mandatory": {
        "{group: Void, mandatory: true}": NOBODY,
        "{group: New, mandatory: true}": NOBODY,
        "{group: Open, mandatory: true}": None,
        "{smart_group: Fresh, mandatory: true}": None,
        "{group: Emptied, mandatory: true}": NOBODY,
        "{group: Left, mandatory: true}": NOBODY,
        "{group: Full, mandatory: true}": None,
        "{group: Team, mandatory: true}": None,
        "{group: Others, mandatory: true}": None,
        "{smart_group: Swedes, mandatory: true}": None,
    },
    "optional": {"{group: Void}": None, "{group: New}": None, "{group: Left}": None},
    "members": {
        "{group: Team, mandatory: true}": None,
        "{user: ann@acme.example}": OPTIONAL.format("group/Team"),
        "{user: bo@acme.example}": None,
        "{group: Others}": None,
    },
    "conditions": {
        "{smart_group: Nordics, mandatory: true}": None,
        "{smart_group: Swedes}": OPTIONAL.format("smart_group/Nordics"),
        "{smart_group: High Swedes}": OPTIONAL.format("smart_group/Nordics"),
        "{smart_group: Low Nordics}": OPTIONAL.format("smart_group/Nordics"),
        "{smart_group: Odd Swedes}": None,
        "{smart_group: Any Swedes}": None,
    },
    "more conditions": {
        "{smart_group: Low Nordics, mandatory: true}": None,
        "{smart_group: High Swedes}": None,
        "{smart_group: Swedes}": None,
    },
    "system conditions": {
        "{smart_group: Odd Nordics, mandatory: true}": None,
        "{smart_group: Odd Swedes}": None,
        "{smart_group: Any Nordics, mandatory: true}": None,
        "{smart_group: Any Swedes}": OPTIONAL.format("smart_group/Any Nordics"),
    },
    "both": {
        "{smart_group: Nordics, mandatory: true}": None,
        "{everyone: true, mandatory: true}": None,
        "{smart_group: Swedes}": OPTIONAL.format("everyone"),
    },
    "weaker": {"everyone": None, "{group: Full, mandatory: true}": None},
    "weaker and longer": {"everyone": None, f"{{group: Full, mandatory: true, visible_from: '{EARLY}'}}": None},
    "until then": {
        f"{{everyone: true, mandatory: true, visible_from: '{EARLY}', visible_until: '{LATE}'}}": None,
        f"{{group: Full, visible_until: '{EARLY}'}}": OPTIONAL.format("everyone"),
        f"{{group: Team, visible_from: '{LATE}'}}": OPTIONAL.format("everyone"),
        f"{{group: Void, visible_until: '{BEFORE}'}}": None,
        f"{{group: Left, visible_from: '{AFTER}'}}": None,
        "{group: Others}": OPTIONAL.format("everyone"),
    },
    "within": {
        f"{{everyone: true, visible_from: '{EARLY}', visible_until: '{AFTER}'}}": None,
        f"{{group: Full, visible_from: '{EARLY}', visible_until: '{LATE}'}}": LONGER.format("everyone"),
        f"{{group: Team, visible_from: '{LATE}', visible_until: '{AFTER}'}}": LONGER.format("everyone"),
        f"{{group: Void, visible_from: '{BEFORE}', visible_until: '{LATE}'}}": None,
        f"{{group: Left, visible_from: '{LATE}', visible_until: '2999-01-01T00:00:00Z'}}": None,
        f"{{group: Others, visible_until: '{LATE}'}}": None,
        f"{{group: New, visible_from: '{LATE}'}}": None,
        f"{{group: Emptied, visible_from: '{EARLY}', visible_until: '{AFTER}'}}": None,
    },
    "open": {"everyone": None, f"{{group: Full, visible_from: '{EARLY}'}}": LONGER.format("everyone")},
}


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
    """What is told of each: over, for nobody, or overruled by an assignment to a larger audience; of others nothing."""
    contents = ", ".join(f"{{name: {name}}}" for name in AUDIENCES)
    entries = "".join(f"  - {{content: {name}, assign_to: [{', '.join(of)}]}}\n" for name, of in AUDIENCES.items())
    it = Project(tmp_path, f"{MANY}content: [{contents}]\n", "timezone: Europe/Stockholm\n")
    told = [
        one.message
        for one in it.plan(GROUPS + entries).all_problems
        if one.code.startswith("lint/") and one.code.partition("/")[2] in CODES
    ]
    assert sorted(told) == sorted(
        f"content_target/{name} -> {_audience(item)}: {message}"
        for name, of in AUDIENCES.items()
        for item, message in of.items()
        if message
    )


def _audience(item: str) -> str:
    """The address of an audience under `assign_to`."""
    said = yaml.safe_load(item)
    key, name = next(iter(said.items())) if isinstance(said, dict) else (said, None)
    return key if key == "everyone" else f"{key}/{name}"


# A lint of plans: the custom fields that no smart group uses, told once all ten of a workspace are taken.


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


def test_the_hint_of_a_lint_says_what_to_do_and_where_to_read_more(tmp_path: Path) -> None:
    """It is the one that `lmsconf explain` prints, with the command for the rest of its text."""
    rule = RULES["lint/unused-field"]
    live = listed(10) + smart_groups([("A", 0)])
    plan = Project(tmp_path, f"people: [{{email: ann@acme.example}}]\n{live}").plan(live)
    assert {one.hint for one in plan.all_problems if one.code == rule.code} == {
        f"{rule.remedy} More: lmsconf explain lint/unused-field"
    }
    assert rule.remedy in " ".join(lmsconf(tmp_path, "explain", rule.code).out.split())
