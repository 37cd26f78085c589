"""`lmsconf doctor --probe` where manifests declare people, and where a service takes answers in its own way."""

import json
import os
import re
import signal
from collections.abc import Callable, Mapping
from random import Random
from types import SimpleNamespace
from typing import Any, ClassVar

import pytest
from waiting import VirtualClock
from wire.second_dialect import ANSWERS, FORBIDDING, SHOWN_BY_MEMBERS, answer_dialect_values, possible, second_dialect

from lmsconf.api.spec import ApiSpec
from lmsconf.project.settings import load_settings
from lmsconf.sandbox.service import LoggedRequest, Sandbox, SandboxResponse, json_response

from .served_project import BO, GDPR, MANIFEST, PROJECT, ServedProject, held

Open = Callable[..., ServedProject]
SECOND = second_dialect()
ACCOUNT = {
    "users.create.email", "users.create.firstName", "users.create.lastName", "users.create.language",
    "users.create.sendWelcomeEmail",
}  # fmt: skip
PERSON = {
    "users.set-custom-archived-date.date", "users.update-metadata.mode", "users.update-custom-field-choice.wrapper",
    "users.update-custom-field-choice.value", "users.update-custom-field-choice.value-multi-select",
    "users.update-custom-field-choice.value-text", "users.update-custom-field-choice.omitted",
    "users.update-custom-field-choice.clear-choice", "users.update-custom-field-choice.clear-multi-select",
    "users.update-custom-field-choice.clear-text",
}  # fmt: skip
NOT_LEARNABLE = {"content-targets.everyone": "the content has no assignment to EVERYONE, and none is made for a try"}
"""What no probe finds out where it is otherwise than assumed, with the reason that it gives."""
PEOPLE = f"users: [{{email: {BO}, archived: false}}]\n"
CREATES = PROJECT + "people: {create: true}   # HR wants it\n"
BOTH = ("--user", BO, "--content", GDPR)
DEPARTMENT = {"name": "Department", "type": "CHOICE", "choices": ["Sales", "Engineering"]}
SKILLS = {"name": "Skills", "type": "MULTI_SELECT", "choices": ["SQL", "Go"]}
WHOLE = {
    "custom_fields": [DEPARTMENT, SKILLS, {"name": "B", "type": "TEXT"}],
    "people": [
        {"email": "anna.berg@acme.example", "admin": True},
        {"email": BO, "answers": {"Department": "Sales", "Skills": ["SQL", "Go"], "B": "7"},
         "metadata": {"cost": "100", "unit": "A"}},
        *({"email": f"p{number}@acme.example"} for number in range(4)),
    ],
}  # fmt: skip
"""Everything that a named person can lose."""


def declaring(clinic: ServedProject, project: str = PROJECT) -> ServedProject:
    """The clinic with manifests that declare a person too."""
    clinic.declare(MANIFEST + PEOPLE)
    clinic.configure(project)
    return clinic


def ask(clinic: ServedProject, path: str, body: object) -> None:
    """One call as somebody else would make it."""
    headers = {"authorization": "Bearer sandbox", "content-type": "application/json"}
    answer = clinic.service.answer("POST", path, "", headers, json.dumps(body).encode())
    assert answer.status in (200, 204), answer.body


def assumed(clinic: ServedProject) -> set[str]:
    """The keys that the manifests rely on."""
    _, out = clinic.run("doctor", "--format", "json")
    return {one["key"] for one in json.loads(out)["assumptions"]}


def reasons(clinic: ServedProject, *options: str) -> dict[str, str]:
    """Key → why a probe did not learn it."""
    out = clinic.run("doctor", "--probe", "--yes", "--format", "json", *options, code=0).out
    lessons = json.loads(out)["probe"]["lessons"]
    return {one["key"]: one["reason"] for one in lessons if one["verdict"] == "unknown"}


