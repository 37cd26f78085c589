"""What a plan does to people where the service tells odd things of them: every row, group and reason."""

from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from flow.altered_service import Edit, plan_against, plan_altered
from flow.project import Project
from manifest.cases import Case, cases
from texts import text_of

from effects.crowd import day, plan_of_people
from lmsconf.errors import ProblemsFound
from lmsconf.model.effects import Basis, Effects

SEED = text_of(__file__, "whole_effects_seed.yaml")
LIMITED = """
  - content: G
    visible_from: "2920-01-01T00:00:00Z"
    visible_until: "2930-01-01T23:59:59Z"
    assign_to: [{group: Team}]
"""
OPTIONS = "timezone: UTC\nguards: off\npeople: {create: true}\n"
CASES = cases(Path(__file__).with_name("whole_effects.txt"))


def _person(position: int, **more: object) -> Edit:
    return lambda said: said["users"][position].update(more)


def _targets(**more: object) -> Edit:
    """Of the assignments to the group Team."""
    return lambda said: [one.update(more) for one in said["targets"] if one["targetId"] == "g-1"]


ODD: dict[str, dict[str, Edit]] = {
    "a member more than the conditions give": {
        "/smart-groups/sg-1": lambda said: said.get("members", []).append("u-4")
    },
    "an answer of another shape": {"/users": _person(0, customFields={"Country": 7, "Level": ["High"]})},
    "an archived account with the e-mail of an active one": {"/users": _person(4, email="Ann@x.example")},
    "a smart group without its members": {"/smart-groups/sg-3": lambda said: said.pop("members")},
    "another smart group without its members": {"/smart-groups/sg-1": lambda said: said.pop("members", None)},
    "a condition on a text": {"/smart-groups/sg-1": lambda said: said["conditions"][0].update(customFieldId="f-3")},
    "members that no reading explains": {
        "/smart-groups/sg-3": lambda said: said.update({"members": ["u-2"]} if "members" in said else {})
    },
    "a condition with a long name": {
        "/smart-groups/sg-3": lambda said: said["conditions"][0].update(systemCondition="IS_" + "X" * 60)
    },
    "a smart group without its members or conditions": {
        "/smart-groups/sg-1": lambda said: (said.pop("members", None), said.update(conditions=[])),
    },
    "answers by id": {"/users": _person(0, customFields={"Country": "ch-1", "Level": ["ch-4"]})},
    "one member of a group who is unknown": {"/groups/g-1/members": lambda said: said["userIds"].append("u-98")},
    "two members of a group who are unknown": {
        "/groups/g-1/members": lambda said: said["userIds"].extend(["u-98", "u-99"])
    },
    "two members of a smart group who are unknown": {
        "/smart-groups/sg-1": lambda said: said.get("members", []).extend(["u-98", "u-99"])
    },
    "members of an archived person": {"/users/u-2": lambda said: said.pop("memberOfGroups")},
    "a content without a name": {"/content/all": lambda said: said["courses"][0].pop("name")},
    "a target without a kind": {"/content/targets": _targets(targetId="t-9", targetType="TEAM")},
    "a target without an id beside another": {
        "/content/targets": lambda said: said["targets"].extend(
            {**one, "targetId": "", "targetType": "NEW"} for one in said["targets"][:] if one["targetId"] == "g-1"
        )
    },
    "a window that cannot be read": {"/content/targets": _targets(finishTime="soon")},
    "an answer that is no choice": {"/users": _person(0, customFields={"Country": "XX", "Level": ["High"]})},
    "a condition without choices": {"/smart-groups/sg-1": lambda said: said["conditions"][0].pop("choiceIds")},
}


@pytest.mark.sampled
@pytest.mark.parametrize("case", CASES, ids=lambda case: case.title)
def test_each_effect_of_a_plan(tmp_path: Path, case: Case) -> None:
    """Who gains and loses what, which groups change, and why something is not known.

    The first line of a case may name an oddity of the workspace.
    """
    it = Project(tmp_path, SEED, OPTIONS)
    it.write(case.text)
    effects = plan_of_people(it, ODD.get(case.text.partition("\n")[0].removeprefix("# "), {})).effects
    lines = [
        f"{one.email} {one.content}: {one.before} -> {one.after}{' for a shorter time' * one.shortened}"
        f" by {' and '.join(one.causes)}"
        for one in effects.rows or ()
    ]
    lines += [f"{one.content}: {one.before} -> {one.after} {one.basis.value}" for one in effects.contents]
    lines += [
        f"{one.address}: {one.before} -> {one.after}, +{one.join} -{one.leave} {one.basis.value}"
        for one in effects.groups
    ]
    calibration = f"{effects.calibration.exact} of {effects.calibration.groups} smart groups are as predicted"
    assert "".join(f"{line}\n" for line in (*lines, calibration, *effects.reasons)) == case.told


