"""Deletion is said: what stands under absent, what is owned and not declared, and what goes with its group."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml
from manifest.cases import Case, cases
from texts import listed_cases, text_of

from lmsconf.errors import ExitCode, ProblemsFound, Severity
from lmsconf.model.plan import Plan

from .altered_service import Edit, plan_against, plan_altered
from .project import Project, told_problems
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


@pytest.mark.parametrize("manifests", ["groups: [{name: LMS a}]", "absent: {groups: [LMS a]}"])
def test_validate_knows_what_is_left_alone(tmp_path: Path, manifests: str) -> None:
    """The project file says it, so no workspace is needed to see that an entry speaks of it."""
    Project(tmp_path, SEED, 'ownership: {groups: all}\nleave_alone: ["group/LMS*"]\n').write(manifests)
    assert "identity/left-alone" in lmsconf(tmp_path, "validate", code=1).err


@listed_cases("manifests")
def test_absent_declares_no_content(tmp_path: Path, manifests: str) -> None:
    """What stands under `absent` alone goes, and all other assignments of its content stay: plan and drift agree."""
    elsewhere = "  elsewhere: {url: 'sandbox:'}\ndefault_workspace: sandbox\n"
    plan = Project(tmp_path, SEED, f"{elsewhere}ownership: {{content_targets: declared_content}}\n").plan(manifests)
    group = ["delete group/LMS b"] if "groups: [LMS b]" in manifests else []
    assert sorted(acts(plan)) == ["delete content_target/Y -> group/LMS b", *group]
    found = json.loads(lmsconf(tmp_path, "drift", "--format", "json").out)["findings"]
    assert [one["address"] for one in found] == sorted(str(one.address) for one in plan.changes)


def test_an_assignment_of_content_that_the_catalog_lacks_has_an_address(tmp_path: Path) -> None:
    """It has the id of the content for its name."""

    def unlist(snapshot: dict[str, Any]) -> None:
        snapshot["content"] = [row for row in snapshot["content"] if row["id"] != "c-2"]

    plan = plan_against(Project(tmp_path, SEED), "content_targets: [{content: X, assign_to: [everyone]}]", unlist)
    (unmanaged,) = (one for one in plan.unmanaged if one.kind == "content_target")
    assert [str(address) for address in unmanaged.addresses] == [
        "content_target/X -> group/LMS a",
        "content_target/content id c-2 -> group/LMS b",
        "content_target/content id c-2 -> user/anna@acme.example",
    ]


def lacking(kind: str, key: str) -> Edit:
    """A snapshot whose rows of a kind were read without that key."""
    return lambda snapshot: [row.pop(key) for row in snapshot[kind]]


def without(kind: str) -> Edit:
    return lambda snapshot: snapshot.pop(kind)


def halved(kind: str) -> Edit:
    return lambda snapshot: snapshot["incomplete"].update({kind: "page 2 failed"})


@pytest.mark.parametrize(
    ("manifests", "edit", "code"),
    [
        ("absent: {groups: [lms c]}", without("content_target"), "read/incomplete"),
        ("absent: {groups: [lms c]}", halved("content_target"), "read/incomplete"),
        ("absent: {groups: [lms c]}", lacking("group", "members"), "read/missing"),
        ("groups: [{name: lms c, members: []}]", lacking("group", "members"), "read/missing"),
        ("absent: {smart_groups: [S]}", lacking("smart_group", "conditions"), "read/missing"),
        ("absent: {smart_groups: [S]}", lacking("smart_group", "managers"), "read/missing"),
    ],
    ids=["no assignments", "not all assignments", "members", "members to compare", "conditions", "managers"],
)
def test_a_group_does_not_go_while_what_goes_with_it_is_not_known(
    tmp_path: Path, manifests: str, edit: Edit, code: str
) -> None:
    """Without the whole catalogue, its people and its conditions, nobody can say who would lose what."""
    with pytest.raises(ProblemsFound) as found:
        plan_against(Project(tmp_path, SEED), manifests, edit)
    assert {one.code for one in found.value.problems if one.is_error} == {code}


@listed_cases("kind", "manifests")
@pytest.mark.parametrize("lack", [without, halved])
def test_nothing_is_created_or_deleted_on_the_word_of_a_listing_that_is_not_whole(
    tmp_path: Path, kind: str, manifests: str, lack: Callable[[str], Edit]
) -> None:
    """Whether a page failed or a snapshot lacks the kind: there is no plan, and the reason is said."""
    with pytest.raises(ProblemsFound) as found:
        plan_against(Project(tmp_path, SEED), manifests, lack(kind))
    assert "read/incomplete" in {one.code for one in found.value.problems if one.is_error}


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


# What a plan says of the assignments of an earlier content: which are replaced, and which stay.


VALUES = ("mandatory", "visible_from", "visible_until")
OPTIONS = "timezone: Europe/Stockholm\ndialect: {content-targets.on-existing: update}\n"
REPLACED_SEED = text_of(__file__, "replaced_assignments_seed.yaml")
KEEPING = """
content_targets:
  - content: New
    assign_to: [{user: ann@x.example}]
    replaces: {content: Old, then: remove}
    keep: {in_progress: true, until: 2090-12-31}