@pytest.mark.sampled
def test_every_key_is_found_where_nothing_is_as_assumed(open_clinic: Open) -> None:
    """All that manifests of every kind rely on is found and written beside the comments; nothing else is changed."""
    clinic = declaring(open_clinic(SECOND), CREATES)
    before, keys = held(clinic.service), assumed(clinic)
    lessons = clinic.probe(*BOTH)
    found = {key: SECOND[key] for key in keys - NOT_LEARNABLE.keys() - FORBIDDING}
    unknown = dict.fromkeys(NOT_LEARNABLE, ("unknown", None))
    defaults = {key: ApiSpec.default().behaviour(key) for key in FORBIDDING - SHOWN_BY_MEMBERS}
    as_assumed = {key: ("confirmed", value) for key, value in defaults.items()}
    assert lessons == {**{key: ("found", value) for key, value in found.items()}, **unknown, **as_assumed}
    assert held(clinic.service) == before
    assert load_settings(clinic.folder, None, dict(os.environ)).dialect == found | defaults
    assert clinic.project.startswith(CREATES)
    assert keys >= ACCOUNT | PERSON
    assert reasons(clinic, *BOTH) == NOT_LEARNABLE


@pytest.mark.sampled
def test_what_is_assumed_of_people_is_confirmed(open_clinic: Open) -> None:
    """Defaults are confirmed; the person who was named is only put into the scratch group."""
    clinic = declaring(open_clinic(), CREATES)
    before = held(clinic.service)
    assert {verdict for verdict, _ in clinic.probe(*BOTH).values()} == {"confirmed", "unknown"}
    assert (clinic.project.startswith(CREATES), held(clinic.service)) == (True, before)
    person = held(clinic.service)["/users"][1]["userId"]
    touched = [one for one in clinic.service.log if one.writes and f"/users/{person}/" in one.path]
    assert touched == []


@pytest.mark.sampled
@pytest.mark.parametrize("dialect", [{}, SECOND], ids=["assumed", "second"])
def test_the_person_who_is_named_serves_where_nobody_is_created(
    open_clinic: Open, dialect: dict[str, str | int]
) -> None:
    """Without leave to create people no account is made; the rest is learnt on the person, who is then as before."""
    clinic = declaring(open_clinic(dialect, more=WHOLE))
    before = held(clinic.service)
    lessons = clinic.probe(*BOTH)
    for key in PERSON:
        assert lessons[key] == ("found", SECOND[key]) if dialect else lessons[key][0] == "confirmed"
    assert {lessons[key][0] for key in ACCOUNT} == {"unknown"}
    assert held(clinic.service) == before
    assert "users.create" not in {one.operation for one in clinic.service.log}
    told = reasons(clinic, *BOTH)
    assert told["users.create.email"] == "the project file does not allow creating people, so no account is created"


@pytest.mark.sampled
@pytest.mark.parametrize(
    ("project", "options", "key", "reason"),
    [
        (PROJECT, (), "users.update-metadata.mode", "no person was named; pass --user EMAIL"),
        (PROJECT, ("--user", "anna.berg@acme.example"), "users.set-custom-archived-date.date",
         "the person is admin or manager, so an archive date is not allowed; name somebody else"),
        (PROJECT, ("--user", "p0@acme.example"), "users.update-metadata.mode",
         "the person has no metadata, and it might be impossible to remove it again"),
    ],
)  # fmt: skip
def test_what_is_not_learnt_of_people_is_said(
    open_clinic: Open, project: str, options: tuple[str, ...], key: str, reason: str
) -> None:
    """What a person does not allow to learn is named with the reason, and the person is as before."""
    clinic = declaring(open_clinic(), project)
    before = held(clinic.service)
    assert reasons(clinic, *options)[key] == reason
    assert held(clinic.service) == before


@pytest.mark.sampled
@pytest.mark.parametrize(
    ("used", "key", "reason"),
    [
        (10, "users.update-custom-field-choice.wrapper", "no field is free: 10 of 10 are used"),
        (9, "users.update-custom-field-choice.omitted", "only one field is free, and it takes two: 9 are used"),
    ],
)
def test_answers_take_free_fields(open_clinic: Open, used: int, key: str, reason: str) -> None:
    """How answers are given shows on one free field, what becomes of others on two."""
    fields = [DEPARTMENT, *({"name": f"Field {number}", "type": "TEXT"} for number in range(used - 1))]
    clinic = declaring(open_clinic(more={"custom_fields": fields}), CREATES)
    assert reasons(clinic)[key] == reason
    assert ("users.update-custom-field-choice.value" in reasons(clinic)) is (used == 10)


