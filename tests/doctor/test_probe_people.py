"""`lmsconf doctor --probe` where manifests declare people, and where a service takes answers in its own way."""

import re
from collections.abc import Callable, Mapping
from random import Random
from typing import Any, ClassVar

import pytest
from wire.second_dialect import answer_dialect_values, possible, second_dialect

from lmsconf.sandbox.service import Sandbox, SandboxResponse, json_response

from .clinic import (
    ANNA,
    ANSWERS,
    BO,
    CREATES,
    FOUR_FIELDS,
    MANIFEST,
    P0,
    P1,
    P2,
    P3,
    PROJECT,
    SEED,
    Altered,
    Body,
    Clinic,
    Open,
    unchanged,
)

SECOND = second_dialect()
ACCOUNT = {f"users.create.{name}" for name in ("email", "firstName", "lastName", "language", "sendWelcomeEmail")}
"""What shows only on accounts of the probe's own."""
NOT_LEARNABLE = {"content-targets.everyone": "the content has no assignment to EVERYONE, and none is made for a try"}
"""What no probe finds out where it is otherwise than assumed, with the reason that it gives."""
WHOLE: Mapping[str, Any] = {
    "custom_fields": [*FOUR_FIELDS["custom_fields"][:2], {"name": "B", "type": "TEXT"}],
    "people": [
        {"email": ANNA, "admin": True},
        {
            "email": BO,
            "answers": {"Department": "Sales", "Skills": ["SQL", "Go"], "B": "7"},
            "metadata": {"cost": "100", "unit": "A"},
        },
        *({"email": one} for one in (P0, P1, P2, P3)),
    ],
}
"""Everything that a named person can lose."""


def declaring(clinic: Clinic, project: str = PROJECT) -> Clinic:
    """The clinic with manifests that declare a person too."""
    clinic.declare(f"{MANIFEST}users: [{{email: {BO}, archived: false}}]\n")
    clinic.configure(project)
    return clinic


@pytest.mark.sampled(daily=False)
@pytest.mark.parametrize(
    ("options", "key", "reason"),
    [
        ((), "users.update-metadata.mode", "no person was named; pass --user EMAIL"),
        (
            ("--user", ANNA),
            "users.set-custom-archived-date.date",
            "the person is admin or manager, so an archive date is not allowed; name somebody else",
        ),
        (
            ("--user", P0),
            "users.update-metadata.mode",
            "the person has no metadata, and it might be impossible to remove it again",
        ),
    ],
)
def test_what_is_not_learnt_of_people_is_said(
    open_clinic: Open, options: tuple[str, ...], key: str, reason: str
) -> None:
    """What a person does not allow to learn is named with the reason, and the person is as before."""
    clinic = declaring(open_clinic())
    with unchanged(clinic):
        lesson = clinic.lessons(*options)[key]
        assert (lesson["verdict"], lesson["reason"]) == ("unknown", reason)


@pytest.mark.sampled(daily=False)
@pytest.mark.parametrize(
    ("used", "key", "reason"),
    [
        (10, "wrapper", "no field is free: 10 of 10 are used"),
        (9, "omitted", "only one field is free, and it takes two: 9 are used"),
    ],
)
def test_answers_take_free_fields(open_clinic: Open, used: int, key: str, reason: str) -> None:
    """How answers are given shows on one free field, what becomes of others on two."""
    more = ({"name": f"Field {number}", "type": "TEXT"} for number in range(used - 1))
    lessons = declaring(open_clinic(more={"custom_fields": [*SEED["custom_fields"], *more]}), CREATES).lessons()
    assert lessons[f"{ANSWERS}.{key}"]["reason"] == reason
    assert (lessons[f"{ANSWERS}.value"]["verdict"] == "unknown") is (used == 10)


# `lmsconf doctor --probe` on services that take and show answers to custom fields each in its own way.


