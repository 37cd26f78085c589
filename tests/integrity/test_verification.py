"""What others change while a plan is carried out, and who is in smart groups then, is told by the look that follows."""

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, cast

import httpx
import pytest
import yaml
from json_schemas import schema_validator
from texts import text_of

from lmsconf.errors import ExitCode
from lmsconf.model.effects import Basis
from lmsconf.model.outcomes import ApplyReport
from lmsconf.sandbox.service import LoggedRequest

from .served_project import CommandResult, LinkedProject, OtherAnswers, ServedProject, linked, staged

SEED = text_of(__file__, "verification_seed.yaml")
LIVE = """
custom_fields: [{name: Dept, choices: [Sales, HR, Ops]}, {name: Site, choices: [Rome, Oslo, Bonn]}]
groups:
  - {name: Team, members: [anna@acme.example, bo@acme.example], managers: [root@acme.example]}
smart_groups: [{name: Sellers, conditions: [{field: Dept, choices: [Sales]}]}]
content_targets: [{content: Intro, assign_to: [{group: Team}], mandatory: true}]
"""
MANIFESTS = LIVE.replace("groups:\n", "groups:\n  - {name: Crew, members: [bo@acme.example]}\n  - {name: New}\n", 1)
"""Two groups differ, and nothing else."""
BY_OTHERS: Mapping[str, list[Any]] = yaml.safe_load(text_of(__file__, "edits_by_hand.yaml"))["during_run"]
OUT = BY_OTHERS["a member out"][1:]


@pytest.fixture
def others() -> list[list[Any]]:
    """Calls that somebody makes by hand once the run has sent its first write."""
    return []


@pytest.fixture
def stage(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, others: list[list[Any]]) -> Iterator[ServedProject]:
    def edit(seen: LoggedRequest) -> None:
        if seen.writes and others:
            calls = others[:]
            others.clear()
            stage.edited(calls)

    with staged(tmp_path, SEED, monkeypatch, "timezone: UTC\n", on_log=edit) as stage:
        stage.write(MANIFESTS)
        yield stage


def verified(ran: CommandResult) -> dict[str, Any]:
    """What a report says it looked at."""
    document = ran.document
    assert list(schema_validator("apply").iter_errors(document)) == []
    return cast("dict[str, Any]", document["verified"])


@pytest.mark.sampled(daily=False)
@pytest.mark.parametrize("from_file", [False, True], ids=["apply", "apply PLANFILE"])
@pytest.mark.parametrize("what", BY_OTHERS)
def test_an_edit_during_the_run_is_told(
    stage: ServedProject, others: list[list[Any]], what: str, from_file: bool
) -> None:
    """Somebody changes what the plan does not touch while it is carried out: exit 6, and the resource is named."""
    address, *calls = BY_OTHERS[what]
    arguments = ["apply", stage.saved()] if from_file else ["apply", "--auto-approve"]
    others += calls
    ran = stage(*arguments)
    assert others == []
    assert ran.code == ExitCode.NOT_CONVERGED, ran.err
    named = ran.out.replace("assignment of Intro to ", "content_target/Intro -> ")
    assert address in named.partition("Not part of this plan, but drifted:")[2]
    assert "Read back: the workspace does not match the manifests; " in ran.out
    assert "complete" not in ran.out


@pytest.mark.sampled(daily=False)
@pytest.mark.parametrize("view", ["json", "markdown", "html"])
def test_every_format_names_what_others_changed(stage: ServedProject, others: list[list[Any]], view: str) -> None:
    """The document says what was looked at, and its addresses; page and comment have them in a section of their own."""
    others += OUT
    ran = stage("apply", "--auto-approve", "--format", view, code=ExitCode.NOT_CONVERGED)
    if view == "json":
        counts = {"resources": 2, "skipped": 0, "left_out": 0}
        assert verified(ran) == {"scope": "all", "partial": False, **counts, "others": ["group/Team"], "reason": None}
        assert [one["address"] for one in cast("list[dict[str, Any]]", ran.document["residue"])] == ["group/Team"]
    else:
        assert "group/Team" in ran.out
        assert "Not part of this plan, but drifted" in ran.out
        assert "1 resource differs, which is not part of this plan" in ran.out


@pytest.mark.sampled(daily=False)
@pytest.mark.parametrize(
    ("manifest", "why"),
    [
        (MANIFESTS, "Nothing else was checked (--verify touched).\n"),
        (LIVE, "The local manifests differ from those"),
        (None, "There are no readable local manifests"),
        ("groups: [", "There are no readable local manifests"),
    ],
    ids=["asked for", "others", "none", "broken"],
)
def test_only_the_touched_are_looked_at(
    stage: ServedProject, others: list[list[Any]], manifest: str | None, why: str
) -> None:
    """Where --verify asks for that, or the manifests at hand are not those of a plan file: no more is claimed."""
    path = stage.saved()
    stage.write(manifest or "")
    if manifest is None:
        (stage.root / "manifests" / "all.yaml").unlink()
    others += OUT
    verify = ["--verify", "touched"] if manifest == MANIFESTS else []
    ran = stage("apply", path, *verify, code=ExitCode.OK)
    assert f"The 2 resources of this plan are as planned. {why}" in ran.out
    assert "matches the manifests" not in ran.out


