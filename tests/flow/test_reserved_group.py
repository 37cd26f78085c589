"""A service may list the group that stands for all users among the manual groups; it is none of them."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest

from lmsconf.sandbox.serve import serve
from lmsconf.sandbox.service import Sandbox, SandboxResponse, json_response

from .project import Project
from .shell import Ran, lmsconf

SEED = """
people:
  - {{email: anna@acme.example, admin: true}}
  - {{email: bo@acme.example}}
  - {{email: root@acme.example, admin: true}}
groups:
  - {{name: Everyone, id: {everyone}}}
  - {{name: Coaches, members: [anna@acme.example], managers: [bo@acme.example]}}
  - {{name: Old}}
content: [{{name: GDPR}}, {{name: Safety}}]
content_targets: [{{content: GDPR, assign_to: [everyone, {{group: Coaches}}]}}]
"""
OPTIONS = "ownership: {groups: all, content_targets: declared_content}\nguards: off\n"
MANIFESTS = """
groups: [{name: Coaches, members: [bo@acme.example], managers: [bo@acme.example]}]
content_targets: [{content: GDPR, mandatory: true, assign_to: [everyone]}]
"""


class ListsEveryone(Sandbox):
    """A service that lists the reserved group, also as a group of each person, and refuses to be asked about it."""

    asked: list[str]

    def answer(self, method: str, path: str, query: str, headers: Mapping[str, str], body: bytes) -> SandboxResponse:
        id = self.spec.behaviour("content-targets.everyone")
        if path.startswith(f"/groups/{id}"):
            self.asked.append(f"{method} {path}")
            return json_response(400, {"error": "no"})
        given = super().answer(method, path, query, headers, body)
        if given.status != 200 or path != "/users/extended-info":
            return given
        said = json.loads(given.body)
        for user in said["users"]:
            user["memberOfGroups"].append({"groupId": id, "name": "Everyone", "groupType": "GROUP"})
        return json_response(200, said)


@pytest.fixture
def it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[tuple[Project, ListsEveryone]]:
    everyone = Project(tmp_path, "", OPTIONS).spec.behaviour("content-targets.everyone")
    project = Project(tmp_path, SEED.format(everyone=everyone), OPTIONS)
    service = ListsEveryone(":memory:", spec=project.spec, seed=project.settings.workspace.seed)
    service.asked = []
    with serve(service) as server:
        text = (tmp_path / "lmsconf.yaml").read_text(encoding="utf-8")
        served = text.replace("url: 'sandbox:workspace.db', seed: workspace.yaml", f"url: '{server.url}'")
        (tmp_path / "lmsconf.yaml").write_text(
            served.replace(server.url + "'", server.url + "', token: {env: LMSCONF_KEY}"), encoding="utf-8"
        )
        monkeypatch.setenv("LMSCONF_KEY", "sandbox")
        yield project, service
    service.close_workspace()


def run(project: Project, *arguments: str) -> Ran:
    return lmsconf(project.root, *arguments, env={"LMSCONF_KEY": "sandbox"})


def test_every_command_leaves_the_reserved_group_alone(it: tuple[Project, ListsEveryone]) -> None:
    """It is neither planned, deleted by ownership, drifted, exported nor asked for; effects and undo are as ever."""
    project, service = it
    project.write(MANIFESTS)
    planned = run(project, "plan", "--format", "json")
    document = json.loads(planned.out)
    assert {one["address"] for one in document["changes"] if one["action"] == "delete"} == {
        "group/Old",
        "content_target/GDPR -> group/Coaches",
    }
    assert document["effects"]["basis"] == "exact"
    applied = run(project, "apply", "--auto-approve")
    assert applied.code == 0, applied
    assert run(project, "plan", "--detailed-exitcode").code == 0
    assert run(project, "drift").code == 0
    undone = run(project, "plan", "--undo", "latest", "--format", "json")
    assert "group/Coaches" in {one["address"] for one in json.loads(undone.out)["changes"]}
    exported = run(project, "export", "out", "--kind", "groups")
    assert exported.code == 0, exported
    assert not any("Everyone" in file.read_text(encoding="utf-8") for file in (project.root / "out").rglob("*.yaml"))
    assert run(project, "snapshot", "now.json").code == 0
    taken = json.loads((project.root / "now.json").read_text(encoding="utf-8"))
    assert [one["name"] for one in taken["group"]] == ["Coaches"]
    assert run(project, "audience", "everyone").code == 0
    assert service.asked == []


def test_a_manual_group_of_its_name_is_another_group(it: tuple[Project, ListsEveryone]) -> None:
    """A declared group that has the name of the reserved one is created; the next plan is empty."""
    project, service = it
    project.write("groups: [{name: Coaches}, {name: Old}, {name: Everyone, members: [bo@acme.example]}]")
    assert run(project, "apply", "--auto-approve").code == 0
    assert run(project, "plan", "--detailed-exitcode").code == 0
    assert service.asked == []
