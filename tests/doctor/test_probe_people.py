"""`lmsconf doctor --probe` where manifests declare people: on scratch accounts, or on the one person who is named."""

from __future__ import annotations

import json
import os
import signal
from collections.abc import Callable

import pytest
from wire.second_dialect import FORBIDDING, SHOWN_BY_MEMBERS, second_dialect

from lmsconf.api.spec import ApiSpec
from lmsconf.project.settings import load_settings
from lmsconf.sandbox.service import LoggedRequest

from .served_project import BO, GDPR, MANIFEST, PROJECT, ServedProject, held

pytestmark = pytest.mark.sampled  # some seconds in all

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
    (clinic.folder / "manifests" / "all.yaml").write_text(MANIFEST + PEOPLE, encoding="utf-8")
    (clinic.folder / "lmsconf.yaml").write_text(project, encoding="utf-8")
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
    code, out = clinic.run("doctor", "--probe", "--yes", "--format", "json", *options)
    assert code == 0, out + clinic.err
    lessons = json.loads(out)["probe"]["lessons"]
    return {one["key"]: one["reason"] for one in lessons if one["verdict"] == "unknown"}


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


def test_what_is_assumed_of_people_is_confirmed(open_clinic: Open) -> None:
    """Defaults are confirmed; the person who was named is only put into the scratch group."""
    clinic = declaring(open_clinic(), CREATES)
    before = held(clinic.service)
    assert {verdict for verdict, _ in clinic.probe(*BOTH).values()} == {"confirmed", "unknown"}
    assert (clinic.project.startswith(CREATES), held(clinic.service)) == (True, before)
    person = held(clinic.service)["/users"][1]["userId"]
    touched = [one for one in clinic.service.log if one.writes and f"/users/{person}/" in one.path]
    assert touched == []


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


@pytest.mark.parametrize("project", [PROJECT, CREATES], ids=["person", "accounts"])
@pytest.mark.parametrize("after", [1, 2, 4, 9, 11, 12, 13, 14, 15, 16, 17, 18])
def test_an_interruption_leaves_people_as_they_were(open_clinic: Open, project: str, after: int) -> None:
    """Whenever it is interrupted: no scratch account is left, and the person who was named is as before."""
    clinic = declaring(open_clinic(SECOND, more=WHOLE, on_log=_Interrupting(after)), project)
    before = held(clinic.service)
    code, _ = clinic.run("doctor", "--probe", "--yes", *BOTH)
    assert code == 130, clinic.err
    assert held(clinic.service) == before


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
