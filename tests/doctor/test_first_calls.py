"""The first call that rests on an assumption is tried alone: a wrong guess costs nobody a membership or an answer."""

import json
import re
from collections.abc import Mapping
from datetime import datetime
from typing import Any, ClassVar

import pytest
import yaml

from lmsconf.api.spec import ApiSpec
from lmsconf.apply import search_dialect
from lmsconf.documents.journal.journal_reader import find_pending_writes, read_runs
from lmsconf.sandbox.service import Sandbox, SandboxResponse, json_response

from .clinic import (
    ANNA,
    ANSWERS,
    BO,
    FOUR_FIELDS,
    P0,
    P1,
    P2,
    P3,
    P4,
    SEED,
    Altered,
    Body,
    Clinic,
    Open,
    ShowsLate,
    ShowsLocalTimes,
    held,
    unchanged,
)

pytestmark = pytest.mark.sampled(day=8, daily=False)

MORE: Mapping[str, Any] = {
    "groups": [*SEED["groups"], {"name": "Guides", "members": [P0], "managers": [P1]}],
    "smart_groups": [{**SEED["smart_groups"][0], "managers": [BO]}],
}
MODE = "manual-groups.add.mode"
REPLACES = {MODE: "replace"}


def joining(key: str) -> str:
    """Somebody joins a list of each group."""
    coaches, guides = f"{key}: {{include: [{P2}]}}", f"{key}: {{include: [{P3}, {P4}]}}"
    return f"groups: [{{name: Coaches, {coaches}}}, {{name: Guides, {guides}}}]"


DECLARED = {
    "members": (joining("members"), ["Coaches members", "Guides members"]),
    "managers": (joining("managers"), ["Coaches managers", "Guides managers"]),
    "managers of a smart group": (
        f"smart_groups: [{{name: Sales, managers: {{include: [{P1}]}}}}]",
        ["Sales managers"],
    ),
}
MEMBERS = DECLARED["members"][0]


class Strict(Altered):
    """A service that refuses people who are in a list already."""

    def taken(self, method: str, path: str, body: Body) -> Body | SandboxResponse:
        is_known = path.endswith(("/members", "/managers")) and {*self.ask("GET", path)["userIds"]} & {*body["userIds"]}
        return json_response(409, {"message": "somebody is in the list already"}) if is_known else body


@pytest.mark.parametrize("key", DECLARED)
@pytest.mark.parametrize(
    ("dialect", "known", "made"),
    [({}, {}, Sandbox), (REPLACES, {}, Sandbox), (REPLACES, REPLACES, Sandbox), ({}, {}, Strict)],
    ids=["adds", "replaces", "as it is known", "strict"],
)
def test_a_service_that_replaces_lists_costs_nobody_a_membership(
    open_clinic: Open, key: str, dialect: dict[str, str], known: dict[str, str], made: type[Sandbox]
) -> None:
    """Until the project says what adding does, calls name everybody in a list, which is right in both cases.

    So do they where it says that the service replaces, and the next plan is empty. Where people who are in the list are
    refused, the new people are named alone, and the list is compared: the service adds, and the run goes on.
    """
    clinic = open_clinic(dialect, MORE, made)
    manifest, lists = DECLARED[key]
    clinic.declare(manifest, dialect=known)
    before = clinic.lists()
    clinic.apply()
    assert all(before[name] < clinic.lists()[name] for name in lists)
    clinic.is_settled()


def test_nothing_is_read_where_it_is_known_what_adding_does(open_clinic: Open) -> None:
    """Each list is read before and after its call; with the key set, never."""
    requests: list[int] = []
    for known in ({}, {MODE: "add"}):
        clinic = open_clinic(more=MORE)
        clinic.declare(MEMBERS, dialect=known)
        clinic.apply()
        requests.append(len([one for one in clinic.sandbox.log if one.path.endswith("/members")]))
    assert requests[0] > requests[1]


class Mixed(Altered):
    """Adds to members, and replaces managers, of groups and of smart groups."""

    begin: ClassVar[str] = "/"

    def taken(self, method: str, path: str, body: Body) -> Body | SandboxResponse:
        if method == "POST" and path.startswith(self.begin) and path.endswith("/managers"):
            for id in self.ask("GET", path)["userIds"]:
                self.ask("DELETE", f"{path}/{id}")
        return body


class MixedSmart(Mixed):
    """Replaces the managers of smart groups alone."""

    begin = "/smart-groups/"


@pytest.mark.parametrize(
    ("dialect", "made", "expected"),
    [({}, Sandbox, "add"), (REPLACES, Sandbox, "replace"), ({}, Mixed, "replace"), ({}, MixedSmart, "replace")],
)
def test_the_probe_sees_with_two_people_what_adding_does(
    open_clinic: Open, dialect: dict[str, str], made: type[Sandbox], expected: str
) -> None:
    """A second person is added to the scratch group; the workspace is as before, and the value is written.

    Where one list is replaced, calls are to name everybody, which is right for the other lists too.
    """
    clinic = open_clinic(dialect, MORE, made)
    clinic.declare(MEMBERS)
    with unchanged(clinic):
        assert f"{MODE}: {expected} (" in clinic.probed("--user", BO, "--user", P0).out
    assert f"  {MODE}: {expected}\n" in clinic.project


