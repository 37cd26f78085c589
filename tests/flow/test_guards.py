"""What stops an apply: too much taken away, of which people, and protected things; and what additive plans keep."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from texts import listed_cases

from lmsconf.errors import ExitCode, ProblemsFound

from .altered_service import plan_against
from .project import Project, errors, guard
from .shell import lmsconf

pytestmark = pytest.mark.sampled(day=8, daily=False)

CROWD = [f"p{n:02}@acme.example" for n in range(60)]
PEOPLE = "people:\n" + "".join(f"  - {{email: {one}}}\n" for one in CROWD)
FIELD = "custom_fields: [{name: D, type: CHOICE, choices: [X, Y]}]\n"


def some(start: int, end: int) -> str:
    return "[" + ", ".join(CROWD[start:end]) + "]"


def project(tmp_path: Path, seed: str, options: str = "") -> Project:
    return Project(tmp_path, PEOPLE + seed, options)


@pytest.mark.parametrize("pattern", ["group/A*", "group/A/b", "group/A\\/b", "groups/A/b", "group/*"])
def test_a_resource_is_protected_by_each_spelling_of_its_address(tmp_path: Path, pattern: str) -> None:
    """Also with a wildcard, and with the name of its section."""
    it = project(tmp_path, f"groups: [{{name: 'A/b', members: {some(0, 3)}, managers: {some(0, 1)}}}]\n")
    it.write_options(f"guards: {{protect: ['{pattern}'], removals: off, deletes: off}}\n")
    assert errors(it.plan("absent: {groups: ['A/b']}")) == ["refusal/protected"]


def test_a_workspace_lifts_no_protection_also_not_in_a_saved_plan(tmp_path: Path) -> None:
    """Its exclusion is about its own list, and the plan stays refused once the project file protects nothing."""
    it = project(tmp_path, "groups: [{name: Safety officers}]\n", "")
    it.write("absent: {groups: [Safety officers]}")
    file = tmp_path / "lmsconf.yaml"
    unprotected = file.read_text()
    at_top = unprotected + "guards: {protect: ['group/Safety*']}\n"
    file.write_text(at_top.replace("seed:", "guards: {protect: ['!group/Safety officers']}, seed:"))
    assert "!group/" in file.read_text()
    saved = str(tmp_path / "plan.json")
    assert lmsconf(tmp_path, "plan", "--out", saved).code == 0
    assert errors(it.plan()) == ["refusal/protected"]
    file.write_text(unprotected)
    assert lmsconf(tmp_path, "apply", saved, "--allow", "deletes=1").code == 4


@pytest.mark.parametrize(
    ("manifests", "with_effects", "without"),
    [
        ("smart_groups: [{name: S, conditions: [{field: D, choices: [X]}, {field: K, choices: [P]}]}]", 1, 1),
        (f"users: [{{email: {CROWD[0]}, answers: {{D: Y}}}}]", 1, 0),
        (f"smart_groups: [{{name: S, managers: []}}]\nusers: [{{email: {CROWD[0]}, answers: {{D: null}}}}]", 1, 0),
        (f"users: [{{email: {CROWD[0]}, answers: {{K: Q}}}}]", 0, 0),
        (f"users: [{{email: {CROWD[2]}, answers: {{D: X}}}}]", 0, 0),
        (f"users: [{{email: {CROWD[0]}, archived: true}}]", 0, 0),
    ],
    ids=["condition added", "answer changed", "cleared beside a change", "other answer", "joins", "archived"],
)
def test_nobody_is_taken_out_of_a_protected_smart_group(
    tmp_path: Path, manifests: str, with_effects: int, without: int
) -> None:
    """Neither by a further condition, which is known without effects, nor by a changed answer; people may come in."""
    answered = "".join(f"  - {{email: {CROWD[n]}, answers: {{D: {d}, K: P}}}}\n" for n, d in enumerate("XXY"))
    seed = "people:\n" + answered + FIELD.replace("]}]", "]}, {name: K, type: CHOICE, choices: [P, Q]}]")
    seed += "smart_groups: [{name: S, conditions: [{field: D, choices: [X]}]}]\n"
    it = Project(tmp_path, seed, "guards: {protect: [smart_group/S]}\n")
    assert errors(it.plan(manifests)) == ["refusal/protected"] * with_effects
    assert errors(it.plan(effects=False)) == ["refusal/protected"] * without
    saved, file = str(tmp_path / "plan.json"), tmp_path / "lmsconf.yaml"
    for protected in ("smart_group/S", "group/*"):  # the second plan is saved before the group is protected
        it.write_options(f"guards: {{protect: [{protected}]}}\n")
        assert lmsconf(tmp_path, "plan", "--out", saved).code == 0
        file.write_text(file.read_text().replace("group/*", "smart_group/S"))
        assert lmsconf(tmp_path, "apply", saved).code == (4 if with_effects else 0)


def test_additive_names_nobody_as_in_and_out(tmp_path: Path) -> None:
    """Who comes in by `include` is not shown among those who are to be out."""
    it = project(tmp_path, f"groups: [{{name: A, members: {some(0, 1)}}}]\n")
    plan = it.plan(f"groups: [{{name: A, members: {{include: {some(1, 2)}, exclude: {some(2, 3)}}}}}]", additive=True)
    (change,) = plan.changes
    assert change.after == {"name": "A", "members": {"include": CROWD[1:2], "exclude": CROWD[2:3]}}


def test_additive_adds_choices_to_those_that_are_there(tmp_path: Path) -> None:
    """What the manifest does not list any more stays, with its id, and so does the name of what it would rename."""
    it = project(tmp_path, "custom_fields: [{name: F, type: CHOICE, choices: [A, B]}]\n")
    before = it.fields()["F"]["choices"]
    it.apply("custom_fields: [{name: F, choices: [{name: BB, previously: [B]}, C]}]", additive=True)
    *old, new = it.fields()["F"]["choices"]
    assert (old, new["name"]) == (before, "C")


@pytest.mark.sampled(day=2)
def test_choices_that_are_included_are_not_moved(tmp_path: Path) -> None:
    """The live ones keep their places, whichever the manifest names; a new one comes last."""
    it = project(tmp_path, "custom_fields: [{name: F, type: CHOICE, choices: [C, B, A]}]\n")
    it.apply("custom_fields: [{name: F, choices: {include: [B, D]}}]")
    assert [one["name"] for one in it.fields()["F"]["choices"]] == ["C", "B", "A", "D"]


@pytest.mark.sampled(day=2)
def test_a_new_answer_that_is_not_planned_keeps_nobody_from_losing_one(tmp_path: Path) -> None:
    """Both people are to pick another choice than the deleted one: the guard counts who is left out of the plan."""
    it = Project(
        tmp_path, f"{FIELD}people: [{{email: a@x.se, answers: {{D: X}}}}, {{email: b@x.se, answers: {{D: X}}}}]"
    )
    answers = "users: [{email: a@x.se, answers: {D: Y}}, {email: b@x.se, answers: {D: Y}}]"
    assert guard(it.plan(f"custom_fields: [{{name: D, choices: [Y]}}]\n{answers}"), "answers").total == 0
    assert guard(it.plan(excluded=("user/a@x.se",)), "answers").total == 1
    assert guard(it.plan(only=("custom_field/D", "user/b@x.se")), "answers").total == 1


@pytest.mark.sampled(daily=False)
@listed_cases("live", "said", "total")
def test_a_system_condition_counts_where_both_sides_say_one(
    tmp_path: Path, live: list[str], said: list[str], total: int
) -> None:
    """A service that fills one in does not hide that a smart group goes by another name."""
    it = project(tmp_path, FIELD + smart_group("Old", live), "ownership: {smart_groups: all}\n")
    assert guard(it.plan(smart_group("New", said)), "recreates").total == total


@pytest.mark.sampled
@listed_cases("live", "said", "after")
def test_a_condition_keeps_the_system_condition_that_it_does_not_declare(
    tmp_path: Path, live: list[str], said: list[str], after: list[str] | None
) -> None:
    """That of a live condition with its field and choices, unless another one declares that; none is kept twice."""
    plan = project(tmp_path, FIELD + smart_group("S", live)).plan(smart_group("S", said))
    bodies = [json.loads(json.dumps(call.body)) for call in plan.calls]
    conditions = [one.get("systemCondition", "-") for body in bodies for one in body["conditions"]]
    assert sorted(conditions) == (after or [])


def smart_group(name: str, systems: list[str]) -> str:
    """A smart group with a condition on one choice for each of these system conditions, "-" for none."""
    more = ("" if one == "-" else f", system_condition: {one}" for one in systems)
    conditions = ", ".join(f"{{field: D, choices: [X]{one}}}" for one in more)
    return f"smart_groups: [{{name: {name}, conditions: [{conditions}]}}]\n"


# Shares of people are those of active people: the archived make no list longer, and no share smaller.


ACTIVE = [f"a{n:02}@x.example" for n in range(40)]
ARCHIVED = [f"z{n:02}@x.example" for n in range(95)]
ACTIVE_PEOPLE = "people:\n" + "".join(
    [f"  - {{email: {one}}}\n" for one in ACTIVE] + [f"  - {{email: {one}, archived: true}}\n" for one in ARCHIVED]
)


def listed(people: Sequence[str]) -> str:
    return f"[{', '.join(people)}]"


def shares_project(root: Path, seed: str = "", options: str = "") -> Project:
    return Project(root, ACTIVE_PEOPLE + seed, options)


def group(active: int, archived: int = 95, key: str = "members") -> str:
    return f"groups: [{{name: A, {key}: {listed([*ACTIVE[:active], *ARCHIVED[:archived]])}}}]\n"


def excluding(people: Sequence[str]) -> str:
    return f"groups: [{{name: A, members: {{exclude: {listed(people)}}}}}]"


@pytest.mark.sampled(daily=False)
@pytest.mark.parametrize("key", ["members", "managers"])
@pytest.mark.parametrize(("taken", "trips"), [(2, False), (3, True), (10, True)])
def test_archived_people_do_not_lengthen_a_list(tmp_path: Path, key: str, taken: int, trips: bool) -> None:
    """Of 24 active and 95 archived ones, two are within a tenth, and three are not."""
    it = shares_project(tmp_path, group(24, key=key))
    found = guard(it.plan(f"groups: [{{name: A, {key}: {listed(ACTIVE[taken:24])}}}]"), "removals")
    assert (found.total, found.tripped) == (taken, trips)
    assert found.reason == (f"{taken} of 24 in group/A {key}, and the limit is 10%" if trips else None)


def test_apply_stops_at_a_share_of_the_active(tmp_path: Path) -> None:
    """Nothing is sent without consent to the exact number."""
    it = shares_project(tmp_path, group(24))
    it.write(f"groups: [{{name: A, members: {listed(ACTIVE[10:24])}}}]")
    assert lmsconf(it.root, "apply", "--auto-approve", "--allow", "people=0").code == ExitCode.BLOCKED
    assert lmsconf(it.root, "apply", "--auto-approve", "--allow", "removals=10").code == ExitCode.OK


def changing(people: Sequence[str], key: str) -> str:
    return "users:\n" + "".join(f"  - {{email: {one}, {key}}}\n" for one in people)


@pytest.mark.parametrize(
    ("manifests", "name", "total", "reason"),
    [
        (excluding([*ACTIVE[:2], *ARCHIVED[:30]]), "removals", 32, None),
        (excluding([*ACTIVE[:3], *ARCHIVED[:30]]), "removals", 33, "3 of 24 in group/A members, and the limit is 10%"),
        (excluding(ARCHIVED[:51]), "removals", 51, "51 removals, and the limit is 50"),
        (changing(ACTIVE[:13], "first_name: N"), "updates", 13, "13 of 40 in all people, and the limit is 30%"),
        (changing([*ACTIVE[:12], *ARCHIVED[:50]], "first_name: N"), "updates", 62, None),
        (
            changing(ACTIVE[:5], "manager: false"),
            "removals",
            5,
            "5 of 40 in all people (manager), and the limit is 10%",
        ),
        (changing([*ACTIVE[:4], *ARCHIVED[:9]], "manager: false"), "removals", 13, None),
    ],
    ids=[
        "leave",
        "too many leave",
        "too many in all",
        "too many change",
        "change",
        "too many lose rights",
        "lose rights",
    ],
)
def test_shares_are_of_the_active_and_totals_of_all(
    tmp_path: Path, manifests: str, name: str, total: int, reason: str | None
) -> None:
    """Archived people who leave, change or lose a right are in the total only."""
    seed = ACTIVE_PEOPLE
    for one in (*ACTIVE[:5], *ARCHIVED[:9]):
        seed = seed.replace(f"email: {one}", f"email: {one}, manager: true")
    found = guard(Project(tmp_path, seed + group(24)).plan(manifests), name)
    assert (found.total, found.reason) == (total, reason)


def test_unknown_people_are_a_share_of_the_active(tmp_path: Path) -> None:
    """`people: {unknown: skip}` lets a tenth of a list be unknown, and archived people are no part of it."""
    it = shares_project(tmp_path, "groups: [{name: A}]\n", "people: {unknown: skip}\n")

    def members(active: int) -> str:
        return f"groups: [{{name: A, members: {listed([*ACTIVE[:active], *ARCHIVED, 'nobody@x.example'])}}}]"

    assert it.plan(members(9)).changes
    with pytest.raises(ProblemsFound) as found:
        it.plan(members(8))
    (many,) = (one for one in found.value.problems if one.code == "person/too-many-unknown")
    assert "1 of 9 in members are unknown" in many.message


@pytest.mark.sampled(daily=False)
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
def test_members_that_no_list_of_people_has_do_not_lower_a_share(
    tmp_path: Path, active: int, unknown: int, taken: int, reason: str | None
) -> None:
    """They may be archived: the guard checks the share all the same, and never a smaller one."""
    it = shares_project(tmp_path, group(active, 0))

    def add(snapshot: dict[str, Any]) -> None:
        snapshot["group"][0]["members"].extend(f"nobody-{n}" for n in range(unknown))

    plan = plan_against(it, f"groups: [{{name: A, members: {listed(ACTIVE[taken:active])}}}]", add)
    assert guard(plan, "removals").reason == reason
