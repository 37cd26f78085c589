"""What a service does along with the manager right: told by the run that first sees it, and shown in the next plan."""

import json
import os
import signal
from collections.abc import Mapping
from pathlib import Path
from typing import ClassVar, cast

import pytest

from lmsconf.sandbox.service import LoggedRequest, Sandbox, SandboxResponse, json_response

from .conftest import Open
from .served_project import ServedProject, held

WHO, MANAGED = "manual-groups.who-can-manage", "user-access.make-manager.managed-groups"
GIVEN, LOSE = {WHO: "given"}, {MANAGED: "lose"}
ANNA, BO, P0, P1 = "anna.berg@acme.example", "bo.ek@acme.example", "p0@acme.example", "p1@acme.example"
CY, DI = "cy@acme.example", "di@acme.example"
PEOPLE: Mapping[str, object] = {
    "people": [
        {"email": ANNA, "admin": True, "answers": {"Department": "Sales"}},
        {"email": BO},
        {"email": P0, "manager": True},
        {"email": P1, "manager": True},
        {"email": CY},
        {"email": DI, "manager": True},
    ],
    "groups": [
        {"name": "Coaches", "managers": [ANNA, P0]},
        {"name": "Guides", "managers": [P1, P0]},
        {"name": "Board", "managers": [P1]},
    ],
    "smart_groups": [
        {"name": "Sales", "conditions": [{"field": "Department", "choices": ["Sales"]}], "managers": [ANNA, P0]}
    ],
}
TAKEN = f"users: [{{email: {P0}, manager: false}}, {{email: {P1}, manager: false}}]\n"
LISTS = {
    "manual": f"groups: [{{name: Coaches, managers: {{include: [{BO}]}}}}, "
    f"{{name: Board, managers: {{include: [{BO}]}}}}]",
    "smart": f"smart_groups: [{{name: Sales, managers: {{include: [{BO}]}}}}]",
    "created": "smart_groups: [{name: New, conditions: [{field: Department, choices: [Engineering]}], "
    f"managers: [{BO}, {P0}]}}]",
}


def declare(clinic: ServedProject, manifest: str, dialect: Mapping[str, str] | None = None) -> None:
    clinic.declare(manifest)
    lines = "".join(f"  {key}: {value}\n" for key, value in (dialect or {}).items())
    options = f"guards: off\ndialect:\n{lines}" if lines else "guards: off\n"
    clinic.configure(f"manifests: manifests\n{options}")


def rights(clinic: ServedProject) -> set[str]:
    """Who has the manager right."""
    with clinic.service.store.read_transaction() as repository:
        return set(cast("list[str]", repository.column("SELECT email FROM people WHERE manager")))


def managers(clinic: ServedProject) -> set[tuple[str, str]]:
    """Each group and who manages it."""
    with clinic.service.store.read_transaction() as repository:
        rows = repository.rows(
            "SELECT g.name, p.email FROM managers l JOIN groups g ON g.id = l.grp JOIN people p ON p.id = l.person"
        )
        return {(str(group), str(person)) for group, person in rows}


@pytest.mark.sampled
@pytest.mark.parametrize("mode", ["add", "replace"])
@pytest.mark.parametrize("list", LISTS)
def test_the_run_tells_who_is_given_the_right(open_clinic: Open, list: str, mode: str) -> None:
    """The first call that names somebody without it: the person, the line to paste; what was given stays."""
    clinic = open_clinic({**GIVEN, "manual-groups.add.mode": mode}, PEOPLE)
    declare(clinic, LISTS[list])
    told = clinic.told("apply", "--auto-approve", code=6)
    assert f"the service gave the manager right to {BO} along" in told
    assert f"    {WHO}: given\n" in told
    assert rights(clinic) == {BO, DI, P0, P1}
    declare(clinic, LISTS[list], {WHO: "given", "manual-groups.add.mode": mode})
    clinic.settles()


