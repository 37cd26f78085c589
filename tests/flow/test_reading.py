"""What is read of a workspace: no more than is needed and selected, the cheaper way, and never believed when cut."""

import itertools
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from texts import listed_cases

from lmsconf.apply.replanning import refuse_stale_plan
from lmsconf.documents.plan_file import plan_digest
from lmsconf.errors import ExitCode, LmsconfError, ProblemsFound, Unauthorized
from lmsconf.sandbox.faults import Fault

from .altered_service import Edit, apply_under, connected, plan_altered, plan_under
from .project import Project, planned_by
from .shell import lmsconf

pytestmark = pytest.mark.sampled(day=8)

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


def test_a_problem_of_the_part_is_told_although_another_part_has_it_too(tmp_path: Path) -> None:
    """Content that is not in the catalogue is told once; with --only it is told for the part that is planned."""
    it = project(tmp_path)
    with pytest.raises(ProblemsFound) as found:
        it.plan(
            "content_targets: [{content: Gone, assign_to: [everyone, {group: A}]}]",
            only=("content_target/Gone -> group/A",),
        )
    assert errors(found.value) == {"content/unknown"}


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


UNFIT: Mapping[str, tuple[str, dict[str, Any], str]] = {
    "a choice without its id": (
        "/custom-fields",
        {"customFields": [{"id": "1", "name": "D", "type": "CHOICE", "choices": [{"name": "X"}]}]},
        "choiceId",
    ),
    "choices that are a number": (
        "/custom-fields",
        {"customFields": [{"id": "1", "name": "D", "type": "CHOICE", "choices": 7}]},
        "where the list choices should be",
    ),
    "no conditions": ("/smart-groups/sg-1", {"smartGroupId": "sg-1"}, "missing its conditions"),
    "a condition without its field": ("/smart-groups/sg-1", {"conditions": [{"choiceIds": []}]}, "customFieldId"),
    "targets that are no list": ("/content/targets", {"targets": True}, "missing its list of targets"),
    "no targets": ("/content/targets", {}, "missing its list of targets"),
    "targets that are null": ("/content/targets", {"targets": None}, "missing its list of targets"),
    "a target for nobody": ("/content/targets", {"targets": [{"mandatory": True}]}, "targetId"),
    "a name that is no text": ("/groups", {"groups": [{"groupId": "g-1", "name": {}}]}, "name"),
    "no members": ("/groups/g-1/members", {}, "missing its list of userIds"),
}
"""What an answer is made into, and what the message says."""
NEEDING_ALL = """
custom_fields: [{name: D, hidden: true}]
groups: [{name: A, members: []}]
smart_groups: [{name: S, conditions: [{field: D, choices: [Y]}]}]
content_targets: [{content: K, assign_to: [everyone]}]
"""


@pytest.mark.parametrize(("path", "answer", "said"), UNFIT.values(), ids=UNFIT)
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


FILES = {
    "a.yaml": "groups: [{name: New, members: [p003@acme.example, p001@acme.example]}, {name: A, members: []}]\n",
    "b.yml": "smart_groups: [{name: U, conditions: [{field: D, choices: [Y, X]}], managers: [p002@acme.example]}]\n",
    "c.yaml": "content_targets: [{content: [M, K], assign_to: [{group: New}, {smart_group: U}, everyone]}]\n",
    "d.yaml": "custom_fields: [{name: D, choices: [X, Y, Z]}]\nabsent: {groups: [Old, Gone], custom_fields: [E]}\n",
}


def test_a_plan_does_not_depend_on_where_things_stand(tmp_path: Path) -> None:
    """Files under other names, entries in another order, reads that answer in another order: the same plan."""
    digests = set()
    texts = set()
    for number, order in enumerate(itertools.islice(itertools.permutations(FILES), 0, 24, 5)):
        it = project(tmp_path / str(number))
        for place, name in enumerate(order):
            it.write(FILES[name], f"{place}.yaml")
        slow = [Fault(operation=one, delay=0.05) for one in ("users.list", "content.list")][: number % 3]
        plan = plan_under(it, "groups: []\n", *slow)
        digests.add(plan_digest(plan))
        problems = [one.message for one in plan.all_problems]
        texts.add(repr((plan.fingerprints, plan.guards, plan.unmanaged, problems)))
    assert len(digests) == len(texts) == 1


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