Shape = Callable[[str, str, Any], object]
"""Field name, type and answer as the sandbox shows it, None without one → as the service shows it; None: left out."""
DECLARED = """
users:
  - {email: bo.ek@acme.example, answers: {Department: Engineering, Skills: [Go], Badge: null}}
  - {email: anna.berg@acme.example, answers: {Department: null}}
  - {email: p0@acme.example, answers: {Department: Sales, Skills: [SQL, Go], Badge: "9"}}
  - {email: p1@acme.example, answers: {Department: Engineering, Skills: []}}
"""
AFTERWARDS = {
    BO: {"Department": ["Engineering"], "Skills": ["Go"], "Desk": "2"},
    ANNA: {"Desk": "1"},
    P0: {"Department": ["Sales"], "Skills": ["SQL", "Go"], "Badge": "9", "Desk": "3"},
    P1: {"Department": ["Engineering"], "Desk": "3"},
}


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


class OwnWay(Altered):
    """A service that shows answers in a shape of its own, and may refuse to delete an answered field."""

    shape: ClassVar[Shape] = staticmethod(SHAPES[0])
    keeps_answered: ClassVar[bool] = False

    def taken(self, method: str, path: str, body: Body) -> Body | SandboxResponse:
        if method == "DELETE" and path.startswith("/custom-fields/") and self.keeps_answered:
            named = {one["name"] for one in self._fields() if one["customFieldId"] == path.rpartition("/")[2]}
            if any(named & set(one["customFields"]) for one in self.ask("GET", "/users")["users"]):
                return json_response(403, {"error": "in_use", "message": "the field is answered"})
        return body

    def shown(self, path: str, query: str, body: Body) -> Body | SandboxResponse:
        people = body.get("users", [body]) if path.startswith("/users") else ()
        for one in (one for one in people if "customFields" in one and path != "/users/extended-info"):
            types = {field["name"]: field["type"] for field in self._fields()}
            answers = {name: self.shape(name, type, one["customFields"].get(name)) for name, type in types.items()}
            one["customFields"] = {name: answer for name, answer in answers.items() if answer is not None}
        return body

    def _fields(self) -> list[Body]:
        rows: list[Body] = self.ask("GET", "/custom-fields")["customFields"]
        return rows


class StaysAnswered(OwnWay):
    """A service that does not delete a field that is answered."""

    keeps_answered = True


def drawn(seed: int) -> tuple[dict[str, str], type[OwnWay]]:
    """A service by number: its dialect, and how it shows answers."""
    random = Random(seed)  # noqa: S311  the same services in every run
    own = type("Drawn", (OwnWay,), {"shape": staticmethod(SHAPES[seed % len(SHAPES)]), "keeps_answered": seed % 2 == 0})
    return possible({key: random.choice(values) for key, values in answer_dialect_values().items()}), own


def opened(open_clinic: Open, dialect: Mapping[str, str], made: type[Sandbox], project: str) -> Clinic:
    clinic = open_clinic(dialect, FOUR_FIELDS, made)
    clinic.declare(MANIFEST + DECLARED)
    clinic.configure(project)
    return clinic


def learns(clinic: Clinic, *options: str) -> None:
    """The probe learns all of how answers are given, and leaves nothing; the apply after it converges.

    Nobody's other answers are touched by it.
    """
    with unchanged(clinic):
        lessons = clinic.probe(*options)
        assert [key for key, (verdict, _) in lessons.items() if key.startswith(ANSWERS) and verdict == "unknown"] == []
    clinic.apply("--only", "user/*")
    clinic("plan", "--detailed-exitcode", "--only", "user/*", code=0)
    assert AFTERWARDS.items() <= clinic.answers().items()


@pytest.mark.sampled(daily=False)
@pytest.mark.parametrize("seed", range(24))
def test_a_service_with_ways_of_its_own_is_learnt(open_clinic: Open, seed: int) -> None:
    """However answers are sent, cleared and shown, on an account, or on somebody with answers.

    Those go along in each call then, and outlast a service that clears omitted ones.
    """
    dialect, own = drawn(seed)
    if seed < 12:
        return learns(opened(open_clinic, dialect, own, CREATES))
    dialect = {key: "null" if value == "omit" else value for key, value in dialect.items()}
    return learns(opened(open_clinic, dialect, own, PROJECT), "--user", BO)


