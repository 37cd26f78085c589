"""`plan --undo RUN` of a run whose process died: whichever call it was, all is as it was before the run."""

import json
from pathlib import Path

import pytest
from simulation.request_faults import KEPT, Killed, MortalJournal
from texts import text_of

from lmsconf.apply.replanning import refuse_stale_plan
from lmsconf.apply.run_plan import execute
from lmsconf.documents.plan_file import loads
from lmsconf.planner.undo.kept_state import pre_image

from .project import Project, planned_by
from .shell import lmsconf
from .test_undo import CHANGES, OPTIONS, SEED, assert_as_before, held, held_ids, started

pytestmark = pytest.mark.sampled(day=8, daily=False)

IN_PLACE = "dialect: {content-targets.on-existing: %s}\n"
ASSIGNMENTS = """
content_targets:
  - {content: GDPR basics, visible_until: "2031-01-31", assign_to: [{group: Coaches}]}
  - {content: First aid, mandatory: true, assign_to: [everyone, {user: anna@acme.example}]}
"""
HALVES = {
    "replaced": ASSIGNMENTS,
    "replaced with the group renamed": ASSIGNMENTS.replace("Coaches", "Mentors")
    + "groups: [{name: Mentors, previously: [Coaches]}]\n",
    "names in a circle": "groups: [{name: Others, id: g-1, members: [root@acme.example]}, {name: Coaches, id: g-2}]\n"
    "custom_fields: [{name: Skills, id: f-1, choices: [Sales, {name: People, previously: [HR]}, Law]},"
    " {name: Dept, id: f-2}]\n"
    "smart_groups: [{name: Coders, conditions: [{field: Skills, choices: [Law]}], managers: []}]",
    "moved": "groups: [{name: Coaches, members: [root@acme.example], managers: []},"
    " {name: Others, members: [anna@acme.example]}]",
    "created": "users: [{email: new@acme.example, first_name: A, last_name: B, language: en, manager: true,"
    " applications: [learn, create], metadata: {cost: X}, answers: {Dept: HR, Skills: [C]}}]\n"
    "custom_fields: [{name: Level, type: CHOICE, choices: [A, B]}]\n"
    "groups: [{name: Fresh, members: [new@acme.example, mo@acme.example], managers: [new@acme.example]}]\n"
    "smart_groups: [{name: Top, conditions: [{field: Level, choices: [A]}], managers: [new@acme.example]}]\n"
    "content_targets: [{content: GDPR basics, assign_to: [{group: Fresh}, {smart_group: Top}]}]",
    **{key: CHANGES[key] for key in ("deleted", "field", "conditions", "people")},
}


def cut_short(project: Project, dies_at: int, *, unsent: bool, file: str | None = None) -> int:
    """Applies the manifests until the process dies, before the outcome of that call is recorded. Returns the calls.

    unsent: it dies before that call is sent. file: a saved plan to apply instead of the manifests.
    """
    with project.reader(parallelism=1) as reader:
        plan = planned_by(reader) if file is None else loads((project.root / file).read_text(encoding="utf-8"))
        before = pre_image(plan, refuse_stale_plan(reader, plan))
        journal = MortalJournal.begin(project.root, plan, meta={}, **KEPT, pre_image=before)
        assert isinstance(journal, MortalJournal)
        journal.dies_at, journal.unsent = dies_at, unsent
        with journal, pytest.raises(Killed):
            execute(reader, plan, meta={}, journal=journal)
    return len(plan.calls)


def undo(project: Project, run: str = "latest") -> str:
    """Plans the way back, in which nothing is left alone, and applies it; returns the plan as text."""
    planned = lmsconf(project.root, "plan", "--undo", run, "--out", "undo.json", code=0)
    assert "[undo/conflict]" not in planned.out, planned.out
    if json.loads((project.root / "undo.json").read_text())["calls"]:
        lmsconf(project.root, "apply", "undo.json", code=0)
    return planned.out


def prepared(root: Path, manifests: str, options: str = OPTIONS, seed: str = SEED) -> Project:
    """A project in which these manifests are not applied yet, and what the workspace holds in `before.json`."""
    project = Project(root, seed, options)
    project.write(manifests)
    assert lmsconf(project.root, "snapshot", "before.json").code == 0
    return project


