"""What is read of a workspace: no more than is needed and selected, the cheaper way, and never believed when cut."""

from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from texts import listed_cases

from lmsconf.apply.replanning import refuse_stale_plan
from lmsconf.errors import ExitCode, LmsconfError, ProblemsFound, Unauthorized
from lmsconf.sandbox.faults import Fault

from .altered_service import Edit, apply_under, connected, plan_altered, plan_under
from .project import Project, planned_by

pytestmark = pytest.mark.sampled(day=8, daily=False)

CROWD = [f"p{n:03}@acme.example" for n in range(150)]
PEOPLE = "people:\n" + "".join(f"  - {{email: {one}}}\n" for one in CROWD)
SEED = (
    PEOPLE
    + """
custom_fields: [{name: D, type: CHOICE, choices: [X, Y]}, {name: E, type: TEXT}]
groups: [{name: A, id: g-1, members: [p000@acme.example]}, {name: B}, {name: C}, {name: Old}]
smart_groups: [{name: S, conditions: [{field: D, choices: [X]}]}, {name: T, conditions: [{field: D, choices: [Y]}]}]
content: [{name: K, id: c-1}, {name: L, id: c-2}, {name: M, id: c-3}]
content_targets: [{content: K, assign_to: [everyone, {group: Old}]}, {content: L, assign_to: [{group: Old}]}]
"""
)
REFUSED = 404
ONE_PAGE = ("custom-fields.list", "content.list")


PAGES = "dialect: {paging.limit: 100, manual-groups.add.mode: add}\n"
"""What is cheaper depends on how many people a page holds and on what calls do, so tests that count requests say it."""
REPLACING = PAGES.replace("mode: add", "mode: replace")


def project(tmp_path: Path, options: str = "") -> Project:
    return Project(tmp_path, SEED, options)


def asked(it: Project) -> Counter[str]:
    """How often each operation was called."""
    return Counter(str(call.operation) for call in it.calls)


def errors(found: ProblemsFound) -> set[str]:
    return {problem.code for problem in found.problems if problem.is_error}


@listed_cases("options", "manifests", "requests", "calls")
def test_what_a_plan_requests(
    tmp_path: Path, options: str, manifests: str, requests: dict[str, int], calls: list[str] | None
) -> None:
    """The requests that are named, so often, and none that writes; and the paths of the calls that it then plans."""
    it = project(tmp_path, {"pages": PAGES, "replacing": REPLACING}.get(options, ""))
    only = (options,) if options.startswith("group/") else ()
    plan = it.plan(manifests, only=only, effects=not only)
    assert {name: asked(it).total() if name == "in all" else asked(it)[name] for name in requests} == requests
    assert not [call for call in it.calls if call.writes]
    assert calls is None or [call.path for call in plan.calls] == calls


LONG = "Nordics " * 60


def show_choice_names(said: dict[str, Any]) -> None:
    """Two people have answered, and the service shows the names of the choices."""
    for person in said["users"]:
        person["customFields"] = {"D": {"value": LONG + ("a" if person["email"].startswith("ann") else "b")}}


@pytest.mark.parametrize("edits", [{}, {"/users": show_choice_names}], ids=["id", "name"])
def test_a_choice_with_a_long_name_is_found_in_answers(tmp_path: Path, edits: dict[str, Edit]) -> None:
    """Who is in a smart group of that choice, and who loses it, is known as for a short one."""
    seed = (
        f"people:\n  - {{email: ann@x.example, answers: {{D: '{LONG}a'}}}}\n"
        f"  - {{email: bo@x.example, answers: {{D: '{LONG}b'}}}}\n"
        f"custom_fields: [{{name: D, type: CHOICE, choices: ['{LONG}a', '{LONG}b', Y]}}]\n"
        f"smart_groups: [{{name: S, conditions: [{{field: D, choices: ['{LONG}a']}}]}}]\n"
        "content: [{name: K}]\ncontent_targets: [{content: K, assign_to: [{smart_group: S}]}]\n"
    )
    it = Project(tmp_path, seed)
    plan = plan_altered(it, "users: [{email: ann@x.example, answers: {D: Y}}]", edits)
    assert plan.effects is not None
    [content] = plan.effects.contents
    assert (content.counts.lose, content.basis.value) == (1, "exact")
    plan = plan_altered(it, f"custom_fields: [{{name: D, choices: {{exclude: ['{LONG}b']}}}}]", edits)
    [lost] = [one.message for one in plan.all_problems if one.code == "custom-field/answers-lost"]
    assert lost.startswith("custom_field/D: 1 person holds the choice")