@pytest.mark.sampled(daily=False)
def test_nobody_is_given_an_answer_that_might_stay(open_clinic: Open) -> None:
    """Where no value clears an answer and an answered field cannot be deleted, a named person is given none."""
    dialect = {f"{ANSWERS}.clear-{type}": "omit" for type in ("choice", "multi-select", "text")}
    clinic = opened(open_clinic, {**dialect, f"{ANSWERS}.omitted": "clear"}, StaysAnswered, PROJECT)
    with unchanged(clinic):
        lesson = clinic.lessons("--user", BO)[f"{ANSWERS}.wrapper"]
        assert "no call that clears an answer is accepted, so none is given" in lesson["reason"]
    accepted = [one for one in clinic.sandbox.log if one.operation == ANSWERS and one.status < 300]
    assert len(accepted) == 1  # the person's own answers, sent again as they were


class Overlooking(OwnWay):
    """A service that takes a body of another form for one without answers, which clears them all."""

    def done(self, method: str, path: str, said: SandboxResponse) -> SandboxResponse:
        if path.endswith("-choice") and said.status == 400:
            self.ask("POST", path, {"fields": {}})
            return json_response(200, {})
        return said


@pytest.mark.sampled(daily=False)
def test_what_a_wrong_guess_cleared_is_given_back(open_clinic: Open) -> None:
    """Also where a body of another form clears everything: the right one, once found, brings all answers back."""
    dialect = {f"{ANSWERS}.wrapper": "fields", f"{ANSWERS}.omitted": "clear", f"{ANSWERS}.value": "name-list"}
    learns(opened(open_clinic, dialect, Overlooking, PROJECT), "--user", BO)


@pytest.mark.sampled(daily=False)
@pytest.mark.parametrize(("project", "options", "most"), [(CREATES, (), 100), (PROJECT, ("--user", BO), 250)])
def test_a_refused_combination_costs_one_request(
    open_clinic: Open, project: str, options: tuple[str, ...], most: int
) -> None:
    """A service of which all is the last that is tried is found out with few calls, also with answers to send along."""
    values = answer_dialect_values()
    keys = (f"{ANSWERS}.{name}" for name in ("wrapper", "value", "value-multi-select", "value-text"))
    clinic = opened(open_clinic, {key: values[key][-1] for key in keys}, Sandbox, project)
    learns(clinic, *options)
    assert len(clinic.sent(operation=ANSWERS)) < most


@pytest.mark.sampled(daily=False)
def test_an_answer_that_nothing_clears_is_learnt_and_foretold(open_clinic: Open) -> None:
    """The probe writes it, the next plan is refused at the place of the answer, and nothing of it is sent."""
    clinic = opened(open_clinic, {f"{ANSWERS}.clear-choice": "refused"}, Sandbox, CREATES)
    with unchanged(clinic):
        assert clinic.probe()[f"{ANSWERS}.clear-choice"] == ("found", "refused")
    ran = clinic.apply("--only", "user/*", code=4)
    told = f'error: user/{ANNA}: the answer to "Department" cannot be cleared'
    assert re.search(rf"manifests/all\.yaml:\d+:\d+: {told}", ran.err)
    assert ran.writes == []


def test_an_account_that_is_gone_may_be_forbidden(open_clinic: Open) -> None:
    """A service that answers 403 for what is not there has not refused the credential: the probe goes on."""
    forbidding = type("Drawn", (Altered,), {"instead": {404: 403}})
    clinic = opened(open_clinic, {"users.create.lastName": "familyName"}, forbidding, CREATES)
    clinic.probed("--user", BO)
    assert "users.create.lastName: familyName" in clinic.project