class _Interrupting:
    """Presses Ctrl-C when that many requests that change people were answered."""

    def __init__(self, after: int) -> None:
        self._left = after

    def __call__(self, entry: LoggedRequest) -> None:
        if entry.writes and str(entry.operation).startswith("users."):
            self._left -= 1
            if self._left == 0:
                os.kill(os.getpid(), signal.SIGINT)


@pytest.mark.sampled
@pytest.mark.parametrize("project", [PROJECT, CREATES], ids=["person", "accounts"])
@pytest.mark.parametrize("after", [1, 2, 4, 9, 11, 12, 13, 14, 15, 16, 17, 18])
def test_an_interruption_leaves_people_as_they_were(open_clinic: Open, project: str, after: int) -> None:
    """Whenever it is interrupted: no scratch account is left, and the person who was named is as before."""
    clinic = declaring(open_clinic(SECOND, more=WHOLE, on_log=_Interrupting(after)), project)
    before = held(clinic.service)
    clinic.run("doctor", "--probe", "--yes", *BOTH, code=130)
    assert held(clinic.service) == before


@pytest.mark.sampled
def test_who_can_manage_is_learnt_with_a_scratch_account(open_clinic: Open) -> None:
    """An account of the probe's own is refused without the right and taken with it; the person is not touched."""
    clinic = declaring(open_clinic({"manual-groups.who-can-manage": "with-right"}), CREATES)
    before = held(clinic.service)
    lessons = clinic.probe(*BOTH)
    assert lessons["manual-groups.who-can-manage"] == ("found", "with-right")
    assert lessons["manual-groups.add-managers.userIds"][0] == "confirmed"
    assert held(clinic.service) == before
    person = held(clinic.service)["/users"][1]["userId"]
    assert [one for one in clinic.service.log if one.writes and f"/users/{person}/" in one.path] == []


# `lmsconf doctor --probe` on services that take and show answers to custom fields each in its own way.


Shape = Callable[[str, str, Any], object]
"""Field name, type and answer as the sandbox shows it, None without one → as the service shows it; None: left out."""
PROBE_ANSWERS_CREATES = PROJECT + "people: {create: true}\n"
PROBE_ANSWERS_PEOPLE: Mapping[str, object] = {
    "custom_fields": [
        {"name": "Department", "type": "CHOICE", "choices": ["Sales", "Engineering"]},
        {"name": "Skills", "type": "MULTI_SELECT", "choices": ["SQL", "Go"]},
        {"name": "Badge", "type": "TEXT"},
        {"name": "Desk", "type": "TEXT"},
    ],
    "people": [
        {"email": "anna.berg@acme.example", "admin": True, "answers": {"Department": "Sales", "Desk": "1"}},
        {"email": BO, "answers": {"Department": "Sales", "Skills": ["SQL", "Go"], "Badge": "7", "Desk": "2"}},
        *({"email": f"p{number}@acme.example", "answers": {"Desk": "3"}} for number in range(4)),
    ],
}
DECLARED = """
users:
  - {email: bo.ek@acme.example, answers: {Department: Engineering, Skills: [Go], Badge: null}}
  - {email: anna.berg@acme.example, answers: {Department: null}}
  - {email: p0@acme.example, answers: {Department: Sales, Skills: [SQL, Go], Badge: "9"}}
  - {email: p1@acme.example, answers: {Department: Engineering, Skills: []}}
"""
AFTERWARDS = {
    BO: {"Department": ["Engineering"], "Skills": ["Go"], "Desk": "2"},
    "anna.berg@acme.example": {"Desk": "1"},
    "p0@acme.example": {"Department": ["Sales"], "Skills": ["SQL", "Go"], "Badge": "9", "Desk": "3"},
    "p1@acme.example": {"Department": ["Engineering"], "Desk": "3"},
}
MULTI = f"{ANSWERS}.value-multi-select"


def _entry(name: str, type: str, answer: Any) -> object:
    """A description of the field, with the answer in it if there is one."""
    described = {"customFieldId": f"id of {name}", "name": name, "type": type}
    return described if answer is None else {**described, "value": answer.get("text", answer.get("choices"))}


def _nested(name: str, type: str, answer: Any) -> object:
    """Type and value apart; null for no answer, and objects with id and name for choices."""
    if answer is None or type == "TEXT":
        return {"type": type, "value": answer}
    chosen = [{"id": one["choiceId"], "name": one["name"]} for one in answer["choices"]]
    return {"type": type, "value": chosen[0] if type == "CHOICE" else chosen}