# `--only` and `--except` name what is declared, under `absent` or live; a pattern that matches nothing is an error.


SELECTION_SEED = """
groups: [{name: A}, {name: Going}, {name: Own x}, {name: Loose}, {name: Else}]
content: [{name: Intro}, {name: Basics}]
content_targets:
  - {content: Intro, assign_to: [{group: A}, {group: Loose}]}
  - {content: Basics, assign_to: [{group: Loose}]}
"""
OPTIONS = "ownership: {groups: ['Own*'], content_targets: declared_content}\nleave_alone: [group/Else]\n"
MANIFESTS = """
groups: [{name: A}, {name: New}]
content_targets: [{content: Intro, assign_to: [{group: A}]}]
absent: {groups: [Going, Gone]}
"""


@listed_cases("pattern")
def test_what_exists_can_be_left_out(tmp_path: Path, pattern: str) -> None:
    """What is to be created, under `absent` and live or not, owned and undeclared, unmanaged, and left alone."""
    plan = Project(tmp_path, SELECTION_SEED, OPTIONS).plan(MANIFESTS, excluded=(pattern,))
    acts = {str(change.address): str(change.action) for change in plan.changes}
    everything = {
        "group/New": "create",
        "group/Going": "delete",
        "group/Own x": "delete",
        "content_target/Intro -> group/Loose": "delete",
    }
    assert acts == {address: act for address, act in everything.items() if address != pattern}


@pytest.mark.parametrize(("option", "key"), [("--only", "only"), ("--except", "excluded")])
def test_a_pattern_that_matches_nothing_is_an_error(tmp_path: Path, option: str, key: str) -> None:
    """It is probably misspelt; the hint shows how an address looks."""
    with pytest.raises(ProblemsFound) as caught:
        Project(tmp_path, SELECTION_SEED, OPTIONS).plan(MANIFESTS, **{key: ("group/A", "group/Nobody")})
    (problem,) = (one for one in caught.value.problems if one.is_error)
    assert (problem.code, problem.message) == ("select/nothing", f"{option} group/Nobody: no resource matches")
    assert "* is a wildcard" in str(problem.hint)


@pytest.mark.sampled
@pytest.mark.parametrize(
    "typed",
    [
        "groups/New",
        "New",
        "New (group)",
        "group New",
        "group/N*",
    ],
)
def test_other_spellings_mean_the_resource(tmp_path: Path, typed: str) -> None:
    """A section's name, a name alone, and the words of a view; the plan tells which pattern they stand for."""
    plan = Project(tmp_path, SELECTION_SEED, OPTIONS).plan(MANIFESTS, only=(typed,))
    assert [str(change.address) for change in plan.changes] == ["group/New"]
    assert plan.selection.only in {("group/New",), ("group/N*",)}


@pytest.mark.parametrize("typed", ["assignment of Intro to group/Loose", "Intro to group/Loose", "content/Int*"])
def test_words_of_a_view_mean_what_is_live(tmp_path: Path, typed: str) -> None:
    """Also of what no manifest declares: here an assignment that the project owns; and all of a content."""
    plan = Project(tmp_path, SELECTION_SEED, OPTIONS).plan(MANIFESTS, excluded=(typed,))
    assert "content_target/Intro -> group/Loose" not in {str(change.address) for change in plan.changes}
    assert {str(change.address) for change in plan.changes} >= {"group/New", "group/Own x"}