def test_the_length_of_answers_stops_no_plan(tmp_path: Path) -> None:
    """More than 64 million characters of texts, each different, and none of them a choice."""

    def edit(said: dict[str, Any]) -> None:
        for number, person in enumerate(said["users"]):
            person["customFields"] = {"E": f"{number:05}" + "x" * 90_000}

    people = "people: [" + ", ".join(f"{{email: p{n:03}@acme.example}}" for n in range(800)) + "]\n"
    it = Project(tmp_path, SEED.replace(PEOPLE, people), PAGES)
    plan = plan_altered(it, "users: [{email: p001@acme.example, first_name: Anna}]", {"/users": edit})
    assert len(plan.changes) == 1


@pytest.mark.parametrize(("groups", "pages"), [("AB", 0), ("ABC", 2)])
def test_who_gets_content_is_read_the_cheaper_way(tmp_path: Path, groups: str, pages: int) -> None:
    """For effects, two pages of everybody are fewer requests than the members of three groups, and not of two."""
    it = project(tmp_path, PAGES)
    to = ", ".join(f"{{group: {name}}}" for name in groups)
    assert it.plan(f"content_targets: [{{content: M, assign_to: [{to}]}}]").effects.people.gain == 1
    assert (asked(it)["users.extended-info"], asked(it)["manual-groups.members"]) == (pages, 0 if pages else 2)


def test_a_cheaper_way_that_fails_is_not_believed(tmp_path: Path) -> None:
    """Where the listing of everybody is not whole, each group is asked itself, and the plan is the same."""
    it = project(tmp_path)
    wanted = "groups: [{name: A, members: []}, {name: B, members: []}, {name: C, members: []}]"
    plan = plan_under(it, wanted, Fault(operation="users.extended-info", status=REFUSED, after=1, times=9))
    assert asked(it)["manual-groups.members"] == 3
    assert [call.path for call in plan.calls] == ["/groups/g-1/members/u-1"]


def test_listings_that_lack_the_same_people_do_not_stand_for_the_lists_of_groups(tmp_path: Path) -> None:
    """The listing of people says that it has more: a group is asked for its members itself."""
    it = project(tmp_path, PAGES)

    def shorten(listed: dict[str, Any]) -> None:
        listed["users"] = listed["users"][:-1]

    def shorten_without_total(listed: dict[str, Any]) -> None:
        shorten(listed)
        for key in [key for key, value in listed.items() if isinstance(value, int)]:
            del listed[key]

    lists: list[object] = []
    edits: dict[str, Edit] = {
        "/users": shorten,
        "/users/extended-info": shorten_without_total,
        "/groups/g-1/members": lists.append,
    }
    plan_altered(it, "absent: {groups: [A, B, C]}", edits)
    assert len(lists) == 1


def test_an_archived_member_whom_no_list_has_is_no_change(tmp_path: Path) -> None:
    """A plan with people lists them all; its comparison without them looks up a few, and learns who is archived."""
    crowd = "".join(f"  - {{email: {one}}}\n" for one in CROWD[:20])
    seed = (
        f"people:\n{crowd}  - {{email: left@acme.example, archived: true}}\n"
        "groups: [{name: A, members: [p000@acme.example, left@acme.example]}]\n"
    )
    it = Project(tmp_path, seed, "dialect: {paging.limit: 5, manual-groups.add.mode: replace}\n")
    it.write(
        "groups: [{name: A, members: [p000@acme.example], managers: {include: [p001@acme.example]}}]\n"
        "users: [{email: p002@acme.example, archived: false}]\n"
    )

    def only_active(listed: dict[str, Any]) -> None:
        listed["users"] = [row for row in listed["users"] if not row.get("archivedAt")]

    edits: dict[str, Edit] = {"/users": only_active, "/users/extended-info": only_active}
    with connected(it, edits) as connection, it.reader(connection=connection) as reader:
        refuse_stale_plan(reader, planned_by(reader))


def test_nothing_is_read_of_a_group_that_an_incomplete_list_keeps_from_deletion(tmp_path: Path) -> None:
    """Neither its people nor the assignments of the whole catalogue: nothing is deleted from a list with a gap."""
    it = project(tmp_path)
    with pytest.raises(ProblemsFound):
        plan_under(
            it, "absent: {groups: [A]}", Fault(operation="manual-groups.list", status=REFUSED, after=1, times=99)
        )
    assert asked(it)["manual-groups.members"] == asked(it)["manual-groups.managers"] == 0
    assert asked(it)["content-targets.list"] == 0


