"""Deletion is said: what stands under absent, what is owned and not declared, and what goes with its group."""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import date
from pathlib import Path
from typing import Any

import pytest
from texts import listed_cases

from lmsconf.errors import ProblemsFound, Severity
from lmsconf.model.plan import Plan

from .altered_service import plan_against
from .project import Project
from .shell import lmsconf

pytestmark = pytest.mark.sampled(day=8)

SEED = """
people:
  - {email: anna@acme.example, id: u-anna}
  - {email: bo@acme.example, id: u-bo}
custom_fields: [{name: Dept, type: CHOICE, choices: [A, B]}]
groups: [{name: LMS a}, {name: LMS b}, {name: lms c}, {name: LMS test 1}, {name: UI d}]
smart_groups: [{name: S, conditions: [{field: Dept, choices: [A]}]}, {name: T, conditions: [{field: Dept}]}]
content: [{name: X, id: c-1}, {name: Y, id: c-2}, {name: Z, id: c-3}]
content_targets:
  - {content: X, assign_to: [everyone, {group: LMS a}]}
  - {content: Y, assign_to: [{group: LMS b}, {user: anna@acme.example}]}
""".replace("{field: Dept}", "{field: Dept, choices: [B]}")


def acts(plan: Plan) -> list[str]:
    return [f"{change.action} {change.address}" for change in plan.changes]


def owning(tmp_path: Path, ownership: str, more: str = "") -> Project:
    return Project(tmp_path, SEED, f"ownership: {{{ownership}}}\n{more}")


def unmanaged(plan: Plan) -> dict[str, tuple[list[str], int]]:
    return {one.kind: ([str(address) for address in one.addresses], one.left_alone) for one in plan.unmanaged}


def test_ownership_is_by_patterns_whose_case_counts(tmp_path: Path) -> None:
    """A leading `!` excludes; names in another case are not owned."""
    it = owning(tmp_path, 'groups: ["LMS *", "!LMS test*"]')
    assert acts(it.plan("groups: [{name: LMS a}]")) == ["delete group/LMS b", "delete content_target/Y -> group/LMS b"]


def test_all_owns_everything_but_what_is_left_alone(tmp_path: Path) -> None:
    """`all` is `*`; what `leave_alone` names is counted only, and never owned."""
    it = owning(tmp_path, "groups: all", 'leave_alone: ["group/UI *", "group/LMS*", "!group/LMS a"]\n')
    plan = it.plan("groups: [{name: LMS a}]")
    assert acts(plan) == ["delete group/lms c"]
    assert unmanaged(plan)["group"] == ([], 3)


@pytest.mark.parametrize("manifests", ["groups: [{name: LMS a}]", "absent: {groups: [LMS a]}"])
def test_validate_knows_what_is_left_alone(tmp_path: Path, manifests: str) -> None:
    """The project file says it, so no workspace is needed to see that an entry speaks of it."""
    it = owning(tmp_path, "groups: all", 'leave_alone: ["group/LMS*"]\n')
    it.write(manifests)
    ran = lmsconf(tmp_path, "validate")
    assert (ran.code, "identity/left-alone" in ran.err) == (1, True)


ONE_OF_Y = "content_targets: [{content: Y, assign_to: [{group: LMS b}]}]"
BY_ID = "{name: Y, id: c-2}"
NOT_DECLARED = {
    "only the assignment is absent": f"absent: {{{ONE_OF_Y}}}",
    "the content is pinned": f"absent: {{{ONE_OF_Y.replace('Y', BY_ID)}}}",
    "one of several contents": f"absent: {{{ONE_OF_Y.replace('Y', '[X, Y]')}}}",
    "an anchor repeats it": "x-y: &y {content: Y, assign_to: [{group: LMS b}]}\nabsent: {content_targets: [*y]}",
    "for_each writes it out": "absent: {content_targets: [{for_each: {c: [Y]}, content: $(c), "
    "assign_to: [{group: LMS b}]}]}",
    "its declaration is for another workspace": "content_targets: [{content: Y, assign_to: [everyone], "
    f"only_in: [elsewhere]}}]\nabsent: {{{ONE_OF_Y}}}",
    "its declaration is written out for nothing": "content_targets: [{for_each: {c: []}, content: $(c), "
    f"assign_to: [everyone]}}]\nabsent: {{{ONE_OF_Y}}}",
    "another content is declared": "content_targets: [{content: X, assign_to: [everyone, {group: LMS a}]}]\n"
    f"absent: {{{ONE_OF_Y}}}",
    "its group goes": "absent: {groups: [LMS b]}",
}


@pytest.mark.parametrize("name", NOT_DECLARED)
def test_absent_declares_no_content(tmp_path: Path, name: str) -> None:
    """What stands under `absent` alone goes, and all other assignments of its content stay: plan and drift agree."""
    it = owning(tmp_path, "content_targets: declared_content")
    project = (tmp_path / "lmsconf.yaml").read_text(encoding="utf-8")
    elsewhere = "default_workspace: sandbox\n" + project.replace(
        "workspaces:\n", "workspaces:\n  elsewhere: {url: 'sandbox:'}\n"
    )
    (tmp_path / "lmsconf.yaml").write_text(elsewhere, encoding="utf-8")
    plan = it.plan(NOT_DECLARED[name])
    group = ["delete group/LMS b"] if "group goes" in name else []
    assert sorted(acts(plan)) == ["delete content_target/Y -> group/LMS b", *group]
    found = json.loads(lmsconf(tmp_path, "drift", "--format", "json").out)["findings"]
    assert [one["address"] for one in found] == sorted(str(one.address) for one in plan.changes)


