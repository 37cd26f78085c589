"""What plan, apply, undo and a fleet ask of a service that is known: as many requests as when nothing was assumed.

Every key of the dialect is set: no call is tried, and nothing is read before or after it beside what the plan needs.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest
from fleet.served_fleet import ServedFleet, served

from integrity.served_project import ServedProject, staged
from lmsconf.api.spec.operations import load_api_description

__all__ = ["served"]
KNOWN = {
    **load_api_description().names,
    **{key: behaviour["default"] for key, behaviour in load_api_description().behaviours.items()},
}
OPTIONS = f"timezone: UTC\nguards: off\npeople: {{create: true}}\nsettle: 0s\ndialect: {json.dumps(KNOWN)}\n"
SEED = """\
custom_fields:
- {name: Department, type: CHOICE, choices: [Sales, Engineering]}
- {name: Skills, type: MULTI_SELECT, choices: [SQL, Go], description: What}
- {name: Room, type: TEXT}
people:
- {email: anna@acme.example, admin: true}
- {email: bo@acme.example, answers: {Department: Sales, Skills: [SQL], Room: "7"}, metadata: {cost: "1"}}
- {email: cy@acme.example, answers: {Room: "8"}}
- {email: di@acme.example}
- {email: ed@acme.example}
groups:
- {name: Coaches, members: [bo@acme.example], managers: [anna@acme.example]}
- {name: Guides, members: [cy@acme.example], managers: [anna@acme.example]}
smart_groups: [{name: Sellers, conditions: [{field: Department, choices: [Sales]}], managers: [anna@acme.example]}]
content: [{name: Intro}, {name: Safety}]
content_targets: [{content: Intro, assign_to: [{group: Coaches}, {group: Guides}]}]
"""
DECLARED = """\
custom_fields: [{name: Skills, description: null, choices: [SQL, Go, Rust]}]
groups:
- {name: Trainers, previously: [Coaches], members: {include: [di@acme.example, ed@acme.example]},
   managers: {include: [cy@acme.example]}}
