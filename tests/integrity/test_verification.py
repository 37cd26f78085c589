"""What others change while a plan is carried out, and who is in smart groups then, is told by the look that follows."""

import dataclasses
import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

import httpx
import pytest
from json_schemas import schema_validator
from laws.sandbox_project import TransportConnection
from texts import text_of
from wire.second_dialect import known_dialect

from lmsconf.apply.run_plan import execute
from lmsconf.documents.plan_file import dumps, loads
from lmsconf.errors import ExitCode
from lmsconf.model.effects import Basis
from lmsconf.model.outcomes import ApplyReport
from lmsconf.project.settings import load_settings
from lmsconf.sandbox.service import LoggedRequest, Sandbox
from lmsconf.workspace.connection import fill_if_empty
from lmsconf.workspace.project_manifests import load_manifests
from lmsconf.workspace.reader import WorkspaceReader

from .served_project import CommandResult, ServedProject, staged

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


@pytest.mark.sampled
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


@pytest.mark.sampled
@pytest.mark.parametrize("view", ["json", "markdown", "html"])
def test_every_format_names_what_others_changed(stage: ServedProject, others: ConcurrentEditor, view: str) -> None:
    """The document lists the addresses, and the page and the comment have them in a section of their own."""
    others.hand = BY_OTHERS["a member out"][1]
    ran = stage("apply", "--auto-approve", "--format", view, code=ExitCode.NOT_CONVERGED)
    if view == "json":
        assert verified(ran)["others"] == ["group/Team"]
        assert [one["address"] for one in cast("list[dict[str, Any]]", ran.document["residue"])] == ["group/Team"]
    assert "group/Team" in ran.out
    if view != "json":
        assert "Not part of this plan, but drifted" in ran.out
        assert "1 resource differs, which is not part of this plan" in ran.out


@pytest.mark.sampled
def test_only_the_touched_are_looked_at_where_that_is_asked(stage: ServedProject, others: ConcurrentEditor) -> None:
    """--verify touched speaks of the resources of the plan, and of nothing else."""
    others.hand = BY_OTHERS["a member out"][1]
    ran = stage("apply", "--auto-approve", "--verify", "touched", code=ExitCode.OK)
    assert "The 2 resources of this plan are as planned. Nothing else was checked (--verify touched).\n" in ran.out
    assert "matches the manifests" not in ran.out


@pytest.mark.sampled
def test_what_a_run_looked_at_stands_in_its_report(stage: ServedProject) -> None:
    """All that the plan was made of, by default, and how many resources it changed."""
    found = verified(stage("apply", "--auto-approve", "--format", "json"))
    counts = {"resources": 2, "skipped": 0, "left_out": 0}
    assert found == {"scope": "all", "partial": False, **counts, "others": [], "reason": None}


@pytest.mark.sampled
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
    ran = stage("apply", path, code=ExitCode.OK)
    why = "The local manifests differ from those" if how == "others" else "There are no readable local manifests"
    assert f"The 2 resources of this plan are as planned. {why}" in ran.out
    assert "matches the manifests" not in ran.out


@pytest.mark.sampled
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
    ran = stage(*command, code=ExitCode.NOT_CONVERGED if seen else ExitCode.OK)
    told = "the scope of this plan does not match" if seen else "the scope of this plan matches the manifests."
    assert f"Read back: {told}" in ran.out
    assert "Read back: the workspace" not in ran.out


@pytest.mark.sampled
@pytest.mark.parametrize("is_saved", [False, True])
def test_a_changed_group_that_others_rename_during_the_run_is_told(
    stage: ServedProject, others: ConcurrentEditor, is_saved: bool
) -> None:
    """Its name is read again also where the run knows its id from before, so that the report is no match."""
    stage.options("timezone: UTC\nsettle: 1s\n")
    stage.write(MANIFESTS.replace("  - {name: New}\n", ""))
    arguments = (saved(stage),) if is_saved else ("--auto-approve",)
    others.hand = call("manual-groups.rename", {"name": "Mates"}, groupId="g-crew")
    ran = stage("apply", *arguments, "--format", "json", code=ExitCode.NOT_CONVERGED)
    assert [one["address"] for one in ran.document["residue"]] == ["group/Crew"]


@pytest.mark.sampled
def test_a_plan_that_only_adds_says_what_it_leaves_out(stage: ServedProject, others: ConcurrentEditor) -> None:
    """A manager in is nothing to add, and is counted as left out; a member out is something to add, and is told."""
    others.hand = BY_OTHERS["a manager in"][1]
    ran = stage("apply", "--auto-approve", "--additive", code=ExitCode.OK)
    assert "Read back: nothing of the workspace is left to create or to add; 1 change left out" in ran.out
    stage.hand("manual-groups.delete", {"groupId": "g-crew"})
    others.hand = BY_OTHERS["a member out"][1]
    assert stage("apply", "--auto-approve", "--additive").code == ExitCode.NOT_CONVERGED


