"""Declarations: what manifests promise word for word, and each that cannot be planned, with the way out."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest
from manifest.cases import Case, cases, shown
from texts import listed_cases, text_of

from lmsconf.errors import Problem, ProblemsFound
from lmsconf.project.settings import load_settings
from lmsconf.workspace.project_manifests import load_manifests, validate_offline

from .altered_service import plan_against
from .project import TODAY, Project

SEED = """
people: [{email: anna@acme.example, id: u-anna}]
custom_fields: [{name: Dept, type: CHOICE, choices: [A, B]}]
groups: [{name: G, id: g-1}, {name: D, id: g-2}]
content: [{name: Intro, id: c-1}, {name: Twin, id: c-2}, {name: Other, id: c-3}]
content_targets: [{content: Intro, assign_to: [{group: G}], visible_from: 2026-01-05T10:00:00Z}]
"""
ANNA = "assign_to: [{user: anna@acme.example}]"


def errors(plan: Callable[[], object]) -> list[Problem]:
    """The errors that there is no plan because of."""
    with pytest.raises(ProblemsFound) as caught:
        plan()
    return [problem for problem in caught.value.problems if problem.is_error]


def window(start: str, finish: str) -> str:
    return (
        f"content_targets: [{{content: Intro, assign_to: [everyone], visible_from: {start}, visible_until: {finish}}}]"
    )


@pytest.mark.sampled
@pytest.mark.parametrize(
    "case", cases(Path(__file__).with_name("refused_declarations.txt")), ids=lambda case: case.title
)
def test_what_contradicts_itself_or_the_workspace_is_an_error(tmp_path: Path, case: Case) -> None:
    """One error, at its place in the manifest."""
    it = Project(tmp_path, SEED)
    it.write(case.text)
    assert shown(list(load_manifests(it.settings).problems) or errors(it.plan)) == case.told


def test_a_window_of_a_second_is_one(tmp_path: Path) -> None:
    """Later is later."""
    it = Project(tmp_path, SEED)
    plan = it.plan(window("2026-02-01T00:00:00Z", "2026-02-01T00:00:01Z"))
    assert [str(change.action) for change in plan.changes] == ["create"]


def renamed(snapshot: dict[str, Any]) -> None:
    """Two contents have one name."""
    next(row for row in snapshot["content"] if row["id"] == "c-3")["name"] = "Twin"


def odd_time(snapshot: dict[str, Any]) -> None:
    """The service writes a time in a way of its own."""
    snapshot["content_target"][0]["start"] = "soon"


def twice(snapshot: dict[str, Any]) -> None:
    """The service holds one assignment twice."""
    [row] = snapshot["content_target"]
    snapshot["content_target"].append(dict(row))


def shared_id(snapshot: dict[str, Any]) -> None:
    """A person and a group have one id, and the assignment does not say which of them it is for."""
    snapshot["user"][0]["id"] = "g-1"
    snapshot["content_target"][0] |= {"type": "TEAM", "label": ""}


def unread_groups(snapshot: dict[str, Any]) -> None:
    """The assignment is for the id of a person, and the listing of groups broke off."""
    shared_id(snapshot)
    snapshot["group"].clear()
    snapshot["incomplete"]["group"] = "page 2 failed"


def group_gone(snapshot: dict[str, Any]) -> None:
    """The assignment is for a group that is not live, and a person has its id."""
    unread_groups(snapshot)
    snapshot["content_target"][0]["type"] = "GROUP"


def person_gone(snapshot: dict[str, Any]) -> None:
    """The assignment is for a person who is not live, and a group has their id."""
    snapshot["content_target"][0] |= {"type": "USER", "label": ""}


def twin_field(snapshot: dict[str, Any]) -> None:
    """Two fields have one name."""
    snapshot["custom_field"][0]["id"] = "f-1"
    snapshot["custom_field"].append({"id": "f-9", "name": "Dept", "type": "CHOICE", "choices": []})


EDITS = {one.__name__: one for one in (twin_field, renamed, odd_time, twice, shared_id, unread_groups)}


@pytest.mark.sampled
@pytest.mark.parametrize("case", cases(Path(__file__).with_name("open_workspaces.txt")), ids=lambda case: case.title)
def test_what_the_workspace_leaves_open_is_an_error(tmp_path: Path, case: Case) -> None:
    """Two contents of one name, a time that cannot be read, an assignment that may be for either of two."""
    edit, _, manifests = case.text.removeprefix("workspace: ").partition("\n")
    found = errors(lambda: plan_against(Project(tmp_path, SEED), manifests, EDITS[edit]))
    assert shown(found) == case.told


@pytest.mark.parametrize(("edit", "audience"), [(group_gone, ANNA), (person_gone, "assign_to: [{group: G}]")])
def test_an_assignment_is_not_taken_for_that_of_another_kind(
    tmp_path: Path, edit: Callable[[dict[str, Any]], object], audience: str
) -> None:
    """One whose type names groups is not for the person with its id, nor one of type USER for the group."""
    entry = f"content_targets: [{{content: Intro, {audience}}}]"
    plan = plan_against(Project(tmp_path, SEED), entry, edit)
    assert [str(change.action) for change in plan.changes] == ["create"]
    assert plan_against(Project(tmp_path, SEED), f"absent: {{{entry}}}", edit).changes == ()


def test_an_id_that_no_list_of_people_holds_is_noted(tmp_path: Path) -> None:
    """It is not removed from a declared list, and the plan says that it is there."""

    def edit(snapshot: dict[str, Any]) -> None:
        next(row for row in snapshot["group"] if row["id"] == "g-1")["members"] = ["u-404"]

    plan = plan_against(Project(tmp_path, SEED), "groups: [{name: G, members: []}]", edit)
    assert plan.changes == ()
    [note] = [one for one in plan.all_problems if one.code == "person/unexplained"]
    assert note.message == "group/G: members hold user id u-404, which is in no list of people; it is not changed"


def test_what_leans_on_a_resource_in_doubt_says_what_to_plan_too(tmp_path: Path) -> None:
    """The error of the group says why; where the group is left out of the plan, the assignment points to it."""
    manifests = """
