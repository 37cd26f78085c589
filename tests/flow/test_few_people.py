"""Of many people a plan reads only those that it shows, and all of them where only all of them tell."""

import json
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest
from texts import listed_cases, text_of

from lmsconf.model.plan import Plan

from .altered_service import plan_of_rows
from .project import Project
from .shell import lmsconf

pytestmark = pytest.mark.sampled(day=8, daily=False)

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
    report = json.loads(lmsconf(project.root, "plan", "--snapshot", "whole.json", "--format", "json").out)
    mine = [(str(one.address), one.action.value, one.before, one.after) for one in plan.changes]
    return mine == [(one["address"], one["action"], one["before"], one["after"]) for one in report["changes"]]


@pytest.mark.parametrize(
    ("live_members", "declared", "added", "removed", "requests"),
    [
        ((100, 101, 102), (100, 101, 102), (), (), (1, 4)),
        ((100, 101, 239), (100, 101), (), ("p239@acme.example",), (1, 4)),
        ((100, 101), (100, 101, 200), ("p200@acme.example",), (), (PEOPLE // 10, 0)),
    ],
    ids=["as declared", "to leave", "to come"],
)
def test_people_are_looked_up_unless_only_all_of_them_tell(
    tmp_path: Path,
    live_members: tuple[int, ...],
    declared: tuple[int, ...],
    added: tuple[str, ...],
    removed: tuple[str, ...],
    requests: tuple[int, int],
) -> None:
    """One page of people and a request for each who is in a list, also of one who is to leave, in no manifest.

    Only all people together show whose the e-mail of somebody new is, and that nobody else has it: then every page is
    listed, and nobody is looked up in vain.
    """
    project = Project(tmp_path, live(emails(*live_members), emails(103)), PAGES)
    plan = project.plan(
        f"groups: [{{name: Sales, members: {emails(*declared)}, managers: {emails(103)}}}]\n", effects=not removed
    )
    assert (asked(project)["users.list"], asked(project)["users.get"]) == requests
    assert plan.people == PEOPLE
    fields = [(one.added, one.removed) for change in plan.changes for one in change.fields]
    assert fields == ([(added, removed)] if added or removed else [])
    assert as_with_all(project, plan)


@pytest.mark.sampled
@listed_cases("page", "first", "members", "is_looked_up")
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


def test_drift_looks_them_up_too(tmp_path: Path) -> None:
    """Drift of a few resources costs a few requests, and an apply that follows does not find another state."""
    project = Project(tmp_path, live(emails(100, 101, 239)), PAGES)
    project.write(f"groups: [{{name: Sales, members: {emails(100, 101)}}}]\n")
    assert "p239@acme.example" in lmsconf(project.root, "drift", code=2).out
    assert lmsconf(project.root, "apply", "--auto-approve").code == 0
    assert lmsconf(project.root, "drift").code == 0


def test_drift_names_the_last_editor_who_is_a_person(tmp_path: Path) -> None:
    """The last editor of an assignment is looked up as well; an id that is no person's is shown as it is."""
    more = "content_targets:\n- {content: Intro, mandatory: true, assign_to: [{group: Sales}]}\n"
    people = f"{{email: p230@acme.example, id: {EDITOR}}}"
    seed = live(emails(100), more=more)
    for sought, shown in ((seed, EDITOR), (seed.replace("{email: p230@acme.example, id: u-0230}", people), "p230@")):
        root = tmp_path / shown
        Project(root, sought, PAGES).write("content_targets: [{content: Intro, assign_to: [{group: Sales}]}]\n")
        ran = lmsconf(root, "drift", "--format", "json")
        (finding,) = [one for one in json.loads(ran.out)["findings"] if one["state"] == "changed"]
        assert str(finding["changed_by"]).startswith(shown)


# Members and managers from the listing of people with their groups, believed only where it fits the others.


LISTING_SEED = text_of(__file__, "few_people_listing_seed.yaml")
Row = dict[str, object]
_SMART = {"groupId": "g-1", "name": "A smart group"}


def without_names(rows: list[Row]) -> None:
    """Groups are listed by id alone."""
    for row in rows:
        for key in ("memberOfGroups", "managerOfGroups"):
            groups = row[key]
            assert isinstance(groups, list)
            row[key] = [{"groupId": group["groupId"]} for group in groups]


LISTINGS: dict[str, Callable[[list[Row]], object]] = {
    "as the service lists them": lambda rows: None,
    "groups by id alone": without_names,
    "somebody else in place of a person": lambda rows: rows[0].update(userId="u-9"),
    "a person without groups": lambda rows: rows[0].pop("memberOfGroups"),
    "a group without an id": lambda rows: rows[0].update(
        memberOfGroups=[{"name": "A"}, {"groupId": "g-2", "name": "B"}]
    ),
    "a group with the id of another": lambda rows: rows[1].update(
        memberOfGroups=[_SMART, {"groupId": "g-2", "name": "B"}]
    ),
    "so has one that a person manages": lambda rows: rows[0].update(managerOfGroups=[_SMART]),
}


@pytest.mark.sampled
@pytest.mark.parametrize("name", LISTINGS)
def test_a_listing_that_does_not_fit_hides_and_invents_no_member(tmp_path: Path, name: str) -> None:
    """Where people, groups or ids are missing, or an id is that of another group, each group is asked."""
    it = Project(tmp_path, LISTING_SEED)
    manifests = LISTING_SEED[LISTING_SEED.index("groups:") :]
    assert plan_of_rows(it, manifests, LISTINGS[name], "/users/extended-info").changes == ()


# How many requests a few declared resources cost in a large workspace: no more where there is more of all else.


COUNTS_PAGES = "dialect: {paging.limit: 20}\n"
FIVE = text_of(__file__, "few_people_five.yaml")


def workspace(people: int, groups: int, smart_groups: int, contents: int) -> str:
    """The five declared resources as they are declared, and many others."""
    lists = {1: "members: [p1@acme.example, p100@acme.example]", 2: "managers: [p2@acme.example]"}
    managed = {1: ", managers: [p200@acme.example]"}
    condition = "conditions: [{field: Country, choices: [SE]}]"
    return "\n".join(
        [
            "people: [" + ", ".join(f"{{email: p{n}@acme.example, id: u-{n:05}}}" for n in range(people)) + "]",
            "custom_fields: [{name: Country, type: CHOICE, choices: [SE, NO]}]",
            "groups:",
            *(f"- {{name: G{n}, {lists.get(n, f'members: [p{n}@acme.example]')}}}" for n in range(groups)),
            "smart_groups:",
            *(f"- {{name: S{n}, {condition}{managed.get(n, '')}}}" for n in range(smart_groups)),
            "content: [" + ", ".join(f"{{name: C{n}}}" for n in range(contents)) + "]",
            "content_targets: [{content: C1, assign_to: [{group: G1}]}, {content: C2, assign_to: [everyone]}]",
        ]
    )


@pytest.mark.parametrize("declared", [FIVE, "content_targets: [{content: C1, assign_to: [{group: G1}]}]\n"])
def test_only_pages_of_listings_grow_with_what_is_not_declared(tmp_path: Path, declared: str) -> None:
    """With ten times as much of all else, each listing has more pages, people excepted, and nothing else is asked."""
    counts = []
    for name, size in (("small", (420, 20, 20, 20)), ("large", (4_200, 200, 200, 200))):
        project = Project(tmp_path / name, workspace(*size), COUNTS_PAGES)
        assert project.plan(declared).changes == ()
        counts.append(Counter(call.operation or "" for call in project.calls))
    small, large = counts
    pages = {"manual-groups.list", "smart-groups.list", "content.list"}
    assert {name for name in small | large if small[name] != large[name]} == pages & large.keys()
    assert all(large[name] <= 200 // 20 + 2 for name in pages)
    assert large["users.list"] == 1


def test_a_plan_of_five_resources_asks_for_these(tmp_path: Path) -> None:
    """Pages of names, and the details of the five; people who are in their lists, by id."""
    project = Project(tmp_path, workspace(4_200, 40, 40, 40), COUNTS_PAGES)
    project.plan(FIVE)
    asked = Counter(call.operation or "" for call in project.calls)
    assert {name: asked[name] for name in sorted(asked) if not name.endswith(".list")} == {
        "manual-groups.managers": 2,
        "manual-groups.members": 2,
        "smart-groups.get": 1,
        "users.get": 2,
    }
    assert asked["content-targets.list"] == 1


@pytest.mark.parametrize(("only", "contents"), [("content_target/C1 -> *", 1), ("smart_group/S1", 0)])
def test_a_selection_asks_for_the_targets_of_its_own_contents(tmp_path: Path, only: str, contents: int) -> None:
    """Also where a pattern stands for several assignments; a selection without any asks for none."""
    project = Project(tmp_path, workspace(420, 20, 20, 20), COUNTS_PAGES)
    project.plan(FIVE, only=(only,))
    assert [call.operation for call in project.calls].count("content-targets.list") == contents


@pytest.mark.parametrize(
    ("groups", "leaving", "read"), [(4, (3,), 2), (3, (0, 2), 2), (3, (0, 1, 2), 3), (2, (3, 4), 2)]
)
def test_the_groups_of_archived_people_are_read_by_person_or_all_of_them(
    tmp_path: Path, groups: int, leaving: tuple[int, ...], read: int
) -> None:
    """By person where these are fewer than all groups; the assigned group G1 is read, too."""
    seed = workspace(40, groups, 2, 3).replace(", p100@acme.example", "").replace(", managers: [p200@acme.example]", "")
    project = Project(tmp_path, seed, "guards: off\n")
    people = ", ".join(f"{{email: p{n}@acme.example, archived: true}}" for n in leaving)
    plan = project.plan(f"users: [{people}]")
    assert [call.operation for call in project.calls].count("manual-groups.members") == read
    left = [str(group.address) for group in plan.effects.groups if group.address.kind == "group"]
    assert left == [f"group/G{n}" for n in leaving if n < groups and n != 2]


def test_assignments_that_are_only_created_are_no_share_of_the_others(tmp_path: Path) -> None:
    """No other content is read to tell how small the share is; its own is read again before it is assigned."""
    project = Project(tmp_path, workspace(210, 20, 2, 20), COUNTS_PAGES)
    groups = ", ".join(f"{{group: G{n}}}" for n in range(1, 16))
    project.plan(f"content_targets: [{{content: C1, assign_to: [{groups}]}}]")
    assert [call.operation for call in project.calls].count("content-targets.list") == 2


@pytest.mark.parametrize(("going", "others"), [(2, 32), (5, 64)])
def test_contents_are_read_until_the_share_that_goes_is_small_enough(tmp_path: Path, going: int, others: int) -> None:
    """A tenth may go: 32 contents are asked for at a time until ten times as many assignments as go are known."""
    contents = ", ".join(f"{{name: C{n}}}" for n in range(80))
    assigned = ", ".join(f"{{content: C{n}, assign_to: [everyone]}}" for n in range(80))
    project = Project(tmp_path, f"content: [{contents}]\ncontent_targets: [{assigned}]\n")
    gone = ", ".join(f"C{n}" for n in range(going))
    project.plan(f"absent: {{content_targets: [{{content: [{gone}], assign_to: [everyone]}}]}}", effects=False)
    assert [call.operation for call in project.calls].count("content-targets.list") == going + others


@pytest.mark.parametrize("content", ["C1", "{name: content c-9, id: c-9}"])
@pytest.mark.parametrize(("audience", "times"), [("everyone", 1), ("{group: G1}", 2)])
def test_a_content_is_read_again_before_it_is_assigned(tmp_path: Path, content: str, audience: str, times: int) -> None:
    """Also one that is found by its id alone; one that has its assignment is read once."""
    seed = (
        "groups: [{name: G1}]\ncontent: [{name: C1, id: c-9}]\ncontent_targets: [{content: C1, assign_to: [everyone]}]"
    )
    project = Project(tmp_path, seed)
    project.plan(f"content_targets: [{{content: {content}, assign_to: [{audience}]}}]", effects=False)
    assert [call.operation for call in project.calls].count("content-targets.list") == times
