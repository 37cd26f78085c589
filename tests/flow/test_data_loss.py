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