def test_words_that_mean_several_resources_are_an_error(tmp_path: Path) -> None:
    """It lists them, as they are to be written."""
    it = Project(tmp_path, SELECTION_SEED)
    it.write(
        "groups: [{name: A b}]\ncustom_fields: [{name: F, type: CHOICE, choices: [x]}]\n"
        "smart_groups: [{name: A b, conditions: [{field: F, choices: [x]}]}]\n"
    )
    ran = lmsconf(tmp_path, "plan", "--only", "A b", code=1)
    assert "--only A b: 2 resources match [select/ambiguous]" in ran.err
    assert "Write one of: --only 'group/A b'; --only 'smart_group/A b'." in ran.err


@listed_cases("typed", "near")
def test_an_unknown_address_gets_the_nearest(tmp_path: Path, typed: str, near: str) -> None:
    """Declared or live, as it is to be written; exit 1."""
    it = Project(tmp_path, SELECTION_SEED, OPTIONS)
    it.write("groups: [{name: Sales}]\ncontent_targets: [{content: Intro, assign_to: [{group: Sales}]}]\n")
    ran = lmsconf(tmp_path, "plan", "--except", typed, code=1)
    assert f"--except {typed}: no resource matches [select/nothing]" in ran.err
    assert f"Did you mean {near}" in ran.err


def test_the_word_of_a_kind_is_compared_with_no_name(tmp_path: Path) -> None:
    """A group called like the kind is not what somebody meant who names another group."""
    it = Project(tmp_path, "groups: [{name: Group North}]")
    it.write("groups: [{name: Group North}]\n")
    ran = lmsconf(tmp_path, "plan", "--only", "group/Mentors", code=1)
    assert "Did you mean" not in ran.err
    assert "An address is group/Sales" in ran.err


STARRED = """
people: [{email: bo@x.example}]
groups: [{name: All}, {name: A*}, {name: Own *}, {name: Own 1}, {name: R/D}]
content: [{name: "*"}, {name: "1/2"}]
content_targets: [{content: "*", assign_to: [{group: All}]}, {content: "1/2", assign_to: [{group: All}, {group: R/D}]}]
"""


def test_every_address_of_a_plan_can_be_pasted(tmp_path: Path) -> None:
    """It means that resource alone, though its name has wildcards and slashes, and though nothing declares it."""
    it = Project(tmp_path, STARRED, "ownership: {groups: ['Own*'], content_targets: all}\n")
    who = "members: [bo@x.example]"
    it.write(f"groups: [{{name: All, {who}}}, {{name: A*, {who}}}, {{name: R/D, {who}}}]\n")
    whole = [str(change.address) for change in it.plan().changes]
    assert {"group/A*", "group/R/D", "group/Own *", "content_target/1/2 -> group/R/D"} <= set(whole)
    for address in whole:
        rest = it.plan(excluded=(address,))
        assert [str(change.address) for change in rest.changes] == [one for one in whole if one != address]
    only = it.plan(only=("group/A*",))
    assert [str(change.address) for change in only.changes] == ["group/A*"]
    assert [str(change.address) for change in it.plan(only=only.selection.only).changes] == ["group/A*"]


@pytest.mark.parametrize(
    ("option", "members"),
    [("--only=group/*", "bo@acme.example"), ("--except=user/*", "bo@acme.example, anna@new.example")],
    ids=["removed", "unchanged"],
)
def test_a_person_whose_rename_is_not_selected_keeps_the_live_email(tmp_path: Path, option: str, members: str) -> None:
    """A group may lose the person, or keep them under the e-mail that a later plan sets."""
    seed = """
people: [{email: anna@acme.example}, {email: bo@acme.example}]
groups: [{name: A, members: [anna@acme.example, bo@acme.example]}]
"""
    project = Project(tmp_path, seed, "")
    project.write(
        f"users: [{{email: anna@new.example, previously: [anna@acme.example]}}]\n"
        f"groups: [{{name: A, members: [{members}]}}]\n"
    )
    shown = lmsconf(tmp_path, "plan", option).out
    assert ("- anna@acme.example" in shown) is ("anna" not in members)
    assert "- anna@new.example" not in shown
    assert lmsconf(tmp_path, "apply", "--auto-approve", option).code == ExitCode.OK