@pytest.mark.sampled(day=1)
def test_content_that_people_do_not_have_for_a_day_is_told(tmp_path: Path) -> None:
    """The next window makes up for the end of the first, but for that day: nothing else changes for them."""
    seed = "people: [{email: ann@x.example}]\ngroups: [{name: Team, members: [ann@x.example]}]\ncontent: [{name: A}]\n"
    later = f"{{content: A, visible_from: '{day(days=3)}', assign_to: [everyone]}}"
    it = Project(
        tmp_path, f"{seed}content_targets: [{{content: A, assign_to: [{{group: Team}}]}}, {later}]", "guards: off\n"
    )
    cut = f"content_targets: [{{content: A, visible_until: '{day(days=2)}', assign_to: [{{group: Team}}]}}]"
    [found] = it.plan(cut).effects.contents
    assert (found.counts.shortened, found.counts.lose, found.counts.window) == (1, 0, 0)


@pytest.mark.sampled
@pytest.mark.parametrize("case", cases(Path(__file__).with_name("unread_people.txt")), ids=lambda case: case.title)
def test_what_a_plan_cannot_do_is_known_where_not_everything_was_read(tmp_path: Path, case: Case) -> None:
    """A plan that only adds takes nothing, and one that adds nobody requires nothing."""
    change, takes, requires = case.text, "takes" in case.told, "requires" in case.told
    for word, days in (("SOON", 9), ("LATER", 90)):
        change = change.replace(word, str(datetime.now(UTC).date() + timedelta(days=days)))
    unread = "/content/all" if change.startswith(("users", "custom_fields")) else "/users"
    counted = "total" if unread == "/content/all" else "matchCount"
    options = "timezone: UTC\nguards: {mandatory: {count: 900}, people: {count: 900}}\npeople: {create: true}\n"
    it = Project(tmp_path, SEED + LIMITED, options)
    made = plan_altered(it, change, {unread: lambda said: said.update({counted: said[counted] + 1})})
    totals = {guard.name: guard.total for guard in made.guards}
    assert (made.effects.people.lose, made.effects.people.gain) == (None if takes else 0, None)
    assert (totals["people"], totals["mandatory"]) == (None if takes else 0, None if requires else 0)


# How far the people who lose content have come, from results as services may list them.


ANN, BO = "u-1", "u-2"
STATES = ("not_started", "in_progress", "approved", "failed", "expired")


def result(person: str, state: str, revision: int | None = None, expires: int | None = None, **more: str) -> object:
    """A result for the content A. expires: in how many days its certificate ends."""
    row: dict[str, object] = {"userId": person, "contentId": "c-1", "state": state, **more}
    row |= {} if revision is None else {"contentRevision": revision}
    return (
        row
        if expires is None
        else {**row, "certificateExpiresAt": int((datetime.now(UTC) + timedelta(days=expires)).timestamp()) * 1000}
    )


def lost(tmp_path: Path, edit: Edit) -> Any:
    """The effects on A, which Ann and Bo lose, and the reasons why something is not known."""
    it = Project(tmp_path, SEED, "guards: off\n")
    effects = plan_altered(
        it, "absent: {content_targets: [{content: A, assign_to: [{group: Team}]}]}", {"/analyse/results": edit}
    ).effects
    [found] = effects.contents
    return found, effects.reasons


@pytest.mark.sampled(day=4)
@pytest.mark.parametrize(
    ("rows", "states"),
    [
        ([], "not_started not_started"),
        ([result(ANN, "FAILED")], "failed not_started"),
        ([result(ANN, "FAILED", 2), result(ANN, "APPROVED", 1)], "failed not_started"),
        ([result(ANN, "APPROVED", 1), result(ANN, "FAILED", 2)], "failed not_started"),
        ([result(ANN, "APPROVED", 1), result(ANN, "FAILED", 1)], "failed not_started"),
        ([result(ANN, "APPROVED"), result(ANN, "FAILED", 0)], "failed not_started"),
        ([result(ANN, "APPROVED", 0), result(ANN, "FAILED")], "failed not_started"),
        ([result(ANN, "FAILED", 1), result(ANN, "APPROVED")], "failed not_started"),
        ([result(ANN, "FAILED", 1), result(BO, "EXPIRED", 2)], "failed expired"),
        ([result(ANN, "FAILED", contentId="c-2"), result("u-3", "FAILED")], "not_started not_started"),
        ([result(ANN, "FAILED", 1), result(ANN, "APPROVED", 2, contentId="c-2")], "failed not_started"),
    ],
)
def test_the_latest_result_for_the_lost_content_counts(tmp_path: Path, rows: list[object], states: str) -> None:
    """A result without a revision is the oldest; results of other people and for other contents do not count."""
    found, reasons = lost(tmp_path, lambda said: said.update(list=rows))
    assert found.progress == {state: states.split().count(state) for state in STATES}
    assert reasons == ()


