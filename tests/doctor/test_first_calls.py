"""The first call that rests on an assumption is tried alone: a wrong guess costs nobody a membership or an answer."""

import json
import re
from collections.abc import Mapping
from datetime import datetime, timedelta, timezone
from functools import partial

import pytest
import yaml
from msgspec.structs import replace

from lmsconf.api.spec import ApiSpec
from lmsconf.apply import search_dialect
from lmsconf.documents.journal.journal_reader import find_pending_writes, read_runs
from lmsconf.sandbox.service import Sandbox, SandboxResponse, json_response

from .conftest import Open
from .served_project import BO, PROJECT, ServedProject, held
from .test_probe_people import ANSWERS, answers, opened

pytestmark = pytest.mark.sampled(day=8)

MORE = {
    "groups": [
        {"name": "Coaches", "members": ["bo.ek@acme.example"], "managers": ["anna.berg@acme.example"]},
        {"name": "Guides", "members": ["p0@acme.example"], "managers": ["p1@acme.example"]},
    ]
}
REPLACES = {"manual-groups.add.mode": "replace"}
KEY = "dialect: {manual-groups.add.mode: replace}\n"
_NEWCOMERS = ("p0@acme.example", "p1@acme.example", "p2@acme.example")
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


@pytest.mark.parametrize("key", ["members", "managers"])
@pytest.mark.parametrize(
    ("dialect", "options"), [({}, ""), (REPLACES, ""), (REPLACES, KEY)], ids=["adds", "replaces", "as the project says"]
)
def test_a_service_that_replaces_lists_costs_nobody_a_membership(
    open_clinic: Open, key: str, dialect: dict[str, str], options: str
) -> None:
    """Until the project says what adding does, calls name everybody in a list, which is right in both cases.

    So do they where it says that the service replaces, and the next plan is empty.
    """
    clinic = open_clinic(dialect, MORE)
    before = lists(clinic)
    clinic.declare(DECLARED[key], options)
    clinic.run("apply", "--auto-approve", code=0)
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
    clinic.declare(DECLARED["members"])
    clinic.run("apply", "--auto-approve", code=0)
    assert all(people < lists(clinic)[name] for name, people in before.items() if name.endswith("members"))


def test_smart_groups_are_tried_too(open_clinic: Open) -> None:
    """Managers of a smart group stay likewise."""
    smart = {
        "name": "Sales",
        "conditions": [{"field": "Department", "choices": ["Sales"]}],
        "managers": ["p0@acme.example"],
    }
    clinic = open_clinic(REPLACES, {"smart_groups": [smart]})
    clinic.declare("smart_groups: [{name: Sales, managers: {include: [p1@acme.example]}}]")
    assert clinic.run("apply", "--auto-approve")[0] == 0
    assert lists(clinic)["Sales managers"] == {"p0", "p1"}


def test_nothing_is_read_where_it_is_known_what_adding_does(open_clinic: Open) -> None:
    """Each list is read before and after its call; with the key set, never."""
    requests: list[int] = []
    for options in ("", "dialect: {manual-groups.add.mode: add}\n"):
        seen: list[str] = []
        clinic = open_clinic(more=MORE, on_log=lambda one, seen=seen: seen.append(one.path))
        clinic.declare(DECLARED["members"], options)
        clinic.run("apply", "--auto-approve", code=0)
        requests.append(len([path for path in seen if path.endswith("/members")]))
    assert requests[0] > requests[1]


@pytest.mark.parametrize(("dialect", "expected"), [({}, "add"), (REPLACES, "replace")])
def test_the_probe_sees_with_two_people_what_adding_does(
    open_clinic: Open, dialect: dict[str, str], expected: str
) -> None:
    """A second person is added to the scratch group; the workspace is as before, and the value is written."""
    clinic = open_clinic(dialect, MORE)
    clinic.declare(DECLARED["members"])
    before = held(clinic.service)
    out = clinic.run("doctor", "--probe", "--yes", "--user", BO, "--user", "p0@acme.example", code=0).out
    assert f"manual-groups.add.mode: {expected} (" in out
    assert held(clinic.service) == before
    assert ("manual-groups.add.mode: replace" in clinic.project) is (expected == "replace")


def test_the_probe_says_that_it_needs_a_second_person(open_clinic: Open) -> None:
    """With one person, what adding does to the others in a list cannot be seen."""
    clinic = open_clinic(more=MORE)
    clinic.declare(DECLARED["members"])
    _, out = clinic.run("doctor", "--probe", "--yes", "--user", BO)
    assert "  it needs a second person; pass --user EMAIL twice:\n    manual-groups.add.mode\n" in out


@pytest.mark.parametrize("second", [[BO], ["p0@acme.example", "p1@acme.example"]])
def test_two_different_people_at_most(open_clinic: Open, second: list[str]) -> None:
    """The same person twice, or three people, are a wrong command line: nothing is sent."""
    clinic = open_clinic()
    users = [part for email in (BO, *second) for part in ("--user", email)]
    assert clinic.run("doctor", "--probe", "--yes", *users)[0] == 64


# The first call that sets answers is tried alone: a wrong guess costs nobody an answer.


MOVES = """
users:
  - {email: bo.ek@acme.example, answers: {Department: Engineering}}
  - {email: anna.berg@acme.example, answers: {Department: Engineering}}
"""
CLEARS = """
users:
  - {email: bo.ek@acme.example, answers: {Department: null}}
  - {email: anna.berg@acme.example, answers: {Department: null}}
"""


def declaring(
    open_clinic: Open, dialect: dict[str, str], manifest: str = MOVES, made: type[Sandbox] = Sandbox
) -> ServedProject:
    clinic = opened(open_clinic, dialect, made, PROJECT)
    clinic.declare(manifest)
    return clinic


def test_a_service_that_clears_what_is_omitted_costs_nobody_an_answer(open_clinic: Open) -> None:
    """The first call clears the person's other answers: they are given back, no other is sent, the key is named."""
    clinic = declaring(open_clinic, {f"{ANSWERS}.omitted": "clear"})
    before = answers(clinic.service)
    told = clinic.told("apply", "--auto-approve", code=6)
    assert "that the call does not name, given back again" in told
    assert f"{ANSWERS}.omitted: clear" in told
    after = answers(clinic.service)
    changed = [email for email in before if after[email] != before[email]]
    assert len(changed) == 1
    assert after[changed[0]] == {**before[changed[0]], "Department": ["Engineering"]}
    clinic.configure(PROJECT + f"dialect: {{{ANSWERS}.omitted: clear}}\n")
    clinic.settles()
    assert all(one.get("Desk") for one in answers(clinic.service).values() if one)


class Retired(Sandbox):
    """Shows answers with a choice that the field has no more, until answers are sent, and refuses empty ones."""

    is_sent = False

    def answer(self, method: str, path: str, query: str, headers: Mapping[str, str], body: bytes) -> SandboxResponse:
        if path.endswith("/update-custom-field-choice"):
            self.is_sent = True
            if not all(json.loads(body).values()):
                return json_response(400, {"message": "an answer is empty"})
        said = super().answer(method, path, query, headers, body)
        if method != "GET" or not path.startswith("/users/u") or self.is_sent:
            return said
        person = json.loads(said.body)
        person["customFields"]["Skills"] = {"choices": [{"choiceId": "gone", "name": "Perl"}]}
        return json_response(200, person)