def assert_undone(root: Path, manifests: str, options: str, dies_at: int, *, unsent: bool = False) -> int:
    """Cuts a run short in a project of its own, and undoes it. Returns how many calls the run has."""
    seed = SEED + "  - {content: First aid, assign_to: [everyone, {user: anna@acme.example}]}\n"
    project = prepared(root, manifests, OPTIONS + options, seed)
    calls = cut_short(project, dies_at, unsent=unsent)
    undo(project)
    assert_as_before(project)
    return calls


@pytest.mark.parametrize("on_existing", ["update", "recreate"])
def test_an_assignment_that_a_run_only_deleted_is_created_again(tmp_path: Path, on_existing: str) -> None:
    """With `recreate`, the run dies between the DELETE and the POST; with `update`, there is nothing between."""
    manifests = "content_targets: [{content: First aid, mandatory: true, assign_to: [everyone]}]"
    assert assert_undone(tmp_path, manifests, IN_PLACE % on_existing, 1) == (2 if on_existing == "recreate" else 1)


@pytest.mark.sampled(day=2)
def test_an_application_that_the_run_did_not_come_to_is_left_alone(tmp_path: Path) -> None:
    """The run dies before it adds the second one, and somebody adds that by hand: the undo removes the first alone."""
    project = prepared(tmp_path, "users: [{email: anna@acme.example, applications: {include: [analyse, create]}}]")
    assert cut_short(project, 1, unsent=False) == 2
    project.send("user-access.set", {"userId": "u-anna", "action": "ADD"}, {"applicationId": "create"})
    undo(project)
    [anna] = [one for one in held(project)["user"] if one["email"] == "anna@acme.example"]
    assert anna["applications"] == ["create", "learn"]


def test_a_planned_name_that_others_gave_is_undone_too(tmp_path: Path) -> None:
    """The run dies before it renames a group, and somebody does that by hand: the undo gives its earlier name back."""
    others = "{name: Others, id: g-1, members: {include: [root@acme.example]}}"
    project = prepared(tmp_path, f"groups: [{others}, {{name: Thirds, id: g-2}}]")
    assert cut_short(project, 2, unsent=True) == 3
    for id, name in (("g-2", "Thirds"), ("g-1", "Others")):
        project.send("manual-groups.rename", {"groupId": id}, {"name": name})
    undo(project)
    assert_as_before(project)


@pytest.mark.parametrize("parts", ["include: [analyse, create]", "include: [analyse], exclude: [learn]"])
def test_a_new_person_whose_applications_were_changed_in_part_is_archived(tmp_path: Path, parts: str) -> None:
    """The run dies before the second change: what it did not come to is no change that others have made."""
    named = "email: new@acme.example, first_name: A, last_name: B, language: en"
    project = prepared(tmp_path, f"users: [{{{named}, applications: {{{parts}}}}}]")
    assert cut_short(project, 2, unsent=False) == 3
    undo(project)
    [new] = [one for one in held(project)["user"] if one["email"] == "new@acme.example"]
    assert new["archived"] is True


@pytest.mark.parametrize("by_others", [False, True])
def test_a_new_group_that_was_filled_in_part_is_deleted(tmp_path: Path, by_others: bool) -> None:
    """The run dies before it adds the second member; a member that others have added keeps the group."""
    filled = "groups: [{name: Fresh, members: [anna@acme.example, mo@acme.example]}]"
    project = prepared(tmp_path, filled, OPTIONS + "dialect: {manual-groups.add.batch: 1}\n")
    assert cut_short(project, 3, unsent=True) == 3
    if by_others:
        project.send("manual-groups.add-members", {"groupId": held_ids(project)["Fresh"]}, {"userIds": ["u-vera"]})
    planned = lmsconf(project.root, "plan", "--undo", "latest").out
    assert ("[undo/conflict]" in planned, "group/Fresh will be deleted" in planned) == (by_others, not by_others)


