"""A field in use is replaced by a new one: answers, conditions, then the deletion, resumed wherever it stopped."""

from pathlib import Path

import pytest
from texts import text_of

from lmsconf.errors import ExitCode, LmsconfError
from lmsconf.kinds.user.types import PersonRow
from lmsconf.model.calls import Call, CallStatus
from lmsconf.model.effects import Basis
from lmsconf.model.plan import Plan
from lmsconf.model.problem_codes import blockers

from .project import Project

pytestmark = pytest.mark.sampled(daily=False)  # some seconds in all

SEED = text_of(__file__, "field_migration_seed.yaml")
WHOLE = """
custom_fields:
  - name: Department
    type: CHOICE
    choices: [Sales and Marketing, Tech, People]
    migrate: {from: Team, choices: {Sales: Sales and Marketing, HR: People}, conditions: all}
smart_groups:
  - {name: Sellers, conditions: [{field: Department, choices: [Sales and Marketing]}]}
"""
MOVED = {"a@x.se": "Sales and Marketing", "b@x.se": "Tech", "d@x.se": "People"}


def answers(it: Project, field: str) -> dict[str, object]:
    """E-mail → answer to a field, by the names of its choices; a sorted list for several."""
    choices = {one["choiceId"]: one["name"] for row in it.fields().values() for one in row.get("choices", [])}
    with it.reader() as reader:
        rows = reader.snapshot().rows(PersonRow)
    given = {row.email: answer for row in rows for answer in row.answers or () if answer.field == field}
    named = {email: sorted(choices.get(one, one) for one in answer.picked) for email, answer in given.items()}
    return {email: names[0] if len(names) == 1 else names for email, names in named.items()}


def answer(it: Project, email: str, answers: str) -> None:
    """Somebody sets answers by hand, and the manifests are what they were."""
    kept = (it.root / "manifests" / "all.yaml").read_text()
    Project(it.root, it.seed, it.options).apply(f"users: [{{email: {email}, answers: {answers}}}]")
    it.write(kept)


def problems(plan: Plan, code: str) -> list[str]:
    return [problem.message for problem in plan.all_problems if problem.code == code]


def stopped_after(it: Project, number: int) -> int:
    """Applies, and dies before call `number` + 1; gives how many calls the plan had."""
    sent: list[Call] = []

    def stop(call: Call) -> None:
        if len(sent) == number:
            raise LmsconfError("killed")
        sent.append(call)

    plan, _ = it.run(stop)
    return len(plan.calls)


@pytest.mark.parametrize("number", range(8))
def test_killed_at_any_call_it_ends_with_every_answer(tmp_path: Path, number: int) -> None:
    """Whichever call a run dies before, the next plan has what is left, and ends as an undisturbed one does."""
    it = Project(tmp_path, SEED)
    it.write(WHOLE)
    total = stopped_after(it, number)
    assert total == 7
    assert len(it.plan().calls) == total - min(number, total)
    assert answers(it, "Team" if number < total else "Department")
    it.settled(WHOLE)
    assert answers(it, "Department") == MOVED
    assert answers(it, "Country") == {"a@x.se": "SE", "c@x.se": ["FI", "SE"]}


def test_nobody_leaves_a_group_in_between(tmp_path: Path) -> None:
    """Before each call, and at the end, the smart groups have the members that they had before, as foretold."""
    it = Project(tmp_path, SEED)
    it.write(WHOLE)
    seen: list[object] = []

    def look(call: Call | None = None) -> None:
        seen.append([members(it, "sg-1"), members(it, "sg-2")])

    plan, _ = it.run(look)
    look()
    assert len(seen) == len(plan.calls) + 1
    assert all(one == seen[0] for one in seen)
    assert all(seen[0])
    people = plan.effects.people
    assert (plan.effects.basis, plan.effects.groups, people.gain, people.lose) == (Basis.EXACT, (), 0, 0)


def members(it: Project, group: str) -> object:
    """The ids of the members of a smart group, as the service computes them."""
    answer = it.ask("smart-groups.get", {"smartGroupId": group}, {"includeMembers": "true"})
    return answer["members"] if isinstance(answer, dict) else None


@pytest.mark.parametrize("part", [{"only": ("custom_field/*", "smart_group/*")}, {"excluded": ("user/new@x.se",)}])
def test_somebody_whose_rename_is_not_planned_is_copied_too(tmp_path: Path, part: dict[str, tuple[str, ...]]) -> None:
    """The copy goes to the live account: with it left out, the old field could not be deleted."""
    it = Project(tmp_path, SEED)
    plan = it.plan(f"{WHOLE}users: [{{email: new@x.se, previously: [a@x.se], first_name: A}}]\n", **part)
    report = it.apply(plan=plan)
    assert (report.exit, report.converged, answers(it, "Department")) == (ExitCode.OK, True, MOVED)


