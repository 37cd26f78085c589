"""The first call that rests on an assumption is tried alone: a wrong guess costs nobody a membership."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path

import pytest

from lmsconf.sandbox.service import Sandbox, SandboxResponse, json_response

from .conftest import Open
from .served_project import BO, ServedProject, held

MORE = {
    "groups": [
        {"name": "Coaches", "members": ["bo.ek@acme.example"], "managers": ["anna.berg@acme.example"]},
        {"name": "Guides", "members": ["p0@acme.example"], "managers": ["p1@acme.example"]},
    ]
}
REPLACES = {"manual-groups.add.mode": "replace"}
KEY = "dialect: {manual-groups.add.mode: replace}\n"
DECLARED = {
    "members": """
groups:
  - {name: Coaches, members: {include: [p2@acme.example]}}
  - {name: Guides, members: {include: [p3@acme.example, p4@acme.example]}}
""",
    "managers": """
groups:
  - {name: Coaches, managers: {include: [p2@acme.example]}}
  - {name: Guides, managers: {include: [p3@acme.example]}}
""",
}


def lists(clinic: ServedProject) -> dict[str, set[str]]:
    """List of a group → the e-mails in it."""
    with clinic.service.store.read_transaction() as repository:
        found: dict[str, set[str]] = {}
        for table in ("members", "managers"):
            rows = repository.rows(
                f"SELECT g.name, p.email FROM {table} l "  # noqa: S608  the names stand above
                "JOIN groups g ON g.id = l.grp JOIN people p ON p.id = l.person"
            )
            for name, email in rows:
                found.setdefault(f"{name} {table}", set()).add(str(email).partition("@")[0])
    return found


def declare(clinic: ServedProject, manifest: str, options: str = "") -> None:
    (clinic.folder / "manifests" / "all.yaml").write_text(manifest, encoding="utf-8")
    project = Path(clinic.folder / "lmsconf.yaml")
    project.write_text(clinic.project + options, encoding="utf-8")


@pytest.mark.parametrize("key", ["members", "managers"])
@pytest.mark.parametrize("dialect", [{}, REPLACES])
def test_a_service_that_replaces_lists_costs_nobody_a_membership(
    open_clinic: Open, key: str, dialect: dict[str, str]
) -> None:
    """Until it is known what adding does, calls name everybody in a list, which is right in both cases."""
    clinic = open_clinic(dialect, MORE)
    before = lists(clinic)
    declare(clinic, DECLARED[key])
    code, out = clinic.run("apply", "--auto-approve")
    assert code == 0, out + clinic.err
    assert all(people < lists(clinic)[name] for name, people in before.items() if name.endswith(key))
    assert clinic.run("plan", "--detailed-exitcode")[0] == 0


class Strict(Sandbox):
    """A service that refuses people who are in a list already."""

    def answer(self, method: str, path: str, query: str, headers: Mapping[str, str], body: bytes) -> SandboxResponse:
        if method == "POST" and path.endswith(("/members", "/managers")):
            there = super().answer("GET", path, "", headers, b"")
            if set(json.loads(there.body)["userIds"]) & set(json.loads(body).get("userIds", [])):
                return json_response(409, {"message": "somebody is in the list already"})
        return super().answer(method, path, query, headers, body)


def test_people_who_are_in_the_list_may_be_refused(open_clinic: Open) -> None:
    """Then the new people are named alone, and the list is compared: the service adds, and the run goes on."""
    clinic = open_clinic({}, MORE, made=Strict)
    before = lists(clinic)
    declare(clinic, DECLARED["members"])
    code, out = clinic.run("apply", "--auto-approve")
    assert code == 0, out + clinic.err
    assert all(people < lists(clinic)[name] for name, people in before.items() if name.endswith("members"))


@pytest.mark.parametrize("key", ["members", "managers"])
def test_with_the_value_set_the_next_run_converges(open_clinic: Open, key: str) -> None:
    """Where the project says that the service replaces, calls name everybody, and the next plan is empty."""
    clinic = open_clinic(REPLACES, MORE)
    before = lists(clinic)
    declare(clinic, DECLARED[key], KEY)
    code, _ = clinic.run("apply", "--auto-approve")
    assert code == 0, clinic.err
    assert all(people < lists(clinic)[name] for name, people in before.items() if name.endswith(key))
    assert clinic.run("plan", "--detailed-exitcode")[0] == 0


def test_smart_groups_are_tried_too(open_clinic: Open) -> None:
    """Managers of a smart group stay likewise."""
    smart = {
        "name": "Sales",
        "conditions": [{"field": "Department", "choices": ["Sales"]}],
        "managers": ["p0@acme.example"],
    }
    clinic = open_clinic(REPLACES, {"smart_groups": [smart]})
    declare(clinic, "smart_groups: [{name: Sales, managers: {include: [p1@acme.example]}}]")
    assert clinic.run("apply", "--auto-approve")[0] == 0
    assert lists(clinic)["Sales managers"] == {"p0", "p1"}


def test_nothing_is_read_where_it_is_known_what_adding_does(open_clinic: Open) -> None:
    """Each list is read before and after its call; with the key set, never."""
    requests: list[int] = []
    for options in ("", "dialect: {manual-groups.add.mode: add}\n"):
        seen: list[str] = []
        clinic = open_clinic(more=MORE, on_log=lambda one, seen=seen: seen.append(one.path))
        declare(clinic, DECLARED["members"], options)
        code, _ = clinic.run("apply", "--auto-approve")
        assert code == 0, clinic.err
        requests.append(len([path for path in seen if path.endswith("/members")]))
    assert requests[0] > requests[1]


@pytest.mark.parametrize(("dialect", "expected"), [({}, "add"), (REPLACES, "replace")])
def test_the_probe_sees_with_two_people_what_adding_does(
    open_clinic: Open, dialect: dict[str, str], expected: str
) -> None:
    """A second person is added to the scratch group; the workspace is as before, and the value is written."""
    clinic = open_clinic(dialect, MORE)
    declare(clinic, DECLARED["members"])
    before = held(clinic.service)
    code, out = clinic.run("doctor", "--probe", "--yes", "--user", BO, "--user", "p0@acme.example")
    assert code == 0
    assert f"manual-groups.add.mode: {expected} (" in out
    assert held(clinic.service) == before
    assert ("manual-groups.add.mode: replace" in clinic.project) is (expected == "replace")


def test_the_probe_says_that_it_needs_a_second_person(open_clinic: Open) -> None:
    """With one person, what adding does to the others in a list cannot be seen."""
    clinic = open_clinic(more=MORE)
    declare(clinic, DECLARED["members"])
    _, out = clinic.run("doctor", "--probe", "--yes", "--user", BO)
    assert "  it needs a second person; pass --user EMAIL twice:\n    manual-groups.add.mode\n" in out


@pytest.mark.parametrize("second", [[BO], ["p0@acme.example", "p1@acme.example"]])
def test_two_different_people_at_most(open_clinic: Open, second: list[str]) -> None:
    """The same person twice, or three people, are a wrong command line: nothing is sent."""
    clinic = open_clinic()
    users = [part for email in (BO, *second) for part in ("--user", email)]
    assert clinic.run("doctor", "--probe", "--yes", *users)[0] == 64
