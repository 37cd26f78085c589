"""What cannot be taken back: answers that go with a field or a choice, by person, and what each change says of it."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from texts import text_of

from lmsconf.errors import ExitCode
from lmsconf.model.plan import GuardResult, Plan

from .altered_service import Edit, plan_against, planned
from .project import Project
from .shell import lmsconf

SEED = text_of(__file__, "data_loss_seed.yaml")


DROPS = "custom_fields: [{name: Skills, choices: [SQL]}]"
DELETES = "absent: {custom_fields: [Skills]}"


@pytest.fixture
def it(tmp_path: Path) -> Project:
    return Project(tmp_path, SEED, "")


def guard(plan: Plan, name: str) -> GuardResult:
    return next(one for one in plan.guards if one.name == name)


def undone(plan: Plan) -> Mapping[str, tuple[str, str | None]]:
    return {str(one.address): (one.undo.level.value, one.undo.reason) for one in plan.changes}


@pytest.mark.sampled
@pytest.mark.parametrize(
    ("manifests", "people"),
    [
        ("absent: {custom_fields: [Badge]}", 2),
        ("absent: {custom_fields: [Dept]}", 2),
        ("absent: {custom_fields: [Badge, Skills]}", 3),
        ("absent: {custom_fields: [Empty]}", 0),
        (DROPS, 2),
        ("custom_fields: [{name: Skills, choices: {exclude: [SQL]}}]", 1),
        ("custom_fields: [{name: Skills, choices: [{name: Golang, previously: [Go]}, SQL]}]", 0),
        ("custom_fields: [{name: Dept, choices: [HR]}]\nabsent: {custom_fields: [Badge]}", 2),
        (f"{DROPS}\nusers: [{{email: c@acme.example, answers: {{Skills: SQL}}}}]", 1),
        (f"{DROPS}\nusers: [{{email: c@acme.example, answers: {{Badge: '9'}}}}]", 2),
    ],
    ids=[
        *("text", "choices", "two fields", "nobody", "choice", "excluded", "renamed", "both", "moved before"),
        "another answer",
    ],
)
def test_answers_are_counted_by_person(it: Project, manifests: str, people: int) -> None:
    """Everybody counts once, archived people too; who gets another answer before the choice goes loses none."""
    found = guard(it.plan(manifests), "answers")
    assert (found.total, found.tripped, found.allow) == (people, people > 0, f"answers={people}" if people else None)


def test_apply_stops_before_answers_are_lost(it: Project) -> None:
    """Exit 4 and nothing sent, until exactly that many people are allowed to lose answers."""
    it.write("absent: {custom_fields: [Badge]}")
    ran = lmsconf(it.root, "apply", "--auto-approve")
    assert ran.code == ExitCode.BLOCKED
    assert "the answers of 2 people, and the limit is 0" in ran.err
    assert lmsconf(it.root, "apply", "--auto-approve", "--allow", "answers=1").code == ExitCode.BLOCKED
    assert "Badge" in it.fields()
    assert lmsconf(it.root, "apply", "--auto-approve", "--allow", "answers=2").code == ExitCode.OK
    assert "Badge" not in it.fields()


def unlisted(people: list[dict[str, object]]) -> None:
    for one in people:
        del one["customFields"]


def renamed(people: list[dict[str, object]]) -> None:
    for one in people:
        one["customFields"] = {f"field {key}": value for key, value in dict(one["customFields"]).items()}  # type: ignore[call-overload]  # a map


def opaque(people: list[dict[str, object]]) -> None:
    for one in people:
        one["customFields"] = {key: {"blob": 1} for key in dict(one["customFields"])}  # type: ignore[call-overload]  # a map


def elsewhere(people: list[dict[str, object]]) -> None:
    for one in people:
        one["customFields"] = "see elsewhere"


def rechosen(people: list[dict[str, object]]) -> None:
    for one in people:
        one["customFields"] = {key: ["Rust"] for key in dict(one["customFields"])}  # type: ignore[call-overload]  # a map


@pytest.mark.sampled
@pytest.mark.parametrize(
    ("edit", "manifests", "total", "way_back"),
    [
        (unlisted, DELETES, None, "the field comes back with another id, and the answers were not read"),
        (renamed, DELETES, None, "the field comes back with another id, and the answers were not read"),
        (
            elsewhere,
            DELETES,
            None,
            "the field comes back with another id, and without the answers that could not be read",
        ),
        (
            opaque,
            DROPS,
            None,
            "deleted choices come back with other ids, and without the answers that could not be read",
        ),
        (
            rechosen,
            DROPS,
            None,
            "deleted choices come back with other ids, and without the answers that could not be read",
        ),
        (opaque, DELETES, 2, "the field comes back with another id, and with people's answers"),
    ],
)
def test_what_cannot_be_read_is_not_nobody(
    it: Project, edit: Edit, manifests: str, total: int | None, way_back: str
) -> None:
    """Answers in a shape that nobody knows make the number unknown, and only `answers=unknown` lets that pass.

    Whoever answered a field that goes as a whole loses the answer, whatever it says.
    """
    it.write(manifests)
    plan = planned(it, edit)
    found = guard(plan, "answers")
    number = "unknown" if total is None else total
    assert (found.total, found.tripped, found.allow) == (total, True, f"answers={number}")
    assert ("custom-field/answers-unknown" in [one.code for one in plan.all_problems]) is (total is None)
    assert undone(plan) == {"custom_field/Skills": ("none" if total is None else "partial", way_back)}


def test_answers_that_a_snapshot_lacks_are_not_nobodys(it: Project) -> None:
    """Of a person whose answers could not be read when it was taken, it is not known whether they are lost."""

    def unread(snapshot: dict[str, Any]) -> None:
        people = {one["id"]: one for one in snapshot["user"]}
        del people["u-b"]["answers"]

    found = guard(plan_against(it, DELETES, unread), "answers")
    assert (found.total, found.allow) == (None, "answers=unknown")


def test_every_change_says_what_of_it_can_be_taken_back(it: Project) -> None:
    """All of a change in place, and of a creation; of what is deleted, not the id or the progress.

    Answers that were read come back.
    """
    plan = it.plan(
        "groups: [{name: New}]\nusers: [{email: d@acme.example, answers: {Dept: HR}}]\n"
        "custom_fields: [{name: Skills, choices: [SQL]}, {name: Dept, hidden: true}]\n"
        "absent: {groups: [Old], custom_fields: [Badge]}"
    )
    assert undone(plan) == {
        "custom_field/Badge": ("partial", "the field comes back with another id, and with people's answers"),
        "custom_field/Dept": ("full", None),
        "custom_field/Skills": ("partial", "deleted choices come back with other ids, and with people's answers"),
        "group/New": ("full", None),
        "group/Old": ("partial", "the group comes back with another id"),
        "content_target/Intro -> group/Old": (
            "partial",
            "the assignment comes back with another id and without progress",
        ),
        "user/d@acme.example": ("full", None),
    }


@pytest.mark.sampled
@pytest.mark.parametrize(
    ("more", "manifests", "address", "undo"),
    [
        (
            "groups: [{name: Old}, {name: OLD}]",
            "absent: {groups: [Old]}",
            "group/Old",
            ("none", "another resource has its name, or one that looks the same, so that it cannot be created again"),
        ),
        (
            "groups: [{name: Old}, {name: OLD}]",
            "groups: [{name: New, previously: [Old]}]",
            "group/New",
            ("full", None),
        ),
        (
            "groups: [{name: Old, id: g-1}, {name: Old, id: g-2}]",
            "groups: [{name: New, id: g-1}]",
            "group/New",
            ("partial", "another resource has its earlier name, so that it keeps the new one"),
        ),
        (
            "custom_fields: [{name: Size, type: CHOICE, choices: [m, M]}]",
            "absent: {custom_fields: [Size]}",
            "custom_field/Size",
            ("none", "two of its choices look the same, so that it cannot be created again"),
        ),
        (
            "custom_fields: [{name: Size, type: CHOICE, choices: [m, M]}]",
            "custom_fields: [{name: Size, hidden: true}]",
            "custom_field/Size",
            ("full", None),
        ),
    ],
    ids=["deleted", "renamed", "renamed from a twin", "choices deleted", "choices stay"],
)
def test_a_plan_says_which_names_cannot_be_given_again(
    tmp_path: Path, more: str, manifests: str, address: str, undo: tuple[str, str | None]
) -> None:
    """A resource is not created again, and gets no earlier name back, where another name stands in the way."""
    assert undone(Project(tmp_path, more, "").plan(manifests))[address] == undo


def test_a_change_of_what_refers_to_a_lost_field_cannot_be_undone_wholly(tmp_path: Path) -> None:
    """A smart group with conditions on a field that cannot come back: if deleted, not at all; if changed, in part."""
    seed = """