@pytest.mark.parametrize("who", [[BO, CY], [BO, CY, P0]])
def test_a_wrong_name_of_a_new_list_is_not_taken_for_the_right(open_clinic: Open, who: list[str]) -> None:
    """The name that fills the list explains the refusal, though one person waits for what adding does to the others."""
    more = {"people": PEOPLE["people"], "groups": [{"name": "Coaches"}]}
    clinic = open_clinic({"manual-groups.add-managers.userIds": "managerIds"}, more)
    declare(clinic, f"groups: [{{name: Coaches, managers: {{include: [{', '.join(who)}]}}}}]")
    told = clinic.told("apply", "--auto-approve", code=5)
    assert "    manual-groups.add-managers.userIds: managerIds\n" in told
    assert "with-right" not in told
    assert "Apply stopped. 1 of 1 API call did what was planned when sent once more with other values." in told
    assert {person for group, person in managers(clinic) if group == "Coaches"} == {*who}
    assert len([one for one in clinic.service.log if one.method == "POST"]) == 4


@pytest.mark.sampled(day=3)
@pytest.mark.parametrize("list", LISTS)
def test_a_service_that_gives_no_right_is_not_asked_again(open_clinic: Open, list: str) -> None:
    """The run notes what it has seen, and goes on; the next apply reads nobody."""
    clinic = open_clinic({}, PEOPLE)
    declare(clinic, LISTS[list])
    assert clinic.run("apply", "--auto-approve")[0] == 0, clinic.err
    assert rights(clinic) == {DI, P0, P1}
    clinic.service.log.clear()
    declare(clinic, f"groups: [{{name: Guides, managers: {{include: [{BO}]}}}}]")
    assert clinic.run("apply", "--auto-approve")[0] == 0, clinic.err
    assert not [one for one in clinic.service.log if one.operation == "users.get"]


def test_people_with_the_right_are_read_once(open_clinic: Open) -> None:
    """By what is compared along in any case: whatever the service does, it does with people without it."""
    known = {"manual-groups.add-managers.userIds": "userIds", "manual-groups.add.mode": "add"}
    asked: list[list[str | None]] = []
    for more in ({WHO: "anybody"}, {}):
        clinic = open_clinic({}, PEOPLE)
        declare(clinic, f"groups: [{{name: Board, managers: {{include: [{P0}]}}}}]", {**known, **more})
        assert clinic.run("apply", "--auto-approve")[0] == 0, clinic.err
        asked.append(sorted(str(one.operation) for one in clinic.service.log))
    assert asked[0] == asked[1]


@pytest.mark.sampled
@pytest.mark.parametrize(
    "more",
    [
        {},
        {"manual-groups.add.mode": "replace"},
        {WHO: "with-right"},
        GIVEN,
        {"manual-groups.add-managers.userIds": "managerIds"},
        {"manual-groups.add-managers.userIds": "managers", "manual-groups.add.mode": "replace"},
    ],
)
def test_groups_that_go_with_the_right_are_given_back(open_clinic: Open, more: dict[str, str]) -> None:
    """Nobody loses a group that the plan does not name; the line to paste makes the next plan say it."""
    clinic = open_clinic({**LOSE, **more}, PEOPLE)
    before = managers(clinic)
    declare(clinic, TAKEN)
    told = clinic.told("apply", "--auto-approve", code=6)
    assert (f"{P0} lost 3 groups (Coaches, Guides, Sales)" in told) or (f"{P1} lost 2 groups (Guides, Board)" in told)
    assert "given back, with the right" in told
    assert f"    {MANAGED}: lose\n" in told
    assert "add.mode" not in told
    assert (managers(clinic), rights(clinic)) == (before, {DI, P0, P1})
    declare(clinic, TAKEN, {**LOSE, **more})
    _, out = clinic.run("plan")
    assert "with the manager right, the person loses the groups that they manage: Coaches, Guides, Sales" in out
    assert clinic.run("apply", "--auto-approve")[0] == 0, clinic.err
    assert (managers(clinic), rights(clinic)) == ({("Coaches", ANNA), ("Sales", ANNA)}, {DI})


