"""What others change while a plan is carried out is told by the look that follows, which says no more than it saw."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, cast

import pytest
from json_schemas import schema_validator
from wire.second_dialect import known_dialect

from lmsconf.errors import ExitCode
from lmsconf.sandbox.service import LoggedRequest

from .served_project import CommandResult, ServedProject, staged

pytestmark = pytest.mark.sampled

SEED = """
people:
  - {email: root@acme.example, id: u-root, admin: true}
  - {email: anna@acme.example, id: u-anna}
  - {email: bo@acme.example, id: u-bo}
custom_fields:
  - {name: Dept, type: CHOICE, choices: [Sales, HR, Ops]}
  - {name: Site, type: CHOICE, choices: [Rome, Oslo, Bonn]}
groups:
  - {name: Team, id: g-team, members: [anna@acme.example, bo@acme.example], managers: [root@acme.example]}
  - {name: Crew, id: g-crew}
  - {name: Other, id: g-other}
smart_groups: [{name: Sellers, id: sg-sellers, conditions: [{field: Dept, choices: [Sales]}]}]
content: [{name: Intro, id: c-1}]
content_targets: [{content: Intro, assign_to: [{group: Team}], mandatory: true}]
"""
LIVE = """
custom_fields: [{name: Dept, choices: [Sales, HR, Ops]}, {name: Site, choices: [Rome, Oslo, Bonn]}]
groups:
  - {name: Team, members: [anna@acme.example, bo@acme.example], managers: [root@acme.example]}
