"""Shares of people are those of active people: the archived make no list longer, and no share smaller."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from lmsconf.errors import ExitCode, ProblemsFound
from lmsconf.model.plan import GuardResult, Plan

from .altered_service import plan_against
from .project import Project
from .shell import lmsconf

ACTIVE = [f"a{n:02}@x.example" for n in range(40)]
ARCHIVED = [f"z{n:02}@x.example" for n in range(95)]
PEOPLE = "people:\n" + "".join(
    [f"  - {{email: {one}}}\n" for one in ACTIVE] + [f"  - {{email: {one}, archived: true}}\n" for one in ARCHIVED]
)


def listed(people: Sequence[str]) -> str:
    return f"[{', '.join(people)}]"


def project(root: Path, seed: str = "", options: str = "") -> Project:
    return Project(root, PEOPLE + seed, options)


def group(active: int, archived: int = 95, key: str = "members") -> str:
    return f"groups: [{{name: A, {key}: {listed([*ACTIVE[:active], *ARCHIVED[:archived]])}}}]\n"


def guard(plan: Plan, name: str = "removals") -> GuardResult:
    return next(one for one in plan.guards if one.name == name)


def excluding(people: Sequence[str], key: str = "members") -> str:
    return f"groups: [{{name: A, {key}: {{exclude: {listed(people)}}}}}]"


@pytest.mark.parametrize("key", ["members", "managers"])
@pytest.mark.parametrize(("taken", "trips"), [(2, False), (3, True), (10, True)])
def test_archived_people_do_not_lengthen_a_list(tmp_path: Path, key: str, taken: int, trips: bool) -> None:
    """Of 24 active and 95 archived ones, two are within a tenth, and three are not."""
    it = project(tmp_path, group(24, key=key))
    found = guard(it.plan(f"groups: [{{name: A, {key}: {listed(ACTIVE[taken:24])}}}]"))
    assert (found.total, found.tripped) == (taken, trips)
    assert found.reason == (f"{taken} of 24 in group/A {key}, and the limit is 10%" if trips else None)


def test_apply_stops_at_a_share_of_the_active(tmp_path: Path) -> None:
    """Nothing is sent without consent to the exact number."""
    it = project(tmp_path, group(24))
    it.write(f"groups: [{{name: A, members: {listed(ACTIVE[10:24])}}}]")
    assert lmsconf(it.root, "apply", "--auto-approve", "--allow", "people=0").code == ExitCode.BLOCKED
    assert lmsconf(it.root, "apply", "--auto-approve", "--allow", "removals=10").code == ExitCode.OK


def test_archived_people_who_leave_are_in_the_total_only(tmp_path: Path) -> None:
    """They are no part of the active people of whom a share leaves; the total counts all that is taken out."""
    it = project(tmp_path, group(24))
    found = guard(it.plan(excluding([*ACTIVE[:2], *ARCHIVED[:30]])))
    assert (found.total, found.tripped) == (32, False)
    found = guard(it.plan(excluding([*ACTIVE[:3], *ARCHIVED[:30]])))
    assert (found.total, found.reason) == (33, "3 of 24 in group/A members, and the limit is 10%")
    found = guard(it.plan(excluding(ARCHIVED[:51])))
    assert (found.total, found.reason) == (51, "51 removals, and the limit is 50")


def test_changed_people_are_a_share_of_the_active(tmp_path: Path) -> None:
    """13 of 40 are more than 30 %; archived ones that change are in the total only."""
    it = project(tmp_path)

    def plan(*people: str) -> GuardResult:
        return guard(
            it.plan("users:\n" + "".join(f"  - {{email: {one}, first_name: N}}\n" for one in people)), "updates"
        )

    assert plan(*ACTIVE[:13]).reason == "13 of 40 in all people, and the limit is 30%"
    within = plan(*ACTIVE[:12], *ARCHIVED[:50])
    assert (within.total, within.tripped) == (62, False)


def test_lost_rights_are_a_share_of_the_active(tmp_path: Path) -> None:
    """Five of 40 who lose the manager right are more than a tenth."""
    seed = PEOPLE
    for one in (*ACTIVE[:5], *ARCHIVED[:9]):
        seed = seed.replace(f"email: {one}", f"email: {one}, manager: true")
    it = Project(tmp_path, seed, "guards: {updates: off}\n")

    def plan(*people: str) -> GuardResult:
        return guard(it.plan("users:\n" + "".join(f"  - {{email: {one}, manager: false}}\n" for one in people)))

    assert plan(*ACTIVE[:5]).reason == "5 of 40 in all people (manager), and the limit is 10%"
    within = plan(*ACTIVE[:4], *ARCHIVED[:9])
    assert (within.total, within.tripped) == (13, False)


def test_unknown_people_are_a_share_of_the_active(tmp_path: Path) -> None:
    """`people: {unknown: skip}` lets a tenth of a list be unknown, and archived people are no part of it."""
    it = project(tmp_path, "groups: [{name: A}]\n", "people: {unknown: skip}\n")

    def members(active: int) -> str:
        return f"groups: [{{name: A, members: {listed([*ACTIVE[:active], *ARCHIVED, 'nobody@x.example'])}}}]"

    assert it.plan(members(9)).changes
    with pytest.raises(ProblemsFound) as found:
        it.plan(members(8))
    (many,) = (one for one in found.value.problems if one.code == "person/too-many-unknown")
    assert "1 of 9 in members are unknown" in many.message


@pytest.mark.parametrize(
    ("active", "unknown", "taken", "reason"),
    [
        (24, 95, 3, "3 of 24 in group/A members, and the limit is 10%"),
        (24, 95, 2, None),
        (15, 10, 3, "3 of 20 in group/A members, and the limit is 10%"),
        (15, 10, 2, None),
        (15, 4, 15, None),
    ],
)
def test_of_whom_nothing_is_known_nothing_is_hoped(
    tmp_path: Path, active: int, unknown: int, taken: int, reason: str | None
) -> None:
    """Members whom no list of people explains may be archived: they make a share judged, and never a smaller one."""
    it = project(tmp_path, group(active, 0))

    def add(snapshot: dict[str, Any]) -> None:
        snapshot["group"][0]["members"].extend(f"nobody-{n}" for n in range(unknown))

    plan = plan_against(it, f"groups: [{{name: A, members: {listed(ACTIVE[taken:active])}}}]", add)
    assert guard(plan).reason == reason