def test_what_the_plan_takes_anyway_is_not_given_back(open_clinic: Open) -> None:
    """A group that the plan takes the person out of, or deletes, shows nothing of the service."""
    clinic = open_clinic(LOSE, PEOPLE)
    lists = f"groups: [{{name: Guides, managers: {{exclude: [{P1}]}}}}]\nabsent: {{groups: [Board]}}\n"
    declare(clinic, f"users: [{{email: {P1}, manager: false}}]\n{lists}")
    assert clinic.run("apply", "--auto-approve")[0] == 0, clinic.err
    assert {group for group, person in managers(clinic) if person == P1} == set()


def test_a_service_that_keeps_them_is_asked_once(open_clinic: Open) -> None:
    """The first person who keeps a group shows it, and nobody else is read."""
    clinic = open_clinic({}, PEOPLE)
    before = managers(clinic)
    declare(clinic, TAKEN)
    assert clinic.run("apply", "--auto-approve")[0] == 0, clinic.err
    assert (managers(clinic), rights(clinic)) == (before, {DI})


SHOWN = {(WHO, "given"): GIVEN, (MANAGED, "lose"): LOSE, (WHO, "anybody"): {}, (MANAGED, "keep"): {}}


@pytest.mark.sampled(day=8)
@pytest.mark.parametrize(("key", "value"), SHOWN)
@pytest.mark.parametrize("accounts", [True, False])
def test_the_probe_sees_it(open_clinic: Open, key: str, value: str, *, accounts: bool) -> None:
    """On an account of its own, or on somebody who has nothing to lose; all is as before afterwards."""
    clinic = open_clinic(SHOWN[key, value], PEOPLE)
    if accounts:
        project = Path(clinic.folder / "lmsconf.yaml")
        project.write_text(f"{clinic.project}people: {{create: true}}\n", encoding="utf-8")
    before = held(clinic.service)
    assert clinic.probe("--user", BO)[key][1] == value
    assert held(clinic.service) == before


@pytest.mark.sampled
@pytest.mark.parametrize("dialect", [{}, LOSE])
def test_the_probe_risks_no_group_of_anybody(open_clinic: Open, dialect: dict[str, str]) -> None:
    """Somebody with the right, or who manages without it, may lose groups: with them it is not tried."""
    people = [*cast("list[dict[str, object]]", PEOPLE["people"]), {"email": "p2@acme.example"}]
    groups = [*cast("list[object]", PEOPLE["groups"]), {"name": "Book club", "managers": ["p2@acme.example"]}]
    for user in (P0, "p2@acme.example", ANNA, DI):
        clinic = open_clinic(dialect, {**PEOPLE, "people": people, "groups": groups})
        before = held(clinic.service)
        assert clinic.probe("--user", user)[MANAGED] == ("unknown", None)
        assert held(clinic.service) == before


# A service refuses a manager who lacks the manager right: the run says so, and the next plan foretells it.