@pytest.mark.parametrize("runs", [1, 2])
@pytest.mark.parametrize("section", ["groups", "smart_groups"])
def test_a_list_that_is_replaced_beside_one_that_is_added_to(open_clinic: Open, section: str, runs: int) -> None:
    """That members are kept says nothing about managers, nor what an earlier run has seen of members."""
    clinic = open_clinic({}, {**MORE, "groups": [*MORE["groups"], {"name": "Empty"}]}, Mixed)
    new, name = ("New" if runs == 1 else "Empty"), ("Guides" if section == "groups" else "Sales")
    clinic.declare(
        f"groups: [{{name: {new}, members: [{P2}, {P3}]}}]\n---\n"
        f"{section}: [{{name: {name}, managers: {{include: [{P4}]}}}}]\n"
    )
    before = clinic.lists()
    if runs == 2:
        clinic.apply("--only", "group/Empty")
    clinic("apply", "--auto-approve")
    assert all(before[name] <= clinic.lists()[name] for name in before if name.endswith("managers"))


def test_a_new_list_of_a_service_that_replaces_is_no_matter_of_names(open_clinic: Open) -> None:
    """Two calls fill it; the second one shows what adding does, and no other name or number of people is tried."""
    clinic = open_clinic(REPLACES, FOUR_FIELDS)
    groups = f"groups: [{{name: New, members: [{P0}, {P1}, {P2}]}}, {{name: Coaches, members: {{include: [{P3}]}}}}]\n"
    clinic.declare(groups)
    told = clinic.apply(code=6).told
    assert f"    {MODE}: replace\n" in told
    assert "manual-groups.add.batch: " not in told
    assert len(clinic.sent(operation="manual-groups.add-members")) == 3
    clinic.declare(groups, dialect=REPLACES)
    clinic.settles()


def test_a_group_that_is_still_listed_and_cannot_be_read_is_read_again(open_clinic: Open) -> None:
    """The verification waits until the listing shows the deletion.

    The group is listed a few times more after it is deleted; its members are not found then.
    """
    lists_late = type("Drawn", (ShowsLate,), {"end": "/groups", "late": 4, "instead": {404: 410}})
    clinic = open_clinic(REPLACES, FOUR_FIELDS, lists_late)
    clinic.declare("absent: {groups: [{name: Coaches}]}\n", dialect=REPLACES)
    clinic.apply()


class ShowsListsLate(Altered):
    """Refuses the first request for the people in a list of a new group."""

    asked: frozenset[str] = frozenset({"/groups/g-1/members", "/groups/g-2/members"})

    def shown(self, path: str, query: str, body: Body) -> Body | SandboxResponse:
        is_new = path.endswith("/members") and path not in self.asked
        self.asked |= {path}
        return json_response(410, {"message": "gone"}) if is_new else body


def test_the_list_of_a_new_group_may_not_be_readable_at_once(open_clinic: Open) -> None:
    """It is read again before anybody is added, as what was just made may not show yet."""
    clinic = open_clinic({}, MORE, ShowsListsLate)
    clinic.declare(f"groups: [{{name: Coaches, members: {{include: [{P1}]}}}}, {{name: New, members: [{P2}, {P3}]}}]\n")
    clinic.apply()
    assert clinic.lists()["New members"] == {"p2", "p3"}


class ListsActive(Altered):
    """Leaves archived people out of the lists of groups."""

    def shown(self, path: str, query: str, body: Body) -> Body | SandboxResponse:
        if not path.endswith(("/members", "/managers")):
            return body
        everybody = {one["userId"]: one for one in self.ask("GET", "/users")["users"]}
        return {"userIds": [id for id in body["userIds"] if not everybody[id].get("archivedAt")]}


class ListsNoArchived(ListsActive):
    """Leaves them out of the listing of people, too."""

    def shown(self, path: str, query: str, body: Body) -> Body | SandboxResponse:
        if path != "/users":
            return super().shown(path, query, body)
        people = [one for one in body["users"] if not one.get("archivedAt")]
        return {"users": people, "matchCount": len(people)}


@pytest.mark.parametrize("made", [ListsActive, ListsNoArchived])
def test_archived_people_stay_in_a_list_that_leaves_them_out(open_clinic: Open, made: type[Sandbox]) -> None:
    """Where calls replace lists, they name those, too; what waits for the call to show does not wait for them."""
    people = [{"email": one, "archived": one == P4} for one in (ANNA, BO, P0, P1, P2, P3, P4)]
    groups = [{"name": "Coaches", "members": [BO, P1, P4], "managers": [BO]}]
    clinic = open_clinic(REPLACES, {"people": people, "groups": groups}, made)
    clinic.declare(f"groups: [{{name: Coaches, members: [{BO}, {P2}]}}]", dialect=REPLACES)
    clinic.apply("--allow", "removals=1")
    assert clinic.lists()["Coaches members"] == {"bo.ek", "p2", "p4"}
    clinic.is_settled()


# The first call that sets answers is tried alone: a wrong guess costs nobody an answer.


MOVES = "users: [" + ", ".join(f"{{email: {one}, answers: {{Department: Engineering}}}}" for one in (BO, ANNA)) + "]"
CLEARS = MOVES.replace("Engineering", "null")
BADGE = f"users: [{{email: {BO}, answers: {{Badge: '8'}}}}]"
WRAPPER, OMITTED = f"{ANSWERS}.wrapper", {f"{ANSWERS}.omitted": "clear"}


def declaring(
    open_clinic: Open,
    dialect: Mapping[str, str],
    manifest: str = MOVES,
    made: type[Sandbox] = Sandbox,
    known: Mapping[str, str] | None = None,
) -> Clinic:
    clinic = open_clinic(dialect, FOUR_FIELDS, made)
    clinic.declare(manifest, dialect=known or {})
    return clinic