NO_LIST = "the progress of those who lose content was not read: a response is missing its list of results"


@pytest.mark.parametrize(
    ("edit", "expiring", "reasons"),
    [
        (lambda said: said.update(list=[result(ANN, "RETIRED")]), dict.fromkeys((30, 60, 90), 0), ()),
        (lambda said: said.pop("list"), None, (NO_LIST,)),
    ],
    ids=["an unknown state", "no list"],
)
def test_results_that_cannot_be_read_make_the_progress_unknown(
    tmp_path: Path, edit: Edit, expiring: object, reasons: tuple[str, ...]
) -> None:
    """The numbers of people rest on no result. Results without a list are not taken for none: the plan says why."""
    found, told = lost(tmp_path, edit)
    assert (found.progress, found.certificates_expiring, found.counts.lose) == (None, expiring, 2)
    assert told == reasons


@pytest.mark.sampled
@pytest.mark.parametrize(
    ("days", "expiring"),
    [
        (-1, (0, 0, 0)),
        (29, (1, 1, 1)),
        (31, (0, 1, 1)),
        (59, (0, 1, 1)),
        (61, (0, 0, 1)),
        (89, (0, 0, 1)),
        (91, (0, 0, 0)),
    ],
)
def test_certificates_that_end_soon_are_counted(tmp_path: Path, days: int, expiring: tuple[int, ...]) -> None:
    """Those that end in the next 30, 60 and 90 days, and not those that have ended."""
    rows = [result(ANN, "APPROVED", 1, days), result(BO, "APPROVED", 1)]
    found, _ = lost(tmp_path, lambda said: said.update(list=rows))
    assert found.certificates_expiring == dict(zip((30, 60, 90), expiring, strict=True))


# What a plan does to people as far as a snapshot file tells, and why the rest is not known.


FEWER = "groups: [{name: Team, members: [ann@x.example, old@x.example]}]"
NARROWED = "smart_groups: [{name: Nordics, conditions: [{field: Country, choices: [SE]}]}]"
TAKEN = """
absent:
  content_targets:
    - {content: B, assign_to: [{smart_group: Nordics}]}
    - {content: A, assign_to: [{group: Team}]}
"""
NONE = (None, None)


def against(tmp_path: Path, change: str, edit: Edit) -> tuple[Effects, dict[str, tuple[int | None, int | None]]]:
    """Effects of a change on a snapshot that was edited; people before and after by content and by group."""
    effects = plan_against(Project(tmp_path, SEED, "guards: off\n"), change, edit).effects
    contents = {one.content: (one.before, one.after) for one in effects.contents}
    return effects, contents | {str(one.address): (one.before, one.after) for one in effects.groups}


@pytest.mark.parametrize(
    ("lacks", "change", "found", "reason"),
    [
        (None, FEWER, {"A": (2, 1), "group/Team": (2, 1)}, ""),
        (None, NARROWED, {"B": (3, 2), "smart_group/Nordics": (3, 2)}, ""),
        (None, TAKEN, {"A": (2, 0), "B": (3, 0)}, ""),
        (("user", "answers"), NARROWED, {"B": NONE, "smart_group/Nordics": NONE}, "an unknown format"),
        (("group", "members"), TAKEN, {"A": NONE, "B": (3, 0)}, "the members of group/Team were not read"),
        (("smart_group", "conditions"), TAKEN, {"A": (2, 0), "B": NONE}, "Nordics: its conditions were not read"),
    ],
)
def test_a_snapshot_tells_who_loses_what_as_far_as_it_goes(
    tmp_path: Path, lacks: tuple[str, str] | None, change: str, found: dict[str, tuple[int | None, int]], reason: str
) -> None:
    """The members of smart groups follow from the answers in it.

    Nobody is taken to be in a group whose members or conditions the file does not hold, nor to be in none.
    """
    effects, numbers = against(tmp_path, change, lambda said: lacks and said[lacks[0]][0].pop(lacks[1]))
    assert numbers == found
    assert (effects.basis is Basis.EXACT, bool(effects.reasons)) == (lacks is None, lacks is not None)
    assert reason in " ".join(effects.reasons)


@pytest.mark.sampled(day=3)
@pytest.mark.parametrize("listing", ["user", "content", "group", "smart_group", "custom_field", "content_target"])
def test_an_incomplete_listing_in_a_snapshot_makes_everything_unknown(tmp_path: Path, listing: str) -> None:
    """The reason names the listing, and why it is not complete."""
    change = NARROWED if listing == "group" else FEWER
    effects, numbers = against(tmp_path, change, lambda said: said["incomplete"].update({listing: "1 of 2 came"}))
    assert (numbers, effects.people.lose, effects.basis) == ({}, None, Basis.UNKNOWN)
    assert effects.reasons == (f"the snapshot has no complete listing of {listing.replace('_', ' ')}s: 1 of 2 came",)