def test_an_answer_that_cannot_be_sent_again_keeps_no_other_from_being_given_back(open_clinic: Open) -> None:
    """Its choice is not there any more: it is left out, and the person's other answers are given back."""
    clinic = declaring(open_clinic, {f"{ANSWERS}.omitted": "clear"}, made=Retired)
    before = answers(clinic.service)
    told = clinic.told("apply", "--auto-approve", code=6)
    after = answers(clinic.service)
    [changed] = [email for email in before if after[email] != before[email]]
    assert after[changed]["Desk"] == before[changed]["Desk"], told
    assert "of them given back" in told


class Careless(Sandbox):
    """Passes over choices that are not written as it wants them, and clears the answer."""

    def answer(self, method: str, path: str, query: str, headers: Mapping[str, str], body: bytes) -> SandboxResponse:
        if path.endswith("/update-custom-field-choice"):
            sent = {id: value for id, value in json.loads(body).items() if "ch-" not in str(value)}
            body = json.dumps(sent).encode()
        return super().answer(method, path, query, headers, body)


class LooksElsewhere(Sandbox):
    """Takes answers below another name than is assumed, and any other body for one without answers."""

    def answer(self, method: str, path: str, query: str, headers: Mapping[str, str], body: bytes) -> SandboxResponse:
        if path.endswith("/update-custom-field-choice") and b'"answers"' not in body:
            body = b'{"answers":{}}'
        return super().answer(method, path, query, headers, body)


def test_answers_that_are_sent_below_a_wrong_name_are_given_back_below_the_right_one(open_clinic: Open) -> None:
    """Where the call clears all answers of a person, because it has none where the service looks."""
    dialect = {f"{ANSWERS}.wrapper": "answers", f"{ANSWERS}.omitted": "clear"}
    clinic = declaring(open_clinic, dialect, f"users: [{{email: {BO}, answers: {{Badge: '8'}}}}]", LooksElsewhere)
    before = answers(clinic.service)[BO]
    told = clinic.told("apply", "--auto-approve", code=6)
    assert {**answers(clinic.service)[BO], "Badge": "7"} == before, told
    assert all(f"    {key}: {value}\n" in told for key, value in dialect.items()), told


class ParticularAboutAll(Sandbox):
    """Takes answers below the last name that is tried, clears those in lists, and any that it does not find there."""

    def answer(self, method: str, path: str, query: str, headers: Mapping[str, str], body: bytes) -> SandboxResponse:
        if path.endswith("/update-custom-field-choice"):
            sent = json.loads(body).get("fields")
            sent = sent if isinstance(sent, dict) else {}
            body = json.dumps({"fields": {id: one for id, one in sent.items() if not isinstance(one, list)}}).encode()
        return super().answer(method, path, query, headers, body)


def test_answers_are_given_back_where_their_name_and_a_form_are_wrong(open_clinic: Open) -> None:
    """Those that come back below one name show that it is right: the others are tried below it, in few calls."""
    dialect = {f"{ANSWERS}.wrapper": "fields", f"{ANSWERS}.omitted": "clear"}
    dialect |= {f"{ANSWERS}.value-multi-select": "object-list"}
    manifest = f"users: [{{email: {BO}, answers: {{Badge: '8'}}}}]"
    clinic = declaring(open_clinic, dialect, manifest, ParticularAboutAll)
    before = answers(clinic.service)[BO]
    code, out = clinic.run("apply", "--auto-approve")
    told = out + clinic.err
    assert code == 6, told
    assert {**answers(clinic.service)[BO], "Badge": "7"} == before, told
    assert all(f"    {key}: {value}\n" in told for key, value in dialect.items()), told


class TakesAnswersLate(LooksElsewhere):
    """Accepts answers at once, and has them after some reads."""

    waiting: tuple[tuple[int, str, Mapping[str, str], bytes], ...] = ()
    reads = 0

    def answer(self, method: str, path: str, query: str, headers: Mapping[str, str], body: bytes) -> SandboxResponse:
        if path.endswith("/update-custom-field-choice"):
            self.waiting += ((self.reads + 6, path, headers, body),)
            return SandboxResponse(200, {}, b"")
        said = super().answer(method, path, query, headers, body)
        self.reads += 1
        for _, of, sent, late in [one for one in self.waiting if one[0] < self.reads]:
            super().answer("POST", of, "", sent, late)
        self.waiting = tuple(one for one in self.waiting if one[0] >= self.reads)
        return said


def test_an_answer_that_shows_late_is_not_credited_to_the_name_that_is_tried_next(open_clinic: Open) -> None:
    """Also before any call of the run has shown how late the service is."""
    dialect = {f"{ANSWERS}.wrapper": "answers", f"{ANSWERS}.omitted": "clear"}
    manifest = "users: [{email: p0@acme.example, answers: {Badge: '8', Desk: '9'}}]"
    clinic = declaring(open_clinic, dialect, manifest, TakesAnswersLate)
    (clinic.folder / "lmsconf.yaml").write_text(f"{PROJECT}dialect: {{{ANSWERS}.omitted: clear}}\n", encoding="utf-8")
    code, out = clinic.run("apply", "--auto-approve")
    assert code == 6, out + clinic.err
    assert f"    {ANSWERS}.wrapper: answers\n" in out, out


def test_an_answer_that_is_sent_along_in_the_wrong_form_is_given_back(open_clinic: Open) -> None:
    """A call names all answers of a person. One that the plan does not change must not be lost by its form."""
    dialect = {f"{ANSWERS}.{key}": "name" + more for key, more in (("value", ""), ("value-multi-select", "-list"))}
    dialect |= {f"{ANSWERS}.omitted": "clear"}
    clinic = declaring(open_clinic, dialect, "users: [{email: bo.ek@acme.example, answers: {Badge: '8'}}]", Careless)
    known = f"dialect: {{{ANSWERS}.omitted: clear, {ANSWERS}.value: name}}\n"
    clinic.configure(PROJECT + known)
    before = answers(clinic.service)[BO]
    out = clinic.run("apply", "--auto-approve", code=6).out
    assert answers(clinic.service)[BO] == {**before, "Badge": "8"}, out + clinic.err
    assert "cleared 1 answer that the plan does not change, given back again" in out
    assert f"{ANSWERS}.value-multi-select: name-list" in out


def test_a_field_in_use_is_no_matter_of_names(open_clinic: Open) -> None:
    """A 403 says that it is in use, whatever the call says of it: the call is sent once, and no key is named."""
    field = {"name": "Department", "type": "CHOICE", "choices": ["Sales", "Engineering"], "description": "Where"}
    clinic = open_clinic({}, {"custom_fields": [field]})
    clinic.declare("custom_fields: [{name: Department, description: null}]\n")
    told = clinic.told("apply", "--auto-approve", "--allow", "refusals=1", code=4)
    assert [one.status for one in clinic.service.log if one.writes] == [403]
    assert "It may be in use" in told
    assert "Check the dialect keys" not in told


