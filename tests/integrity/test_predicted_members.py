"""After an apply, the members of smart groups are compared with those that the plan predicted."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import httpx
import pytest
from laws.sandbox_project import TransportConnection

from lmsconf.apply.run import execute
from lmsconf.documents.plan_file import dumps, loads
from lmsconf.errors import ExitCode
from lmsconf.model.effects import Basis
from lmsconf.model.outcomes import ApplyReport
from lmsconf.project.settings import load_settings
from lmsconf.sandbox.service import Sandbox
from lmsconf.workspace.project_manifests import load_manifests
from lmsconf.workspace.reader import WorkspaceReader

SEED = """
custom_fields: [{name: Country, type: CHOICE, choices: [SE, 'NO']}]
people:
  - {email: anna@acme.example, id: u-1, answers: {Country: SE}}
  - {email: bo@acme.example, id: u-2, answers: {Country: 'NO'}}
  - {email: cy@acme.example, id: u-3, archived: true, answers: {Country: 'NO'}}
  - {email: di@acme.example, id: u-4}
smart_groups: [{name: Nordic, id: sg-1, conditions: [{field: Country, choices: [SE]}]}]
"""
WANTED = "smart_groups: [{name: Nordic, conditions: [{field: Country, choices: [SE, 'NO']}]}]"


@dataclass
class OtherMembersTransport(httpx.BaseTransport):
    """The way to a workspace whose smart groups have other members once something was written.

    members: None for those of the workspace. fails: the status of reads of members after that.
    """

    sandbox: Sandbox
    members: list[str] | None = None
    fails: int | None = None
    asked: list[str] = field(default_factory=list)
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
    (tmp_path / "seed.yaml").write_text(SEED, encoding="utf-8")
    workspace = "workspaces: {w: {url: 'https://lms.example', token: {env: LMSCONF_T}}}\npeople: {create: true}\n"
    (tmp_path / "lmsconf.yaml").write_text(workspace, encoding="utf-8")
    sandbox = Sandbox(":memory:", seed=tmp_path / "seed.yaml")
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


@pytest.mark.parametrize("members", [["u-1"], ["u-3"], []])
def test_other_members_are_a_warning(tmp_path: Path, sandbox: Sandbox, members: list[str]) -> None:
    """The run has converged, and says both numbers."""
    report = applied(tmp_path, OtherMembersTransport(sandbox, members))
    (problem,) = report.problems
    number = len([one for one in members if one != "u-3"])
    assert problem.message == f"smart_group/Nordic: 2 members were predicted, and the service lists {number}"
    assert (report.exit, report.converged, problem.is_error) == (ExitCode.OK, True, False)


def test_a_new_smart_group_is_found_by_its_name(tmp_path: Path, sandbox: Sandbox) -> None:
    """Its members are compared too, and not those of another whose name begins as its own does."""
    wanted = "smart_groups: [{name: Nord, conditions: [{field: Country, choices: ['NO']}]}]"
    way = OtherMembersTransport(sandbox, ["u-1", "u-2"])
    (problem,) = applied(tmp_path, way, wanted=wanted).problems
    assert problem.message == "smart_group/Nord: 1 member was predicted, and the service lists 2"
    assert len(way.asked) == 1
    assert way.asked != ["/smart-groups/sg-1"]


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
    sandbox = Sandbox(":memory:", seed=tmp_path / "seed.yaml")
    settings = load_settings(tmp_path, None, {"LMSCONF_T": "sandbox"})
    link = TransportConnection(NoMembersTransport(sandbox, answer), sandbox.spec)
    plan = WorkspaceReader(settings=settings, connection=link).plan(load_manifests(settings), settings.policy)
    sandbox.close_workspace()
    assert plan.effects.basis is Basis.UNKNOWN
    assert plan.effects.people.lose == lose
    assert plan.effects.reasons[0].startswith("who has what was not read: ")
    assert [guard.name for guard in plan.guards if guard.tripped] == guards
    assert {guard.total for guard in plan.guards if guard.tripped} <= {None}