@pytest.mark.sampled
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


@pytest.mark.sampled
def test_everything_is_read_once(stage: ServedProject) -> None:
    """The look costs one reading of what the plan is made of, whatever it has found."""
    stage.options(f"timezone: UTC\ndialect: {json.dumps(known_dialect())}\n")
    asked = len(stage.sandbox.log)
    assert stage("plan").code == 0
    whole = len(stage.sandbox.log) - asked
    stage("apply", "--auto-approve", "--verify", "all")
    last = max(number for number, seen in enumerate(stage.sandbox.log) if seen.writes)
    assert len(stage.sandbox.log) - 1 - last <= whole


@pytest.mark.sampled
def test_a_twin_that_others_make_is_told_with_the_rest(stage: ServedProject, others: ConcurrentEditor) -> None:
    """A second group of a declared name bars a whole plan: it is an error by name, and the rest is told beside it."""

    def edit(stage: ServedProject) -> None:
        stage.hand("manual-groups.create", body={"name": "Team"})
        stage.hand("smart-groups.delete", {"smartGroupId": "sg-sellers"})

    others.hand = edit
    ran = stage("apply", "--auto-approve", "--format", "json", code=ExitCode.NOT_CONVERGED)
    problems = cast("list[dict[str, Any]]", ran.document["problems"])
    assert "group/Team" in [one["address"] for one in problems]
    assert "smart_group/Sellers" in verified(ran)["others"]


@pytest.mark.sampled
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


MEMBERS_SEED = text_of(__file__, "verification_members_seed.yaml")
WANTED = "smart_groups: [{name: Nordic, conditions: [{field: Country, choices: [SE, 'NO']}]}]"


@dataclass
class OtherMembersTransport(httpx.BaseTransport):
    """The way to a workspace whose smart groups have other members once something was written.

    members: None for those of the workspace. fails: the status of reads of members after that.
    """

    sandbox: Sandbox
    members: list[str] | None = None
    fails: int | None = None
    asked: list[str] = dataclasses.field(default_factory=list)
    _written: bool = False

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        answer = self.sandbox.handle_request(request)
        if request.method != "GET":
            self._written = True
            return answer
        if not self._written or "includeMembers" not in str(request.url):
            return answer
        self.asked.append(request.url.path)
        if self.fails is not None:
            return httpx.Response(self.fails, json={})
        body = json.loads(answer.read())
        return httpx.Response(200, json=body if self.members is None else {**body, "members": self.members})


@pytest.fixture
def sandbox(tmp_path: Path) -> Iterator[Sandbox]:
    (tmp_path / "seed.yaml").write_text(MEMBERS_SEED, encoding="utf-8")
    workspace = "workspaces: {w: {url: 'https://lms.example', token: {env: LMSCONF_T}}}\npeople: {create: true}\n"
    (tmp_path / "lmsconf.yaml").write_text(workspace, encoding="utf-8")
    sandbox = fill_if_empty(Sandbox(), tmp_path / "seed.yaml")
    yield sandbox
    sandbox.close_workspace()


def applied(
    root: Path, way: OtherMembersTransport, more: str = "", *, wanted: str = WANTED, from_file: bool = False
) -> ApplyReport:
    """The report of an apply of the wanted manifests and more of them, from a plan file or in one run."""
    (root / "manifests").mkdir(exist_ok=True)
    (root / "manifests" / "all.yaml").write_text(f"{wanted}\n{more}", encoding="utf-8")
    settings = load_settings(root, None, {"LMSCONF_T": "sandbox"})
    link = TransportConnection(way, way.sandbox.spec)
    workspace = WorkspaceReader(settings=settings, connection=link, parallelism=1)
    plan = workspace.plan(load_manifests(settings), settings.policy)
    return execute(workspace, loads(dumps(plan)) if from_file else plan, meta={})


@pytest.mark.parametrize("members", [None, ["u-1", "u-2"], ["u-1", "u-2", "u-3"], ["u-1", "u-2", "u-9"]])
def test_members_as_predicted_say_nothing(tmp_path: Path, sandbox: Sandbox, members: list[str] | None) -> None:
    """One request for the smart group; of its members, archived people and those in no list do not count."""
    way = OtherMembersTransport(sandbox, members)
    report = applied(tmp_path, way)
    assert (report.exit, report.problems) == (ExitCode.OK, ())
    assert way.asked == ["/smart-groups/sg-1"]