@pytest.mark.sampled
@pytest.mark.parametrize(
    ("dialect", "lines"),
    [
        ({f"{ANSWERS}.wrapper": "answers"}, [f"{ANSWERS}.wrapper: answers"]),
        ({f"{ANSWERS}.value": "object"}, [f"{ANSWERS}.value: object"]),
        (
            {f"{ANSWERS}.wrapper": "values", f"{ANSWERS}.value": "list"},
            [f"{ANSWERS}.value: list", f"{ANSWERS}.wrapper: values"],
        ),
    ],
)
def test_a_refused_form_is_searched_for_on_one_person(
    open_clinic: Open, dialect: dict[str, str], lines: list[str]
) -> None:
    """One person has the planned answers and no other is touched; the lines to paste let the next run converge."""
    clinic = declaring(open_clinic, dialect)
    before = answers(clinic.service)
    out = clinic.run("apply", "--auto-approve", code=5).out
    paste = "\n".join(
        ["  Set in the project file, and apply again:", "    dialect:", *(f"      {one}" for one in lines)]
    )
    assert paste in out + clinic.err
    after = answers(clinic.service)
    changed = [email for email in before if after[email] != before[email]]
    assert len(changed) == 1
    assert after[changed[0]] == {**before[changed[0]], "Department": ["Engineering"]}
    assert "1 failed, 0 blocked, 1 not attempted" in out
    clinic.configure(PROJECT + "dialect: {" + ", ".join(lines) + "}\n")
    clinic.settles()


def test_a_right_guess_is_compared_once_and_a_known_one_never(open_clinic: Open) -> None:
    """The person is read before and after the first call; with all keys in the project file no request is added."""
    requests: list[int] = []
    for options in ("", f"dialect: {{{', '.join(f'{key}: {value}' for key, value in _assumed().items())}}}\n"):
        clinic = declaring(open_clinic, {})
        clinic.configure(PROJECT + options)
        assert clinic.run("apply", "--auto-approve")[0] == 0, clinic.err
        people = answers(clinic.service)
        assert [people[one]["Department"] for one in (BO, "anna.berg@acme.example")] == [["Engineering"]] * 2
        requests.append(sum(one.operation == "users.get" for one in clinic.service.log))
    assert requests[0] - requests[1] == 4  # before the first call; after it, to see what it set, what is as before


def test_what_a_run_has_seen_is_not_tried_again(open_clinic: Open) -> None:
    """The journal has the keys that were right: the next run on the workspace compares nothing."""
    clinic = declaring(open_clinic, {})
    asked: list[int] = []
    for manifest in (MOVES, MOVES.replace("Engineering", "Sales")):
        clinic.declare(manifest)
        clinic.service.log.clear()
        assert clinic.run("apply", "--auto-approve")[0] == 0, clinic.err
        asked.append(sum(one.operation == "users.get" for one in clinic.service.log))
    assert asked[0] - asked[1] == 4


def test_a_new_list_of_a_service_that_replaces_is_no_matter_of_names(open_clinic: Open) -> None:
    """Two calls fill it; the second one shows what adding does, and no other name or number of people is tried."""
    new, old = (
        f"{{name: New, members: [{', '.join(_NEWCOMERS)}]}}",
        "{name: Coaches, members: {include: [p3@acme.example]}}",
    )
    clinic = declaring(open_clinic, REPLACES, f"groups: [{new}, {old}]\n")
    told = clinic.told("apply", "--auto-approve", code=6)
    assert "    manual-groups.add.mode: replace\n" in told
    assert "manual-groups.add.batch: " not in told
    assert [one.operation for one in clinic.service.log].count("manual-groups.add-members") == 3
    clinic.configure(PROJECT + KEY)
    clinic.settles()


class ListsLate(Sandbox):
    """Lists a group a few times more after it is deleted; its members are not found then."""

    left = 0
    listed: SandboxResponse

    def answer(self, method: str, path: str, query: str, headers: Mapping[str, str], body: bytes) -> SandboxResponse:
        said = super().answer(method, path, query, headers, body)
        if said.status == 404:
            return json_response(410, {})
        if method == "DELETE":
            self.left = 4
        if (method, path) == ("GET", "/groups") and "skip=0" in query:
            self.left -= 1
            self.listed = self.listed if self.left >= 0 else said
            return self.listed
        return said


def test_a_group_that_is_still_listed_and_cannot_be_read_is_read_again(open_clinic: Open) -> None:
    """The verification waits until the listing shows the deletion."""
    clinic = declaring(open_clinic, REPLACES, "absent: {groups: [{name: Coaches}]}\n", ListsLate)
    clinic.configure(PROJECT + KEY)
    clinic.run("apply", "--auto-approve", code=0)


def _assumed() -> dict[str, str]:
    spec = ApiSpec.default()
    return {key: spec.behaviour(key) for key in spec[ANSWERS].dialect_keys}


class Deaf(Sandbox):
    """A service that accepts answers and does not take them over."""

    def answer(self, method: str, path: str, query: str, headers: Mapping[str, str], body: bytes) -> SandboxResponse:
        if path.endswith("/update-custom-field-choice"):
            return json_response(200, {})
        return super().answer(method, path, query, headers, body)


@pytest.mark.sampled
@pytest.mark.parametrize(
    ("manifest", "told", "key"),
    [
        (MOVES, "1 of 1 are not among the person's answers", "value"),
        (CLEARS, "the answer to Department is still there", "clear-choice"),
    ],
)
def test_an_answer_without_effect_ends_the_run(open_clinic: Open, manifest: str, told: str, key: str) -> None:
    """The service accepts the call, and the person is as before: no other is touched, and the keys are named."""
    clinic = declaring(open_clinic, {}, manifest, Deaf)
    out = clinic.run("apply", "--auto-approve", code=6).out
    assert told in out + clinic.err
    assert f"{ANSWERS}.{key}" in out + clinic.err
    assert "1 failed, 0 blocked, 1 not attempted" in out


def test_an_answer_that_no_form_clears_is_foretold_by_the_next_plan(open_clinic: Open) -> None:
    """Every form is tried on one person; the stop says that the service refuses, and with it the plan tells it."""
    clinic = declaring(open_clinic, {f"{ANSWERS}.clear-choice": "refused"}, MOVES)
    assert clinic.run("apply", "--auto-approve")[0] == 0, clinic.err
    clinic.declare(CLEARS)
    before = answers(clinic.service)
    told = clinic.told("apply", "--auto-approve", code=5)
    assert f"{ANSWERS}.clear-choice: refused" in told
    assert answers(clinic.service) == before
    clinic.configure(PROJECT + f"dialect: {{{ANSWERS}.clear-choice: refused}}\n")
    out = clinic.run("apply", "--auto-approve", code=4).out
    assert "cannot be cleared, because the service refuses it" in out + clinic.err