def test_an_assignment_of_content_that_the_catalog_lacks_has_an_address(tmp_path: Path) -> None:
    """It has the id of the content for its name."""

    def unlist(snapshot: dict[str, Any]) -> None:
        snapshot["content"] = [row for row in snapshot["content"] if row["id"] != "c-2"]

    plan = plan_against(Project(tmp_path, SEED), "content_targets: [{content: X, assign_to: [everyone]}]", unlist)
    assert unmanaged(plan)["content_target"][0] == [
        "content_target/X -> group/LMS a",
        "content_target/content id c-2 -> group/LMS b",
        "content_target/content id c-2 -> user/anna@acme.example",
    ]


def test_an_absent_entry_may_have_a_last_day(tmp_path: Path) -> None:
    """Until that day it deletes; after it, leaving it there is an error."""
    it = Project(tmp_path, SEED)
    wanted = "absent: {groups: [{name: lms c, until: 2026-06-01}]}"
    assert acts(it.plan(wanted)) == ["delete group/lms c"]
    with pytest.raises(ProblemsFound) as found:
        it.plan(wanted, today=date(2026, 6, 2))
    assert [one.code for one in found.value.problems if one.is_error] == ["absent/expired"]


def _without(kind: str) -> Callable[[dict[str, Any]], object]:
    return lambda snapshot: snapshot.pop(kind)


def _halved(kind: str) -> Callable[[dict[str, Any]], object]:
    return lambda snapshot: snapshot["incomplete"].update({kind: "page 2 failed"})


@pytest.mark.parametrize("edit", [_without("content_target"), _halved("content_target")])
def test_a_group_does_not_go_while_its_assignments_are_not_all_known(
    tmp_path: Path, edit: Callable[[dict[str, Any]], object]
) -> None:
    """Without the whole catalogue nobody can say what goes with a group, so nothing does."""
    it = Project(tmp_path, SEED)
    with pytest.raises(ProblemsFound) as found:
        plan_against(it, "absent: {groups: [lms c]}", edit)
    assert {one.code for one in found.value.problems if one.is_error} == {"read/incomplete"}


@listed_cases("kind", "manifests")
@pytest.mark.parametrize("lack", [_without, _halved])
def test_nothing_is_created_or_deleted_on_the_word_of_a_listing_that_is_not_whole(
    tmp_path: Path, kind: str, manifests: str, lack: Callable[[str], Callable[[dict[str, Any]], object]]
) -> None:
    """Whether a page failed or a snapshot lacks the kind: there is no plan, and the reason is said."""
    it = Project(tmp_path, SEED)
    with pytest.raises(ProblemsFound) as found:
        plan_against(it, manifests, lack(kind))
    assert "read/incomplete" in {one.code for one in found.value.problems if one.is_error}


def test_a_group_whose_members_were_not_read_does_not_go(tmp_path: Path) -> None:
    """Who would lose it could not be counted."""
    it = Project(tmp_path, SEED)

    def forget(snapshot: dict[str, Any]) -> None:
        for group in snapshot["group"]:
            del group["members"]

    for manifests in ("absent: {groups: [lms c]}", "groups: [{name: lms c, members: []}]"):
        with pytest.raises(ProblemsFound) as found:
            plan_against(it, manifests, forget)
        assert {one.code for one in found.value.problems if one.is_error} == {"read/missing"}


@pytest.mark.parametrize("key", ["conditions", "managers"])
def test_a_smart_group_that_was_read_in_part_does_not_go(tmp_path: Path, key: str) -> None:
    """What leans on its conditions, or who would lose it, is not known."""

    def forget(snapshot: dict[str, Any]) -> None:
        for group in snapshot["smart_group"]:
            del group[key]

    with pytest.raises(ProblemsFound) as found:
        plan_against(Project(tmp_path, SEED), "absent: {smart_groups: [S]}", forget)
    assert {one.code for one in found.value.problems if one.is_error} == {"read/missing"}


@listed_cases("absent", "stays")
def test_an_entry_under_absent_that_finds_nothing_names_what_it_may_have_meant(
    tmp_path: Path, absent: str, stays: str | None
) -> None:
    """A name in other letters or a pattern deletes nothing, which is a warning, and no reason to delete the entry."""
    plan = Project(tmp_path, SEED).plan(f"absent: {{{absent}}}")
    assert plan.changes == ()
    [problem] = plan.all_problems
    if stays is None:
        assert (problem.code, problem.severity) == ("absent/nothing-to-do", Severity.NOTE)
    else:
        assert (problem.code, problem.severity) == ("absent/look-alike", Severity.WARNING)
        assert f'but "{stays}" is, and is kept' in problem.message