- {name: Guides, members: {include: [di@acme.example]}, managers: {include: [bo@acme.example]}}
smart_groups: [{name: Sellers, managers: {include: [di@acme.example, bo@acme.example]}}]
users:
- {email: bo@acme.example, answers: {Department: Engineering, Skills: [Go], Room: null}, metadata: {cost: "2"}}
- {email: cy@acme.example, answers: {Department: Sales}, custom_archive_date: 2040-01-01}
- {email: di@acme.example, manager: true, answers: {Room: "9"}}
content_targets:
- {content: Intro, assign_to: [{group: Trainers, mandatory: true, visible_until: 2040-06-30}, {group: Guides}]}
- {content: Safety, assign_to: [everyone, {group: Guides, visible_from: 2040-01-01}]}
"""
"""A change that rests on every key that manifests rest on, each more than once where that is possible."""
FIELD = "{name: Department, type: CHOICE, choices: [Sales, Support]}"
PLAN = {
    "users.list": 1, "users.extended-info": 1, "custom-fields.list": 1, "manual-groups.list": 2, "smart-groups.list": 2,
    "smart-groups.get": 2, "content.list": 1, "content-targets.list": 4,
}  # fmt: skip
CALLS = {
    "custom-fields.replace": 1, "manual-groups.rename": 1, "manual-groups.add-members": 2,
    "manual-groups.add-managers": 2, "smart-groups.add-managers": 1, "users.update-custom-field-choice": 3,
    "users.update-metadata": 1, "users.set-custom-archived-date": 1, "user-access.make-manager": 1,
    "content-targets.create": 3,
}  # fmt: skip
APPLY = Counter(CALLS) + Counter({
    "users.list": 3, "users.extended-info": 3, "custom-fields.list": 3, "manual-groups.list": 6, "smart-groups.list": 6,
    "smart-groups.get": 5, "content.list": 3, "content-targets.list": 10,
})  # fmt: skip
"""With its plan, which it makes again, the comparison before the first call, and the verification."""
SAVED = Counter(APPLY) - Counter(PLAN)
UNDO = {
    "users.list": 1, "users.get": 1, "users.extended-info": 1, "custom-fields.list": 1, "manual-groups.list": 2,
    "smart-groups.list": 2, "smart-groups.get": 2, "content.list": 1, "content-targets.list": 2, "analytics.results": 4,
}  # fmt: skip
UNDONE = {
    "users.list": 2, "users.get": 2, "users.extended-info": 2, "custom-fields.list": 2, "manual-groups.list": 4,
    "smart-groups.list": 4, "smart-groups.get": 3, "content.list": 2, "content-targets.list": 5,
    "custom-fields.replace": 1, "manual-groups.rename": 1, "manual-groups.remove-member": 3,
    "manual-groups.remove-manager": 2, "smart-groups.remove-manager": 2, "users.update-custom-field-choice": 3,
    "users.update-metadata": 1, "users.set-custom-archived-date": 1, "user-access.make-manager": 1,
    "content-targets.create": 1, "content-targets.delete": 2,
}  # fmt: skip
MEMBER = {
    "users.list": 2, "users.extended-info": 2, "custom-fields.list": 3, "manual-groups.list": 4, "smart-groups.list": 4,
    "custom-fields.create": 1, "manual-groups.add-members": 1, "users.update-custom-field-choice": 2,
}  # fmt: skip
"""What an apply of a fleet asks each workspace."""


def asked(stage: ServedProject, *words: str, code: int = 0) -> Counter[str]:
    """The operations that one command asks for."""
    stage.sandbox.log.clear()
    ran = stage(*words)
    assert ran.code == code, ran.out + ran.err
    return Counter(one.operation or "" for one in stage.sandbox.log)


@pytest.fixture
def stage(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[ServedProject]:
    with staged(tmp_path, SEED, monkeypatch, OPTIONS) as stage:
        stage.write(DECLARED)
        yield stage


@pytest.mark.parametrize("verify", ["all", "touched"])
def test_a_known_service_is_asked_as_before_assumptions_were_tried(stage: ServedProject, verify: str) -> None:
    """A plan, an apply, the plan of its undo, and the apply of that: so many requests, as before there were tries."""
    assert asked(stage, "plan") == PLAN
    assert asked(stage, "apply", "--auto-approve", "--verify", verify) == APPLY
    undo = str(stage.root / "undo.json")
    assert asked(stage, "plan", "--undo", "latest", "--out", undo) == UNDO
    assert asked(stage, "apply", undo, "--verify", verify) == UNDONE


def test_a_saved_plan_asks_as_before(stage: ServedProject) -> None:
    """The apply of a plan file reads no more than what its plan and its verification read."""
    plan = str(stage.root / "plan.json")
    stage("plan", "--out", plan)
    assert asked(stage, "apply", plan) == SAVED


def test_a_service_that_is_not_known_is_asked_more(stage: ServedProject) -> None:
    """Without the dialect the same apply tries: the counts above would show it."""
    stage.options(OPTIONS[: OPTIONS.index("dialect:")])
    assert asked(stage, "apply", "--auto-approve").total() > APPLY.total()


def test_a_fleet_asks_each_known_service_as_before(served: ServedFleet) -> None:
    """Each workspace by itself: an apply of its saved plan, and nothing that is tried."""
    served.write("lmsconf.yaml", served.project(OPTIONS.replace("settle: 0s\n", "")))
    group = "groups: [{name: Team, members: {include: [p2@acme.example]}}]\n"
    answers = "".join(f"- {{email: p{number}@acme.example, answers: {{Department: Sales}}}}\n" for number in (1, 2))
    served.write("manifests/a.yaml", f"custom_fields: [{FIELD}]\n{group}users:\n{answers}")
    for name in ("north", "south"):
        served.serve(name)
        for number in range(4):
            person = {"email": f"p{number}@acme.example", "firstName": "A", "lastName": "B", "language": "en"}
            served.ask(name, "POST", "/users", person)
        served.ask(name, "POST", "/groups", {"name": "Team", "memberIds": ["u-1"]})
    assert served.plan_served() == 0
    for service in served.services.values():
        service.log.clear()
    assert served.apply()[0] == 0
    counts = {name: Counter(one.operation for one in service.log) for name, service in served.services.items()}
    assert counts == {"north": MEMBER, "south": MEMBER}
