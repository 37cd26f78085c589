"""A plan is made also where the service refuses to say who is in a group; who loses what is then not known."""

from __future__ import annotations

from pathlib import Path

import httpx
import pytest
from laws.sandbox_project import TransportConnection

from lmsconf.model.effects import Basis
from lmsconf.project.settings import load_settings
from lmsconf.sandbox.service import Sandbox
from lmsconf.workspace.project_manifests import load_manifests
from lmsconf.workspace.reader import WorkspaceReader

SEED = """
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
    (tmp_path / "seed.yaml").write_text(SEED, encoding="utf-8")
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