def test_an_answer_may_be_cleared_by_an_object_that_no_call_has_given(open_clinic: Open) -> None:
    """Where answers are only cleared, the form in which they are given is searched for, too, and told."""
    dialect = {f"{ANSWERS}.value": "object-id", f"{ANSWERS}.clear-choice": "object"}
    clinic = declaring(open_clinic, dialect, CLEARS)
    told = clinic.told("apply", "--auto-approve", code=5)
    assert all(f"    {key}: {value}\n" in told for key, value in dialect.items()), told
    lines = ", ".join(f"{key}: {value}" for key, value in dialect.items())
    clinic.configure(f"{PROJECT}dialect: {{{lines}}}\n")
    clinic.settles()


def test_an_answer_that_no_form_clears_is_told_apart_from_others(open_clinic: Open) -> None:
    """A call that leaves the answer out is accepted, and clears the other one: that is no form that clears both."""
    fields = [
        {"name": "Department", "type": "CHOICE", "choices": ["Sales"]},
        {"name": "Badge", "type": "TEXT"},
    ]
    people = [{"email": BO, "answers": {"Department": "Sales", "Badge": "7"}}, {"email": "anna.berg@acme.example"}]
    clinic = open_clinic({f"{ANSWERS}.clear-text": "refused"}, {"custom_fields": fields, "people": people})
    manifest = f"users: [{{email: {BO}, answers: {{Department: null, Badge: null}}}}]\n"
    clinic.declare(manifest)
    told = ""
    for code in (5, 4):
        clinic.configure(PROJECT + told)
        assert clinic.run("apply", "--auto-approve")[0] == code, clinic.err
        told = f"dialect: {{{ANSWERS}.clear-text: refused}}\n"
        assert "omit\n" not in clinic.err
    assert answers(clinic.service)[BO] == {"Badge": "7"}