# Whose a live assignment is where groups, smart groups and people share an id: plan, effects and `keep` agree.


SHARED_SEED = text_of(__file__, "shared_ids_seed.yaml")
AUDIENCES = {
    "group": ("{group: Sales}", "Sales", "{group: Other group}", ["ann", "bo"]),
    "smart_group": ("{smart_group: Nordics}", "Nordics", "{smart_group: Other smart group}", ["dan"]),
    "user": ("{user: eve@x.example}", "eve@x.example", "{user: gus@x.example}", ["eve"]),
}
WORDS = {"group": "GROUP", "smart_group": "smartGroup", "user": "Users"}
TOLD = ("words", "like others", "label", "label without types")
REPLACING = "content_targets: [{content: New, assign_to: [AUDIENCE], replaces: {content: Old, then: remove}KEEP}]"
KEEP = ", keep: {in_progress: true, until: 2090-12-31}"


def _shown(kind: str, told: str) -> dict[str, Edit]:
    """A service whose smart group has the id of a group and of a person; nobody has that of the other assignment."""

    def targets(said: dict[str, Any]) -> None:
        for target in said["targets"]:
            target["targetId"] = target["targetId"].replace("s-1", "x-1")
            is_shared = target["targetId"] == "x-1"
            target["targetType"] = (
                WORDS[kind] if told == "words" else "new" if is_shared or told == "like others" else "T"
            )
            target["name"] = AUDIENCES[kind][1] if is_shared and told.startswith("label") else ""
            if told == "label without types":
                del target["targetType"]

    def smart_groups(said: dict[str, Any]) -> None:
        for group in said["smartGroups"]:
            group["smartGroupId"] = group["smartGroupId"].replace("s-1", "x-1")

    return {"/content/targets": targets, "/smart-groups": smart_groups}


PATHS = {"/smart-groups/x-1": "/smart-groups/s-1"}


def _made(root: Path, kind: str, keep: str) -> tuple[Project, str]:
    to, _, other, _ = AUDIENCES[kind]
    it = Project(root, SHARED_SEED.replace("OTHER", other).replace("AUDIENCE", to), "timezone: UTC\n")
    return it, REPLACING.replace("AUDIENCE", to).replace("KEEP", keep)


@pytest.mark.sampled(daily=False)
@pytest.mark.parametrize("told", TOLD)
@pytest.mark.parametrize("kind", AUDIENCES)
def test_an_assignment_is_for_one_audience_in_every_part_of_a_plan(tmp_path: Path, kind: str, told: str) -> None:
    """Whose it is follows from words in its type, from others of its type, or from its label.

    The plan deletes that assignment, those of its people who are in progress keep the content, and without `keep` it
    is they who lose it.
    """
    people = AUDIENCES[kind][3]
    it, manifests = _made(tmp_path, kind, KEEP)
    plan = plan_altered(it, manifests, _shown(kind, told), PATHS)
    assert not [one.message for one in plan.all_problems if one.is_error]
    addresses = {one.address.name: one.action.value for one in plan.changes}
    name = f"{kind}/{AUDIENCES[kind][1]}"
    kept = {f"Old -> user/{who}@x.example": "update" if kind == "user" else "create" for who in people}
    assert addresses == {f"New -> {name}": "create", f"Old -> {name}": "delete"} | kept
    plan = plan_altered(it, manifests.replace(KEEP, ""), _shown(kind, told), PATHS)
    assert plan.effects is not None
    lost = {one.content: (one.counts.lose, one.basis.value) for one in plan.effects.contents}
    assert lost == {"Old": (len(people), "exact"), "New": (0, "exact")}


@pytest.mark.parametrize("kind", AUDIENCES)
def test_an_assignment_that_nothing_tells_apart_is_left_alone(tmp_path: Path, kind: str) -> None:
    """It has no label, and its type is that of no other: the plan names all that it may be for, and sends nothing."""
    it, _ = _made(tmp_path, kind, "")
    manifests = f"content_targets: [{{content: Old, mandatory: true, assign_to: [{AUDIENCES[kind][0]}]}}]"
    with pytest.raises(ProblemsFound) as raised:
        plan_altered(it, manifests, _shown(kind, "nothing"), PATHS)
    [problem] = [one for one in raised.value.problems if one.is_error]
    assert problem.code == "content-target/audience"
    assert "group/Sales and smart_group/Nordics and user/eve@x.example" in problem.message