groups: [{name: D, id: g-9}]
content_targets: [{content: Other, assign_to: [{group: D}]}]
"""
    it = Project(tmp_path, SEED)
    assert [one.code for one in errors(lambda: it.plan(manifests))] == ["identity/pin-not-live"]
    [found] = errors(lambda: it.plan(manifests, excluded=("group/D",)))
    assert (found.code, found.address) == ("reference/in-doubt", "content_target/Other -> group/D")
    assert found.message.endswith("it names group/D, and it is not yet known what of it is live")
    assert found.hint == "Plan group/D too to see its error."


@pytest.mark.sampled(day=3)
@pytest.mark.parametrize(
    "entry",
    [
        "groups: [{name: New NUMBER, members: [anna.bergNUMBER@acme.example]}]",
        "content_targets: [{content: Intro, assign_to: [{group: Group of coaches NUMBER}]}]",
        "content_targets: [{content: Introduction NUMBER, assign_to: [everyone]}]",
    ],
    ids=["people", "audiences", "contents"],
)
def test_only_the_first_unknown_names_are_compared_with_the_known(tmp_path: Path, entry: str) -> None:
    """Fifty of many unknown names get `Did you mean`; all are errors, and say what to do."""
    people, groups = "people: [{email: anna.berg@acme.example}]", "groups: [{name: Group of coaches}]"
    project = Project(tmp_path, f"{people}\n{groups}\ncontent: [{{name: Introduction}}, {{name: Intro}}]")
    for number in range(10, 70):
        project.write(entry.replace("NUMBER", str(number)), f"{number}.yaml")
    hints = [problem.hint or "" for problem in errors(project.plan)]
    assert (len(hints), all(hints)) == (60, True)
    assert sum(hint.startswith("Did you mean ") for hint in hints) == 50


# What manifests promise, word for word: times, dates, people from CSV files, and what validate finds by itself.


PROMISED_SEED = text_of(__file__, "refused_declarations_promised_seed.yaml")
EVERYTHING = text_of(__file__, "refused_declarations_everything.yaml")


def project(root: Path, manifests: str, options: str = "timezone: Europe/Stockholm\n") -> Project:
    made = Project(root, PROMISED_SEED, options)
    made.write(manifests)
    return made


def told(it: Project) -> list[Problem]:
    """What `lmsconf validate` finds."""
    return list(validate_offline(it.settings).problems)


def open_window(root: Path, key: str, time: str, options: str = "timezone: Europe/Stockholm\n") -> Project:
    line = f"content_targets: [{{content: GDPR basics, {key}: {time}, assign_to: [everyone]}}]"
    return project(root, line, options)


def test_every_key_at_once(tmp_path: Path) -> None:
    """A manifest with a key of every sort plans, applies, and then wants nothing more."""
    it = project(tmp_path, EVERYTHING)
    (tmp_path / "manifests" / "hr").mkdir()
    (tmp_path / "manifests" / "hr" / "leaders.csv").write_bytes(
        b"\xef\xbb\xbfemail;Group\r\n anna.berg@acme.example ;Leadership SE\r\nbo.ek@acme.example;Other\r\n"
    )
    # Everyone must take the content: `mandatory: false` and a shorter window for smaller audiences change nothing.
    overruled = ["lint/contradicting-assignments"] * 2
    assert [problem.code for problem in told(it)] == ["reference/unknown-workspace", *overruled]
    plan = it.plan()
    assert {(change.action.value, str(change.address)) for change in plan.changes} == {
        ("update", "custom_field/Department"),
        ("update", "group/Onboarding coaches"),
        ("delete", "group/Summer interns 2024"),
        ("create", "smart_group/Sales Nordics"),
        ("create", "content_target/GDPR basics -> smart_group/Sales Nordics"),
        ("create", "content_target/GDPR basics -> group/Onboarding coaches"),
        ("create", "content_target/GDPR basics -> user/bo.ek@acme.example"),
        ("create", "content_target/GDPR basics -> everyone"),
    }
    assert plan.manifests_files == ("manifests/all.yaml", "manifests/hr/leaders.csv")
    assert it.apply(plan=plan).converged
    assert it.plan().changes == ()


@listed_cases("key", "said", "sent")
def test_times(key: str, said: str, sent: str, tmp_path: Path) -> None:
    """A bare date is midnight or the last second, in the project's zone unless an offset stands there."""
    it = open_window(tmp_path, key, said)
    (call,) = it.plan().calls
    moment = datetime.fromisoformat(sent)
    value = f"{moment.timestamp():.0f}000" if it.spec.behaviour("content-targets.time-format") == "epoch-ms" else sent
    name = {"visible_from": "startTime", "visible_until": "finishTime"}[key]
    assert it.spec.body_to_wire("content-targets.create", **{name: value}).items() <= call.body.items()
    assert it.apply().converged
    assert it.plan().changes == ()


