"""Each change is one minimal set of calls, in an order that gives first and takes last; then there is nothing to do."""

import json
import re
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import NamedTuple

import pytest
import yaml
from manifest.cases import Case, cases
from msgspec.structs import replace

from lmsconf.documents.plan_file import dumps, loads
from lmsconf.errors import ExitCode, ProblemsFound, Rejected
from lmsconf.kinds.grant_verification import revokes_access
from lmsconf.model.calls import is_creation
from lmsconf.model.guards import Consent
from lmsconf.model.plan import Change, Plan

from .altered_service import plan_against
from .project import Project, told_problems

PEOPLE = """
people:
  - {email: anna@acme.example, id: u-anna}
  - {email: bo@acme.example, id: u-bo}
  - {email: cy@acme.example, id: u-cy}
"""


def project(tmp_path: Path, seed: str, options: str = "") -> Project:
    return Project(tmp_path, PEOPLE + seed, options)


class PlanCase(NamedTuple):
    """What is live and declared, with the options of the project and of its plan, and what the plan is."""

    title: str
    options: str
    seed: str
    manifests: str
    told: str


def plan_cases(table: Iterable[Case]) -> Iterator[PlanCase]:
    """The cases of a table: options, seed and manifests, or the last two or one. What is live may be that above."""
    seed = ""
    for case in table:
        *before, manifests = re.split("^---.*\n", case.text, flags=re.MULTILINE)
        options = before.pop(0) if len(before) == 2 or "--- above\n" in case.text else ""
        seed = before[0] if before else seed
        yield PlanCase(case.title, options, seed, manifests, case.told)


PLANS = [*plan_cases(cases(Path(__file__).with_name("plans.txt")))]


@pytest.mark.sampled
@pytest.mark.parametrize("case", PLANS, ids=lambda case: case.title)
def test_a_plan_says_what_changes_and_leaves_nothing_to_do(tmp_path: Path, case: PlanCase) -> None:
    """Changes, calls and what they wait for, and what is reported; its file is carried out so, and settles.

    Consent to exactly what the guards count lets it pass. A plan of a part, or with an error, is not carried out.
    """
    of_plan, options = re.fullmatch("(plan:.*\n)?((?s:.*))", case.options).groups()
    more = yaml.safe_load(of_plan)["plan"] if of_plan else {}
    it = Project(tmp_path, case.seed, options)
    try:
        plan = it.plan(case.manifests, **{key: tuple(v) if isinstance(v, list) else v for key, v in more.items()})
        told = told_plan(plan)
    except ProblemsFound as error:
        plan, told = None, told_problems(error.problems)
    assert told == case.told
    if plan is None:
        return
    assert loads(dumps(plan)) == replace(plan, renames=())
    if more or any(one.is_error for one in plan.all_problems):
        return
    consents = (one.allow.split("=") for one in plan.guards if one.tripped and one.allow)
    plan = it.plan(consents=tuple(Consent(guard=name, number=int(number)) for name, number in consents))
    report = it.apply(plan=loads(dumps(plan)))
    assert (report.exit, report.converged) == (ExitCode.OK, True), report
    assert sorted(map(str, (call.operation for call in it.calls))) == sorted(call.operation for call in plan.calls)
    assert it.plan().changes == ()


def told_plan(plan: Plan) -> str:
    """A plan in the form of the table."""
    lines = [line for change in plan.changes for line in _change(change)]
    for call in plan.calls:
        after = f" after {', '.join(call.needs)}" if call.needs else ""
        lines.append(f"{call.id} {call.operation} {call.path}{after}")
    counted = ", ".join(f"{one.name} {one.total}" for one in plan.guards if one.total)
    lines += [f"counted: {counted}"] * bool(counted)
    lines += [f"guard {one.name} stops: {one.reason}" for one in plan.guards if one.tripped]
    lines += [f"left out: {address}" for address in plan.left_out]
    for one in plan.unmanaged:
        alone = f"; left alone: {one.left_alone}" if one.left_alone else ""
        lines.append(f"unmanaged: {', '.join(map(str, one.addresses))}{alone}")
    return "".join(f"{line}\n" for line in lines) + told_problems(plan.all_problems)


