"""What a known service changes along with a call: managers' rights and groups, and conditions of smart groups."""

from pathlib import Path

import pytest
from texts import text_of

from lmsconf.errors import ExitCode
from lmsconf.model.plan import Plan, UndoLevel

from .project import Project, errors
from .shell import lmsconf

pytestmark = pytest.mark.sampled(day=8, daily=False)

SEED = text_of(__file__, "manager_right_seed.yaml")
OPTIONS = "people: {create: true}\ndialect: {manual-groups.who-can-manage: with-right}\n"
GIVEN = OPTIONS.replace("with-right", "given")
LOSE = "dialect: {user-access.make-manager.managed-groups: lose}\n"
KEEP = LOSE.replace("lose", "keep")


def project(tmp_path: Path, options: str = OPTIONS) -> Project:
    return Project(tmp_path, SEED, options)


def test_rights_are_read_only_where_they_matter(tmp_path: Path) -> None:
    """Without the key, or without a manager in the manifests, no right of anybody is asked for."""
    smart = "smart_groups: [{name: Sales, managers: [bo@acme.example]}]"
    for options, manifest in (("", smart), (OPTIONS, "smart_groups: [{name: Sales}]"), (OPTIONS, smart)):
        it = project(tmp_path, options)
        it.plan(manifest)
        asked = "users.extended-info" in [call.operation for call in it.calls]
        assert asked is ((options, manifest) == (OPTIONS, smart))


def notes(plan: Plan) -> list[tuple[str, str, str]]:
    """What the plan says of rights beside its changes: the code, the resource, and what it says of it."""
    codes = ("person/given-right", "person/loses-groups", "refusal/changed-along")
    problems = [one for one in plan.all_problems if one.code in codes]
    assert all(one.source and one.is_error == one.code.startswith("refusal") for one in problems)
    return [(one.code, str(one.address), one.message.partition(": ")[2]) for one in problems]


@pytest.mark.sampled(daily=False)
@pytest.mark.parametrize(
    "manifest",
    [
        "groups: [{name: Coaches, managers: [bo@acme.example, mo@acme.example, root@acme.example]}]",
        "groups: [{name: Coaches, managers: {include: [bo@acme.example]}}]",
        "groups: [{name: New, managers: [bo@acme.example]}]",
        "smart_groups: [{name: Sales, managers: [bo@acme.example, anna@acme.example]}]",
        "groups: [{name: Coaches, managers: [bo@acme.example]}]\nusers: [{email: bo@acme.example, metadata: {a: b}}]",
    ],
)
def test_who_is_given_the_right_is_noted(tmp_path: Path, manifest: str) -> None:
    """Only of people without a right; the service does it, and the next plan is empty."""
    it = project(tmp_path, GIVEN)
    ((code, _, said),) = notes(it.plan(manifest))
    assert (code, said) == (
        "person/given-right",
        "bo@acme.example is given the manager right along, because the service gives it to managers",
    )
    report = it.apply(manifest)
    assert (report.exit, report.converged) == (ExitCode.OK, True)
    assert it.ask("users.get", {"userId": "u-bo"})["manager"] is True  # type: ignore[index,call-overload]  # JSON
    assert (it.plan().changes, notes(it.plan())) == ((), [])


TAKEN = "users: [{email: mo@acme.example, manager: false}, {email: anna@acme.example, manager: false}]"


def test_groups_that_go_with_the_right_are_noted(tmp_path: Path) -> None:
    """Of each person who loses the right and manages groups: these people alone are read."""
    it = project(tmp_path, LOSE)
    said = "with the manager right, the person loses the groups that they manage: Coaches"
    plan = it.plan(TAKEN)
    assert notes(plan) == [("person/loses-groups", "user/mo@acme.example", said)]
    assert {str(one.address): one.undo.level for one in plan.changes} == {
        "user/mo@acme.example": UndoLevel.PARTIAL, "user/anna@acme.example": UndoLevel.FULL,
    }  # fmt: skip
    report = it.apply()
    assert (report.exit, report.converged) == (ExitCode.OK, True)
    assert it.ask("manual-groups.managers", {"groupId": "g-1"}) == {"userIds": []}
    for manifest, number in ((TAKEN, 2), (TAKEN.replace("false", "true"), 0)):
        keep, lose = (project(tmp_path / f"{word}{number}", options) for word, options in (("k", KEEP), ("l", LOSE)))
        assert notes(keep.plan(manifest)) == []
        assert (len(notes(lose.plan(manifest))) > 0) is (number > 0)
        assert len(lose.calls) == len(keep.calls) + number