smart_groups: [{name: Sellers, conditions: [{field: Dept, choices: [Sales]}]}]
content_targets: [{content: Intro, assign_to: [{group: Team}], mandatory: true}]
"""
MANIFESTS = LIVE.replace("groups:\n", "groups:\n  - {name: Crew, members: [bo@acme.example]}\n  - {name: New}\n", 1)
"""Two groups differ, and nothing else."""
Hand = Callable[[ServedProject], object]


def call(operation: str, body: Any = None, **path: str) -> Hand:
    return lambda stage: stage.hand(operation, path, body)


def field(stage: ServedProject, name: str) -> dict[str, Any]:
    answer = cast("dict[str, list[dict[str, Any]]]", stage.hand("custom-fields.list"))
    return next(one for one in answer["customFields"] if one["name"] == name)


def other_condition(stage: ServedProject) -> object:
    dept = field(stage, "Dept")
    one = {"customFieldId": dept["customFieldId"], "choiceIds": [dept["choices"][1]["choiceId"]]}
    return stage.hand("smart-groups.replace-conditions", {"smartGroupId": "sg-sellers"}, {"conditions": [one]})


def choice_dropped(stage: ServedProject) -> object:
    site = field(stage, "Site")
    body = {"name": "Site", "type": "CHOICE", "choices": site["choices"][:2]}
    return stage.hand("custom-fields.replace", {"customFieldId": site["customFieldId"]}, cast(Any, body))


INTRO = "content_target/Intro -> group/Team"
BY_OTHERS: Mapping[str, tuple[str, Hand]] = {
    "a group deleted": ("group/Team", call("manual-groups.delete", groupId="g-team")),
    "a group renamed": ("group/Team", call("manual-groups.rename", {"name": "Mates"}, groupId="g-team")),
    "a member out": ("group/Team", call("manual-groups.remove-member", groupId="g-team", userId="u-bo")),
    "a manager in": ("group/Team", call("manual-groups.add-managers", {"userIds": ["u-bo"]}, groupId="g-team")),
    "conditions": ("smart_group/Sellers", other_condition),
    "a smart group deleted": ("smart_group/Sellers", call("smart-groups.delete", smartGroupId="sg-sellers")),
    "an assignment deleted": (
        INTRO,
        call("content-targets.delete", {"contentId": "c-1", "targetId": "g-team", "targetType": "GROUP"}),
    ),
    "an assignment made optional": (
        INTRO,
        call("content-targets.create", {"contentId": "c-1", "targetId": "g-team", "mandatory": False}),
    ),
    "a choice dropped": ("custom_field/Site", choice_dropped),
}
"""What somebody does by hand → the declared resource that it is done to."""


class ConcurrentEditor:
    """Somebody who edits the workspace once the run has sent its first write."""

    def __init__(self) -> None:
        self.stage: ServedProject | None = None
        self.hand: Hand | None = None

    def __call__(self, seen: LoggedRequest) -> None:
        if seen.writes and self.stage is not None and self.hand is not None:
            hand, self.hand = self.hand, None
            hand(self.stage)


@pytest.fixture
def others() -> ConcurrentEditor:
    return ConcurrentEditor()


@pytest.fixture
def stage(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, others: ConcurrentEditor) -> Iterator[ServedProject]:
    with staged(tmp_path, SEED, monkeypatch, "timezone: UTC\n", on_log=others) as stage:
        stage.write(MANIFESTS)
        others.stage = stage
        yield stage


def saved(stage: ServedProject, *arguments: str) -> str:
    """The path of a plan file."""
    path = str(stage.root / "plan.json")
    assert stage("plan", "--out", path, *arguments).code == 0
    return path


def verified(ran: CommandResult) -> dict[str, Any]:
    """What a report says it looked at."""
    document = ran.document
    assert list(schema_validator("apply").iter_errors(document)) == []
    return cast("dict[str, Any]", document["verified"])


@pytest.mark.parametrize("from_file", [False, True], ids=["apply", "apply PLANFILE"])
@pytest.mark.parametrize("what", BY_OTHERS)
def test_an_edit_during_the_run_is_told(
    stage: ServedProject, others: ConcurrentEditor, what: str, from_file: bool
) -> None:
    """Somebody changes what the plan does not touch while it is carried out: exit 6, and the resource is named."""
    address, hand = BY_OTHERS[what]
    arguments = ["apply", saved(stage)] if from_file else ["apply", "--auto-approve"]
    others.hand = hand
    ran = stage(*arguments)
    assert others.hand is None
    assert ran.code == ExitCode.NOT_CONVERGED, ran.err
    named = ran.out.replace("assignment of Intro to ", "content_target/Intro -> ")
    below = named.partition("Not part of this plan, but drifted:")[2]
    assert address in below
    assert "Read back: the workspace does not match the manifests; " in ran.out
    assert "complete" not in ran.out


@pytest.mark.parametrize("view", ["json", "markdown", "html"])
def test_every_format_names_what_others_changed(stage: ServedProject, others: ConcurrentEditor, view: str) -> None:
    """The document lists the addresses, and the page and the comment have them in a section of their own."""
    others.hand = BY_OTHERS["a member out"][1]
    ran = stage("apply", "--auto-approve", "--format", view)
    assert ran.code == ExitCode.NOT_CONVERGED
    if view == "json":
        assert verified(ran)["others"] == ["group/Team"]
        assert [one["address"] for one in cast("list[dict[str, Any]]", ran.document["residue"])] == ["group/Team"]
    assert "group/Team" in ran.out
    if view != "json":
        assert "Not part of this plan, but drifted" in ran.out
        assert "1 resource differs, which is not part of this plan" in ran.out


def test_only_the_touched_are_looked_at_where_that_is_asked(stage: ServedProject, others: ConcurrentEditor) -> None:
    """--verify touched speaks of the resources of the plan, and of nothing else."""
    others.hand = BY_OTHERS["a member out"][1]
    ran = stage("apply", "--auto-approve", "--verify", "touched")
    assert ran.code == ExitCode.OK
    assert "The 2 resources of this plan are as planned. Nothing else was checked (--verify touched).\n" in ran.out
    assert "matches the manifests" not in ran.out


def test_what_a_run_looked_at_stands_in_its_report(stage: ServedProject) -> None:
    """All that the plan was made of, by default, and how many resources it changed."""
    found = verified(stage("apply", "--auto-approve", "--format", "json"))
    counts = {"resources": 2, "skipped": 0, "left_out": 0}
    assert found == {"scope": "all", "partial": False, **counts, "others": [], "reason": None}


@pytest.mark.parametrize("how", ["others", "none", "broken"])
def test_a_plan_file_without_its_manifests_claims_nothing_about_them(
    stage: ServedProject, others: ConcurrentEditor, how: str
) -> None:
    """The manifests at hand are others, none, or cannot be read: what the plan touched is looked at, and no more."""
    path = saved(stage)
    manifest = stage.root / "manifests" / "all.yaml"
    if how == "none":
        manifest.unlink()
    else:
        manifest.write_text(LIVE if how == "others" else "groups: [", encoding="utf-8")
    others.hand = BY_OTHERS["a member out"][1]
    ran = stage("apply", path)
    assert ran.code == ExitCode.OK, ran.err
    why = "The local manifests differ from those" if how == "others" else "There are no readable local manifests"
    assert f"The 2 resources of this plan are as planned. {why}" in ran.out
    assert "matches the manifests" not in ran.out


@pytest.mark.parametrize(
    ("arguments", "seen"),
    [
        (["--only", "group/New"], False),
        (["--only", "group/*"], True),
        (["--except", "group/Team"], False),
        (["--except", "smart_group/*"], True),
    ],
)
@pytest.mark.parametrize("from_file", [False, True], ids=["apply", "apply PLANFILE"])
def test_the_look_is_at_the_same_part(
    stage: ServedProject, others: ConcurrentEditor, arguments: list[str], seen: bool, from_file: bool
) -> None:
    """What --only and --except left out of the plan is not looked at, and the sentence does not speak of it."""
    command = ["apply", saved(stage, *arguments)] if from_file else ["apply", "--auto-approve", *arguments]
    others.hand = BY_OTHERS["a member out"][1]
    ran = stage(*command)
    assert ran.code == (ExitCode.NOT_CONVERGED if seen else ExitCode.OK)
    told = "the scope of this plan does not match" if seen else "the scope of this plan matches the manifests."
    assert f"Read back: {told}" in ran.out
    assert "Read back: the workspace" not in ran.out


def test_an_address_that_the_run_itself_ends_is_still_chosen(stage: ServedProject) -> None:
    """--only names the old name of a group that is renamed: afterwards there is no such group, and that is no error."""
    stage.write("groups: [{name: Fresh, previously: [Other]}]")
    ran = stage("apply", "--auto-approve", "--only", "group/Other")
    assert ran.code == ExitCode.OK, ran.err + ran.out
    assert "Read back: the scope of this plan matches the manifests." in ran.out


@pytest.mark.parametrize("is_saved", [False, True])
def test_a_changed_group_that_others_rename_during_the_run_is_told(
    stage: ServedProject, others: ConcurrentEditor, is_saved: bool
) -> None:
    """Its name is read again also where the run knows its id from before, so that the report is no match."""
    stage.options("timezone: UTC\nsettle: 1s\n")
    stage.write(MANIFESTS.replace("  - {name: New}\n", ""))
    arguments = (saved(stage),) if is_saved else ("--auto-approve",)
    others.hand = call("manual-groups.rename", {"name": "Mates"}, groupId="g-crew")
    ran = stage("apply", *arguments, "--format", "json")
    assert ran.code == ExitCode.NOT_CONVERGED
    assert [one["address"] for one in ran.document["residue"]] == ["group/Crew"]


def test_a_plan_that_only_adds_says_what_it_leaves_out(stage: ServedProject, others: ConcurrentEditor) -> None:
    """A manager in is nothing to add, and is counted as left out; a member out is something to add, and is told."""
    others.hand = BY_OTHERS["a manager in"][1]
    ran = stage("apply", "--auto-approve", "--additive")
    assert ran.code == ExitCode.OK, ran.err
    assert "Read back: nothing of the workspace is left to create or to add; 1 change left out" in ran.out
    stage.hand("manual-groups.delete", {"groupId": "g-crew"})
    others.hand = BY_OTHERS["a member out"][1]
    assert stage("apply", "--auto-approve", "--additive").code == ExitCode.NOT_CONVERGED


def test_a_plan_without_changes_says_what_it_saw(stage: ServedProject) -> None:
    """Nothing is sent. What was just planned was just read; a saved plan is looked at anew, where that can be done."""
    stage.write(LIVE)
    ran = stage("apply", "--auto-approve")
    assert (ran.code, ran.writes) == (ExitCode.OK, [])
    assert "Nothing was sent: the workspace matches the manifests." in ran.out
    path = saved(stage)
    assert "Nothing was sent: the workspace matches the manifests." in stage("apply", path).out
    stage.hand("manual-groups.remove-member", {"groupId": "g-team", "userId": "u-bo"})
    ran = stage("apply", path)
    assert (ran.code, ran.writes) == (ExitCode.NOT_CONVERGED, [])
    assert "group/Team" in ran.out
    stage.write(MANIFESTS)
    ran = stage("apply", path)
    assert (ran.code, ran.writes) == (ExitCode.OK, [])
    assert "Nothing was sent, and the workspace was not read back." in ran.out
    assert "match" not in ran.out


def test_everything_is_read_once(stage: ServedProject) -> None:
    """The look costs one reading of what the plan is made of, whatever it has found."""
    stage.options(f"timezone: UTC\ndialect: {json.dumps(known_dialect())}\n")
    asked = len(stage.sandbox.log)
    assert stage("plan").code == 0
    whole = len(stage.sandbox.log) - asked
    stage("apply", "--auto-approve", "--verify", "all")
    last = max(number for number, seen in enumerate(stage.sandbox.log) if seen.writes)
    assert len(stage.sandbox.log) - 1 - last <= whole


def test_a_twin_that_others_make_is_told_with_the_rest(stage: ServedProject, others: ConcurrentEditor) -> None:
    """A second group of a declared name bars a whole plan: it is an error by name, and the rest is told beside it."""

    def edit(stage: ServedProject) -> None:
        stage.hand("manual-groups.create", body={"name": "Team"})
        stage.hand("smart-groups.delete", {"smartGroupId": "sg-sellers"})

    others.hand = edit
    ran = stage("apply", "--auto-approve", "--format", "json")
    assert ran.code == ExitCode.NOT_CONVERGED
    problems = cast("list[dict[str, Any]]", ran.document["problems"])
    assert "group/Team" in [one["address"] for one in problems]
    assert "smart_group/Sellers" in verified(ran)["others"]


def test_a_twin_of_what_a_plan_touches_is_told(stage: ServedProject, others: ConcurrentEditor) -> None:
    """Where only the touched is looked at, what cannot be planned again is an error by name, not a match."""
    others.hand = call("manual-groups.create", {"name": "New"})
    ran = stage("apply", "--auto-approve", "--verify", "touched", "--format", "json")
    assert ran.code == ExitCode.NOT_CONVERGED
    problems = cast("list[dict[str, Any]]", ran.document["problems"])
    assert "group/New" in [one["address"] for one in problems]


def test_people_who_are_skipped_are_no_match(stage: ServedProject) -> None:
    """Where the project skips people who are not live, no sentence says that the workspace matches without that."""
    for n in range(12):
        person = {"email": f"p{n}@acme.example", "firstName": "P", "lastName": str(n), "language": "en"}
        stage.hand("users.create", body=person)
    stage.options("timezone: UTC\npeople: {unknown: skip}\n")
    members = ", ".join(f"p{n}@acme.example" for n in range(13))
    stage.write(f"groups: [{{name: Crew, members: [{members}]}}]")
    but = "matches the manifests, but for 1 mention of people who are not live."
    ran = stage("apply", "--auto-approve")
    assert ran.code == ExitCode.OK, ran.err
    assert f"Read back: the workspace {but}" in ran.out
    assert f"No changes. The workspace {but}" in stage("plan").out
    assert f"No drift. The workspace {but}" in stage("drift").out