def test_who_is_unarchived_was_not_predicted(tmp_path: Path, sandbox: Sandbox) -> None:
    """The prediction counts nobody who was archived when the plan was made."""
    way = OtherMembersTransport(sandbox, ["u-1", "u-2", "u-3"])
    report = applied(tmp_path, way, "users: [{email: cy@acme.example, archived: false}]")
    assert (report.exit, report.problems) == (ExitCode.OK, ())


@pytest.mark.parametrize("members", [["u-1"], ["u-3"], []])
def test_other_members_are_a_warning(tmp_path: Path, sandbox: Sandbox, members: list[str]) -> None:
    """The run has converged, and says both numbers."""
    report = applied(tmp_path, OtherMembersTransport(sandbox, members))
    (problem,) = report.problems
    number = len([one for one in members if one != "u-3"])
    assert problem.message == f"smart_group/Nordic: 2 members were predicted, and the service lists {number}"
    assert (report.exit, report.converged, problem.is_error) == (ExitCode.OK, True, False)


@pytest.mark.parametrize("from_file", [False, True])
def test_a_swap_of_members_is_a_warning(tmp_path: Path, sandbox: Sandbox, from_file: bool) -> None:
    """One person out and another in leaves the number as it was; a plan file knows who was predicted, too."""
    report = applied(tmp_path, OtherMembersTransport(sandbox, ["u-1", "u-4"]), from_file=from_file)
    (problem,) = report.problems
    assert problem.message == (
        "smart_group/Nordic: the service lists as many members as predicted (2), but not the same people"
    )
    assert (report.exit, report.converged, problem.is_error) == (ExitCode.OK, True, False)


def test_where_accounts_are_new_only_numbers_are_compared(tmp_path: Path, sandbox: Sandbox) -> None:
    """An account that the plan creates has no id before, so the plan knows only how many members there will be."""
    more = "users: [{email: dee@acme.example, first_name: Dee, last_name: Ek, language: en, answers: {Country: SE}}]"
    report = applied(tmp_path, OtherMembersTransport(sandbox, ["u-1", "u-2"]), more)
    (problem,) = report.problems
    assert problem.message == "smart_group/Nordic: 3 members were predicted, and the service lists 2"


def test_members_that_cannot_be_read_are_not_compared(tmp_path: Path, sandbox: Sandbox) -> None:
    """What was applied is verified all the same, and the report says what was not looked at."""
    report = applied(tmp_path, OtherMembersTransport(sandbox, fails=403))
    (problem,) = report.problems
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


class NoMembersTransport(httpx.BaseTransport):
    """The way to a workspace that answers a request for the members of a smart group with a status or a text."""

    def __init__(self, sandbox: Sandbox, answer: httpx.Response) -> None:
        self.sandbox, self._answer = sandbox, answer

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        return self._answer if "includeMembers" in str(request.url) else self.sandbox.handle_request(request)


@pytest.mark.parametrize("answer", [httpx.Response(400, json={}), httpx.Response(200, json={"name": "Swedes"})])
@pytest.mark.parametrize(("manifests", "lose", "guards"), [(NARROWED, None, ["people", "mandatory"]), (ADDED, 0, [])])
def test_who_loses_is_not_known(
    tmp_path: Path, answer: httpx.Response, manifests: str, lose: int | None, guards: list[str]
) -> None:
    """Every number that rests on it is not known, and guards stop; a plan that only adds takes nothing all the same."""
    (tmp_path / "seed.yaml").write_text(UNREADABLE_SEED, encoding="utf-8")
    workspace = "workspaces: {w: {url: 'https://lms.example', token: {env: LMSCONF_T}}}\n"
    (tmp_path / "lmsconf.yaml").write_text(workspace, encoding="utf-8")
    (tmp_path / "manifests").mkdir()
    (tmp_path / "manifests" / "all.yaml").write_text(manifests, encoding="utf-8")
    sandbox = fill_if_empty(Sandbox(), tmp_path / "seed.yaml")
    settings = load_settings(tmp_path, None, {"LMSCONF_T": "sandbox"})
    link = TransportConnection(NoMembersTransport(sandbox, answer), sandbox.spec)
    plan = WorkspaceReader(settings=settings, connection=link).plan(load_manifests(settings), settings.policy)
    sandbox.close_workspace()
    assert plan.effects.basis is Basis.UNKNOWN
    assert plan.effects.people.lose == lose
    assert plan.effects.reasons[0].startswith("who has what was not read: ")
    assert [guard.name for guard in plan.guards if guard.tripped] == guards
    assert {guard.total for guard in plan.guards if guard.tripped} <= {None}