def _plain(name: str, type: str, answer: Any) -> object:
    """Names and texts without any object; an empty text for no answer."""
    if answer is None or type == "TEXT":
        return (answer or {}).get("text", "")
    names = [one["name"] for one in answer["choices"]]
    return names[0] if type == "CHOICE" else names


def _ids(name: str, type: str, answer: Any) -> object:
    """Ids in an object, and a list also for a text; an object without content for no answer."""
    if answer is None:
        return {"selected": [], "text": None}
    return {"selected": [one["choiceId"] for one in answer.get("choices", [])], "text": answer.get("text")}


SHAPES: tuple[Shape, ...] = (lambda name, type, answer: answer, _entry, _nested, _plain, _ids)


class OwnWay(Sandbox):
    """A service that shows answers in a shape of its own, and may refuse to delete an answered field."""

    shape: ClassVar[Shape] = staticmethod(SHAPES[0])
    keeps_answered: ClassVar[bool] = False

    def answer(self, method: str, path: str, query: str, headers: Mapping[str, str], body: bytes) -> SandboxResponse:
        if method == "DELETE" and path.startswith("/custom-fields/") and self.keeps_answered:
            named = {one["name"] for one in self._fields(headers) if one["customFieldId"] == path.rpartition("/")[2]}
            if any(named & set(one["customFields"]) for one in self._people(headers)):
                return json_response(403, {"error": "in_use", "message": "the field is answered"})
        said = super().answer(method, path, query, headers, body)
        if said.status != 200 or not path.startswith("/users") or path == "/users/extended-info":
            return said
        shown = json.loads(said.body)
        fields = {one["name"]: one["type"] for one in self._fields(headers)}
        for one in shown.get("users", [shown]):
            if "customFields" in one:
                answers = {name: self.shape(name, type, one["customFields"].get(name)) for name, type in fields.items()}
                one["customFields"] = {name: answer for name, answer in answers.items() if answer is not None}
        return json_response(200, shown)

    def _fields(self, headers: Mapping[str, str]) -> list[dict[str, Any]]:
        rows: list[dict[str, Any]] = json.loads(super().answer("GET", "/custom-fields", "", headers, b"").body)[
            "customFields"
        ]
        return rows

    def _people(self, headers: Mapping[str, str]) -> list[dict[str, Any]]:
        rows: list[dict[str, Any]] = json.loads(super().answer("GET", "/users", "", headers, b"").body)["users"]
        return rows


def drawn(seed: int) -> tuple[dict[str, str], type[OwnWay]]:
    """A service by number: its dialect, and how it shows answers."""
    random = Random(seed)  # noqa: S311  the same services in every run
    dialect = possible({key: random.choice(values) for key, values in answer_dialect_values().items()})
    own = type("Drawn", (OwnWay,), {"shape": staticmethod(SHAPES[seed % len(SHAPES)]), "keeps_answered": seed % 2 == 0})
    return dialect, own


def answers(service: Sandbox) -> dict[str, dict[str, object]]:
    """E-mail → field → names of choices, or the text, as the workspace holds them."""
    said = Sandbox.answer(service, "GET", "/users", "", {"authorization": "Bearer sandbox"}, b"")
    return {
        one["email"]: {
            name: answer["text"] if "text" in answer else [choice["name"] for choice in answer["choices"]]
            for name, answer in one["customFields"].items()
        }
        for one in json.loads(said.body)["users"]
    }


def opened(open_clinic: Open, dialect: Mapping[str, str], made: type[Sandbox], project: str) -> ServedProject:
    clinic = open_clinic(dialect, more=PROBE_ANSWERS_PEOPLE, made=made)
    clinic.declare(MANIFEST + DECLARED)
    clinic.configure(project)
    return clinic


def converges(clinic: ServedProject) -> None:
    """An apply of what is declared of people leaves an empty plan, and nobody's other answers are touched."""
    clinic.run("apply", "--auto-approve", "--only", "user/*", code=0)
    assert clinic.run("plan", "--detailed-exitcode", "--only", "user/*")[0] == 0
    now = answers(clinic.service)
    assert {email: now[email] for email in AFTERWARDS} == AFTERWARDS