def told_lines(dialect: Mapping[str, str]) -> str:
    """The lines of a report to paste, in the order of the keys."""
    return "".join(f"    {key}: {dialect[key]}\n" for key in sorted(dialect))


def changed(clinic: Clinic, before: Mapping[str, object]) -> list[str]:
    """Whose answers are others by now."""
    return [email for email, now in clinic.answers().items() if now != before[email]]


def test_a_service_that_clears_what_is_omitted_costs_nobody_an_answer(open_clinic: Open) -> None:
    """The first call clears the person's other answers: they are given back, no other is sent, the key is named."""
    clinic = declaring(open_clinic, OMITTED)
    before = clinic.answers()
    told = clinic.apply(code=6).told
    assert "that the call does not name, given back again" in told
    assert told_lines(OMITTED) in told
    [email] = changed(clinic, before)
    assert clinic.answers()[email] == {**before[email], "Department": ["Engineering"]}
    clinic.declare(MOVES, dialect=OMITTED)
    clinic.settles()
    assert all(one.get("Desk") for one in clinic.answers().values() if one)


class Retired(Altered):
    """Shows answers with a choice that the field has no more, until answers are sent, and refuses empty ones."""

    is_sent = False

    def taken(self, method: str, path: str, body: Body) -> Body | SandboxResponse:
        self.is_sent |= path.endswith("-choice")
        return body if all(body.values()) or not path.endswith("-choice") else json_response(400, {"error": "empty"})

    def shown(self, path: str, query: str, body: Body) -> Body | SandboxResponse:
        if path.startswith("/users/u") and not self.is_sent:
            body["customFields"]["Skills"] = {"choices": [{"choiceId": "gone", "name": "Perl"}]}
        return body


def test_an_answer_that_cannot_be_sent_again_keeps_no_other_from_being_given_back(open_clinic: Open) -> None:
    """Its choice is not there any more: it is left out, and the person's other answers are given back."""
    clinic = declaring(open_clinic, OMITTED, made=Retired)
    before = clinic.answers()
    told = clinic.apply(code=6).told
    [email] = changed(clinic, before)
    assert clinic.answers()[email]["Desk"] == before[email]["Desk"], told
    assert "of them given back" in told


class LooksElsewhere(Altered):
    """Takes answers below another name than is assumed, and any other body for one without answers."""

    def taken(self, method: str, path: str, body: Body) -> Body | SandboxResponse:
        return {"answers": {}} if path.endswith("-choice") and "answers" not in body else body


class ParticularAboutAll(Altered):
    """Takes answers below the last name that is tried, clears those in lists, and any that it does not find there."""

    def taken(self, method: str, path: str, body: Body) -> Body | SandboxResponse:
        if not path.endswith("-choice"):
            return body
        sent = body["fields"] if isinstance(body.get("fields"), dict) else {}
        return {"fields": {id: one for id, one in sent.items() if not isinstance(one, list)}}


@pytest.mark.parametrize(
    ("dialect", "made"),
    [
        ({WRAPPER: "answers"}, LooksElsewhere),
        ({WRAPPER: "fields", f"{ANSWERS}.value-multi-select": "object-list"}, ParticularAboutAll),
    ],
)
def test_answers_are_given_back_where_their_name_and_a_form_are_wrong(
    open_clinic: Open, dialect: dict[str, str], made: type[Sandbox]
) -> None:
    """Where the call clears all answers of a person, because it has none where the service looks.

    Those that come back below one name show that it is right: the others are tried below it, in few calls.
    """
    dialect = {**dialect, **OMITTED}
    clinic = declaring(open_clinic, dialect, BADGE, made)
    before = clinic.answers()[BO]
    told = clinic.apply(code=6).told
    assert {**clinic.answers()[BO], "Badge": "7"} == before, told
    assert all(f"    {key}: {value}\n" in told for key, value in dialect.items()), told


class Careless(Altered):
    """Passes over choices that are not written as it wants them, and clears the answer."""

    def taken(self, method: str, path: str, body: Body) -> Body | SandboxResponse:
        is_sent = path.endswith("-choice")
        return {id: value for id, value in body.items() if "ch-" not in str(value)} if is_sent else body


@pytest.mark.sampled(day=1)
def test_an_answer_that_is_sent_along_in_the_wrong_form_is_given_back(open_clinic: Open) -> None:
    """A call names all answers of a person. One that the plan does not change must not be lost by its form."""
    known = {**OMITTED, f"{ANSWERS}.value": "name"}
    clinic = declaring(open_clinic, {**known, f"{ANSWERS}.value-multi-select": "name-list"}, BADGE, Careless, known)
    before = clinic.answers()[BO]
    ran = clinic.apply(code=6)
    assert clinic.answers()[BO] == {**before, "Badge": "8"}, ran.told
    assert "cleared 1 answer that the plan does not change, given back again" in ran.out
    assert f"{ANSWERS}.value-multi-select: name-list" in ran.out


def test_an_answer_that_shows_late_is_not_credited_to_the_name_that_is_tried_next(open_clinic: Open) -> None:
    """Also before any call of the run has shown how late the service is: it shows what it did after some reads."""
    late = type("Drawn", (LooksElsewhere, ShowsLate), {"late": 6})
    manifest = f"users: [{{email: {P0}, answers: {{Badge: '8', Desk: '9'}}}}]"
    clinic = declaring(open_clinic, {WRAPPER: "answers", **OMITTED}, manifest, late, OMITTED)
    assert f"    {WRAPPER}: answers\n" in clinic.apply(code=6).out