custom_fields: [{name: Dept, type: TEXT}, {name: Size, type: CHOICE, choices: [m, M]}]
smart_groups:
  - {name: Few, conditions: [{field: Size, choices: [m]}]}
  - {name: Many, conditions: [{field: Size, system_condition: IS_ANY}]}
"""
    plan = Project(tmp_path, seed, "").plan(
        "smart_groups: [{name: Many, conditions: [{field: Dept, system_condition: IS_ANY}]}]\n"
        "absent: {custom_fields: [Size], smart_groups: [Few]}"
    )
    reason = "it refers to custom_field/Size, which cannot come back"
    assert undone(plan) == {
        "custom_field/Size": ("none", "two of its choices look the same, so that it cannot be created again"),
        "smart_group/Few": ("none", reason),
        "smart_group/Many": ("partial", reason),
    }


def test_nobodys_answers_are_read_for_nothing(tmp_path: Path) -> None:
    """A plan that destroys none asks how many people there are, and does not list them."""
    it = Project(tmp_path, SEED, "dialect: {paging.limit: 2}\n")

    def pages(manifests: str, **more: object) -> int:
        it.plan(manifests, **more)
        return sum(call.operation == "users.list" for call in it.calls)

    assert pages("custom_fields: [{name: Dept, hidden: true, choices: [Sales, HR, New]}]") == 1
    assert pages(DELETES) > 1
    assert pages(DELETES, additive=True) == 1


@pytest.mark.parametrize(("count", "trips"), [(6, False), (7, True)])
def test_changes_in_place_have_a_share_of_their_kind(tmp_path: Path, count: int, trips: bool) -> None:
    """Three of ten resources of a kind may change; creations and deletions count elsewhere."""
    seed = "groups: [" + ", ".join(f"{{name: G{n}}}" for n in range(20)) + "]\npeople: [{email: a@acme.example}]\n"
    it = Project(tmp_path, seed, "")
    changed = ", ".join(f"{{name: G{n}, members: [a@acme.example]}}" for n in range(count))
    found = guard(it.plan(f"groups: [{changed}, {{name: New}}]"), "updates")
    assert (found.total, found.tripped, dict(found.limit)) == (count, trips, {"count": 200, "share": 0.3})