def unlearnt(lessons: Mapping[str, tuple[str, object]]) -> set[str]:
    return {key for key, (verdict, _) in lessons.items() if key.startswith(ANSWERS) and verdict == "unknown"}


@pytest.mark.sampled
@pytest.mark.parametrize("seed", range(12))
def test_a_service_with_ways_of_its_own_is_learnt_on_an_account(open_clinic: Open, seed: int) -> None:
    """However answers are sent, cleared and shown: the probe leaves nothing, and the apply after it converges."""
    dialect, own = drawn(seed)
    clinic = opened(open_clinic, dialect, own, PROBE_ANSWERS_CREATES)
    before = held(clinic.service)
    assert unlearnt(clinic.probe()) == set()
    assert held(clinic.service) == before
    converges(clinic)


@pytest.mark.sampled
@pytest.mark.parametrize("seed", range(12, 24))
def test_a_service_with_ways_of_its_own_is_learnt_on_somebody_with_answers(open_clinic: Open, seed: int) -> None:
    """The answers that they have go along in each call, and outlast a service that clears omitted ones."""
    dialect, own = drawn(seed)
    dialect = {key: "null" if value == "omit" else value for key, value in dialect.items()}
    clinic = opened(open_clinic, dialect, own, PROJECT)
    before = held(clinic.service)
    assert unlearnt(clinic.probe("--user", BO)) == set()
    assert held(clinic.service) == before
    converges(clinic)


@pytest.mark.sampled
def test_nobody_is_given_an_answer_that_might_stay(open_clinic: Open) -> None:
    """Where no value clears an answer and an answered field cannot be deleted, a named person is given none."""
    made = type("Kept", (OwnWay,), {"keeps_answered": True})
    dialect = {f"{ANSWERS}.omitted": "clear"} | {
        f"{ANSWERS}.clear-{type}": "omit" for type in ("choice", "multi-select", "text")
    }
    clinic = opened(open_clinic, dialect, made, PROJECT)
    before = held(clinic.service)
    code, out = clinic.run("doctor", "--probe", "--yes", "--format", "json", "--user", BO)
    reasons = {one["key"]: one["reason"] for one in json.loads(out)["probe"]["lessons"]}
    assert (code, held(clinic.service)) == (0, before)
    assert "no call that clears an answer is accepted, so none is given" in reasons[f"{ANSWERS}.wrapper"]
    accepted = [one for one in clinic.service.log if one.operation == ANSWERS and one.status < 300]
    assert len(accepted) == 1  # the person's own answers, sent again as they were


class Overlooking(OwnWay):
    """A service that takes a body of another form for one without answers, which clears them all."""

    def answer(self, method: str, path: str, query: str, headers: Mapping[str, str], body: bytes) -> SandboxResponse:
        said = super().answer(method, path, query, headers, body)
        if path.endswith("/update-custom-field-choice") and said.status == 400:
            return super().answer(method, path, query, headers, b'{"fields": {}}')
        return said


@pytest.mark.sampled
def test_what_a_wrong_guess_cleared_is_given_back(open_clinic: Open) -> None:
    """Also where a body of another form clears everything: the right one, once found, brings all answers back."""
    dialect = {f"{ANSWERS}.wrapper": "fields", f"{ANSWERS}.omitted": "clear", f"{ANSWERS}.value": "name-list"}
    clinic = opened(open_clinic, dialect, Overlooking, PROJECT)
    before = held(clinic.service)
    assert unlearnt(clinic.probe("--user", BO)) == set()
    assert held(clinic.service) == before
    converges(clinic)


@pytest.mark.sampled
@pytest.mark.parametrize(
    ("project", "options", "most"), [(PROBE_ANSWERS_CREATES, (), 100), (PROJECT, ("--user", BO), 250)]
)
def test_a_refused_combination_costs_one_request(
    open_clinic: Open, project: str, options: tuple[str, ...], most: int
) -> None:
    """A service of which all is the last that is tried is found out with few calls, also with answers to send along."""
    values = answer_dialect_values()
    last = {key: values[key][-1] for key in (f"{ANSWERS}.wrapper", f"{ANSWERS}.value", MULTI, f"{ANSWERS}.value-text")}
    clinic = opened(open_clinic, last, Sandbox, project)
    assert unlearnt(clinic.probe(*options)) == set()
    assert sum(one.operation == ANSWERS for one in clinic.service.log) < most