@pytest.mark.sampled(daily=False)
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
    stage: ServedProject, others: list[list[Any]], arguments: list[str], seen: bool, from_file: bool
) -> None:
    """What --only and --except left out of the plan is not looked at, and the sentence does not speak of it."""
    command = ["apply", stage.saved(*arguments)] if from_file else ["apply", "--auto-approve", *arguments]
    others += OUT
    ran = stage(*command, code=ExitCode.NOT_CONVERGED if seen else ExitCode.OK)
    told = "the scope of this plan does not match" if seen else "the scope of this plan matches the manifests."
    assert f"Read back: {told}" in ran.out
    assert "Read back: the workspace" not in ran.out


@pytest.mark.sampled(daily=False)
@pytest.mark.parametrize("is_saved", [False, True])
def test_a_changed_group_that_others_rename_during_the_run_is_told(
    stage: ServedProject, others: list[list[Any]], is_saved: bool
) -> None:
    """Its name is read again also where the run knows its id from before, so that the report is no match."""
    stage.options("timezone: UTC\nsettle: 1s\n")
    stage.write(MANIFESTS.replace("  - {name: New}\n", ""))
    arguments = (stage.saved(),) if is_saved else ("--auto-approve",)
    others.append(["manual-groups.rename", {"groupId": "g-crew"}, {"name": "Mates"}])
    ran = stage("apply", *arguments, "--format", "json", code=ExitCode.NOT_CONVERGED)
    assert [one["address"] for one in ran.document["residue"]] == ["group/Crew"]


@pytest.mark.sampled(daily=False)
def test_a_plan_that_only_adds_says_what_it_leaves_out(stage: ServedProject, others: list[list[Any]]) -> None:
    """A manager in is nothing to add, and is counted as left out; a member out is something to add, and is told."""
    others += BY_OTHERS["a manager in"][1:]
    ran = stage("apply", "--auto-approve", "--additive", code=ExitCode.OK)
    assert "Read back: nothing of the workspace is left to create or to add; 1 change left out" in ran.out
    stage.hand("manual-groups.delete", {"groupId": "g-crew"})
    others += OUT
    assert stage("apply", "--auto-approve", "--additive").code == ExitCode.NOT_CONVERGED


@pytest.mark.sampled(daily=False)
def test_a_plan_without_changes_says_what_it_saw(stage: ServedProject) -> None:
    """Nothing is sent. What was just planned was just read; a saved plan is looked at anew, where that can be done."""
    stage.write(LIVE)
    ran = stage("apply", "--auto-approve")
    assert (ran.code, ran.writes) == (ExitCode.OK, [])
    assert "Nothing was sent: the workspace matches the manifests." in ran.out
    path = stage.saved()
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


def test_a_twin_that_others_make_is_told_with_the_rest(stage: ServedProject, others: list[list[Any]]) -> None:
    """A second group of a declared name bars a whole plan: it is an error by name, and the rest is told beside it."""
    others += [["manual-groups.create", None, {"name": "Team"}], *BY_OTHERS["a smart group deleted"][1:]]
    ran = stage("apply", "--auto-approve", "--format", "json", code=ExitCode.NOT_CONVERGED)
    assert "group/Team" in [one["address"] for one in cast("list[dict[str, Any]]", ran.document["problems"])]
    assert "smart_group/Sellers" in verified(ran)["others"]


@pytest.mark.sampled(daily=False)
def test_people_who_are_skipped_are_no_match(stage: ServedProject) -> None:
    """Where the project skips people who are not live, no sentence says that the workspace matches without that."""
    for n in range(12):
        person = {"email": f"p{n}@acme.example", "firstName": "P", "lastName": str(n), "language": "en"}
        stage.hand("users.create", body=person)
    stage.options("timezone: UTC\npeople: {unknown: skip}\n")
    members = ", ".join(f"p{n}@acme.example" for n in range(13))
    stage.write(f"groups: [{{name: Crew, members: [{members}]}}]")
    but = "matches the manifests, but for 1 mention of people who are not live."
    assert f"Read back: the workspace {but}" in stage("apply", "--auto-approve", code=ExitCode.OK).out
    assert f"No changes. The workspace {but}" in stage("plan").out
    assert f"No drift. The workspace {but}" in stage("drift").out


# After an apply, the members of smart groups are compared with those that the plan predicted.


@pytest.fixture
def project(tmp_path: Path) -> Iterator[LinkedProject]:
    wanted = "smart_groups: [{name: Nordic, conditions: [{field: Country, choices: [SE, 'NO']}]}]\n"
    seed = text_of(__file__, "verification_members_seed.yaml")
    with linked(tmp_path, seed, wanted, "people: {create: true}\n") as project:
        yield project