@listed_cases("manifests", "operation")
def test_a_failed_page_never_becomes_a_plan(tmp_path: Path, manifests: str, operation: str) -> None:
    """Whether the first page fails or a later one: nothing is created, renamed or deleted on its word."""
    it = project(tmp_path)
    for after in (0,) if operation in ONE_PAGE else (0, 1):
        with pytest.raises(LmsconfError):
            plan_under(it, manifests, Fault(operation=operation, status=REFUSED, after=after, times=99))
        assert not [call for call in it.calls if call.writes]


def test_what_is_owned_stays_when_its_listing_is_not_whole(tmp_path: Path) -> None:
    """A group that a manifest declares and a failed page hides is not taken for undeclared, nor the rest for all."""
    it = project(tmp_path, "ownership: {groups: all, content_targets: all}\n")
    wanted = "groups: [{name: A}]\ncontent_targets: [{content: K, assign_to: [everyone]}]"
    for operation in ("manual-groups.list", "content.list"):
        after = 1 if operation == "manual-groups.list" else 0
        with pytest.raises(ProblemsFound) as found:
            plan_under(it, wanted, Fault(operation=operation, status=REFUSED, after=after, times=99))
        assert "read/incomplete" in errors(found.value) or errors(found.value) == {"content/unknown"}


def test_details_that_fail_fail_the_plan(tmp_path: Path) -> None:
    """Members, conditions or assignments that were not answered are never taken for none."""
    it = project(tmp_path)
    for manifests, operation in (
        ("groups: [{name: A, members: [p000@acme.example]}]", "manual-groups.members"),
        ("smart_groups: [{name: S, managers: []}]", "smart-groups.get"),
        ("content_targets: [{content: K, assign_to: [everyone]}]", "content-targets.list"),
    ):
        with pytest.raises(LmsconfError):
            plan_under(it, manifests, Fault(operation=operation, status=REFUSED, times=99))


def test_a_refused_reading_is_a_refused_credential(tmp_path: Path) -> None:
    """A 403 on a listing is no incomplete listing; every other read would end the same."""
    it = project(tmp_path)
    with pytest.raises(Unauthorized):
        plan_under(it, "groups: [{name: A}]", Fault(operation="manual-groups.list", status=403, times=9))


NEEDING_ALL = """
custom_fields: [{name: D, hidden: true}]
groups: [{name: A, members: []}]
smart_groups: [{name: S, conditions: [{field: D, choices: [Y]}]}]
content_targets: [{content: K, assign_to: [everyone]}]
"""


@listed_cases("path", "answer", "said")
def test_an_answer_that_is_not_as_described_is_an_error(
    tmp_path: Path, path: str, answer: dict[str, Any], said: str
) -> None:
    """It is named, and there is no plan on the word of it."""

    def edit(given: dict[str, Any]) -> None:
        given.clear()
        given.update(answer)

    with pytest.raises(LmsconfError) as found:
        plan_altered(project(tmp_path, PAGES), NEEDING_ALL, {path: edit})
    assert said in " ".join(one.message for one in found.value.problems)
    assert "conditions" not in said or "in the product" in str(found.value.hint)


def test_people_are_counted_where_the_service_does_not(tmp_path: Path) -> None:
    """A list that was read to its proven end has a known size."""
    uncounted: dict[str, Edit] = {"/users": lambda said: said.pop("matchCount")}
    it = project(tmp_path, PAGES)
    assert plan_altered(it, "users: [{email: p001@acme.example, first_name: A}]", uncounted).people == len(CROWD)


def test_a_field_in_use_is_told_from_a_credential_that_may_not(tmp_path: Path) -> None:
    """A 403 that nobody foretold is followed by one cheap read, which tells a refusal (4) from a lack of rights (7)."""
    it = project(tmp_path)
    wanted = "custom_fields: [{name: E, hidden: true}]"
    report = apply_under(it, wanted, Fault(operation="custom-fields.replace", status=403))
    assert report.exit == ExitCode.BLOCKED
    assert asked(it) == {"custom-fields.replace": 1, "custom-fields.list": 1}
    report = apply_under(it, wanted, Fault(status=403, times=9))
    assert report.exit == ExitCode.UNAUTHORIZED
    assert asked(it) == {"custom-fields.replace": 1, "custom-fields.list": 1}