@pytest.mark.sampled
def test_an_answer_that_nothing_clears_is_learnt_and_foretold(open_clinic: Open) -> None:
    """The probe writes it, the next plan is refused at the place of the answer, and nothing of it is sent."""
    clinic = opened(open_clinic, {f"{ANSWERS}.clear-choice": "refused"}, Sandbox, PROBE_ANSWERS_CREATES)
    before = held(clinic.service)
    lessons = clinic.probe()
    assert lessons[f"{ANSWERS}.clear-choice"] == ("found", "refused")
    assert held(clinic.service) == before
    calls = len([one for one in clinic.service.log if one.writes])
    clinic.run("apply", "--auto-approve", "--only", "user/*", code=4)
    told = 'error: user/anna.berg@acme.example: the answer to "Department" cannot be cleared'
    assert re.search(rf"manifests/all\.yaml:\d+:\d+: {told}", clinic.err)
    assert len([one for one in clinic.service.log if one.writes]) == calls


class Slow(Sandbox):
    """Shows everything as it was, until two seconds after the last change."""

    clock = VirtualClock()
    changed, shown = -9.0, dict[str, SandboxResponse]()

    def answer(self, method: str, path: str, query: str, headers: Mapping[str, str], body: bytes) -> SandboxResponse:
        said = super().answer(method, path, query, headers, body)
        if method != "GET":
            self.changed = self.clock.now() if said.status < 300 else self.changed
        elif self.clock.now() < self.changed + 2 and path + query in self.shown:
            return self.shown[path + query]
        else:
            self.shown = {**self.shown, path + query: said}
        return said


def test_a_service_that_shows_changes_late_is_waited_for(open_clinic: Open, monkeypatch: pytest.MonkeyPatch) -> None:
    """A value that was accepted is not taken for the one that was tried when it showed."""
    monkeypatch.setattr(
        "lmsconf.doctor.probe_trials.time", SimpleNamespace(monotonic=Slow.clock.now, sleep=Slow.clock.sleep)
    )
    names = {"manual-groups.rename.name": "groupName", "manual-groups.add-members.userIds": "memberIds"}
    clinic = opened(open_clinic, names, Slow, PROJECT)
    out = clinic.run("doctor", "--probe", "--yes", "--user", BO, code=0).out
    told = (clinic.folder / "lmsconf.yaml").read_text(encoding="utf-8")
    assert all(f"{key}: {value}" in told for key, value in names.items()), out


class Hiding(Sandbox):
    """Answers 403 for what is not there."""

    def answer(self, method: str, path: str, query: str, headers: Mapping[str, str], body: bytes) -> SandboxResponse:
        said = super().answer(method, path, query, headers, body)
        return json_response(403, {"message": "forbidden"}) if said.status == 404 else said


def test_an_account_that_is_gone_may_be_forbidden(open_clinic: Open) -> None:
    """The credential was not refused: the probe goes on."""
    clinic = opened(open_clinic, {"users.create.lastName": "familyName"}, Hiding, CREATES)
    clinic.run("doctor", "--probe", "--yes", "--user", BO, code=0)
    assert "users.create.lastName: familyName" in (clinic.folder / "lmsconf.yaml").read_text(encoding="utf-8")


class Generous(Sandbox):
    """Gives managers an application along, which stays when the right is taken."""

    def answer(self, method: str, path: str, query: str, headers: Mapping[str, str], body: bytes) -> SandboxResponse:
        if path.endswith("/make-manager/true"):
            access = path.replace("make-manager/true", "access/ADD")
            sent = {**headers, "content-type": "application/json"}
            assert super().answer("POST", access, "", sent, b'{"applicationId": "analyse"}').status < 300
        return super().answer(method, path, query, headers, body)


def test_applications_that_come_with_a_right_are_taken_back(open_clinic: Open) -> None:
    """And the report names them."""
    clinic = open_clinic({}, made=Generous)
    before = held(clinic.service)
    out = clinic.run("doctor", "--probe", "--yes", "--user", BO, code=0).out
    assert f"an application of {BO} was changed, and is restored" in out
    assert held(clinic.service) == before