def applied(
    project: LinkedProject, members: list[str] | None, more: str = "", *, from_file: bool = False, status: int = 200
) -> tuple[ApplyReport, int]:
    """The report of an apply of the manifest and of more, and how often the members of smart groups were asked then.

    members: those that the service says then, None for those of the workspace. status: that of these responses.
    """
    asked, is_written = 0, False

    def answer(request: httpx.Request) -> httpx.Response | None:
        nonlocal asked, is_written
        is_written = is_written or request.method != "GET"
        if not is_written or "includeMembers" not in str(request.url):
            return None
        asked += 1
        body = json.loads(project.sandbox.handle_request(request).read())
        return httpx.Response(status, json=body if members is None else {**body, "members": members})

    manifest = (project.root / "manifests" / "all.yaml").read_text(encoding="utf-8")
    way = project.reader(OtherAnswers(project.sandbox, answer), parallelism=1)
    return project.apply(way, manifest + more, from_file=from_file), asked


@pytest.mark.parametrize(
    ("members", "more"),
    [
        (None, ""),
        (["u-1", "u-2"], ""),
        (["u-1", "u-2", "u-3"], ""),
        (["u-1", "u-2", "u-9"], ""),
        (["u-1", "u-2", "u-3"], "users: [{email: cy@acme.example, archived: false}]"),
    ],
)
def test_members_as_predicted_say_nothing(project: LinkedProject, members: list[str] | None, more: str) -> None:
    """One request for the smart group; archived people and those in no list do not count, nor who is unarchived now."""
    report, asked = applied(project, members, more)
    assert (report.exit, report.problems, asked) == (ExitCode.OK, (), 1)


NEW = "users: [{email: dee@acme.example, first_name: Dee, last_name: Ek, language: en, answers: {Country: SE}}]"
BUT = "2 members were predicted, and the service lists"


@pytest.mark.parametrize(
    ("members", "more", "from_file", "told"),
    [
        (["u-1"], "", False, f"{BUT} 1"),
        (["u-3"], "", False, f"{BUT} 0"),
        ([], "", False, f"{BUT} 0"),
        *(
            (
                ["u-1", "u-4"],
                "",
                from_file,
                "the service lists as many members as predicted (2), but not the same people",
            )
            for from_file in (False, True)
        ),
        (["u-1", "u-2"], NEW, False, "3 members were predicted, and the service lists 2"),
    ],
)
def test_other_members_are_a_warning(
    project: LinkedProject, members: list[str], more: str, from_file: bool, told: str
) -> None:
    """The run has converged, and the warning has both numbers; with as many members, that they are other people.

    An account that the plan creates has no id before, so the plan knows only how many members there will be.
    """
    report, _ = applied(project, members, more, from_file=from_file)
    [problem] = report.problems
    assert problem.message == f"smart_group/Nordic: {told}"
    assert (report.exit, report.converged, problem.is_error) == (ExitCode.OK, True, False)


def test_members_that_cannot_be_read_are_not_compared(project: LinkedProject) -> None:
    """What was applied is verified all the same, and the report says what was not looked at."""
    report, _ = applied(project, None, status=403)
    [problem] = report.problems
    assert problem.message.startswith("who is in the changed groups now was not read: ")
    assert (report.exit, problem.is_error) == (ExitCode.OK, False)


# A plan is made also where the service refuses to say who is in a group; who loses what is then not known.


UNREADABLE_SEED = """
custom_fields: [{name: Country, type: CHOICE, choices: [SE, FI]}]
people: [{email: anna@acme.example, answers: {Country: SE}}]
content: [{name: Intro}]
smart_groups: [{name: Swedes, conditions: [{field: Country, choices: [SE]}]}]
content_targets: [{content: Intro, assign_to: [{smart_group: Swedes}]}]
"""
NARROWED = "smart_groups: [{name: Swedes, conditions: [{field: Country, choices: [FI]}]}]\n"
ADDED = "content_targets: [{content: Intro, assign_to: [{smart_group: Swedes}, everyone]}]\n"


@pytest.mark.parametrize("answer", [httpx.Response(400, json={}), httpx.Response(200, json={"name": "Swedes"})])
@pytest.mark.parametrize(("manifests", "lose", "guards"), [(NARROWED, None, ["people", "mandatory"]), (ADDED, 0, [])])
def test_who_loses_is_not_known(
    tmp_path: Path, answer: httpx.Response, manifests: str, lose: int | None, guards: list[str]
) -> None:
    """Every number that rests on it is not known, and guards stop; a plan that only adds takes nothing all the same."""
    with linked(tmp_path, UNREADABLE_SEED, manifests) as project:
        way = OtherAnswers(project.sandbox, lambda one: answer if "includeMembers" in str(one.url) else None)
        plan = project.plan(way)
    assert plan.effects.basis is Basis.UNKNOWN
    assert plan.effects.people.lose == lose
    assert plan.effects.reasons[0].startswith("who has what was not read: ")
    assert [guard.name for guard in plan.guards if guard.tripped] == guards
    assert {guard.total for guard in plan.guards if guard.tripped} <= {None}
