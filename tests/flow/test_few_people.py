"""Of many people a plan reads only those that it shows, and all of them where only all of them tell."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path

import pytest

from lmsconf.errors import ProblemsFound
from lmsconf.model.plan import Plan

from .project import Project
from .shell import lmsconf

PEOPLE = 240
SEED = (
    "people: ["
    + ", ".join(f"{{email: p{n}@acme.example, id: u-{n:04}}}" for n in range(PEOPLE))
    + "]\ncontent: [{name: Intro, id: c-1}]\n"
)
EDITOR = "api"
"""Who the sandbox says edited an assignment last."""
PAGES = "dialect: {paging.limit: 10}\n"


def emails(*numbers: int) -> str:
    return "[" + ", ".join(f"p{number}@acme.example" for number in numbers) + "]"


def live(members: str, managers: str = "[]", more: str = "") -> str:
    return f"{SEED}groups: [{{name: Sales, id: g-1, members: {members}, managers: {managers}}}]\n{more}"


def asked(project: Project) -> Counter[str]:
    return Counter(call.operation or "" for call in project.calls)


def as_with_all(project: Project, plan: Plan) -> bool:
    """Whether a plan on a snapshot of the whole workspace changes the same in the same way."""
    assert lmsconf(project.root, "snapshot", "whole.json").code == 0
    ran = lmsconf(project.root, "plan", "--snapshot", "whole.json", "--format", "json")
    report = json.loads(ran.out)
    mine = [(str(one.address), one.action.value, one.before, one.after) for one in plan.changes]
    return mine == [(one["address"], one["action"], one["before"], one["after"]) for one in report["changes"]]


def test_members_that_are_as_declared_are_looked_up(tmp_path: Path) -> None:
    """One page of people and a request for each member, instead of every page."""
    project = Project(tmp_path, live(emails(100, 101, 102), emails(103)), PAGES)
    plan = project.plan(f"groups: [{{name: Sales, members: {emails(100, 101, 102)}, managers: {emails(103)}}}]\n")
    assert plan.changes == ()
    assert (asked(project)["users.list"], asked(project)["users.get"]) == (1, 4)
    assert plan.people == PEOPLE
    assert as_with_all(project, plan)


def test_somebody_who_is_to_leave_is_shown_by_e_mail(tmp_path: Path) -> None:
    """A member in no manifest is looked up too."""
    project = Project(tmp_path, live(emails(100, 101, 239)), PAGES)
    plan = project.plan(f"groups: [{{name: Sales, members: {emails(100, 101)}}}]\n", effects=False)
    (change,) = plan.changes
    assert change.fields[0].removed == ("p239@acme.example",)
    assert asked(project)["users.list"] == 1
    assert as_with_all(project, plan)


def test_somebody_who_is_to_come_takes_the_whole_list(tmp_path: Path) -> None:
    """Only all people together show whose e-mail it is, and that nobody else has it; nobody is looked up in vain."""
    project = Project(tmp_path, live(emails(100, 101)), PAGES)
    plan = project.plan(f"groups: [{{name: Sales, members: {emails(100, 101, 200)}}}]\n")
    (change,) = plan.changes
    assert change.fields[0].added == ("p200@acme.example",)
    assert asked(project)["users.list"] == PEOPLE // 10
    assert asked(project)["users.get"] == 0
    assert as_with_all(project, plan)


def test_an_exchange_takes_the_whole_list(tmp_path: Path) -> None:
    """One member is removed and another added: the one to add is found in the whole list."""
    project = Project(tmp_path, live(emails(100, 101)), PAGES)
    plan = project.plan(f"groups: [{{name: Sales, members: {emails(100, 200)}}}]\n")
    assert asked(project)["users.list"] == PEOPLE // 10
    assert as_with_all(project, plan)


def test_a_misspelt_person_is_an_error_as_ever(tmp_path: Path) -> None:
    """An e-mail that nobody has is told with the one that is near."""
    project = Project(tmp_path, live(emails(100, 101)), PAGES)
    with pytest.raises(ProblemsFound) as failed:
        project.plan("groups: [{name: Sales, members: [p100@acme.example, pp101@acme.example]}]\n")
    (problem,) = failed.value.problems
    assert problem.code == "person/unknown"
    assert "p101@acme.example" in str(problem.hint)


@pytest.mark.parametrize(
    ("page", "first", "members", "is_looked_up"),
    [
        (10, 130, 11, True),
        (10, 130, 12, False),
        (80, 130, 1, True),
        (80, 130, 2, False),
        (100, 130, 1, True),
        (120, 130, 1, False),
        (120, 5, 1, False),
    ],
)
def test_more_members_than_half_the_further_pages_are_listed(
    tmp_path: Path, page: int, first: int, members: int, is_looked_up: bool
) -> None:
    """Otherwise a request for each of them could take as many as the pages, and be in vain; two pages are read."""
    many = emails(*range(first, first + members))
    project = Project(tmp_path, live(many), f"dialect: {{paging.limit: {page}}}\n")
    project.plan(f"groups: [{{name: Sales, members: {many}}}]\n")
    requests = (asked(project)["users.list"], asked(project)["users.get"])
    assert requests == ((1, members) if is_looked_up else (-(-PEOPLE // page), 0))


def test_assignments_to_people_are_looked_up(tmp_path: Path) -> None:
    """An undeclared assignment to a person is named by e-mail; the groups of assignments are not taken for people."""
    more = "content_targets:\n- {content: Intro, assign_to: [{group: Sales}, {user: p150@acme.example}]}\n"
    project = Project(tmp_path, live(emails(100), more=more), PAGES)
    plan = project.plan("content_targets: [{content: Intro, assign_to: [{group: Sales}]}]\n")
    assert plan.changes == ()
    (unmanaged,) = [one for one in plan.unmanaged if one.kind == "content_target"]
    assert [str(one) for one in unmanaged.addresses] == ["content_target/Intro -> user/p150@acme.example"]
    assert (asked(project)["users.list"], asked(project)["users.get"]) == (1, 1)


def test_archived_members_are_told(tmp_path: Path) -> None:
    """A person who is looked up is known to be archived."""
    seed = live(emails(100, 101)).replace("{email: p101@acme.example,", "{email: p101@acme.example, archived: true,")
    project = Project(tmp_path, seed, PAGES)
    plan = project.plan(f"groups: [{{name: Sales, members: {emails(100, 101)}}}]\n")
    assert [one.code for one in plan.problems] == ["person/archived"]
    assert asked(project)["users.list"] == 1


def test_declared_people_take_the_whole_list(tmp_path: Path) -> None:
    """Whether an account is there under an earlier e-mail needs all of them."""
    project = Project(tmp_path, live(emails(100)), PAGES)
    project.plan("users: [{email: p100@acme.example, first_name: Ann}]\n")
    assert asked(project)["users.list"] == PEOPLE // 10


def test_drift_looks_them_up_too(tmp_path: Path) -> None:
    """Drift of a few resources costs a few requests, and an apply that follows does not find another state."""
    project = Project(tmp_path, live(emails(100, 101, 239)), PAGES)
    project.write(f"groups: [{{name: Sales, members: {emails(100, 101)}}}]\n")
    ran = lmsconf(project.root, "drift")
    assert ran.code == 2
    assert "p239@acme.example" in ran.out
    assert lmsconf(project.root, "apply", "--auto-approve").code == 0
    assert lmsconf(project.root, "drift").code == 0


def test_drift_names_the_last_editor_who_is_a_person(tmp_path: Path) -> None:
    """The last editor of an assignment is looked up as well; an id that is no person's is shown as it is."""
    more = "content_targets:\n- {content: Intro, mandatory: true, assign_to: [{group: Sales}]}\n"
    people = f"{{email: p230@acme.example, id: {EDITOR}}}"
    seed = live(emails(100), more=more)
    for sought, shown in ((seed, EDITOR), (seed.replace("{email: p230@acme.example, id: u-0230}", people), "p230@")):
        root = tmp_path / shown
        project = Project(root, sought, PAGES)
        project.write("content_targets: [{content: Intro, assign_to: [{group: Sales}]}]\n")
        ran = lmsconf(root, "drift", "--format", "json")
        (finding,) = [one for one in json.loads(ran.out)["findings"] if one["state"] == "changed"]
        assert str(finding["changed_by"]).startswith(shown)
