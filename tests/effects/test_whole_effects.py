"""What a plan does to people where the service tells odd things of them: every row, group and reason."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from flow.altered_service import Edit, connected
from flow.project import Project
from manifest.cases import Case, cases

from lmsconf.apply.applier import Applier
from lmsconf.workspace.project_manifests import load_manifests

SEED = """
people:
  - {email: ann@x.example, answers: {Country: SE, Level: High}}
  - {email: bo@x.example, answers: {Country: FI, Level: High}}
  - {email: cy@x.example, answers: {Country: SE, Level: Low}}
  - {email: dan@x.example, answers: {Country: DE}}
  - {email: old@x.example, answers: {Country: SE}, archived: true}
custom_fields:
  - {name: Country, type: CHOICE, choices: [SE, FI, DE]}
  - {name: Level, type: MULTI_SELECT, choices: [High, Low]}
  - {name: Badge, type: TEXT}
groups:
  - {name: Team, members: [ann@x.example, bo@x.example, old@x.example]}
  - {name: Crew, members: [cy@x.example]}
smart_groups:
  - {name: Nordics, conditions: [{field: Country, choices: [SE, FI]}]}
  - {name: High Swedes, conditions: [{field: Country, choices: [SE]}, {field: Level, choices: [High]}]}
  - {name: Odd, conditions: [{field: Country, choices: [SE], system_condition: IS_ODD}]}
content: [{name: A}, {name: B}, {name: C}, {name: D}, {name: E}, {name: F}]
content_targets:
  - {content: A, assign_to: [{group: Team}]}
  - {content: B, mandatory: true, assign_to: [{smart_group: Nordics}]}
  - {content: C, assign_to: [{smart_group: High Swedes}, {user: dan@x.example}]}
  - {content: D, assign_to: [everyone]}
  - {content: E, assign_to: [{smart_group: Odd}]}
  - {content: F, assign_to: [{group: Crew}]}
"""
OPTIONS = "timezone: UTC\nguards: off\npeople: {create: true}\n"
CASES = cases(Path(__file__).with_name("whole_effects.txt"))


def _person(position: int, **more: object) -> Edit:
    return lambda said: said["users"][position].update(more)


ODD: dict[str, dict[str, Edit]] = {
    "a member more than the conditions give": {
        "/smart-groups/sg-1": lambda said: said.get("members", []).append("u-4")
    },
    "an answer of another shape": {"/users": _person(0, customFields={"Country": 7, "Level": ["High"]})},
    "an archived account with the e-mail of an active one": {"/users": _person(4, email="Ann@x.example")},
    "a smart group without its members": {"/smart-groups/sg-3": lambda said: said.pop("members")},
    "another smart group without its members": {"/smart-groups/sg-1": lambda said: said.pop("members", None)},
    "a condition on a text": {"/smart-groups/sg-1": lambda said: said["conditions"][0].update(customFieldId="f-3")},
    "a condition with a long name": {
        "/smart-groups/sg-3": lambda said: said["conditions"][0].update(systemCondition="IS_" + "X" * 60)
    },
    "a condition without choices": {"/smart-groups/sg-1": lambda said: said["conditions"][0].pop("choiceIds")},
}


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.title)
def test_each_effect_of_a_plan(tmp_path: Path, case: Case) -> None:
    """Who gains and loses what, which groups change, and why something is not known.

    The first line of a case may name an oddity of the workspace.
    """
    it = Project(tmp_path, SEED, OPTIONS)
    it.write(case.text)
    settings = it.settings
    with connected(it, ODD.get(case.text.partition("\n")[0].removeprefix("# "), {})) as connection:
        made = Applier(settings=settings, connection=connection)
        effects = made.plan(load_manifests(settings), replace(settings.policy, people=True)).effects
    lines = [
        f"{one.email} {one.content}: {one.before} -> {one.after}{' for a shorter time' * one.shortened}"
        f" by {' and '.join(one.causes)}"
        for one in effects.rows or ()
    ]
    lines += [f"{one.content}: {one.before} -> {one.after} {one.basis.value}" for one in effects.contents]
    lines += [
        f"{one.address}: {one.before} -> {one.after}, +{one.join} -{one.leave} {one.basis.value}"
        for one in effects.groups
    ]
    calibration = f"{effects.calibration.exact} of {effects.calibration.groups} smart groups are as predicted"
    assert "".join(f"{line}\n" for line in (*lines, calibration, *effects.reasons)) == case.told
