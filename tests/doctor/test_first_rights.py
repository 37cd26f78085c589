"""What a service does along with the manager right: told by the run that first sees it, and shown in the next plan."""

import os
import signal
from collections.abc import Mapping
from typing import Any, ClassVar

import pytest

from lmsconf.sandbox.service import LoggedRequest, Sandbox, SandboxResponse, json_response

from .clinic import ANNA, BO, CREATES, P0, P1, P2, PROJECT, Altered, Body, Clinic, Open, unchanged

WHO, MANAGED = "manual-groups.who-can-manage", "user-access.make-manager.managed-groups"
GIVEN, LOSE, WITH_RIGHT = {WHO: "given"}, {MANAGED: "lose"}, {WHO: "with-right"}
REPLACES = {"manual-groups.add.mode": "replace"}
CY, DI = "cy@acme.example", "di@acme.example"
PEOPLE: Mapping[str, Any] = {
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


def declare(clinic: Clinic, manifest: str, dialect: Mapping[str, str] | None = None) -> None:
    clinic.declare(manifest, "guards: off\n", dialect or {})


def rights(clinic: Clinic) -> set[str]:
    """Who has the manager right."""
    return {email for (email,) in clinic.rows("SELECT email FROM people WHERE manager")}


def managed(clinic: Clinic) -> dict[str, set[str]]:
    """Who manages each group."""
    return {name: people for name, people in clinic.lists().items() if name.endswith(" managers")}


@pytest.mark.sampled(daily=False)
@pytest.mark.parametrize("mode", ["add", "replace"])
@pytest.mark.parametrize("list", LISTS)
def test_the_run_tells_who_is_given_the_right(open_clinic: Open, list: str, mode: str) -> None:
    """The first call that names somebody without it: the person, the line to paste; what was given stays."""
    dialect = {**GIVEN, "manual-groups.add.mode": mode}
    clinic = open_clinic(dialect, PEOPLE)
    declare(clinic, LISTS[list])
    told = clinic.apply(code=6).told
    assert f"the service gave the manager right to {BO} along" in told
    assert f"    {WHO}: given\n" in told
    assert rights(clinic) == {BO, DI, P0, P1}
    declare(clinic, LISTS[list], dialect)
    clinic.settles()


@pytest.mark.parametrize("who", [[BO, CY], [BO, CY, P0]])
def test_a_wrong_name_of_a_new_list_is_not_taken_for_the_right(open_clinic: Open, who: list[str]) -> None:
    """The name that fills the list explains the refusal."""
    more = {"people": PEOPLE["people"], "groups": [{"name": "Coaches"}]}
    clinic = open_clinic({"manual-groups.add-managers.userIds": "managerIds"}, more)
    declare(clinic, f"groups: [{{name: Coaches, managers: {{include: [{', '.join(who)}]}}}}]")
    told = clinic.apply(code=5).told
    assert "    manual-groups.add-managers.userIds: managerIds\n" in told
    assert "with-right" not in told
    assert "Apply stopped. 1 of 1 API call did what was planned when sent once more with other values." in told
    assert clinic.lists()["Coaches managers"] == {one.partition("@")[0] for one in who}
    assert len(clinic.sent()) == 3


@pytest.mark.sampled(day=3)
@pytest.mark.parametrize("list", LISTS)
def test_a_service_that_gives_no_right_is_not_asked_again(open_clinic: Open, list: str) -> None:
    """The run notes what it has seen, and goes on; the next apply reads nobody."""
    clinic = open_clinic({}, PEOPLE)
    declare(clinic, LISTS[list])
    clinic.apply()
    assert rights(clinic) == {DI, P0, P1}
    clinic.sandbox.log.clear()
    declare(clinic, f"groups: [{{name: Guides, managers: {{include: [{BO}]}}}}]")
    clinic.apply()
    assert clinic.sent(operation="users.get") == []


def test_people_with_the_right_are_read_once(open_clinic: Open) -> None:
    """By what is compared along in any case: whatever the service does, it does with people without it."""
    known = {"manual-groups.add-managers.userIds": "userIds", "manual-groups.add.mode": "add"}
    asked: list[list[str]] = []
    for more in ({WHO: "anybody"}, {}):
        clinic = open_clinic({}, PEOPLE)
        declare(clinic, f"groups: [{{name: Board, managers: {{include: [{P0}]}}}}]", {**known, **more})
        clinic.apply()
        asked.append(sorted(str(one.operation) for one in clinic.sandbox.log))
    assert asked[0] == asked[1]


@pytest.mark.sampled(daily=False)
@pytest.mark.parametrize(
    "more",
    [
        {},
        REPLACES,
        WITH_RIGHT,
        GIVEN,
        {"manual-groups.add-managers.userIds": "managerIds"},
        {"manual-groups.add-managers.userIds": "managers", **REPLACES},
    ],
)
def test_groups_that_go_with_the_right_are_given_back(open_clinic: Open, more: dict[str, str]) -> None:
    """Nobody loses a group that the plan does not name; the line to paste makes the next plan say it."""
    clinic = open_clinic({**LOSE, **more}, PEOPLE)
    before = managed(clinic)
    declare(clinic, TAKEN)
    told = clinic.apply(code=6).told
    assert (f"{P0} lost 3 groups (Coaches, Guides, Sales)" in told) or (f"{P1} lost 2 groups (Guides, Board)" in told)
    assert "given back, with the right" in told
    assert f"    {MANAGED}: lose\n" in told
    assert "add.mode" not in told
    assert (managed(clinic), rights(clinic)) == (before, {DI, P0, P1})
    declare(clinic, TAKEN, {**LOSE, **more})
    out = clinic("plan").out
    assert "with the manager right, the person loses the groups that they manage: Coaches, Guides, Sales" in out
    clinic.apply()
    left = {"Coaches managers": {"anna.berg"}, "Sales managers": {"anna.berg"}}
    assert (managed(clinic), rights(clinic)) == (left, {DI})


def test_what_the_plan_takes_anyway_is_not_given_back(open_clinic: Open) -> None:
    """A group that the plan takes the person out of, or deletes, shows nothing of the service."""
    clinic = open_clinic(LOSE, PEOPLE)
    lists = f"groups: [{{name: Guides, managers: {{exclude: [{P1}]}}}}]\nabsent: {{groups: [Board]}}\n"
    declare(clinic, f"users: [{{email: {P1}, manager: false}}]\n{lists}")
    clinic.apply()
    assert not any("p1" in people for people in managed(clinic).values())


def test_a_service_that_keeps_them_is_asked_once(open_clinic: Open) -> None:
    """The first person who keeps a group shows it, and nobody else is read."""
    clinic = open_clinic({}, PEOPLE)
    before = managed(clinic)
    declare(clinic, TAKEN)
    clinic.apply()
    assert (managed(clinic), rights(clinic)) == (before, {DI})
    assert len({one.path for one in clinic.sandbox.log if one.operation == "users.get"}) == 1


SHOWN = {(WHO, "given"): GIVEN, (MANAGED, "lose"): LOSE, (WHO, "anybody"): {}, (MANAGED, "keep"): {}}


@pytest.mark.sampled(day=8)
@pytest.mark.parametrize(("key", "value"), SHOWN)
@pytest.mark.parametrize("project", [CREATES, PROJECT], ids=["accounts", "person"])
def test_the_probe_sees_it(open_clinic: Open, key: str, value: str, project: str) -> None:
    """On an account of its own, or on somebody who has nothing to lose; all is as before afterwards."""
    clinic = open_clinic(SHOWN[key, value], PEOPLE)
    clinic.configure(project)
    with unchanged(clinic):
        assert clinic.probe("--user", BO)[key][1] == value


@pytest.mark.sampled(daily=False)
@pytest.mark.parametrize("dialect", [{}, LOSE])
def test_the_probe_risks_no_group_of_anybody(open_clinic: Open, dialect: dict[str, str]) -> None:
    """Somebody with the right, or who manages without it, may lose groups: with them it is not tried."""
    more = {
        "people": [*PEOPLE["people"], {"email": P2}],
        "groups": [*PEOPLE["groups"], {"name": "Book club", "managers": [P2]}],
    }
    for user in (P0, P2, ANNA, DI):
        clinic = open_clinic(dialect, {**PEOPLE, **more})
        with unchanged(clinic):
            assert clinic.probe("--user", user)[MANAGED] == ("unknown", None)


# What else comes and goes with a right.


class Generous(Altered):
    """Gives managers an application along, and may take it with the right."""

    takes: ClassVar[bool] = True

    def taken(self, method: str, path: str, body: Body) -> Body | SandboxResponse:
        for given, action in (("true", "ADD"), ("false", "REMOVE")):
            if path.endswith(f"make-manager/{given}") and (self.takes or action == "ADD"):
                access = path.replace(f"make-manager/{given}", f"access/{action}")
                self.ask("POST", access, {"applicationId": "analyse"})
        return body


def test_what_comes_along_with_a_right_is_told(open_clinic: Open) -> None:
    """An application that the service gives or takes with a right: a warning, unless the plan changes it, too."""
    clinic = open_clinic({}, PEOPLE, Generous)
    declare(clinic, f"users: [{{email: {BO}, manager: true}}, {{email: {CY}, manager: true}}]\n")
    out = clinic.apply().out
    assert out.count("user-access.make-manager also changed") == 1
    assert "and the plan does not show it: + analyse." in out
    clinic.write(f"users: [{{email: {BO}, manager: false}}]\n")
    told = f"user/{BO}: user-access.make-manager also changed {BO}, and the plan does not show it: - analyse."
    assert told in clinic.apply().out
    clinic.write(f"users: [{{email: {BO}, manager: true, applications: [analyse]}}]\n")
    assert "the plan does not show it" not in clinic.apply().out


def test_applications_that_come_with_a_right_are_taken_back(open_clinic: Open) -> None:
    """By a probe, whose report names them, from a service that gives them along, and does not take them."""
    clinic = open_clinic({}, made=type("Drawn", (Generous,), {"takes": False}))
    with unchanged(clinic):
        assert f"an application of {BO} was changed, and is restored" in clinic.probed("--user", BO).out


def test_what_goes_with_a_right_that_the_probe_takes_back_is_given_back(open_clinic: Open) -> None:
    """Interrupted after the grant, the probe takes the right, and with it the service takes an older application."""

    def interrupt(entry: LoggedRequest) -> None:
        if entry.path.endswith("make-manager/true"):
            os.kill(os.getpid(), signal.SIGINT)

    more: dict[str, object] = {"groups": [], "smart_groups": [], "content_targets": []}
    more["people"] = [{"email": ANNA, "admin": True}, {"email": BO, "applications": ["analyse"]}]
    clinic = open_clinic({}, more, Generous, on_log=interrupt)
    with unchanged(clinic):
        clinic.probed("--user", BO, code=130)
        assert clinic.sent("make-manager/true")


class Dateless(Altered):
    """Takes the custom archive date from people who become managers: managers cannot have one."""

    def taken(self, method: str, path: str, body: Body) -> Body | SandboxResponse:
        if path.endswith("make-manager/true"):
            self.ask("POST", path.replace("access/make-manager/true", "set-custom-archived-date"), {"date": None})
        return body


def test_an_archive_date_that_goes_with_a_right_is_told(open_clinic: Open) -> None:
    """The account would have ended on that date, and does not any more: a warning."""
    people = [{"email": ANNA, "admin": True}, {"email": BO, "custom_archive_date": "2027-03-01T00:00:00Z"}]
    clinic = open_clinic({}, {"people": people, "groups": [], "smart_groups": [], "content_targets": []}, Dateless)
    declare(clinic, f"users: [{{email: {BO}, manager: true}}]\n")
    assert f"also changed {BO}, and the plan does not show it: - custom_archive_date." in clinic.apply().out


# A service refuses a manager who lacks the manager right: the run says so, and the next plan foretells it.


@pytest.mark.sampled(day=24, daily=False)
@pytest.mark.parametrize("status", [400, 403, 404, 422])
@pytest.mark.parametrize(
    ("manifest", "people"),
    [
        (f"groups: [{{name: Coaches, managers: {{include: [{BO}, {CY}, {DI}]}}}}]", f"{BO}, {CY} have"),
        (
            "smart_groups: [{name: New, conditions: [{field: Department, choices: [Engineering]}], "
            f"managers: [{BO}, {DI}]}}]",
            f"{BO} has",
        ),
    ],
)
def test_the_run_names_the_person_and_the_right(open_clinic: Open, status: int, manifest: str, people: str) -> None:
    """With the line that it says pasted, the plan foretells it at the person's place, and nothing more is sent."""
    clinic = open_clinic(WITH_RIGHT, PEOPLE, type("Drawn", (Altered,), {"instead": {400: status}}))
    clinic.declare(manifest)
    ran = clinic("apply", "--auto-approve")
    assert ran.code in (1, 5), ran.told
    assert f"{people} no manager right" in ran.told
    assert f"{DI} h" not in ran.told
    assert f"    {WHO}: with-right\n" in ran.told
    clinic.declare(manifest, dialect=WITH_RIGHT)
    ran = clinic.apply(code=4)
    assert f"{BO} cannot be made manager, because the service requires the manager right" in ran.err
    assert "Set `manager: true` for the person under `users:`" in ran.err
    assert ran.writes == []
    clinic.write(f"{manifest}\nusers: [{{email: {BO}, manager: true}}, {{email: {CY}, manager: true}}]\n")
    clinic.apply()


# People who are archived, where a service does not list or show them.


class Hiding(Altered):
    """Listings that have nobody who is archived; the others have them."""

    listings: ClassVar[tuple[str, ...]] = ("/users",)

    def shown(self, path: str, query: str, body: Body) -> Body | SandboxResponse:
        if path not in self.listings:
            return body
        away = {one["email"] for one in self.ask("GET", "/users")["users"] if one.get("archivedAt")}
        people = [one for one in body["users"] if one["email"] not in away]
        return {**body, "users": people, "matchCount": len(people)}


class HidingAll(Hiding):
    """Neither listing has them."""

    listings = ("/users", "/users/extended-info")


@pytest.mark.parametrize("made", [Hiding, HidingAll])
def test_who_is_archived_where_archived_people_are_not_listed_stays_declared(
    open_clinic: Open, made: type[Sandbox]
) -> None:
    """The apply ends with 0, and the next plan is empty; to unarchive somebody in no listing, an entry needs the id."""
    clinic = open_clinic({}, PEOPLE, made)
    group = f"groups: [{{name: Coaches, members: [{BO}, {CY}]}}]\n"
    declare(clinic, group)
    clinic.apply()
    clinic.write(f"{group}users: [{{email: {CY}, archived: true}}, {{email: {BO}, language: sv}}]\n")
    clinic.apply()
    unlisted = f"{CY} is not listed, and the service may not list archived people"
    assert (unlisted in clinic.is_settled()) is (made is HidingAll)
    entry = f"users: [{{email: {CY}, archived: false}}]\n"
    clinic.write(group + entry)
    if made is HidingAll:
        told = clinic("plan", code=1).err
        assert unlisted in told
        assert "pin it in the entry: `id: ID`" in told
        clinic.write(group + entry.replace("archived", "id: u-5, archived"))
    clinic.settles()


class ShowsNothing(Hiding):
    """Shows nothing of a single person who is archived; the listing has them."""

    listings = ()

    def shown(self, path: str, query: str, body: Body) -> Body | SandboxResponse:
        is_archived = path.startswith("/users/u-") and path.count("/") == 2 and body.get("archivedAt")
        return json_response(410, {"message": "archived"}) if is_archived else super().shown(path, query, body)


class ShowsNobody(ShowsNothing):
    """Neither listing has them, either, and a new language shows late."""

    listings = HidingAll.listings
    late: Body | None = None

    def taken(self, method: str, path: str, body: Body) -> Body | SandboxResponse:
        if path == "/users/u-2/update-language":
            self.late = self.ask("GET", "/users/u-2")
        return body

    def shown(self, path: str, query: str, body: Body) -> Body | SandboxResponse:
        if path == "/users/u-2" and self.late is not None:
            body, self.late = self.late, None
        return super().shown(path, query, body)


def test_who_is_archived_and_shown_nowhere_is_no_error(open_clinic: Open) -> None:
    """The run that archives somebody ends with 0, also where it reads again what it has touched."""
    clinic = open_clinic({}, PEOPLE, ShowsNobody)
    declare(clinic, f"users: [{{email: {CY}, archived: true}}, {{email: {BO}, language: sv}}]\n")
    clinic.apply()
    assert f"{CY} is not listed, and the service may not list archived people" in clinic.apply().told


@pytest.mark.parametrize(
    "made", [ShowsNothing, type("Drawn", (ShowsNothing,), {"listings": ("/users/extended-info",)})]
)
def test_who_is_archived_and_not_shown_stays_declared(open_clinic: Open, made: type[Sandbox]) -> None:
    """The listing has them, and maybe not the extended one: their entry is compared by it, others are read as ever."""
    people = [*PEOPLE["people"], {"email": "old@acme.example", "archived": True}]
    clinic = open_clinic({}, {**PEOPLE, "people": people}, made)
    declare(clinic, f"users: [{{email: old@acme.example, archived: true}}, {{email: {BO}, language: sv}}]\n")
    clinic.settles()
