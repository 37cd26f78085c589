"""A service refuses a manager who lacks the manager right: the run says so, and the next plan foretells it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

import pytest

from lmsconf.sandbox.service import Sandbox, SandboxResponse, json_response

from .conftest import Open
from .served_project import ServedProject

WHO = "manual-groups.who-can-manage"
WITH_RIGHT = {WHO: "with-right"}
PEOPLE = {
    "people": [
        {"email": "anna.berg@acme.example", "admin": True},
        {"email": "bo.ek@acme.example"},
        {"email": "cy.dahl@acme.example"},
        {"email": "mo@acme.example", "manager": True},
    ]
}
ADDED = "groups: [{name: Coaches, managers: {include: [bo.ek@acme.example, cy.dahl@acme.example, mo@acme.example]}}]"
CREATED = """
smart_groups:
  - name: New
    conditions: [{field: Department, choices: [Engineering]}]
    managers: [bo.ek@acme.example, mo@acme.example]
"""


class Own(Sandbox):
    """A service that refuses with a status of its own."""

    status: ClassVar[int] = 400

    def answer(self, method: str, path: str, query: str, headers: Mapping[str, str], body: bytes) -> SandboxResponse:
        said = super().answer(method, path, query, headers, body)
        return json_response(self.status, {"error": "no"}) if said.status == 400 else said


def declare(clinic: ServedProject, manifest: str, options: str = "") -> None:
    (clinic.folder / "manifests" / "all.yaml").write_text(manifest, encoding="utf-8")
    (clinic.folder / "lmsconf.yaml").write_text(clinic.project + options, encoding="utf-8")


@pytest.mark.parametrize("status", [400, 403, 404, 422])
@pytest.mark.parametrize(
    ("manifest", "people"),
    [
        (ADDED, "bo.ek@acme.example, cy.dahl@acme.example have no manager right"),
        (CREATED, "bo.ek@acme.example has no manager right"),
    ],
)
def test_the_run_names_the_person_and_the_right(open_clinic: Open, status: int, manifest: str, people: str) -> None:
    """With the line that it says pasted, the plan foretells it at the person's place, and nothing more is sent."""
    clinic = open_clinic(WITH_RIGHT, PEOPLE, made=type("Drawn", (Own,), {"status": status}))
    declare(clinic, manifest)
    code, out = clinic.run("apply", "--auto-approve")
    told = out + clinic.err
    assert code in (1, 5), told
    assert people in told
    assert "mo@acme.example h" not in told
    assert f"    {WHO}: with-right\n" in told
    declare(clinic, manifest, f"dialect:\n  {WHO}: with-right\n")
    writes = sum(one.writes for one in clinic.service.log)
    code, out = clinic.run("apply", "--auto-approve")
    assert code == 4
    assert "bo.ek@acme.example cannot be made manager, because the service requires the manager right" in clinic.err
    assert "Set `manager: true` for the person under `users:`" in clinic.err
    assert sum(one.writes for one in clinic.service.log) == writes
    rights = "".join(f"\n  - {{email: {one}@acme.example, manager: true}}" for one in ("bo.ek", "cy.dahl"))
    declare(clinic, f"{manifest}\nusers:{rights}\n")
    assert clinic.run("apply", "--auto-approve")[0] == 0, clinic.err


def test_a_refusal_of_managers_with_the_right_is_about_something_else(open_clinic: Open) -> None:
    """Where all who are named have the right, no right is spoken of."""
    clinic = open_clinic({"manual-groups.add-managers.userIds": "managerIds"}, PEOPLE)
    declare(clinic, "groups: [{name: Coaches, managers: {include: [mo@acme.example]}}]")
    _, out = clinic.run("apply", "--auto-approve")
    assert "no manager right" not in out + clinic.err