@pytest.mark.sampled(daily=False)
@pytest.mark.parametrize(
    "dialect",
    [{WRAPPER: "answers"}, {f"{ANSWERS}.value": "object"}, {WRAPPER: "values", f"{ANSWERS}.value": "list"}],
)
def test_a_refused_form_is_searched_for_on_one_person(open_clinic: Open, dialect: dict[str, str]) -> None:
    """One person has the planned answers and no other is touched; the lines to paste let the next run converge."""
    clinic = declaring(open_clinic, dialect)
    before = clinic.answers()
    ran = clinic.apply(code=5)
    paste = told_lines(dialect).replace("    ", "      ")
    assert f"  Set in the project file, and apply again:\n    dialect:\n{paste}" in ran.told
    [email] = changed(clinic, before)
    assert clinic.answers()[email] == {**before[email], "Department": ["Engineering"]}
    assert "1 failed, 0 blocked, 1 not attempted" in ran.out
    clinic.declare(MOVES, dialect=dialect)
    clinic.settles()


def test_a_right_guess_is_compared_once_and_a_known_one_never(open_clinic: Open) -> None:
    """The person is read before and after the first call; with all keys in the project file no request is added.

    The journal has the keys that were right: the next run on the workspace compares nothing.
    """
    spec, asked = ApiSpec.default(), list[int]()
    clinic = declaring(open_clinic, {})
    back = MOVES.replace("Engineering", "Sales")
    known = {key: spec.behaviour(key) for key in spec[ANSWERS].dialect_keys}
    for manifest, dialect in ((MOVES, {}), (back, {}), (MOVES, known)):
        if dialect:
            clinic = declaring(open_clinic, {}, MOVES, known=dialect)
        clinic.write(manifest)
        clinic.sandbox.log.clear()
        clinic.apply()
        asked.append(len(clinic.sent(operation="users.get")))
        people = clinic.answers()
        wanted = ["Sales" if manifest == back else "Engineering"]
        assert [people[one]["Department"] for one in (BO, ANNA)] == [wanted] * 2
    # Before the first call; after it, to see what it set, what is as before.
    assert asked[1] == asked[2] == asked[0] - 4


class Deaf(Altered):
    """A service that accepts answers and does not take them over."""

    def taken(self, method: str, path: str, body: Body) -> Body | SandboxResponse:
        return json_response(200, {}) if path.endswith("-choice") else body


@pytest.mark.sampled(daily=False)
@pytest.mark.parametrize(
    ("manifest", "said", "key"),
    [
        (MOVES, "1 of 1 are not among the person's answers", "value"),
        (CLEARS, "the answer to Department is still there", "clear-choice"),
    ],
)
def test_an_answer_without_effect_ends_the_run(open_clinic: Open, manifest: str, said: str, key: str) -> None:
    """The service accepts the call, and the person is as before: no other is touched, and the keys are named."""
    told = declaring(open_clinic, {}, manifest, Deaf).apply(code=6).told
    assert said in told
    assert f"{ANSWERS}.{key}" in told
    assert "1 failed, 0 blocked, 1 not attempted" in told