REFUSED_WHO = "manual-groups.who-can-manage"
WITH_RIGHT = {REFUSED_WHO: "with-right"}
REFUSED_PEOPLE = {
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


class Generous(Sandbox):
    """Gives managers an application along, and takes it with the right."""

    def answer(self, method: str, path: str, query: str, headers: Mapping[str, str], body: bytes) -> SandboxResponse:
        for given, action in (("true", "ADD"), ("false", "REMOVE")):
            if path.endswith(f"make-manager/{given}"):
                access = path.replace(f"make-manager/{given}", f"access/{action}")
                sent = {**headers, "content-type": "application/json"}
                super().answer("POST", access, "", sent, b'{"applicationId": "analyse"}')
        return super().answer(method, path, query, headers, body)


def test_what_comes_along_with_a_right_is_told(open_clinic: Open) -> None:
    """An application that the service gives or takes with a right: a warning, unless the plan changes it, too."""
    clinic = open_clinic({}, PEOPLE, made=Generous)
    declare(clinic, f"users: [{{email: {BO}, manager: true}}, {{email: {CY}, manager: true}}]\n")
    out = clinic.run("apply", "--auto-approve", code=0).out
    assert out.count("user-access.make-manager also changed") == 1
    assert "and the plan does not show it: + analyse." in out
    declare(clinic, f"users: [{{email: {BO}, manager: false}}]\n")
    out = clinic.run("apply", "--auto-approve", code=0).out
    assert f"user/{BO}: user-access.make-manager also changed {BO}, and the plan does not show it: - analyse." in out
    declare(clinic, f"users: [{{email: {BO}, manager: true, applications: [analyse]}}]\n")
    assert "the plan does not show it" not in clinic.run("apply", "--auto-approve", code=0).out


class Dateless(Sandbox):
    """Takes the custom archive date from people who become managers: managers cannot have one."""

    def answer(self, method: str, path: str, query: str, headers: Mapping[str, str], body: bytes) -> SandboxResponse:
        if path.endswith("make-manager/true"):
            date = path.replace("access/make-manager/true", "set-custom-archived-date")
            super().answer("POST", date, "", {**headers, "content-type": "application/json"}, b'{"date": null}')
        return super().answer(method, path, query, headers, body)


def test_an_archive_date_that_goes_with_a_right_is_told(open_clinic: Open) -> None:
    """The account would have ended on that date, and does not any more: a warning."""
    people = [{"email": ANNA, "admin": True}, {"email": BO, "custom_archive_date": "2027-03-01T00:00:00Z"}]
    others: dict[str, object] = {"groups": [], "smart_groups": [], "content_targets": []}
    clinic = open_clinic({}, {"people": people, **others}, made=Dateless)
    declare(clinic, f"users: [{{email: {BO}, manager: true}}]\n")
    out = clinic.run("apply", "--auto-approve", code=0).out
    assert f"also changed {BO}, and the plan does not show it: - custom_archive_date." in out


class Hiding(Sandbox):
    """A service whose listing of people has nobody who is archived; the extended one has them."""

    listings: ClassVar[tuple[str, ...]] = ("/users",)

    def answer(self, method: str, path: str, query: str, headers: Mapping[str, str], body: bytes) -> SandboxResponse:
        said = super().answer(method, path, query, headers, body)
        if method != "GET" or path not in self.listings:
            return said
        with self.store.read_transaction() as repository:
            away = {*cast("list[str]", repository.column("SELECT email FROM people WHERE archived_at IS NOT NULL"))}
        page = json.loads(said.body)
        page["users"] = [one for one in page["users"] if one["email"] not in away]
        return json_response(200, {**page, "matchCount": len(page["users"])})


class HidingAll(Hiding):
    """Neither listing has them."""

    listings: ClassVar[tuple[str, ...]] = ("/users", "/users/extended-info")


@pytest.mark.parametrize("made", [Hiding, HidingAll])
def test_who_is_archived_where_archived_people_are_not_listed_stays_declared(
    open_clinic: Open, made: type[Sandbox]
) -> None:
    """The apply ends with 0, and the next plan is empty; to unarchive somebody in no listing, an entry needs the id."""
    clinic = open_clinic({}, PEOPLE, made=made)
    group = f"groups: [{{name: Coaches, members: [{BO}, {CY}]}}]\n"
    declare(clinic, group)
    assert clinic.run("apply", "--auto-approve")[0] == 0, clinic.err
    declare(clinic, f"{group}users: [{{email: {CY}, archived: true}}, {{email: {BO}, language: sv}}]\n")
    assert clinic.run("apply", "--auto-approve")[0] == 0, clinic.err
    out = clinic.run("plan", "--detailed-exitcode", code=0).out
    unlisted = f"{CY} is not listed, and the service may not list archived people"
    assert (unlisted in out) is (made is HidingAll)
    entry = f"users: [{{email: {CY}, archived: false}}]\n"
    declare(clinic, group + entry)
    if made is HidingAll:
        assert clinic.run("plan")[0] == 1
        assert unlisted in clinic.err
        assert "pin it in the entry: `id: ID`" in clinic.err
        declare(clinic, group + entry.replace("archived", "id: u-5, archived"))
    clinic.settles()


class ShowsNothing(Hiding):
    """Shows nothing of a single person who is archived; the listing has them."""

    listings = ()

    def answer(self, method: str, path: str, query: str, headers: Mapping[str, str], body: bytes) -> SandboxResponse:
        said = super().answer(method, path, query, headers, body)
        is_person = method == "GET" and path.startswith("/users/u-") and path.count("/") == 2
        is_archived = is_person and json.loads(said.body).get("archivedAt")
        return json_response(410, {"message": "user is archived"}) if is_archived else said


class ShowsNobody(ShowsNothing):
    """Neither listing has them, either, and a new language shows late."""

    listings = ("/users", "/users/extended-info")
    late: ClassVar[list[SandboxResponse]] = []

    def answer(self, method: str, path: str, query: str, headers: Mapping[str, str], body: bytes) -> SandboxResponse:
        if method == "GET" and path == "/users/u-2" and self.late:
            return self.late.pop()
        if path == "/users/u-2/update-language":
            self.late.append(super().answer("GET", "/users/u-2", "", headers, b""))
        return super().answer(method, path, query, headers, body)


def test_who_is_archived_and_shown_nowhere_is_no_error(open_clinic: Open) -> None:
    """The run that archives somebody ends with 0, also where it reads again what it has touched."""
    clinic = open_clinic({}, PEOPLE, made=ShowsNobody)
    for _ in range(2):
        declare(clinic, f"users: [{{email: {CY}, archived: true}}, {{email: {BO}, language: sv}}]\n")
        out = clinic.run("apply", "--auto-approve", code=0).out
    assert f"{CY} is not listed, and the service may not list archived people" in clinic.err + out


class ShowsNoRights(ShowsNothing):
    """The extended listing does not have them."""

    listings = ("/users/extended-info",)


@pytest.mark.parametrize("made", [ShowsNothing, ShowsNoRights])
def test_who_is_archived_and_not_shown_stays_declared(open_clinic: Open, made: type[Sandbox]) -> None:
    """The listing has them: their entry is compared by it, and others are read as ever."""
    people = [*cast("list[object]", PEOPLE["people"]), {"email": "old@acme.example", "archived": True}]
    clinic = open_clinic({}, {**PEOPLE, "people": people}, made=made)
    declare(clinic, f"users: [{{email: old@acme.example, archived: true}}, {{email: {BO}, language: sv}}]\n")
    clinic.settles()


@pytest.mark.sampled(day=24)
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
    clinic = open_clinic(WITH_RIGHT, REFUSED_PEOPLE, made=type("Drawn", (Own,), {"status": status}))
    clinic.declare(manifest)
    code, out = clinic.run("apply", "--auto-approve")
    told = out + clinic.err
    assert code in (1, 5), told
    assert people in told
    assert "mo@acme.example h" not in told
    assert f"    {REFUSED_WHO}: with-right\n" in told
    clinic.declare(manifest, f"dialect:\n  {REFUSED_WHO}: with-right\n")
    writes = sum(one.writes for one in clinic.service.log)
    clinic.run("apply", "--auto-approve", code=4)
    assert "bo.ek@acme.example cannot be made manager, because the service requires the manager right" in clinic.err
    assert "Set `manager: true` for the person under `users:`" in clinic.err
    assert sum(one.writes for one in clinic.service.log) == writes
    rights = "".join(f"\n  - {{email: {one}@acme.example, manager: true}}" for one in ("bo.ek", "cy.dahl"))
    clinic.declare(f"{manifest}\nusers:{rights}\n")
    assert clinic.run("apply", "--auto-approve")[0] == 0, clinic.err


def _interrupt_the_grant(entry: LoggedRequest) -> None:
    """Press Ctrl-C when somebody has been given the manager right."""
    if entry.path.endswith("make-manager/true"):
        os.kill(os.getpid(), signal.SIGINT)


def test_what_goes_with_a_right_that_the_probe_takes_back_is_given_back(open_clinic: Open) -> None:
    """Interrupted after the grant, the probe takes the right, and with it the service takes an older application."""
    people = [{"email": ANNA, "admin": True}, {"email": BO, "applications": ["analyse"]}]
    more: dict[str, object] = {"people": people, "groups": [], "smart_groups": [], "content_targets": []}
    clinic = open_clinic({}, more, made=Generous, on_log=_interrupt_the_grant)
    before = held(clinic.service)
    clinic.run("doctor", "--probe", "--yes", "--user", BO, code=130)
    assert [one for one in clinic.service.log if one.path.endswith("make-manager/true")]
    assert held(clinic.service) == before