def _change(change: Change) -> Iterator[str]:
    """A change, why it is made if no entry says it, what of it cannot be undone, and what it changes."""
    yield f"{change.action} {change.address}" + (f", because {change.reason}" if change.reason else "")
    if change.undo.reason:
        yield f"  undo: {change.undo.level}: {change.undo.reason}"
    for one in change.fields:
        values = f"{one.before} -> {one.after}" if not (one.added or one.removed) else ""
        signs = [f"{sign}{json.dumps(value)}" for sign, of in (("+", one.added), ("-", one.removed)) for value in of]
        yield f"  {one.path}: {values}{' '.join(signs)}"
    if change.defaults:
        yield f"  not said: {', '.join(change.defaults)}"


@pytest.mark.sampled
@pytest.mark.parametrize("most", [1, 2, 3])
def test_people_are_added_as_many_to_a_call_as_it_carries(tmp_path: Path, most: int) -> None:
    """A call with one more is refused by the service, and none is sent."""
    it = project(tmp_path, "groups: [{name: A, id: g-1}]", f"dialect: {{manual-groups.add.batch: {most}}}\n")
    people = ["anna@acme.example", "bo@acme.example", "cy@acme.example"]
    calls = it.settled(f"groups: [{{name: A, members: {json.dumps(people)}}}]")
    assert calls == ["manual-groups.add-members"] * -(-len(people) // most)
    with pytest.raises(Rejected, match=f"at most {most} users"):
        it.send("manual-groups.add-members", {"groupId": "g-1"}, {"userIds": ["u-1"] * (most + 1)})


@pytest.mark.sampled
def test_a_renamed_choice_keeps_its_id(tmp_path: Path) -> None:
    """A choice with an earlier name is sent with the id that it has, so that answers stay."""
    it = project(tmp_path, "custom_fields: [{name: Dept, type: CHOICE, choices: [HR, Sales]}]")
    before = {choice["name"]: choice["choiceId"] for choice in it.fields()["Dept"]["choices"]}
    calls = it.settled("custom_fields: [{name: Dept, choices: [{name: People, previously: [HR]}, Sales]}]")
    assert calls == ["custom-fields.replace"]
    after = {choice["name"]: choice["choiceId"] for choice in it.fields()["Dept"]["choices"]}
    assert after == {"People": before["HR"], "Sales": before["Sales"]}


@pytest.mark.sampled
def test_a_key_that_is_taken_out_of_a_manifest_changes_nothing(tmp_path: Path) -> None:
    """Omitted is not managed: members that a manifest no longer mentions stay."""
    it = project(tmp_path, "groups: [{name: A, members: [anna@acme.example], managers: [bo@acme.example]}]")
    it.settled("groups: [{name: A, members: [anna@acme.example]}]")
    assert it.settled("groups: [{name: A}]") == []


@pytest.mark.sampled
def test_a_flipped_assignment_is_one_post(tmp_path: Path) -> None:
    """An assignment is one value: no longer mandatory and no longer limited in time is one POST."""
    it = project(
        tmp_path,
        """
content: [{name: GDPR}]
content_targets:
  - {content: GDPR, assign_to: [everyone], mandatory: true, visible_from: 2026-01-01T00:00:00Z}
""",
    )
    recreates = it.spec.behaviour("content-targets.on-existing") == "recreate"
    ends = ["content-targets.delete"] if recreates else []
    assert it.settled("content_targets: [{content: GDPR, assign_to: [everyone]}]") == [*ends, "content-targets.create"]
    targets = it.ask("content-targets.list", query={"contentId": "c-1"})
    assert targets["targets"][0]["mandatory"] is False


KEEPS = """
custom_fields: [{name: Dept, type: CHOICE, choices: [HR, Sales, Ops]}]
smart_groups: [{name: Sellers, conditions: [{field: Dept, choices: [Sales]}]}]
"""


@pytest.mark.sampled
def test_a_field_in_use_may_be_refused(tmp_path: Path) -> None:
    """Its change names the groups, is counted by the guard, and is not sent without consent."""
    it = project(tmp_path, KEEPS, "dialect: {custom-fields.in-use: condition}\n")
    plan = it.plan("custom_fields: [{name: Dept, description: Where one works}]")
    (problem,) = (one for one in plan.all_problems if one.code == "refusal/in-use")
    assert "smart_group/Sellers" in problem.message
    (guard,) = (one for one in plan.guards if one.name == "refusals")
    assert (guard.total, guard.tripped, guard.allow) == (1, True, "refusals=1")
    counted = [(one.of, one.taken, one.size) for one in plan.measures if one.guard == "refusals"]
    assert counted == [("custom_field/Dept", 1, 0)]


@pytest.mark.sampled
def test_a_smart_group_is_replaced_by_one_on_a_new_choice(tmp_path: Path) -> None:
    """Whoever sees its content keeps seeing it: the field is tried while the old group names it, and that is told."""
    seed = KEEPS + "content: [{name: X}]\ncontent_targets: [{content: X, assign_to: [{smart_group: Sellers}]}]\n"
    wanted = """
custom_fields: [{name: Dept, choices: [HR, Sales, Ops, Legal]}]
smart_groups: [{name: Lawyers, conditions: [{field: Dept, choices: [Legal]}]}]
absent: {smart_groups: [Sellers]}
content_targets: [{content: X, assign_to: [{smart_group: Lawyers}]}]
"""
    it = project(tmp_path, seed, "dialect: {custom-fields.in-use: condition}\n")
    plan = it.plan(wanted)
    (problem,) = (one for one in plan.all_problems if one.code == "refusal/in-use")
    assert "smart_group/Sellers" in problem.message
    assert [guard.allow for guard in plan.guards if guard.tripped and guard.name == "refusals"] == ["refusals=1"]
    order = ["custom-fields.replace", "smart-groups.create", "content-targets.create", "content-targets.delete"]
    assert [call.operation for call in plan.calls] == [*order, "smart-groups.delete"]
    (tmp_path / "never").mkdir()
    it = project(tmp_path / "never", seed, "dialect: {custom-fields.in-use: never}\n")
    assert it.settled(wanted) == [*order, "smart-groups.delete"]


@pytest.mark.sampled
@pytest.mark.parametrize(
    ("form", "text"),
    [
        ("iso", "2026-01-01T00:00:00Z"),
        ("iso-ms", "2026-01-01T00:00:00.000Z"),
        ("iso-local", "2026-01-01T00:00:00"),
        ("iso-local, content-targets.time-zone: Asia/Kolkata", "2026-01-01T05:30:00"),
        ("epoch-ms", "1767225600000"),
    ],
)
def test_times_are_written_as_the_dialect_says(tmp_path: Path, form: str, text: str) -> None:
    """Whatever the service wrote itself until now; a time without an offset is in the zone of the dialect."""
    it = project(tmp_path, "content: [{name: X}]\n", f"dialect: {{content-targets.time-format: {form}}}\n")
    wanted = "content_targets: [{content: X, visible_from: 2026-01-01T00:00:00Z, assign_to: [everyone]}]"
    assert text in it.plan(wanted).calls[0].body.values()
    assert it.settled(wanted) == ["content-targets.create"]


@pytest.mark.sampled
def test_a_window_is_declared_as_precisely_as_the_service_keeps_it(tmp_path: Path) -> None:
    """Where seconds are cut off, the last second of a day is its last minute, in the plan and in the call."""
    it = project(tmp_path, "content: [{name: X}]\n", "dialect: {content-targets.time-precision: minute}\n")
    wanted = "content_targets: [{content: X, visible_until: 2026-12-31T23:59:59Z, assign_to: [everyone]}]"
    assert {"2026-12-31T23:59:00Z", "1798761540000"} & set(map(str, it.plan(wanted).calls[0].body.values()))
    assert it.settled(wanted) == ["content-targets.create"]
    assert it.plan(wanted).changes == ()


# The order in which a plan sends its calls: first what gives, then what takes away.


def test_a_person_enters_the_new_group_before_leaving_the_old_one(tmp_path: Path) -> None:
    """Grants come before revocations, so that nobody loses access for a moment."""
    it = Project(
        tmp_path, "people: [{email: anna@acme.example}]\ngroups: [{name: A, members: [anna@acme.example]}, {name: B}]"
    )
    calls = it.settled("groups: [{name: A, members: []}, {name: B, members: [anna@acme.example]}]")
    assert calls == ["manual-groups.add-members", "manual-groups.remove-member"]
    remove = it.last.calls[-1]
    assert remove.needs == ("c1",)


def test_what_takes_access_away_is_sent_last(tmp_path: Path) -> None:
    """Whatever its kind: nobody is without something while the run is still giving."""
    seed = """
custom_fields: [{name: Dept, type: CHOICE, choices: [A, B]}, {name: Gone, type: TEXT}]
people:
  - {email: root@acme.example, admin: true}
  - {email: vera@acme.example, admin: true}
  - {email: mo@acme.example, manager: true, applications: [learn, analyse]}
  - {email: anna@acme.example}
groups: [{name: Going}, {name: Keep, members: [anna@acme.example], managers: [vera@acme.example]}]
smart_groups: [{name: Old, conditions: [{field: Dept, choices: [A]}]}]
content: [{name: X}]
content_targets: [{content: X, assign_to: [{group: Keep}]}]
"""
    manifests = """
custom_fields: [{name: New, type: TEXT}]
groups: [{name: Fresh}, {name: Keep, members: [mo@acme.example], managers: []}]
smart_groups: [{name: Made, conditions: [{field: Dept, choices: [B]}]}]
content_targets: [{content: X, assign_to: [everyone, {smart_group: Made}]}]
users:
  - {email: vera@acme.example, admin: false}
  - {email: mo@acme.example, manager: false, applications: [learn, create]}
  - {email: anna@acme.example, archived: true}
absent:
  custom_fields: [Gone]
  groups: [Going]
  smart_groups: [Old]
  content_targets: [{content: X, assign_to: [{group: Keep}]}]
"""
    plan = Project(tmp_path, seed, "guards: {min_admins: 1}\n").plan(manifests)
    calls = [f"{call.operation} {call.path.rpartition('/')[2]}" for call in plan.calls]
    takes = (
        "custom-fields.delete", "manual-groups.delete", "manual-groups.remove-", "smart-groups.delete",
        "content-targets.delete", "users.archive", "user-access.make-admin false", "user-access.make-manager false",
        "user-access.set REMOVE",
    )  # fmt: skip
    taking = [call.startswith(takes) for call in calls]
    assert {one for one in takes if any(call.startswith(one) for call in calls)} == set(takes)
    assert taking == sorted(taking), calls
    groups = ("custom-fields.", "manual-groups.", "smart-groups.")
    assert [revokes_access(call) for call in plan.calls if call.operation.startswith(groups)] == [
        name.startswith(takes) for name in calls if name.startswith(groups)
    ]


@pytest.mark.parametrize(("taken", "going"), [(9, ["Dept"]), (10, ["Also", "Dept"]), (10, ["Dept", "Zoo"])])
def test_a_field_that_a_smart_group_moves_to_has_a_slot_before_the_old_one_is_deleted(
    tmp_path: Path, taken: int, going: list[str]
) -> None:
    """A new field that nobody waits for waits for that deletion, or both for one that no smart group drops."""
    kept = "".join(f"  - {{name: K{n}, type: TEXT}}\n" for n in range(taken - len(going)))
    old = "".join(f"  - {{name: {name}, type: CHOICE, choices: [Sales]}}\n" for name in going)
    group = "smart_groups: [{name: Sellers, conditions: [{field: %s, choices: [Sales]}]}]\n"
    it = Project(tmp_path, f"custom_fields:\n{kept}{old}{group % 'Dept'}", "guards: off\n")
    it.settled(
        "custom_fields: [{name: Area, type: TEXT}, {name: Unit, type: CHOICE, choices: [Sales]}]\n"
        f"absent: {{custom_fields: [{', '.join(going)}]}}\n{group % 'Unit'}"
    )
    order = [f"{call.operation.partition('.')[2]} {call.address.name}" for call in it.last.calls]
    assert order.index("create Unit") < order.index("replace-conditions Sellers") < order.index("delete Dept")
    if taken == 9:
        assert order.index("delete Dept") < order.index("create Area")


def test_where_there_are_more_fields_than_may_be_each_new_one_waits(tmp_path: Path) -> None:
    """With eleven live, two are created only after two of three deletions, so that there are never more."""
    fields = "".join(f"  - {{name: F{n}, type: TEXT}}\n" for n in range(10))
    it = Project(tmp_path, f"custom_fields:\n{fields}", "guards: off\n")
    plan = plan_against(
        it,
        "custom_fields: [{name: A, type: TEXT}, {name: B, type: TEXT}]\nabsent: {custom_fields: [F1, F2, F3]}",
        lambda snapshot: snapshot["custom_field"].append({**snapshot["custom_field"][0], "id": "f-99", "name": "More"}),
    )
    assert [(call.address.name, len(call.needs)) for call in plan.calls if is_creation(call.operation)] == [
        ("A", 1),
        ("B", 1),
    ]