def test_an_answer_that_no_form_clears_is_foretold_by_the_next_plan(
    open_clinic: Open, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Every form is tried on one person; the stop says that the service refuses, and with it the plan tells it.

    Where a search ends before every form was tried, it is not known that the service never clears.
    """
    refused = {f"{ANSWERS}.clear-choice": "refused"}
    clinic = declaring(open_clinic, refused)
    clinic.apply()
    clinic.write(CLEARS)
    before = clinic.answers()
    with monkeypatch.context() as few:
        few.setattr(search_dialect, "_MOST", 2)
        ran = clinic("apply", "--auto-approve")
        assert ran.code != 0
        assert "Check the dialect keys" in ran.told
        assert told_lines(refused) not in ran.told
    assert told_lines(refused) in clinic.apply(code=5).told
    assert clinic.answers() == before
    clinic.declare(CLEARS, dialect=refused)
    assert "cannot be cleared, because the service refuses it" in clinic.apply(code=4).told


def test_an_answer_may_be_cleared_by_an_object_that_no_call_has_given(open_clinic: Open) -> None:
    """Where answers are only cleared, the form in which they are given is searched for, too, and told."""
    dialect = {f"{ANSWERS}.value": "object-id", f"{ANSWERS}.clear-choice": "object"}
    clinic = declaring(open_clinic, dialect, CLEARS)
    told = clinic.apply(code=5).told
    assert all(f"    {key}: {value}\n" in told for key, value in dialect.items()), told
    clinic.declare(CLEARS, dialect=dialect)
    clinic.settles()


def test_an_answer_that_no_form_clears_is_told_apart_from_others(open_clinic: Open) -> None:
    """A call that leaves the answer out is accepted, and clears the other one: that is no form that clears both."""
    refused = {f"{ANSWERS}.clear-text": "refused"}
    people = [{"email": BO, "answers": {"Department": "Sales", "Badge": "7"}}, {"email": ANNA}]
    clinic = open_clinic(refused, {"custom_fields": FOUR_FIELDS["custom_fields"], "people": people})
    for code, known in ((5, {}), (4, refused)):
        clinic.declare(f"users: [{{email: {BO}, answers: {{Department: null, Badge: null}}}}]\n", dialect=known)
        assert "omit\n" not in clinic.apply(code=code).err
    assert clinic.answers()[BO] == {"Badge": "7"}


class Secretive(Altered):
    """Shows no answers to the hidden field Locker."""

    def shown(self, path: str, query: str, body: Body) -> Body | SandboxResponse:
        for one in body.get("users", [body]):
            one.get("customFields", {}).pop("Locker", None) if path.startswith("/users") else None
        return body


def test_an_answer_that_a_hidden_field_does_not_show_is_no_matter_of_names(open_clinic: Open) -> None:
    """It is sent once, as assumed, and the calls for other people are sent, too; the report says what to do."""
    fields = [*SEED["custom_fields"], {"name": "Locker", "type": "TEXT", "hidden": True}]
    clinic = open_clinic({}, {"custom_fields": fields}, Secretive)
    clinic.declare(
        f"users: [{{email: {BO}, answers: {{Locker: L1}}}}, "
        f"{{email: {ANNA}, answers: {{Locker: L2, Department: Engineering}}}}]\n"
    )
    told = clinic.apply(code=6).told
    assert told.count("a service may not show answers to hidden fields: leave them out") == 2
    assert len(clinic.sent("-choice")) == 2, told
    now = clinic.answers()
    assert now[BO] == {"Department": ["Sales"], "Locker": "L1"}
    assert now[ANNA] == {"Department": ["Engineering"], "Locker": "L2"}


# What a refusal is about, and what a run says of all that it has found.


class Withdrawn(Altered):
    """Takes the permission of its token away with the first write."""

    is_gone = False

    def taken(self, method: str, path: str, body: Body) -> Body | SandboxResponse:
        self.is_gone = True
        return json_response(403, {"error": "no"})

    def shown(self, path: str, query: str, body: Body) -> Body | SandboxResponse:
        return json_response(403, {"error": "no"}) if self.is_gone else body


@pytest.mark.parametrize(("made", "code"), [(Sandbox, 4), (Withdrawn, 7)], ids=["in use", "not permitted any more"])
def test_a_field_in_use_is_no_matter_of_names(open_clinic: Open, made: type[Sandbox], code: int) -> None:
    """A 403 says that it is in use, whatever the call says of it: the call is sent once, and no key is named.

    One read after the refusal tells it from that of a token that may do nothing any more.
    """
    clinic = open_clinic({}, {"custom_fields": [{**SEED["custom_fields"][0], "description": "Where"}]}, made)
    clinic.declare("custom_fields: [{name: Department, description: null}]\n")
    told = clinic.apply("--allow", "refusals=1", code=code).told
    assert [one.status for one in clinic.sandbox.log if one.writes] == ([403] if made is Sandbox else [])
    assert ("It may be in use" in told) is (made is Sandbox)
    assert "Check the dialect keys" not in told


def test_the_values_of_all_stops_are_one_block_to_paste(open_clinic: Open) -> None:
    """Each failed call says that it did what was planned in the end; the values of all are said once, together."""
    dialect = {WRAPPER: "answers", "manual-groups.add-members.userIds": "users"}
    clinic = declaring(open_clinic, dialect, f"{MOVES}\ngroups: [{{name: Coaches, members: {{include: [{P0}]}}}}]\n")
    told = clinic.apply(code=5).told
    assert told.count("sent once more with other values, it did what was planned") == 2
    block = (
        "the service differs in 2 points from what was assumed; nothing else was sent that rests on them "
        "[apply/wrong-assumption]\n  Set in the project file, and apply again:\n    dialect:\n"
    )
    assert block + told_lines(dialect).replace("    ", "      ") in told


def test_a_call_that_did_what_was_planned_in_the_end_is_not_in_flight(open_clinic: Open) -> None:
    """Its journal counts what the report counts, nothing waits for it, and its history and undo have it as done."""
    clinic = open_clinic({"manual-groups.rename.name": "newName"}, MORE)
    before = clinic.lists()
    clinic.declare("groups: [{name: Mentors, previously: [Coaches]}, {name: Leads, previously: [Guides]}]\n")
    assert "0 calls done, 1 failed, 0 blocked, 1 not attempted." in clinic.apply(code=5).out
    [run] = read_runs(clinic.root)
    assert {state.value: count for state, count in run.summary.items() if count} == {"failed": 1, "not_attempted": 1}
    assert find_pending_writes(clinic.root, run.opening.url, now=run.opening.started, settle_seconds=60) is None
    told = clinic("runs", "latest").out
    assert ("in flight may have" in told, "Undo: " in told) == (False, True), told
    [renamed] = {name.partition(" ")[0] for name in clinic.lists().keys() - before.keys()}
    assert ": done" in clinic("history", f"group/{renamed}").out
    clinic.declare("groups: []\n", dialect={"manual-groups.rename.name": "newName"})
    clinic("apply", clinic.saved("--undo", "latest"), code=0)
    assert clinic.lists() == before


def test_a_value_that_shows_late_is_not_taken_for_another(open_clinic: Open) -> None:
    """What was accepted after a refusal is waited for, before other values are tried.

    People are shown as they were, for some readings after a change to them.
    """
    late = type("Drawn", (ShowsLate,), {"begin": "/users", "late": 6})
    key = "users.set-custom-archived-date.date"
    manifest = f"users: [{{email: {BO}, custom_archive_date: '2030-01-01T00:00:00Z'}}]"
    clinic = declaring(open_clinic, {key: "archiveDate"}, manifest, late)
    assert f"{key}: archiveDate" in clinic.apply(code=5).out


# The first call that makes or changes an assignment.


EXISTING, START_KEY = "content-targets.on-existing", "content-targets.create.startTime"
RECREATES = {EXISTING: "recreate"}


class Opens(Altered):
    """Sets the start of an assignment that has none, and clears it where it is told so."""

    def taken(self, method: str, path: str, body: Body) -> Body | SandboxResponse:
        is_made = (method, path) == ("POST", "/content/targets")
        return {"startTime": "2026-01-01T00:00:00+00:00", **body} if is_made else body


def test_a_start_that_the_service_sets_is_told_and_no_key_is_blamed(open_clinic: Open) -> None:
    """The assignment stays, the other calls are sent, and the next run clears what nobody declared."""
    clinic = open_clinic({}, MORE, Opens)
    clinic.declare("content_targets: [{content: Fire safety, assign_to: [everyone, {group: Coaches}]}]")
    ran = clinic.apply(code=6)
    assert ran.told.count("(the service sets it by itself: declare a value, or apply again to clear it)") == 2
    assert "2 calls done, 0 failed" in ran.told
    assert "dialect" not in ran.out
    clinic.apply()


class Doubles(Altered):
    """Makes a second assignment beside the one that a call was to change; DELETE goes for one of them, or for both."""

    twins: tuple[Body, ...] = ()
    deletes: ClassVar[str] = "both"

    def taken(self, method: str, path: str, body: Body) -> Body | SandboxResponse:
        if (method, path) == ("POST", "/content/targets"):
            self.twins += tuple(one for one in self.rows() if one["targetId"] == body["targetId"])[:1]
        if (method, path) == ("DELETE", "/content/targets"):
            [*kept], self.twins = self.twins, ()
            if kept and self.deletes != "both":
                if self.deletes == "second":
                    self.ask("POST", path, {key: kept[0][key] for key in ("contentId", "targetId", "mandatory")})
                return json_response(204, None)
        return body

    def shown(self, path: str, query: str, body: Body) -> Body | SandboxResponse:
        more = [one for one in self.twins if one["contentId"] in query] if path == "/content/targets" else []
        return {"targets": more + body["targets"]} if more else body

    def rows(self) -> list[Body]:
        """What is assigned of the first content."""
        return list(self.ask("GET", "/content/targets", query="contentId=c-1")["targets"])


@pytest.mark.parametrize(("deletes", "is_mandatory"), [("both", True), ("first", True), ("second", False)])
def test_a_second_assignment_is_deleted_and_told_with_its_key(
    open_clinic: Open, deletes: str, is_mandatory: bool
) -> None:
    """One assignment is live after the run, and the next one ends well. What rests on the same key waits for it."""
    clinic = open_clinic({}, MORE, type("Drawn", (Doubles,), {"deletes": deletes}))
    service = clinic.sandbox
    assert isinstance(service, Doubles)
    manifest = "content_targets: [{content: GDPR basics, mandatory: true, assign_to: [{group: Coaches}, everyone]}]"
    clinic.declare(manifest)
    assert told_lines(RECREATES) in clinic.apply(code=6).out
    assert not service.twins
    assert {one["targetId"]: one["mandatory"] for one in service.rows()} == {"EVERYONE": False, "g-1": is_mandatory}
    clinic.declare(manifest, dialect=RECREATES)
    clinic.apply()
    assert {one["targetId"]: one["mandatory"] for one in service.rows()} == {"EVERYONE": True, "g-1": True}


class TakesIso(Altered):
    """Shows times as milliseconds, and takes them as ISO 8601."""

    def taken(self, method: str, path: str, body: Body) -> Body | SandboxResponse:
        for key in body.keys() & {"start", "finishTime"} if path == "/content/targets" else ():
            if str(body[key]).isdigit():
                return json_response(409, {"message": "bad time"})
            body[key] = str(int(datetime.fromisoformat(body[key]).timestamp() * 1000))
        return body


def test_a_time_in_the_wrong_form_is_not_taken_for_seconds_that_are_too_many(open_clinic: Open) -> None:
    """Although another call of the run was accepted with its time: its form followed from what was live then."""
    live = "{content: GDPR basics, visible_from: '2026-01-01T00:00:00Z', assign_to: [{group: Coaches}]}"
    more = {
        "content": [{"name": name} for name in ("GDPR basics", "Fire safety", "Security")],
        "content_targets": yaml.safe_load(f"[{live}]"),
    }
    clinic = open_clinic({"content-targets.time-format": "epoch-ms", START_KEY: "start"}, {**MORE, **more}, TakesIso)
    clinic.declare(
        f"""
content_targets:
  - {{content: Fire safety, assign_to: [{{group: Coaches, visible_from: "2026-12-05T00:00:00Z"}}]}}
  - {live}
  - {{content: Security, assign_to: [{{group: Guides, visible_until: "2027-12-31T11:00:05Z"}}]}}
"""
    )
    out = clinic("apply", "--auto-approve").out
    assert f"{START_KEY}: start" in out
    assert "time-precision" not in out
    assert "content-targets.time-format: iso" in out


class Cuts(Altered):
    """Keeps times to the hour before."""

    def taken(self, method: str, path: str, body: Body) -> Body | SandboxResponse:
        cut: Body = json.loads(re.sub(r"(T..):..:..", r"\1:00:00", json.dumps(body)))
        return cut


def test_a_time_that_the_service_cuts_is_no_matter_of_names(open_clinic: Open) -> None:
    """Each call is sent once, and no other name or form is tried; the run says what the service keeps."""
    clinic = open_clinic({"content-targets.time-format": "iso"}, MORE, Cuts)
    window = "{group: Coaches, visible_from: '2026-12-05T10:30:00Z', visible_until: '2027-06-30T09:59:59Z'}"
    lines = ", ".join(f"{{content: {name}, assign_to: [{window}]}}" for name in ("Fire safety", "GDPR basics"))
    clinic.declare(f"content_targets: [{lines}]\n")
    for _ in range(2):
        clinic.sandbox.log.clear()
        told = clinic.apply(code=6).told
        assert "visible_from is" in told
        assert "the service cuts it to the hour: declare the time that it keeps" in told
        assert "Right for this service" not in told
        assert clinic.sent("/content/targets") == ["content-targets.create"] * 2


@pytest.mark.parametrize("name", ["startTime", "visibleFrom"])
def test_a_time_that_is_shown_as_a_local_one_is_not_written_in_another_form(open_clinic: Open, name: str) -> None:
    """The right window stays, whatever the name of its start, and the report says how the service shows it."""
    clinic = open_clinic({START_KEY: name}, MORE, ShowsLocalTimes)
    at = "2026-12-05T10:30:00Z"
    clinic.declare(
        f"content_targets: [{{content: Fire safety, assign_to: [{{group: Coaches, visible_from: '{at}'}}]}}]"
    )
    told = clinic.apply(code=6 if name == "startTime" else 5).told
    assert ("it is shown 60 minutes later, as a local time would be" in told) == (name == "startTime"), told
    assert "iso-local" not in told
    starts = clinic.rows("SELECT start FROM targets WHERE start IS NOT NULL")
    assert starts == [(int(datetime.fromisoformat(at).timestamp() * 1000),)]


def test_the_zone_of_times_without_an_offset_is_that_of_the_project(open_clinic: Open) -> None:
    """The report has its key, with which the next plan is empty and the window is shown as it is."""
    clinic = open_clinic({}, MORE, ShowsLocalTimes)
    target = "{group: Coaches, visible_from: '2026-12-05T10:30', visible_until: '2027-07-05T10:30'}"
    zone, options = {"content-targets.time-zone": "Africa/Lagos"}, "timezone: Africa/Lagos\n"
    for known in ({}, zone):
        clinic.declare(f"content_targets: [{{content: Fire safety, assign_to: [{target}]}}]", options, known)
        if not known:
            assert told_lines(zone) in clinic.apply(code=6).out
    clinic.is_settled()


def test_a_start_that_the_service_sets_is_no_limit_once_it_is_known(open_clinic: Open) -> None:
    """Where nothing clears it, the report has its key; a start that is to come is still a change."""
    sets = {"content-targets.default-start": "now"}
    clinic = open_clinic({**sets, **RECREATES}, MORE)
    manifest = "content_targets: [{content: Fire safety, mandatory: true, assign_to: [{group: Coaches}]}]"
    clinic.declare(manifest, dialect=RECREATES)
    assert told_lines(sets) in clinic.apply(code=6).out
    clinic.declare(manifest, dialect={**RECREATES, **sets})
    clinic.is_settled()
    clinic.write(manifest.replace("mandatory: true", "mandatory: false"))
    clinic.apply()
    with clinic.sandbox.store.write_transaction() as repository:
        repository.execute("UPDATE targets SET start = 4102444800000 WHERE content = 'c-2'")
    clinic("plan", "--detailed-exitcode", code=2)


class Optional(Altered):
    """Takes no mandatory assignment of everyone."""

    def taken(self, method: str, path: str, body: Body) -> Body | SandboxResponse:
        is_refused = method == "POST" and body.get("targetId") == "EVERYONE" and body.get("mandatory")
        return json_response(400, {"error": "no"}) if is_refused else body


class Grudging(Optional):
    """Makes it, and says that it did not."""

    def taken(self, method: str, path: str, body: Body) -> Body | SandboxResponse:
        taken = super().taken(method, path, body)
        if isinstance(taken, SandboxResponse):
            self.ask(method, path, body)
        return taken


def test_a_value_that_is_refused_is_no_reason_to_delete_an_assignment(open_clinic: Open) -> None:
    """What is live is accepted again, so the service does update assignments: no value is advised."""
    clinic = open_clinic({}, MORE, Optional)
    clinic.declare(
        """
content_targets:
  - {content: GDPR basics, mandatory: true, assign_to: [everyone]}
  - {content: Fire safety, mandatory: true, assign_to: [{group: Guides}]}
"""
    )
    told = clinic.apply(code=5).told
    assert "1 call done, 1 failed" in told
    assert "on-existing: recreate" not in told


@pytest.mark.parametrize("made", [Optional, Grudging])
def test_an_assignment_that_cannot_be_created_again_is_put_back(open_clinic: Open, made: type[Sandbox]) -> None:
    """Where the service updates none, it is deleted first: if the new one is refused, the old one is created again.

    If it was made all the same, it is not made once more as it was before.
    """
    live = {"content": "GDPR basics", "visible_until": "2027-01-01T09:00:00Z", "assign_to": ["everyone"]}
    clinic = open_clinic(RECREATES, {**MORE, "content_targets": [live]}, made)
    known = {**RECREATES, _MANDATORY: "mandatory", "content-targets.everyone": "EVERYONE"}
    manifest = "content_targets: [{content: GDPR basics, mandatory: true, assign_to: [everyone]}]\n"
    clinic.declare(manifest, "guards: off\n", known)
    before = held(clinic)
    told = clinic.apply(code=5).told
    is_back = "it is created again as it was, without the progress of people" in told
    assert (is_back, held(clinic) == before) == (made is Optional, made is Optional)
    assert made is Optional or ("it is created again" not in told and "it was deleted" not in told)


class PassesOver(Altered):
    """Passes over what it does not know in the body of an assignment, and resets what the body does not name."""

    def taken(self, method: str, path: str, body: Body) -> Body | SandboxResponse:
        known = {"contentId", "targetId", "userId", *map(self.spec.behaviour, _OF_ASSIGNMENTS)}
        is_made = (method, path) == ("POST", "/content/targets")
        return {key: value for key, value in body.items() if key in known} if is_made else body


_OF_ASSIGNMENTS = [f"content-targets.create.{name}" for name in ("mandatory", "startTime", "finishTime")]
_MANDATORY, _START, _FINISH = _OF_ASSIGNMENTS
_LIVE = """
content_targets:
  - {content: GDPR basics, mandatory: true, assign_to: [{user: p0@acme.example}]}
  - content: Fire safety
    mandatory: true
    visible_from: "2026-01-05T00:00:00Z"
    visible_until: "2026-12-31T00:00:00Z"
    assign_to: [{group: Coaches}]
"""
_LONGER = _LIVE.replace("2026-12-31", "2027-06-30")
_AND_OPTIONAL = _LONGER.replace("basics, mandatory: true", "basics, mandatory: false")
_NAMES = {_MANDATORY: "required", _START: "visibleFrom"}


def passing_over(open_clinic: Open, names: Mapping[str, str], declared: str) -> Clinic:
    """A clinic with the assignments of `_LIVE`, whose service has these names and passes over others."""
    clinic = open_clinic(names, {**MORE, **yaml.safe_load(_LIVE)}, PassesOver)
    clinic.declare(declared)
    return clinic


def of_fire_safety(clinic: Clinic) -> tuple[object, ...]:
    """Whether "Fire safety" is mandatory, and its window."""
    [row] = clinic.rows("SELECT mandatory, start, finish FROM targets WHERE content = 'c-2'")
    return row


@pytest.mark.parametrize("declared", [_AND_OPTIONAL, _LONGER])
def test_a_value_that_the_service_gives_by_itself_confirms_no_name(open_clinic: Open, declared: str) -> None:
    """`mandatory: false` shows under any name: the call that says `true` finds all names, and loses nothing."""
    clinic = passing_over(open_clinic, _NAMES, declared)
    _, start, finish = of_fire_safety(clinic)
    out = clinic.apply(code=6).out
    assert f"    dialect:\n{told_lines(_NAMES).replace('    ', '      ')}" in out
    after = of_fire_safety(clinic)
    assert after[:2] == (1, start), out
    assert after[2] != finish
    assert len(clinic.sent(operation="content-targets.create")) <= 6
    clinic.declare(declared, dialect=_NAMES)
    clinic.settles()


def test_what_is_empty_is_compared_once_and_again_where_it_tells(open_clinic: Open) -> None:
    """The journal has which of the two a run has seen: a later run tries the name with a value that shows it."""
    clinic = passing_over(open_clinic, _NAMES, _LIVE.replace("basics, mandatory: true", "basics, mandatory: false"))
    clinic.apply()
    [run] = read_runs(clinic.root)
    assert _MANDATORY not in run.seen
    clinic.declare(_AND_OPTIONAL)
    assert f"{_MANDATORY}: required" in clinic.apply(code=6).out
    assert of_fire_safety(clinic)[0] == 1
    assert len(clinic.sent(operation="content-targets.create")) <= 6


def test_a_name_that_nobody_guesses_is_told_beside_those_that_were_found(open_clinic: Open) -> None:
    """What was found keeps its part of the assignment, the rest is named, and few calls are sent."""
    names = {**_NAMES, _MANDATORY: "mustTake"}
    clinic = passing_over(open_clinic, names, _AND_OPTIONAL)
    _, start, finish = of_fire_safety(clinic)
    told = clinic.apply(code=6).told
    assert f"      {_START}: visibleFrom\n" in told
    assert f"Check the dialect keys {_MANDATORY}" in told
    after = of_fire_safety(clinic)
    assert after[:2] == (0, start), told
    assert after[2] not in (None, finish), told
    assert len(clinic.sent(operation="content-targets.create")) < 30
    clinic.declare(_AND_OPTIONAL, dialect=names)
    clinic.apply()
    assert of_fire_safety(clinic)[:2] == (1, start)


def test_a_name_whose_effect_shows_late_is_not_taken_for_the_next_one(open_clinic: Open) -> None:
    """What shows late once in a run is waited for after each name that is tried.

    Assignments are shown as they were, for some requests after each change.
    """
    late = type("Drawn", (PassesOver, ShowsLate), {"begin": "/content/targets", "late": 4})
    clinic = open_clinic({_FINISH: "finishDate"}, MORE, late)
    clinic.declare(
        """
content_targets:
  - {content: GDPR basics, assign_to: [{group: Guides}]}
  - {content: Fire safety, visible_until: '2027-06-30T00:00:00Z', assign_to: [{group: Guides}]}
"""
    )
    assert told_lines({_FINISH: "finishDate"}) in clinic.apply(code=6).told
