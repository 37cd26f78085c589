"""`lmsconf doctor --probe` on services that take and show answers to custom fields each in its own way."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from random import Random
from typing import Any, ClassVar

import pytest
from answer_dialects import ANSWERS, answer_dialect_values, possible

from lmsconf.sandbox.service import Sandbox, SandboxResponse, json_response

from .served_project import BO, MANIFEST, PROJECT, ServedProject, held

Open = Callable[..., ServedProject]
Shape = Callable[[str, str, Any], object]
"""Field name, type and answer as the sandbox shows it, None without one → as the service shows it; None: left out."""
CREATES = PROJECT + "people: {create: true}\n"
PEOPLE: Mapping[str, object] = {
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
    clinic = open_clinic(dialect, more=PEOPLE, made=made)
    (clinic.folder / "manifests" / "all.yaml").write_text(MANIFEST + DECLARED, encoding="utf-8")
    (clinic.folder / "lmsconf.yaml").write_text(project, encoding="utf-8")
    return clinic


def converges(clinic: ServedProject) -> None:
    """An apply of what is declared of people leaves an empty plan, and nobody's other answers are touched."""
    code, out = clinic.run("apply", "--auto-approve", "--only", "user/*")
    assert code == 0, out + clinic.err
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
    clinic = opened(open_clinic, dialect, own, CREATES)
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
@pytest.mark.parametrize(("project", "options", "most"), [(CREATES, (), 100), (PROJECT, ("--user", BO), 250)])
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
    clinic = opened(open_clinic, {f"{ANSWERS}.clear-choice": "refused"}, Sandbox, CREATES)
    before = held(clinic.service)
    lessons = clinic.probe()
    assert lessons[f"{ANSWERS}.clear-choice"] == ("found", "refused")
    assert held(clinic.service) == before
    calls = len([one for one in clinic.service.log if one.writes])
    code, _ = clinic.run("apply", "--auto-approve", "--only", "user/*")
    assert code == 4
    told = 'error: user/anna.berg@acme.example: the answer to "Department" cannot be cleared'
    assert re.search(rf"manifests/all\.yaml:\d+:\d+: {told}", clinic.err)
    assert len([one for one in clinic.service.log if one.writes]) == calls
