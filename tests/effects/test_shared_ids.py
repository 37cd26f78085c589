"""Whose a live assignment is where groups, smart groups and people share an id: plan, effects and `keep` agree."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from flow.altered_service import Edit, plan_altered
from flow.project import Project

from lmsconf.errors import ProblemsFound

EVERYBODY = ("ann", "bo", "dan", "eve", "fay", "gus")
SEED = f"""
custom_fields: [{{name: Country, type: CHOICE, choices: [SE, NO]}}]
people:
  - {{email: ann@x.example}}
  - {{email: bo@x.example}}
  - {{email: dan@x.example, answers: {{Country: SE}}}}
  - {{email: eve@x.example, id: x-1}}
  - {{email: fay@x.example, answers: {{Country: NO}}}}
  - {{email: gus@x.example}}
groups:
  - {{name: Sales, id: x-1, members: [ann@x.example, bo@x.example]}}
  - {{name: Other group, members: [gus@x.example]}}
smart_groups:
  - {{name: Nordics, id: s-1, conditions: [{{field: Country, choices: [SE]}}]}}
  - {{name: Other smart group, conditions: [{{field: Country, choices: ["NO"]}}]}}
content: [{{name: Old}}, {{name: New}}]
participations: [{", ".join(f"{{user: {who}@x.example, content: Old, state: IN_PROGRESS}}" for who in EVERYBODY)}]
content_targets: [{{content: Old, assign_to: [OTHER, AUDIENCE]}}]
"""
AUDIENCES = {
    "group": ("{group: Sales}", "Sales", "{group: Other group}", ["ann", "bo"]),
    "smart_group": ("{smart_group: Nordics}", "Nordics", "{smart_group: Other smart group}", ["dan"]),
    "user": ("{user: eve@x.example}", "eve@x.example", "{user: gus@x.example}", ["eve"]),
}
WORDS = {"group": "GROUP", "smart_group": "smartGroup", "user": "Users"}
TOLD = ("words", "like others", "label", "label without types")
REPLACING = "content_targets: [{content: New, assign_to: [AUDIENCE], replaces: {content: Old, then: remove}KEEP}]"
KEEP = ", keep: {in_progress: true, until: 2090-12-31}"


def _shown(kind: str, told: str) -> dict[str, Edit]:
    """A service whose smart group has the id of a group and of a person; nobody has that of the other assignment."""

    def targets(said: dict[str, Any]) -> None:
        for target in said["targets"]:
            target["targetId"] = target["targetId"].replace("s-1", "x-1")
            is_shared = target["targetId"] == "x-1"
            target["targetType"] = (
                WORDS[kind] if told == "words" else "new" if is_shared or told == "like others" else "T"
            )
            target["name"] = AUDIENCES[kind][1] if is_shared and told.startswith("label") else ""
            if told == "label without types":
                del target["targetType"]

    def smart_groups(said: dict[str, Any]) -> None:
        for group in said["smartGroups"]:
            group["smartGroupId"] = group["smartGroupId"].replace("s-1", "x-1")

    return {"/content/targets": targets, "/smart-groups": smart_groups}


PATHS = {"/smart-groups/x-1": "/smart-groups/s-1"}


def _made(root: Path, kind: str, keep: str) -> tuple[Project, str]:
    to, _, other, _ = AUDIENCES[kind]
    it = Project(root, SEED.replace("OTHER", other).replace("AUDIENCE", to), "timezone: UTC\n")
    return it, REPLACING.replace("AUDIENCE", to).replace("KEEP", keep)


@pytest.mark.parametrize("told", TOLD)
@pytest.mark.parametrize("kind", AUDIENCES)
def test_an_assignment_is_for_one_audience_in_every_part_of_a_plan(tmp_path: Path, kind: str, told: str) -> None:
    """Whose it is follows from words in its type, from others of its type, or from its label.

    The plan deletes that assignment, those of its people who are in progress keep the content, and without `keep` it
    is they who lose it.
    """
    people = AUDIENCES[kind][3]
    it, manifests = _made(tmp_path, kind, KEEP)
    plan = plan_altered(it, manifests, _shown(kind, told), PATHS)
    assert not [one.message for one in plan.all_problems if one.is_error]
    addresses = {one.address.name: one.action.value for one in plan.changes}
    name = f"{kind}/{AUDIENCES[kind][1]}"
    kept = {f"Old -> user/{who}@x.example": "update" if kind == "user" else "create" for who in people}
    assert addresses == {f"New -> {name}": "create", f"Old -> {name}": "delete"} | kept
    plan = plan_altered(it, manifests.replace(KEEP, ""), _shown(kind, told), PATHS)
    assert plan.effects is not None
    lost = {one.content: (one.counts.lose, one.basis.value) for one in plan.effects.contents}
    assert lost == {"Old": (len(people), "exact"), "New": (0, "exact")}


@pytest.mark.parametrize("kind", AUDIENCES)
def test_an_assignment_that_nothing_tells_apart_is_left_alone(tmp_path: Path, kind: str) -> None:
    """It has no label, and its type is that of no other: the plan names all that it may be for, and sends nothing."""
    it, _ = _made(tmp_path, kind, "")
    manifests = f"content_targets: [{{content: Old, mandatory: true, assign_to: [{AUDIENCES[kind][0]}]}}]"
    with pytest.raises(ProblemsFound) as raised:
        plan_altered(it, manifests, _shown(kind, "nothing"), PATHS)
    [problem] = [one for one in raised.value.problems if one.is_error]
    assert problem.code == "content-target/audience"
    assert "group/Sales and smart_group/Nordics and user/eve@x.example" in problem.message