def test_a_snapshot_and_an_undo_note_them_too(tmp_path: Path) -> None:
    """They are kept with the people of a snapshot; an undo that takes a right reads them as any plan."""
    it = project(tmp_path, LOSE)
    it.write(TAKEN)
    lost = "the person loses the groups that they manage: Coaches"
    for more in ([], ["--redact"]):
        assert lmsconf(it.root, "snapshot", *more, "live.json").code == 0
        ran = lmsconf(it.root, "plan", "--snapshot", "live.json")
        assert lost in ran.out, ran.out + ran.err
    it.write("users: [{email: bo@acme.example, manager: true}]")
    assert lmsconf(it.root, "apply", "--auto-approve").code == 0
    it.send("manual-groups.add-managers", {"groupId": "g-1"}, {"userIds": ["u-bo"]})
    ran = lmsconf(it.root, "plan", "--undo", "latest")
    assert lost in ran.out, ran.out + ran.err


# Where a service deletes fields in use, what it takes out of smart groups is announced, counted and taken along.


NEVER = "dialect: {custom-fields.in-use: never}\n"
DELETED = "absent: {custom_fields: [D]}"


def conditions_project(root: Path, more: str = "", options: str = "") -> Project:
    return Project(root, text_of(__file__, "manager_right_conditions_seed.yaml") + more, NEVER + options)


def test_a_declared_group_that_changes_must_say_what_its_conditions_will_be(tmp_path: Path) -> None:
    """A call changes its managers and the service its conditions: the plan is refused, and so is its file."""
    it = conditions_project(tmp_path, "people: [{email: a@x.example}]\n")
    it.write("smart_groups: [{name: Both, managers: [a@x.example]}]\n" + DELETED)
    plan = it.plan()
    assert errors(plan) == ["refusal/changed-along"]
    (message,) = [problem.message for problem in plan.all_problems if problem.is_error]
    assert message.endswith("smart_group/Both, whose conditions the service would change too")
    saved = str(tmp_path / "plan.json")
    assert lmsconf(tmp_path, "plan", "--out", saved).code == ExitCode.OK
    assert lmsconf(tmp_path, "apply", saved).code == ExitCode.BLOCKED


def test_declared_conditions_on_what_is_deleted_are_one_error(tmp_path: Path) -> None:
    """Drift lists the deletion beside it: nobody is told to declare conditions, which the group has."""
    it = conditions_project(tmp_path)
    declared = "smart_groups: [{name: Only, conditions: [{field: D, choices: [X]}]}]\n"
    it.apply(declared)
    it.write(declared + DELETED)
    ran = lmsconf(tmp_path, "drift")
    assert ("custom_field/D" in ran.out, "no-conditions" in ran.out) == (True, False), ran.out


def test_drift_knows_no_effects(tmp_path: Path) -> None:
    """What would come of a deletion is no difference between manifests and workspace."""
    conditions_project(tmp_path, options="ownership: {custom_fields: all}\n").write("custom_fields: [{name: E}]")
    found = lmsconf(tmp_path, "drift", "--format", "json").document["findings"]
    assert isinstance(found, list)
    assert [one["address"] for one in found] == ["custom_field/D"]


def test_a_condition_made_meanwhile_makes_the_plan_stale(tmp_path: Path) -> None:
    """One more smart group that names the field was reviewed by nobody."""
    it = conditions_project(tmp_path)
    it.write(DELETED)
    assert lmsconf(tmp_path, "plan", "--out", str(tmp_path / "plan.json")).code == ExitCode.OK
    it.apply("smart_groups: [{name: New, conditions: [{field: D, choices: [X]}, {field: E, choices: [P]}]}]")
    assert lmsconf(tmp_path, "apply", str(tmp_path / "plan.json")).code == ExitCode.STALE
