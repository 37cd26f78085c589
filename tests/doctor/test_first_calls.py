"""The first call that rests on an assumption is tried alone: a wrong guess costs nobody a membership."""

from __future__ import annotations

from pathlib import Path

import pytest

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
def test_a_service_that_replaces_lists_costs_nobody_a_membership(open_clinic: Open, key: str) -> None:
    """The first addition takes somebody out: everybody is put back, nothing else is sent, and the key is named."""
    clinic = open_clinic(REPLACES, MORE)
    before = lists(clinic)
    declare(clinic, DECLARED[key])
    code, out = clinic.run("apply", "--auto-approve")
    assert code == 6
    told = out + clinic.err
    assert f"manual-groups.add-{key} took 1 person who was in the list before out of it, put back again" in told
    assert "manual-groups.add.mode: replace" in told
    assert told.count("put back again") == 2  # the failed call, and why the other one was not sent
    assert "0 calls done, 1 failed, 0 blocked, 1 not attempted." in out
    assert "Apply stopped. It is not known whether anything was done" in out
    after = lists(clinic)
    assert all(people <= after[name] for name, people in before.items())
    changed = [name for name in before if after[name] != before[name]]
    assert len(changed) == 1


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
    """Managers of a smart group are put back likewise."""
    smart = {
        "name": "Sales",
        "conditions": [{"field": "Department", "choices": ["Sales"]}],
        "managers": ["p0@acme.example"],
    }
    clinic = open_clinic(REPLACES, {"smart_groups": [smart]})
    declare(clinic, "smart_groups: [{name: Sales, managers: {include: [p1@acme.example]}}]")
    assert clinic.run("apply", "--auto-approve")[0] == 6
    assert lists(clinic)["Sales managers"] == {"p0", "p1"}


def test_a_right_guess_costs_two_requests_once_and_none_when_it_is_known(open_clinic: Open) -> None:
    """On a service that adds, the list is read before and after the first call only; with the key set, never."""
    requests: list[int] = []
    for options in ("", "dialect: {manual-groups.add.mode: add}\n"):
        seen: list[str] = []
        clinic = open_clinic(more=MORE, on_log=lambda one, seen=seen: seen.append(one.path))
        declare(clinic, DECLARED["members"], options)
        code, _ = clinic.run("apply", "--auto-approve")
        assert code == 0, clinic.err
        requests.append(len([path for path in seen if path.endswith("/members")]))
    assert requests[0] - requests[1] == 2


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