@listed_cases("said", "zone", "reason", "hint")
def test_times_that_are_none(said: str, zone: str | None, reason: str, hint: str, tmp_path: Path) -> None:
    """A moment that a clock change skips or repeats, that has no zone, or no year, is an error with its way out."""
    it = open_window(tmp_path, "visible_until", said, f"timezone: {zone}\n" if zone else "")
    (problem,) = told(it)
    assert (problem.code, str(problem.source)) == ("manifest/time", "manifests/all.yaml:1:57")
    assert reason in problem.message
    assert hint in str(problem.hint)


def test_validate_knows_the_day(tmp_path: Path) -> None:
    """An entry under `absent` that is past its date is an error without looking at the workspace."""
    it = project(tmp_path, "absent: {groups: [{name: A, until: 2026-05-31}, {name: B, until: 2026-06-01}]}")
    (problem,) = told(it)
    assert (problem.code, problem.address, str(problem.source)) == (
        "absent/expired",
        "group/A",
        "manifests/all.yaml:1:19",
    )


def test_validate_knows_the_dialect(tmp_path: Path) -> None:
    """A key or value that the dialect does not have is told at its line, beside what is wrong in the manifests."""
    options = "dialect:\n  custom-fields.in-use: sometimes\n  nothing.of-that-name: x\n"
    it = project(tmp_path, "grups: []", options)
    assert [(problem.code, str(problem.source)) for problem in told(it)] == [
        ("dialect/value", "lmsconf.yaml:4:3"),
        ("dialect/unknown-key", "lmsconf.yaml:5:3"),
        ("manifest/unknown-key", "manifests/all.yaml:1:1"),
    ]


def test_a_workspace_has_its_own_dialect(tmp_path: Path) -> None:
    """What one workspace overrides is looked at, and placed, where that workspace says it."""
    project(tmp_path, "groups: [{name: A}]")
    text = (tmp_path / "lmsconf.yaml").read_text().replace("seed:", "dialect: {paging.limit: none}, seed:")
    (tmp_path / "lmsconf.yaml").write_text(text)
    (problem,) = validate_offline(load_settings(tmp_path, None, {}, today=TODAY)).problems
    assert (problem.code, str(problem.source)) == ("dialect/value", "lmsconf.yaml:2:52")