def test_nothing_is_said_of_forms_that_were_not_tried(open_clinic: Open, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where a search ends before every form was tried, it is not known that the service never clears."""
    clinic = declaring(open_clinic, {f"{ANSWERS}.clear-choice": "refused"}, MOVES)
    assert clinic.run("apply", "--auto-approve")[0] == 0, clinic.err
    clinic.declare(CLEARS)
    monkeypatch.setattr(search_dialect, "_MOST", 2)
    code, out = clinic.run("apply", "--auto-approve")
    told = out + clinic.err
    assert code != 0, told
    assert f"{ANSWERS}.clear-choice: refused" not in told
    assert "Check the dialect keys" in told


def test_the_values_of_all_stops_are_one_block_to_paste(open_clinic: Open) -> None:
    """Each failed call says that it did what was planned in the end; the values of all are said once, together."""
    dialect = {f"{ANSWERS}.wrapper": "answers", "manual-groups.add-members.userIds": "users"}
    people = "groups: [{name: Coaches, members: {include: [p0@acme.example]}}]\n"
    clinic = declaring(open_clinic, dialect, MOVES + people)
    told = clinic.told("apply", "--auto-approve", code=5)
    assert told.count("sent once more with other values, it did what was planned") == 2
    block = (
        "the service differs in 2 points from what was assumed; nothing else was sent that rests on them "
        "[apply/wrong-assumption]\n  Set in the project file, and apply again:\n    dialect:\n"
        "      manual-groups.add-members.userIds: users\n      users.update-custom-field-choice.wrapper: answers\n"
    )
    assert block in told


def test_a_call_that_did_what_was_planned_in_the_end_is_not_in_flight(open_clinic: Open) -> None:
    """Its journal counts what the report counts, nothing waits for it, and its history and undo have it as done."""
    clinic = open_clinic({"manual-groups.rename.name": "newName"}, MORE)
    before = lists(clinic)
    clinic.declare("groups: [{name: Mentors, previously: [Coaches]}, {name: Leads, previously: [Guides]}]\n")
    code, out = clinic.run("apply", "--auto-approve")
    assert (code, "0 calls done, 1 failed, 0 blocked, 1 not attempted." in out) == (5, True), out + clinic.err
    [run] = read_runs(clinic.folder)
    assert {state.value: count for state, count in run.summary.items() if count} == {"failed": 1, "not_attempted": 1}
    assert find_pending_writes(clinic.folder, run.opening.url, now=run.opening.started, settle_seconds=60) is None
    told = clinic.run("runs", "latest")[1]
    assert ("in flight may have" in told, "Undo: " in told) == (False, True), told
    [renamed] = {name.partition(" ")[0] for name in lists(clinic).keys() - before.keys()}
    assert ": done" in clinic.run("history", f"group/{renamed}")[1]
    clinic.declare("groups: []\n", "dialect: {manual-groups.rename.name: newName}\n")
    assert clinic.run("plan", "--undo", "latest", "--out", str(clinic.folder / "undo.json"))[0] == 0, clinic.err
    assert clinic.run("apply", str(clinic.folder / "undo.json"))[0] == 0, clinic.err
    assert lists(clinic) == before


class Late(Sandbox):
    """Shows people as they were, for some readings after a change to them."""

    late, shown = 0, dict[str, SandboxResponse]()

    def answer(self, method: str, path: str, query: str, headers: Mapping[str, str], body: bytes) -> SandboxResponse:
        said = super().answer(method, path, query, headers, body)
        if method != "GET":
            self.late = 6 if path.endswith("date") and said.status < 300 else self.late
        elif path.startswith("/users") and self.late and path + query in self.shown:
            self.late -= 1
            return self.shown[path + query]
        else:
            self.shown = {**self.shown, path + query: said}
        return said


def test_a_value_that_shows_late_is_not_taken_for_another(open_clinic: Open) -> None:
    """What was accepted after a refusal is waited for, before other values are tried."""
    key = "users.set-custom-archived-date.date"
    manifest = "users: [{email: bo.ek@acme.example, custom_archive_date: '2030-01-01T00:00:00Z'}]"
    clinic = declaring(open_clinic, {key: "archiveDate"}, manifest, Late)
    code, out = clinic.run("apply", "--auto-approve")
    assert f"{key}: archiveDate" in out, out + clinic.err
    assert code == 5


class Mixed(Sandbox):
    """Adds to members, and replaces managers, of groups and of smart groups."""

    def answer(self, method: str, path: str, query: str, headers: Mapping[str, str], body: bytes) -> SandboxResponse:
        if method == "POST" and path.endswith("/managers"):
            listed = json.loads(super().answer("GET", path, "", headers, b"").body)["userIds"]
            for id in listed:
                super().answer("DELETE", f"{path}/{id}", "", headers, b"")
        return super().answer(method, path, query, headers, body)


@pytest.mark.parametrize("runs", [1, 2])
@pytest.mark.parametrize("section", ["groups", "smart_groups"])
def test_a_list_that_is_replaced_beside_one_that_is_added_to(open_clinic: Open, section: str, runs: int) -> None:
    """That members are kept says nothing about managers, nor what an earlier run has seen of members."""
    smart = {"name": "Sales", "conditions": [{"field": "Department", "choices": ["Sales"]}], "managers": [BO]}
    clinic = open_clinic(
        {}, {**MORE, "groups": [*MORE["groups"], {"name": "Empty"}], "smart_groups": [smart]}, made=Mixed
    )
    name = "Guides" if section == "groups" else "Sales"
    clinic.declare(
        f"""
groups: [{{name: {"New" if runs == 1 else "Empty"}, members: [p2@acme.example, p3@acme.example]}}]
---
{section}: [{{name: {name}, managers: {{include: [p4@acme.example]}}}}]
""",
    )

    def managers() -> dict[str, set[str]]:
        shown = {path: one for path, one in held(clinic.service).items() if isinstance(one, dict)}
        keys = {path: "managers" if "managers" in one else "userIds" for path, one in shown.items()}
        managed = (path for path in shown if path.endswith("/managers") or path.startswith("/smart-groups/"))
        return {path: set(shown[path][keys[path]]) for path in managed}

    before = managers()
    if runs == 2:
        assert clinic.run("apply", "--auto-approve", "--only", "group/Empty")[0] == 0, clinic.err
    clinic.run("apply", "--auto-approve")
    after = managers()
    assert all(people <= after[path] for path, people in before.items()), clinic.err


class MixedSmart(Mixed):
    """Replaces the managers of smart groups alone."""

    def answer(self, method: str, path: str, query: str, headers: Mapping[str, str], body: bytes) -> SandboxResponse:
        service = super() if path.startswith("/smart-groups/") else super(Mixed, self)
        return service.answer(method, path, query, headers, body)


@pytest.mark.parametrize("made", [Mixed, MixedSmart])
def test_the_probe_sees_that_one_list_is_replaced(open_clinic: Open, made: type[Sandbox]) -> None:
    """It writes the value with which calls name everybody, which is right for the other lists too."""
    clinic = open_clinic({}, MORE, made=made)
    clinic.declare(DECLARED["members"])
    before = held(clinic.service)
    code, out = clinic.run("doctor", "--probe", "--yes", "--user", BO, "--user", "p0@acme.example")
    assert (code, "manual-groups.add.mode: replace (" in out) == (0, True), out
    assert held(clinic.service) == before


class Opens(Sandbox):
    """Sets the start of an assignment that has none, and clears it where it is told so."""

    def answer(self, method: str, path: str, query: str, headers: Mapping[str, str], body: bytes) -> SandboxResponse:
        if (method, path) == ("POST", "/content/targets"):
            body = json.dumps({"startTime": "2026-01-01T00:00:00+00:00", **json.loads(body)}).encode()
        return super().answer(method, path, query, headers, body)


def test_a_start_that_the_service_sets_is_told_and_no_key_is_blamed(open_clinic: Open) -> None:
    """The assignment stays, the other calls are sent, and the next run clears what nobody declared."""
    clinic = open_clinic({}, MORE, made=Opens)
    everyone = "{content: Fire safety, assign_to: [everyone]}"
    clinic.declare(f"content_targets: [{everyone}, {{content: Fire safety, assign_to: [{{group: Coaches}}]}}]")
    code, out = clinic.run("apply", "--auto-approve")
    said = out + clinic.err
    assert (code, said.count("(the service sets it by itself: declare a value, or apply again to clear it)")) == (
        6,
        2,
    ), said
    assert "2 calls done, 0 failed" in said
    assert "dialect" not in out
    assert clinic.run("apply", "--auto-approve")[0] == 0, clinic.err


class Doubles(Sandbox):
    """Makes a second assignment beside the one that a call was to change; DELETE goes for one of them, or for both."""

    twins: tuple[str, ...] = ()
    deletes = "both"

    def answer(self, method: str, path: str, query: str, headers: Mapping[str, str], body: bytes) -> SandboxResponse:
        if path != "/content/targets":
            return super().answer(method, path, query, headers, body)
        self.headers = headers
        here = partial(super().answer, path=path, headers=headers)
        if method == "POST":
            sent = json.loads(body)
            live = self.rows(f"contentId={sent['contentId']}")
            twin = next((one for one in live if one["targetId"] == sent["targetId"]), None)
            self.twins += (json.dumps(twin),) if twin else ()
        if method == "DELETE" and self.deletes != "both" and self.twins:
            kept = json.loads(self.twins[0])
            self.twins = ()
            body = json.dumps({key: kept[key] for key in ("contentId", "targetId", "mandatory")}).encode()
            return here("POST", query=query, body=body) if self.deletes == "second" else json_response(204, None)
        if method == "DELETE":
            self.twins = ()
        answer = here(method, query=query, body=body)
        if method == "GET":
            rows = json.loads(answer.body)["targets"]
            more = [one for one in map(json.loads, self.twins) if one["contentId"] in query]
            return json_response(200, {"targets": more + rows})
        return answer

    def rows(self, query: str) -> list[dict[str, object]]:
        found = super().answer("GET", "/content/targets", query, self.headers, b"")
        return list(json.loads(found.body)["targets"])


def mandatory(service: Doubles) -> dict[object, object]:
    return {one["targetId"]: one["mandatory"] for one in service.rows("contentId=c-1")}


@pytest.mark.parametrize(("deletes", "is_mandatory"), [("both", True), ("first", True), ("second", False)])
def test_a_second_assignment_is_deleted_and_told_with_its_key(
    open_clinic: Open, deletes: str, is_mandatory: bool
) -> None:
    """One assignment is live after the run, and the next one ends well. What rests on the same key waits for it."""
    clinic = open_clinic({}, MORE, made=Doubles)
    service = clinic.service
    assert isinstance(service, Doubles)
    service.deletes = deletes
    clinic.declare(
        "content_targets: [{content: GDPR basics, mandatory: true, assign_to: [{group: Coaches}, everyone]}]"
    )
    out = clinic.run("apply", "--auto-approve", code=6).out
    key = "content-targets.on-existing: recreate\n"
    assert f"    {key}" in out, out
    assert not service.twins
    assert mandatory(service) == {"EVERYONE": False, "g-1": is_mandatory}
    clinic.declare(
        "content_targets: [{content: GDPR basics, mandatory: true, assign_to: [{group: Coaches}, everyone]}]"
    )
    with (clinic.folder / "lmsconf.yaml").open("a", encoding="utf-8") as project:
        project.write(f"dialect: {{{key.strip()}}}\n")
    assert clinic.run("apply", "--auto-approve")[0] == 0, clinic.err
    assert mandatory(service) == {"EVERYONE": True, "g-1": True}


class TakesIso(Sandbox):
    """Shows times as milliseconds, and takes them as ISO 8601."""

    def answer(self, method: str, path: str, query: str, headers: Mapping[str, str], body: bytes) -> SandboxResponse:
        if (method, path) == ("POST", "/content/targets"):
            new = json.loads(body)
            for key in new.keys() & {"start", "finishTime"}:
                if str(new[key]).isdigit():
                    return json_response(409, {"message": "bad time"})
                new[key] = str(int(datetime.fromisoformat(new[key]).timestamp() * 1000))
            body = json.dumps(new).encode()
        return super().answer(method, path, query, headers, body)


def test_a_time_in_the_wrong_form_is_not_taken_for_seconds_that_are_too_many(open_clinic: Open) -> None:
    """Although another call of the run was accepted with its time: its form followed from what was live then."""
    contents = [{"name": name} for name in ("GDPR basics", "Fire safety", "Security")]
    live = [
        {"content": "GDPR basics", "visible_from": "2026-01-01T00:00:00+00:00", "assign_to": [{"group": "Coaches"}]}
    ]
    dialect = {"content-targets.time-format": "epoch-ms", "content-targets.create.startTime": "start"}
    clinic = open_clinic(dialect, {**MORE, "content": contents, "content_targets": live}, made=TakesIso)
    clinic.declare(
        """
content_targets:
  - {content: Fire safety, assign_to: [{group: Coaches, visible_from: "2026-12-05T00:00:00Z"}]}
  - {content: GDPR basics, assign_to: [{group: Coaches, visible_from: "2026-01-01T00:00:00Z"}]}
  - {content: Security, assign_to: [{group: Guides, visible_until: "2027-12-31T11:00:05Z"}]}
""",
    )
    _, out = clinic.run("apply", "--auto-approve")
    assert "content-targets.create.startTime: start" in out, out + clinic.err
    assert "time-precision" not in out
    assert "content-targets.time-format: iso" in out


class Cuts(Sandbox):
    """Keeps times to the hour before."""

    def answer(self, method: str, path: str, query: str, headers: Mapping[str, str], body: bytes) -> SandboxResponse:
        return super().answer(method, path, query, headers, re.sub(rb"(T..):..:..", rb"\1:00:00", body))


def test_a_time_that_the_service_cuts_is_no_matter_of_names(open_clinic: Open) -> None:
    """Each call is sent once, and no other name or form is tried; the run says what the service keeps."""
    content = {"content": [{"name": "GDPR basics"}, {"name": "Fire safety"}]}
    clinic = open_clinic({"content-targets.time-format": "iso"}, {**MORE, **content}, made=Cuts)
    target = "assign_to: [{{group: Coaches, visible_from: '2026-12-05T10:30:00Z', visible_until: '{}'}}]"
    first = target.format("2027-06-30T09:59:59Z")
    clinic.declare(f"content_targets: [{{content: Fire safety, {first}}}, {{content: GDPR basics, {first}}}]\n")
    for _ in range(2):
        clinic.service.log.clear()
        told = clinic.told("apply", "--auto-approve", code=6)
        assert "visible_from is" in told
        assert "the service cuts it to the hour: declare the time that it keeps" in told
        assert "Right for this service" not in told
        assert len([one for one in clinic.service.log if one.method == "POST" and one.path == "/content/targets"]) == 2


class ListsActive(Sandbox):
    """Leaves archived people out of the lists of groups."""

    def answer(self, method: str, path: str, query: str, headers: Mapping[str, str], body: bytes) -> SandboxResponse:
        said = super().answer(method, path, query, headers, body)
        if method != "GET" or not path.endswith(("/members", "/managers")):
            return said
        with self.store.read_transaction() as repository:
            archived = {row[0] for row in repository.rows("SELECT id FROM people WHERE archived_at IS NOT NULL")}
        return json_response(200, {"userIds": [id for id in json.loads(said.body)["userIds"] if id not in archived]})


class ListsNoArchived(ListsActive):
    """Leaves them out of the listing of people, too."""

    def answer(self, method: str, path: str, query: str, headers: Mapping[str, str], body: bytes) -> SandboxResponse:
        said = super().answer(method, path, query, headers, body)
        if method != "GET" or path != "/users":
            return said
        people = [one for one in json.loads(said.body)["users"] if not one.get("archivedAt")]
        return json_response(200, {"users": people, "matchCount": len(people)})


@pytest.mark.parametrize("made", [ListsActive, ListsNoArchived])
def test_archived_people_stay_in_a_list_that_leaves_them_out(open_clinic: Open, made: type[Sandbox]) -> None:
    """Where calls replace lists, they name those, too; what waits for the call to show does not wait for them."""
    people = [{"email": f"p{number}@acme.example", "archived": number == 4} for number in range(5)]
    anna = [{"email": email} for email in ("anna.berg@acme.example", BO)]
    groups = [{"name": "Coaches", "members": [BO, "p1@acme.example", "p4@acme.example"], "managers": [BO]}]
    more = {"people": [*anna, *people], "groups": groups}
    clinic = open_clinic(REPLACES, more, made=made)
    clinic.declare("groups: [{name: Coaches, members: [bo.ek@acme.example, p2@acme.example]}]", KEY)
    assert clinic.run("apply", "--auto-approve", "--allow", "removals=1")[0] == 0, clinic.err
    assert lists(clinic)["Coaches members"] == {"bo.ek", "p2", "p4"}
    assert clinic.run("plan", "--detailed-exitcode")[0] == 0


class Secretive(Sandbox):
    """Shows no answers to the hidden field Locker."""

    def answer(self, method: str, path: str, query: str, headers: Mapping[str, str], body: bytes) -> SandboxResponse:
        said = super().answer(method, path, query, headers, body)
        if method != "GET" or not path.startswith("/users"):
            return said
        return replace(said, body=re.sub(rb',?"Locker":{"text":"[^"]*"}', b"", said.body))


def test_an_answer_that_a_hidden_field_does_not_show_is_no_matter_of_names(open_clinic: Open) -> None:
    """It is sent once, as assumed, and the calls for other people are sent, too; the report says what to do."""
    department = {"name": "Department", "type": "CHOICE", "choices": ["Sales", "Engineering"]}
    fields = [department, {"name": "Locker", "type": "TEXT", "hidden": True}]
    clinic = open_clinic({}, {"custom_fields": fields}, made=Secretive)
    clinic.declare(
        """
users:
  - {email: bo.ek@acme.example, answers: {Locker: L1}}
  - {email: anna.berg@acme.example, answers: {Locker: L2, Department: Engineering}}
""",
    )
    code, out = clinic.run("apply", "--auto-approve")
    told = out + clinic.err
    assert code == 6, told
    assert told.count("a service may not show answers to hidden fields: leave them out") == 2
    sent = [one for one in clinic.service.log if one.path.endswith("/update-custom-field-choice")]
    assert len(sent) == 2, told
    now = answers(clinic.service)
    assert now[BO] == {"Department": ["Sales"], "Locker": "L1"}
    assert now["anna.berg@acme.example"] == {"Department": ["Engineering"], "Locker": "L2"}


class ShowsLocalTimes(Sandbox):
    """Shows the times of assignments as those of an hour east of Greenwich, without an offset."""

    def answer(self, method: str, path: str, query: str, headers: Mapping[str, str], body: bytes) -> SandboxResponse:
        said = super().answer(method, path, query, headers, body)
        if method != "GET" or path != "/content/targets":
            return said
        rows = json.loads(said.body)["targets"]
        for key in ("startTime", "finishTime"):
            for one in (one for one in rows if one.get(key)):
                local = datetime.fromisoformat(one[key]).astimezone(timezone(timedelta(hours=1)))
                one[key] = local.replace(tzinfo=None).isoformat()
        return json_response(200, {"targets": rows})


@pytest.mark.parametrize("name", ["startTime", "visibleFrom"])
def test_a_time_that_is_shown_as_a_local_one_is_not_written_in_another_form(open_clinic: Open, name: str) -> None:
    """The right window stays, whatever the name of its start, and the report says how the service shows it."""
    clinic = open_clinic({"content-targets.create.startTime": name}, MORE, made=ShowsLocalTimes)
    at = "2026-12-05T10:30:00Z"
    clinic.declare(
        f"content_targets: [{{content: Fire safety, assign_to: [{{group: Coaches, visible_from: '{at}'}}]}}]"
    )
    told = clinic.told("apply", "--auto-approve", code=6 if name == "startTime" else 5)
    assert ("it is shown 60 minutes later, as a local time would be" in told) == (name == "startTime"), told
    assert "iso-local" not in told
    with clinic.service.store.read_transaction() as repository:
        starts = [row[0] for row in repository.rows("SELECT start FROM targets WHERE start IS NOT NULL")]
    assert starts == [int(datetime.fromisoformat(at).timestamp() * 1000)]


def test_the_zone_of_times_without_an_offset_is_that_of_the_project(open_clinic: Open) -> None:
    """The report has its key, with which the next plan is empty and the window is shown as it is."""
    clinic = open_clinic({}, MORE, made=ShowsLocalTimes)
    target = "{group: Coaches, visible_from: '2026-12-05T10:30', visible_until: '2027-07-05T10:30'}"
    manifest = f"content_targets: [{{content: Fire safety, assign_to: [{target}]}}]"
    clinic.declare(manifest, "timezone: Africa/Lagos\n")
    code, out = clinic.run("apply", "--auto-approve")
    assert code == 6, out + clinic.err
    key = "content-targets.time-zone: Africa/Lagos"
    assert f"    {key}\n" in out, out
    clinic.declare(manifest, f"dialect: {{{key}}}\n")
    assert clinic.run("plan", "--detailed-exitcode")[0] == 0, clinic.err


def test_a_start_that_the_service_sets_is_no_limit_once_it_is_known(open_clinic: Open) -> None:
    """Where nothing clears it, the report has its key; a start that is to come is still a change."""
    existing = "content-targets.on-existing: recreate"
    dialect = {"content-targets.default-start": "now", "content-targets.on-existing": "recreate"}
    clinic = open_clinic(dialect, MORE)
    manifest = "content_targets: [{content: Fire safety, mandatory: true, assign_to: [{group: Coaches}]}]"
    clinic.declare(manifest, f"dialect: {{{existing}}}\n")
    code, out = clinic.run("apply", "--auto-approve")
    assert code == 6, out + clinic.err
    assert "    content-targets.default-start: now\n" in out, out
    project = clinic.project.replace(existing, f"{existing}, content-targets.default-start: now")
    (clinic.folder / "lmsconf.yaml").write_text(project, encoding="utf-8")
    assert clinic.run("plan", "--detailed-exitcode")[0] == 0, clinic.err
    clinic.declare(manifest.replace("mandatory: true", "mandatory: false"))
    assert clinic.run("apply", "--auto-approve")[0] == 0, clinic.err
    with clinic.service.store.write_transaction() as repository:
        repository.execute("UPDATE targets SET start = 4102444800000 WHERE content = 'c-2'")
    assert clinic.run("plan", "--detailed-exitcode")[0] == 2, clinic.err


class Optional(Sandbox):
    """Takes no mandatory assignment of everyone."""

    def answer(self, method: str, path: str, query: str, headers: Mapping[str, str], body: bytes) -> SandboxResponse:
        if (method, path) == ("POST", "/content/targets") and b"EVERYONE" in body and b":true" in body:
            return json_response(400, {"error": "no"})
        return super().answer(method, path, query, headers, body)


def test_a_value_that_is_refused_is_no_reason_to_delete_an_assignment(open_clinic: Open) -> None:
    """What is live is accepted again, so the service does update assignments: no value is advised."""
    clinic = open_clinic({}, MORE, made=Optional)
    clinic.declare(
        """
content_targets:
  - {content: GDPR basics, mandatory: true, assign_to: [everyone]}
  - {content: Fire safety, mandatory: true, assign_to: [{group: Guides}]}
""",
    )
    told = clinic.told("apply", "--auto-approve", code=5)
    assert "1 call done, 1 failed" in told
    assert "on-existing: recreate" not in told


def test_an_assignment_that_cannot_be_created_again_is_put_back(open_clinic: Open) -> None:
    """Where the service updates none, it is deleted first: if the new one is refused, the old one is created again."""
    dialect = {"content-targets.on-existing": "recreate"}
    live = {
        "content_targets": [
            {"content": "GDPR basics", "visible_until": "2027-01-01T09:00:00Z", "assign_to": ["everyone"]}
        ]
    }
    clinic = open_clinic(dialect, {**MORE, **live}, made=Optional)
    clinic.declare("content_targets: [{content: GDPR basics, mandatory: true, assign_to: [everyone]}]\n")
    known = {**dialect, _MANDATORY: "mandatory", "content-targets.everyone": "EVERYONE"}
    lines = ", ".join(f"{key}: {value}" for key, value in known.items())
    clinic.configure(f"{PROJECT}guards: off\ndialect: {{{lines}}}\n")
    before = held(clinic.service)
    told = clinic.told("apply", "--auto-approve", code=5)
    assert "it is created again as it was, without the progress of people" in told
    assert held(clinic.service) == before


class PassesOver(Sandbox):
    """Passes over what it does not know in the body of an assignment, and resets what the body does not name."""

    sent = 0

    def answer(self, method: str, path: str, query: str, headers: Mapping[str, str], body: bytes) -> SandboxResponse:
        if (method, path) == ("POST", "/content/targets"):
            self.sent += 1
            known = {"contentId", "targetId", "userId", *map(self.spec.behaviour, _OF_ASSIGNMENTS)}
            body = json.dumps({key: value for key, value in json.loads(body).items() if key in known}).encode()
        return super().answer(method, path, query, headers, body)


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


def passing_over(open_clinic: Open, names: Mapping[str, str], declared: str) -> tuple[ServedProject, PassesOver]:
    """A clinic with the assignments of `_LIVE`, whose service has these names and passes over others."""
    clinic = open_clinic(names, {**MORE, **yaml.safe_load(_LIVE)}, made=PassesOver)
    clinic.declare(declared)
    assert isinstance(clinic.service, PassesOver)
    return clinic, clinic.service


def of_fire_safety(clinic: ServedProject) -> tuple[object, ...]:
    """Whether "Fire safety" is mandatory, and its window."""
    with clinic.service.store.read_transaction() as repository:
        query = (
            "SELECT mandatory, start, finish FROM targets JOIN contents c ON c.id = content WHERE name = 'Fire safety'"
        )
        [row] = repository.rows(query)
    return tuple(row)


@pytest.mark.parametrize("declared", [_AND_OPTIONAL, _LONGER])
def test_a_value_that_the_service_gives_by_itself_confirms_no_name(open_clinic: Open, declared: str) -> None:
    """`mandatory: false` shows under any name: the call that says `true` finds all names, and loses nothing."""
    clinic, service = passing_over(open_clinic, {_MANDATORY: "required", _START: "visibleFrom"}, declared)
    _, start, finish = of_fire_safety(clinic)
    out = clinic.run("apply", "--auto-approve", code=6).out
    found = f"    dialect:\n      {_MANDATORY}: required\n      {_START}: visibleFrom\n"
    assert found in out, out
    after = of_fire_safety(clinic)
    assert after[:2] == (1, start), out
    assert after[2] != finish
    assert service.sent <= 6
    clinic.declare(declared, f"dialect: {{{_MANDATORY}: required, {_START}: visibleFrom}}\n")
    clinic.settles()


def test_what_is_empty_is_compared_once_and_again_where_it_tells(open_clinic: Open) -> None:
    """The journal has which of the two a run has seen: a later run tries the name with a value that shows it."""
    optional = _LIVE.replace("basics, mandatory: true", "basics, mandatory: false")
    clinic, service = passing_over(open_clinic, {_MANDATORY: "required", _START: "visibleFrom"}, optional)
    assert clinic.run("apply", "--auto-approve")[0] == 0, clinic.err
    [run] = read_runs(clinic.folder)
    assert _MANDATORY not in run.seen
    clinic.declare(_AND_OPTIONAL)
    assert f"{_MANDATORY}: required" in clinic.run("apply", "--auto-approve", code=6).out
    assert of_fire_safety(clinic)[0] == 1
    assert service.sent <= 6


def test_a_name_that_nobody_guesses_is_told_beside_those_that_were_found(open_clinic: Open) -> None:
    """What was found keeps its part of the assignment, the rest is named, and few calls are sent."""
    clinic, service = passing_over(open_clinic, {_MANDATORY: "mustTake", _START: "visibleFrom"}, _AND_OPTIONAL)
    _, start, finish = of_fire_safety(clinic)
    told = clinic.told("apply", "--auto-approve", code=6)
    assert f"      {_START}: visibleFrom\n" in told
    assert f"Check the dialect keys {_MANDATORY}" in told
    after = of_fire_safety(clinic)
    assert after[:2] == (0, start), told
    assert after[2] not in (None, finish), told
    assert service.sent < 30
    clinic.declare(_AND_OPTIONAL, f"dialect: {{{_MANDATORY}: mustTake, {_START}: visibleFrom}}\n")
    assert clinic.run("apply", "--auto-approve")[0] == 0, clinic.err
    assert of_fire_safety(clinic)[:2] == (1, start)


class ShowsTargetsLate(PassesOver):
    """Shows the assignments of a content as they were, for some requests after each change."""

    late = 0
    before: SandboxResponse

    def answer(self, method: str, path: str, query: str, headers: Mapping[str, str], body: bytes) -> SandboxResponse:
        if path != "/content/targets":
            return super().answer(method, path, query, headers, body)
        if method == "GET":
            self.late = max(0, self.late - 1)
            said = super().answer(method, path, query, headers, body)
            return self.before if self.late and f"contentId={self.changed}" == query else said
        if not self.late:
            self.changed = json.loads(body)["contentId"]
            self.before = super().answer("GET", path, f"contentId={self.changed}", headers, b"")
        self.late = 4
        return super().answer(method, path, query, headers, body)


def test_a_name_whose_effect_shows_late_is_not_taken_for_the_next_one(open_clinic: Open) -> None:
    """What shows late once in a run is waited for after each name that is tried."""
    clinic = open_clinic({_FINISH: "finishDate"}, MORE, made=ShowsTargetsLate)
    clinic.declare(
        """
content_targets:
  - {content: GDPR basics, assign_to: [{group: Guides}]}
  - {content: Fire safety, visible_until: '2027-06-30T00:00:00Z', assign_to: [{group: Guides}]}
""",
    )
    told = clinic.told("apply", "--auto-approve", code=6)
    assert f"    {_FINISH}: finishDate\n" in told


class ShowsListsLate(Sandbox):
    """Refuses the first request for the people in a list of a new group."""

    asked: frozenset[str] = frozenset({"/groups/g-1/members", "/groups/g-2/members"})

    def answer(self, method: str, path: str, query: str, headers: Mapping[str, str], body: bytes) -> SandboxResponse:
        if method == "GET" and path.endswith("/members") and path not in self.asked:
            self.asked |= {path}
            return json_response(410, {"message": "gone"})
        return super().answer(method, path, query, headers, body)


def test_the_list_of_a_new_group_may_not_be_readable_at_once(open_clinic: Open) -> None:
    """It is read again before anybody is added, as what was just made may not show yet."""
    clinic = open_clinic({}, MORE, made=ShowsListsLate)
    clinic.declare(
        """
groups:
  - {name: Coaches, members: {include: [p1@acme.example]}}
  - {name: New, members: [p2@acme.example, p3@acme.example]}
""",
    )
    assert clinic.run("apply", "--auto-approve")[0] == 0, clinic.err
    assert lists(clinic)["New members"] == {"p2", "p3"}


class Grudging(Sandbox):
    """Makes an assignment of everyone that is mandatory, and says that it did not."""

    def answer(self, method: str, path: str, query: str, headers: Mapping[str, str], body: bytes) -> SandboxResponse:
        made = super().answer(method, path, query, headers, body)
        is_refused = (method, path) == ("POST", "/content/targets") and b"EVERYONE" in body and b":true" in body
        return json_response(400, {"error": "no"}) if is_refused else made


def test_an_assignment_that_is_there_is_not_put_back(open_clinic: Open) -> None:
    """A refusal of what was made all the same: it is not made once more, as it was before."""
    clinic = open_clinic(
        {"content-targets.on-existing": "recreate"},
        {
            **MORE,
            "content_targets": [
                {"content": "GDPR basics", "visible_until": "2027-01-01T09:00:00Z", "assign_to": ["everyone"]}
            ],
        },
        made=Grudging,
    )
    clinic.declare("content_targets: [{content: GDPR basics, mandatory: true, assign_to: [everyone]}]\n")
    known = f"content-targets.on-existing: recreate, {_MANDATORY}: mandatory, content-targets.everyone: EVERYONE"
    clinic.configure(f"{PROJECT}guards: off\ndialect: {{{known}}}\n")
    told = clinic.told("apply", "--auto-approve", code=5)
    assert ("it is created again" in told, "it was deleted" in told) == (False, False)


class Withdrawn(Sandbox):
    """Takes the permission of its token away with the first write."""

    is_gone = False

    def answer(self, method: str, path: str, query: str, headers: Mapping[str, str], body: bytes) -> SandboxResponse:
        self.is_gone |= method != "GET"
        return (
            json_response(403, {"error": "no"}) if self.is_gone else super().answer(method, path, query, headers, body)
        )


def test_a_token_that_may_do_nothing_any_more_is_no_field_in_use(open_clinic: Open) -> None:
    """One read after the refusal tells both apart."""
    field = {"name": "Department", "type": "CHOICE", "choices": ["Sales", "Engineering"], "description": "Where"}
    clinic = open_clinic({}, {"custom_fields": [field]}, made=Withdrawn)
    clinic.declare("custom_fields: [{name: Department, description: null}]\n")
    assert "It may be in use" not in clinic.told("apply", "--auto-approve", "--allow", "refusals=1", code=7)