@pytest.mark.parametrize(("dies_at", "unsent"), [(1, False), (2, True)], ids=["outcome unknown", "created"])
@pytest.mark.parametrize(
    ("deleted", "calls", "changed"),
    [("groups: [Others]", 2, 1), ("custom_fields: [Badge]", 3, 2)],
    ids=["group", "field"],
)
def test_an_undo_that_was_cut_short_is_completed(
    tmp_path: Path, deleted: str, calls: int, changed: int, dies_at: int, unsent: bool
) -> None:
    """It died after it created a deleted group or field: the undo of the same run adds people or their answers alone.

    So too where its journal does not say whether that was created. The name is not taken: it is the resource's own.
    """
    project = started(tmp_path, f"absent: {{{deleted}}}")
    assert lmsconf(project.root, "plan", "--undo", "latest", "--out", "undo.json").code == 0
    assert cut_short(project, dies_at, unsent=unsent, file="undo.json") == calls
    run = json.loads((project.root / "undo.json").read_text())["undo_of"]["run"]
    assert f"Plan: 0 to create, {changed} to change, 0 to delete" in undo(project, run)
    assert_as_before(project)


def test_an_undo_that_was_cut_short_gives_answers_back_beside_a_choice_that_others_have_renamed(tmp_path: Path) -> None:
    """It died after it created a deleted field: what nobody had picked may go by another name since."""
    project = started(tmp_path, "absent: {custom_fields: [Dept]}")
    assert lmsconf(project.root, "plan", "--undo", "latest", "--out", "undo.json").code == 0
    cut_short(project, 2, unsent=True, file="undo.json")
    run = json.loads((project.root / "undo.json").read_text())["undo_of"]["run"]
    project.settled("custom_fields: [{name: Dept, choices: [Sales, HR, {name: Law, previously: [IT]}]}]")
    undo(project, run)
    before, after = held(project, "before.json"), held(project)
    assert after["user"] == before["user"]


@pytest.mark.sampled(daily=False)
@pytest.mark.parametrize(
    ("change", "dies_at"),
    [*(("created", place) for place in range(1, 17)), ("people", 4), ("people", 9), ("conditions", 2), ("field", 2)],
)
def test_a_run_is_undone_that_died_at_one_of_its_calls(tmp_path: Path, change: str, dies_at: int) -> None:
    """What it had not come to is no change that others have made, whether or not the last call was sent."""
    assert_undone(tmp_path, HALVES[change], IN_PLACE % "recreate", dies_at, unsent=dies_at % 2 == 0)


@pytest.mark.slow
@pytest.mark.sampled(gate=3)
@pytest.mark.parametrize("unsent", [False, True], ids=["sent", "unsent"])
@pytest.mark.parametrize("change", HALVES)
def test_a_run_is_undone_whichever_call_it_died_at(tmp_path: Path, change: str, unsent: bool) -> None:
    """Replacements, temporary names, people who are moved, and rights that are given one by one."""
    calls, place = 1, 1
    while place <= calls:
        calls = assert_undone(tmp_path / str(place), HALVES[change], IN_PLACE % "recreate", place, unsent=unsent)
        place += 1


# `plan --undo RUN` of a run that migrated a field, completed or cut short, in both dialects of a field in use.


MIGRATION_SEED = text_of(__file__, "undo_cut_short_migration_seed.yaml")
MIGRATION = text_of(__file__, "undo_cut_short_migration.yaml")
MIGRATION_OPTIONS = "guards: off\ndialect: {custom-fields.in-use: %s}\n"
CALLS = 7


@pytest.mark.sampled(daily=False)
@pytest.mark.parametrize("in_use", ["condition", "removed-choice"])
def test_a_migration_is_undone(tmp_path: Path, in_use: str) -> None:
    """The old field is there again with every answer and condition, and the new one is deleted."""
    project = prepared(tmp_path, MIGRATION, MIGRATION_OPTIONS % in_use, MIGRATION_SEED)
    lmsconf(project.root, "apply", "--auto-approve", code=0)
    undo(project)
    assert_as_before(project)


@pytest.mark.sampled(daily=False)
@pytest.mark.parametrize("in_use", ["condition", "removed-choice"])
@pytest.mark.parametrize("unsent", [False, True], ids=["sent", "unsent"])
@pytest.mark.parametrize("place", range(1, CALLS + 1))
def test_a_migration_that_was_cut_short_is_undone(tmp_path: Path, in_use: str, unsent: bool, place: int) -> None:
    """Whichever call the process died at."""
    project = prepared(tmp_path, MIGRATION, MIGRATION_OPTIONS % in_use, MIGRATION_SEED)
    assert cut_short(project, place, unsent=unsent) == CALLS
    undo(project)
    assert_as_before(project)