def test_an_answer_that_differs_keeps_the_old_field(tmp_path: Path) -> None:
    """Somebody who answered both fields differently is named; nothing is overwritten, and the rest is copied."""
    it = Project(tmp_path, SEED)
    it.write(WHOLE)
    stopped_after(it, 1)
    answer(it, "a@x.se", "{Department: People}")
    plan = it.plan(WHOLE)
    (message,) = problems(plan, "migrate/not-copied")
    assert "1 answer to it is not copied: the person has another answer to Department (user/a@x.se)" in message
    assert "custom-fields.delete" not in [call.operation for call in plan.calls]
    it.apply()
    assert answers(it, "Department") == {**MOVED, "a@x.se": "People"}
    assert answers(it, "Team")["a@x.se"] == "Sales"
    answer(it, "a@x.se", "{Department: Sales and Marketing}")
    it.settled(WHOLE)
    assert answers(it, "Department") == MOVED


def test_answers_that_cannot_be_copied_are_deleted_on_request_and_counted(tmp_path: Path) -> None:
    """`not_copied: delete` deletes them with the field, which the guard counts and stops; so it does for `null`."""
    it = Project(tmp_path, SEED)
    it.write(WHOLE)
    stopped_after(it, 1)
    answer(it, "a@x.se", "{Department: People}")
    manifests = WHOLE.replace("conditions: all", "conditions: all, not_copied: delete").replace(
        "HR: People", "HR: null"
    )
    (guard,) = [one for one in it.plan(manifests).guards if one.tripped]
    assert (guard.name, guard.total) == ("answers", 2)
    it.settled(manifests, "answers=2")
    assert answers(it, "Department") == {"a@x.se": "People", "b@x.se": "Tech"}


@pytest.mark.parametrize(
    ("email", "team"), [("c@x.se", "Tech"), pytest.param("a@x.se", "Tech", marks=pytest.mark.sampled)]
)
def test_an_answer_given_during_the_run_keeps_the_old_field(tmp_path: Path, email: str, team: str) -> None:
    """Somebody answers the old field while the others' answers are copied: it is read again, and not deleted."""
    it = Project(tmp_path, SEED)
    it.write(WHOLE)

    def meanwhile(call: Call) -> None:
        if call.operation == "smart-groups.replace-conditions" and answers(it, "Team").get(email) != team:
            answer(it, email, f"{{Team: {team}}}")

    _, report = it.run(meanwhile)
    *done, deletion = report.outcomes
    assert {one.status for one in done} == {CallStatus.DONE}
    assert deletion.status is CallStatus.FAILED
    assert "the workspace has changed during this run" in str(deletion.reason)
    assert f"user/{email}" in str(deletion.reason)
    assert report.exit == ExitCode.PARTIAL
    assert answers(it, "Team")[email] == team
    left = it.plan()
    if email == "c@x.se":
        it.settled(WHOLE)
        assert answers(it, "Department") == {**MOVED, email: team}
    else:
        assert len(problems(left, "migrate/not-copied")) == 1
        assert left.calls == ()


@pytest.mark.parametrize("named", ["Department", "Team"])
def test_a_selected_field_is_migrated_with_its_answers(tmp_path: Path, named: str) -> None:
    """The old field and the people are part of the selection, and so are conditions that no manifest declares."""
    it = Project(tmp_path, SEED)
    more = "users: [{email: a@x.se, first_name: Ada}]\n"
    only = (f"custom_field/{named}",)
    plan = it.plan(WHOLE + more, only=only)
    (blocker,) = blockers(plan)
    assert (blocker.name, blocker.hint) == (
        "refusal/conditions-not-replaced",
        "Plan them too: --only smart_group/Sellers",
    )
    only = (*only, "smart_group/Sellers")
    plan = it.plan(only=only)
    assert blockers(plan) == ()
    (person,) = [one for one in plan.changes if str(one.address) == "user/a@x.se"]
    assert [one.path for one in person.fields] == ["answers.Department"]
    report = it.apply(plan=plan)
    assert (report.exit, report.converged) == (ExitCode.OK, True)
    assert answers(it, "Department") == MOVED
    assert "Team" not in it.fields()
    assert it.plan(only=only).changes == ()
    assert [str(one.address) for one in it.plan().changes] == ["user/a@x.se"]