"""


@pytest.mark.parametrize("options", [(), ("--coverage",)])
@pytest.mark.parametrize("state", ["IN_PROGRESS", "APPROVED"])
def test_an_assignment_that_ends_before_keep_says_is_no_drift(
    tmp_path: Path, state: str, options: tuple[str, ...]
) -> None:
    """It stays, as apply leaves it, while its person is in progress; it is drift if the person is not."""
    it = Project(tmp_path, REPLACED_SEED.replace("IN_PROGRESS", state), OPTIONS)
    it.settled(
        "content_targets:\n  - {content: Old, visible_until: 2090-12-01, assign_to: [{user: ann@x.example}]}\n"
        "  - {content: New, assign_to: [{user: ann@x.example}]}\n"
    )
    it.write(KEEPING)
    kept = state == "IN_PROGRESS"
    assert bool(it.plan().changes) is not kept
    ran = lmsconf(tmp_path, "drift", *options, code=ExitCode.OK if kept else ExitCode.CHANGES)
    assert ("assignment of Old to user/ann@x.example is live but must not exist" in ran.out) is not kept


@pytest.mark.sampled
@pytest.mark.parametrize("case", cases(Path(__file__).with_name("replacements.txt")), ids=lambda case: case.title)
def test_what_becomes_of_an_assignment_that_is_replaced(tmp_path: Path, case: Case) -> None:
    """Each change stands after those that it needs, and what is reported beside the changes.

    The comments of a case are the live assignments, the options of the project, and those of the plan.
    """
    said = yaml.safe_load("\n".join(one[1:] for one in case.text.splitlines() if one.startswith("#")))
    options = {key: tuple(value) for key, value in said.get("plan", {}).items()}
    it = Project(tmp_path, f"{REPLACED_SEED}content_targets: {said['live']}\n", OPTIONS + said.get("options", ""))
    try:
        plan = it.plan(case.text, **options)
    except ProblemsFound as error:
        told = told_problems(error.problems)
    else:
        told = told_changes(plan) + told_problems(plan.all_problems)
    assert told == case.told


def more_results(*people: str, state: str = "IN_PROGRESS") -> Edit:
    """More results of the earlier content, as the service lists them."""

    def edit(said: dict[str, Any]) -> None:
        said["list"] += [{**one, "userId": id, "state": state} for one in said["list"][:1] for id in people]

    return edit


UNKNOWN: dict[str, tuple[str, dict[str, Edit], str]] = {
    "results without a list": (
        "{group: A}",
        {"/analyse/results": lambda said: said.pop("list")},
        "a response is missing its list of results",
    ),
    "an unknown state": (
        "everyone",
        {"/analyse/results": more_results("u-2", "u-4", state="PAUSED")},
        "the service returns an unknown state for 2",
    ),
    "a smart group without its members": (
        "{smart_group: S}",
        {"/smart-groups/sg-1": lambda said: said.pop("members")},
        "the service does not return the members of the smart group",
    ),
}


@pytest.mark.parametrize("name", UNKNOWN)
def test_whose_progress_is_not_known_keeps_nothing(tmp_path: Path, name: str) -> None:
    """The reason is told; the plan is an error where somebody is to keep the earlier content."""
    audience, edits, why = UNKNOWN[name]
    it = Project(tmp_path, f"{REPLACED_SEED}content_targets: [{{content: Old, assign_to: [{audience}]}}]\n", OPTIONS)
    replacing = f"content_targets: [{{content: New, assign_to: [{audience}], replaces: {{content: Old, then: remove}}"
    earlier = f"content_target/Old -> {audience.strip('{}').replace(': ', '/')}"
    plan = plan_altered(it, f"{replacing}}}]", edits)
    assert len(plan.changes) == 2
    told = [one.message for one in plan.all_problems if one.code == "content-target/in-progress"]
    assert told == [f"{earlier}: how many are in progress is not known: {why}"]
    plan = plan_altered(it, f"{replacing}, keep: {{in_progress: true, until: 2027-03-31}}}}]", edits)
    assert len(plan.changes) == 2
    told = [one.message for one in plan.all_problems if one.is_error]
    assert told == [f"{earlier}: who is in progress is not known, so nobody can be kept: {why}"]


def test_only_active_people_of_the_workspace_keep_a_content(tmp_path: Path) -> None:
    """A result may be that of somebody who is archived, or in no list of people."""
    plan = plan_altered(
        Project(tmp_path, f"{REPLACED_SEED}content_targets: [{{content: Old, assign_to: [everyone]}}]\n", OPTIONS),
        "content_targets: [{content: New, assign_to: [everyone], replaces: {content: Old, then: remove},"
        " keep: {in_progress: true, until: 2027-03-31}}]",
        {"/analyse/results": more_results("u-3", "u-99")},
    )
    kept = [one.address.name for one in plan.changes if one.address.name.startswith("Old -> user/")]
    assert kept == ["Old -> user/ann@x.example", "Old -> user/dan@x.example"]


def test_an_earlier_assignment_is_not_replaced_where_the_workspace_is_not_clear(tmp_path: Path) -> None:
    """Its window cannot be read; a snapshot file does not hold who is in progress."""
    live = "content_targets: [{content: Old, mandatory: true, assign_to: [{group: A}]}]\n"
    it = Project(tmp_path, REPLACED_SEED + live, OPTIONS)
    manifests = "content_targets:\n  - {content: New, assign_to: [{group: A}], replaces: {content: Old, then: THEN}}"

    def told(then: str, edit: Edit) -> str:
        try:
            return told_problems(plan_against(it, manifests.replace("THEN", then), edit).all_problems)
        except ProblemsFound as error:
            return told_problems(error.problems)

    at = "manifests/all.yaml:2:55: error: content_target/Old -> group/A: "
    assert told("remove}, keep: {in_progress: true, until: 2027-03-31", lambda _: None) == (
        f"{at}who is in progress is not known, so nobody can be kept: "
        "a snapshot file and a drift report do not hold it [refusal/progress-unknown]\n"
        "  Give the token the right to read results, or remove `keep`.\n"
    )
    for then in ("optional", "{visible_until: 2026-12-31}"):
        unreadable = told(then, lambda said: said["content_target"][0].update(start="soon"))
        assert unreadable.startswith(f'{at}"soon" cannot be read as a time'), unreadable


def test_results_are_read_only_of_audiences_that_lose_the_content(tmp_path: Path) -> None:
    """Those of everyone are not, where the content is replaced for one person."""
    live = "content_targets: [{content: Old, assign_to: [{user: ann@x.example}, everyone, {group: A}]}]\n"
    it = Project(tmp_path, REPLACED_SEED + live, OPTIONS)
    it.plan(
        "content_targets: [{content: New, assign_to: [{user: ann@x.example}], replaces: {content: Old, then: remove}}]",
        effects=False,
    )
    # Of one person there is a page of one row, and an empty one.
    assert [call.operation for call in it.calls].count("analytics.results") == 2


def told_changes(plan: Plan) -> str:
    """Each change with the changes that its last call follows, its reason, and its values."""
    of = {call.id: call.address.name for call in plan.calls}
    after = {call.address: sorted({of[one] for one in call.needs} - {call.address.name}) for call in plan.calls}
    lines = []
    for one in plan.changes:
        needed = " and ".join(after[one.address])
        lines.append(f"{one.source}: {one.action.value} {one.address.name}{needed and f', after {needed}'}")
        lines += [f"  because {one.reason}"] * bool(one.reason)
        lines += [f"  {field.path}: {field.before} -> {field.after}" for field in one.fields]
        created = one.after if one.before is None and isinstance(one.after, dict) else {}
        lines += [f"  {key}: {value}" for key, value in created.items() if value and key in VALUES]
    return "".join(f"{line}\n" for line in lines)
