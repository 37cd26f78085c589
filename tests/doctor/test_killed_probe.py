"""A probe that is killed, wherever it is: the next one finds and removes what was left, and all is as before."""

import json
import random
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Mapping, Sequence
from itertools import count
from pathlib import Path
from typing import Any, ClassVar, cast

import pytest
from random_services.points import drawn
from random_services.scenario import BO as RANDOM_BO
from random_services.scenario import FIRST, P0, opened, photo
from random_services.scenario import Project as RandomProject
from sampling import GATE, of_today, schedules_of_today
from sampling import WHOLE as ALL_CASES
from waiting import HANGS
from wire.second_dialect import second_dialect

from lmsconf.api.spec import ApiSpec
from lmsconf.api.spec.operations import load_api_description
from lmsconf.sandbox.faults import Fault, FaultScript
from lmsconf.sandbox.service import LoggedRequest, Sandbox, SandboxResponse, json_response
from lmsconf.support.files import write_own_file

from .conftest import Open
from .served_project import BO, GDPR, PROJECT, ServedProject, held
from .test_probe_people import CREATES, WHOLE, OwnWay, ask, declaring

SUBJECTS = ("--user", BO, "--user", "p0@acme.example", "--content", GDPR)
MORE = {
    **WHOLE,
    "groups": [{"name": "Coaches", "members": [BO], "managers": ["anna.berg@acme.example"]}],
    "people": [{**one, "manager": True} if one["email"].startswith("p0@") else one for one in WHOLE["people"]],
}
"""A workspace in which one of the two people has the manager right."""
NINE = {
    **MORE,
    "custom_fields": [*MORE["custom_fields"], *({"name": f"Field {number}", "type": "TEXT"} for number in range(6))],
}
"""Another in which one field is free."""
PARTS = 20
"""Into how many tests the writes of a probe are divided."""


class StaysAnswered(OwnWay):
    """A service that does not delete a field that is answered."""

    keeps_answered = True


class Moments:
    """Hears of the requests of a probe, and keeps the workspace, and what the probe has kept of people, after writes.

    Nothing else is left of a process that is killed there, and a request that only reads changes neither.
    """

    def __init__(self, state: Path, part: int) -> None:
        self._state, self._part, self._writes = state, part, count()
        self.service: Sandbox | None = None
        self.kept: dict[str, dict[Path, str]] = {}

    def __call__(self, entry: LoggedRequest) -> None:
        if self.service is None or not entry.writes:
            return
        number = next(self._writes)
        if number % PARTS == self._part:
            name = f"write {number + 1}, {entry.operation}"
            self.service.store.checkpoint(name)
            self.kept[name] = {file: file.read_text() for file in self._state.glob("lmsconf/probe-*")}

    def back_to(self, service: Sandbox, name: str) -> None:
        """The workspace and the files as they were at that moment."""
        service.store.restore(name)
        for file in self._state.glob("lmsconf/probe-*"):
            file.unlink()
        for file, text in self.kept[name].items():
            write_own_file(file, text)


class Killing:
    """Hears of the requests of a process, and kills it at one of them."""

    def __init__(self) -> None:
        self._left, self._process = 0, cast("subprocess.Popen[bytes]", None)
        self._known = threading.Event()

    def at(self, number: int, process: subprocess.Popen[bytes]) -> None:
        """Kill the process at that request."""
        self._left, self._process = number, process
        self._known.set()
        process.wait(HANGS)

    def __call__(self, entry: LoggedRequest) -> None:
        if self._known.is_set():
            self._left -= 1
            if self._left == 0:
                self._process.kill()
                self._known.clear()


SECOND = second_dialect()
CASES: Mapping[str, tuple[Mapping[str, str | int], Mapping[str, object], type[Sandbox], str]] = {
    "people": ({}, MORE, Sandbox, PROJECT),
    "people of a second dialect": (SECOND, MORE, Sandbox, PROJECT),
    "accounts": ({}, MORE, Sandbox, CREATES),
    "one free field": ({}, NINE, Sandbox, PROJECT),
    "answered fields stay": ({}, NINE, StaysAnswered, PROJECT),
    "answered fields stay in a second dialect": (SECOND, MORE, StaysAnswered, PROJECT),
}


def chosen(cases: Sequence[tuple[str, int]], name: str) -> list[tuple[str, int]]:
    """Every day a few of the cases, in .ci/run a 24th, with TESTS=all alone all."""
    return of_today(cases, 720, name) if GATE is None else schedules_of_today(cases, name)


@pytest.mark.sampled
@pytest.mark.parametrize(("case", "part"), chosen([(case, part) for part in range(PARTS) for case in CASES], "killed"))
def test_after_a_kill_at_any_call_the_next_probe_restores_all(
    open_clinic: Open, tmp_path: Path, case: str, part: int
) -> None:
    """After each write once: the people named are as before, and nothing that the probe made is left."""
    dialect, more, made, project = CASES[case]
    moments = Moments(tmp_path / "state", part)
    clinic = declaring(open_clinic(dialect, more=more, made=made, on_log=moments), project)
    before, moments.service = held(clinic.service), clinic.service
    clinic.probe(*SUBJECTS)
    moments.service = None
    assert moments.kept
    for name in moments.kept:
        moments.back_to(clinic.service, name)
        clinic.configure(project)
        clinic.run("doctor", "--probe", "--yes", *SUBJECTS, code=0)
        assert held(clinic.service) == before, name


@pytest.mark.sampled
@pytest.mark.parametrize(
    ("case", "moment"),
    chosen([(case, moment) for moment in range(25) for case in [*CASES][:4]], "moments"),
)
def test_after_a_kill_at_any_moment_the_next_probe_restores_all(open_clinic: Open, case: str, moment: int) -> None:
    """A process that SIGKILL ends while any of its requests waits for the response: the same."""
    dialect, more, made, project = CASES[case]
    killing = Killing()
    clinic = declaring(open_clinic(dialect, more=more, made=made, on_log=killing), project)
    before = held(clinic.service)
    asked = len(clinic.service.log)
    clinic.probe(*SUBJECTS)
    number = random.Random(f"{case} {moment}").randrange(1, len(clinic.service.log) - asked)  # noqa: S311  no secret
    clinic.configure(project)
    words = [sys.executable, "-m", "lmsconf", "-C", str(clinic.folder), "doctor", "--probe", "--yes", *SUBJECTS]
    with subprocess.Popen(words, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as process:
        killing.at(number, process)
    assert process.returncode == -signal.SIGKILL
    clinic.run("doctor", "--probe", "--yes", *SUBJECTS, code=0)
    assert held(clinic.service) == before


@pytest.mark.sampled
@pytest.mark.parametrize("seed", range(10))
def test_a_probe_that_was_killed_is_cleaned_up_on_services_of_any_kind(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, seed: int
) -> None:
    """After a kill at ten calls of each of ten random services; every day and in .ci/run at three of one and of ten."""
    dice = random.Random(seed)  # noqa: S311  no secret
    subjects = ("--user", RANDOM_BO, "--user", P0, "--content", "GDPR basics")
    with opened(drawn(seed), seed, tmp_path, monkeypatch) as it:
        it.write(FIRST)
        project, before = (it.folder / "lmsconf.yaml").read_text(), photo(it.service)
        if seed % 2:
            # Without accounts the person who is named is changed.
            project = project.replace("people: {create: true}\n", "")
        moments = Moments(tmp_path / "state", 0)
        it.service._on_log, moments.service = moments, it.service
        assert _probed(it, project, subjects)[0] == 0
        moments.service = None
        names = [*moments.kept]
        for name in dice.sample(names, min(10 if ALL_CASES and GATE is None else 3, len(names))):
            moments.back_to(it.service, name)
            code, out = _probed(it, project, subjects)
            assert code == 0, name + out
            assert photo(it.service) == before, name


def _probed(it: RandomProject, project: str, subjects: Sequence[str]) -> tuple[int, str]:
    (it.folder / "lmsconf.yaml").write_text(project, encoding="utf-8")
    return it.run("doctor", "--probe", "--yes", *subjects)


def test_what_somebody_changed_since_is_kept(open_clinic: Open, tmp_path: Path) -> None:
    """Of a person whose probe was killed only what was lost is restored, and it is said."""
    moments = Moments(tmp_path / "state", 0)
    clinic = declaring(open_clinic(more=MORE, on_log=moments), PROJECT)
    before, moments.service = held(clinic.service), clinic.service
    clinic.probe(*SUBJECTS)
    moments.service = None
    kept = next(name for name in moments.kept if "update-metadata" in name or "custom-fields" in name)
    moments.back_to(clinic.service, kept)
    person = before["/users"][1]["userId"]
    ask(clinic, f"/users/{person}/update-metadata", {"metadata": {"unit": "B"}})
    ask(clinic, f"/users/{person}/update-custom-field-choice", {"f-1": "ch-2", "f-3": ""})
    clinic.configure(PROJECT)
    clinic.run("doctor", "--probe", "--yes", *SUBJECTS, code=0)
    assert f"An earlier probe was killed. What it changed of {BO} is restored." in clinic.err
    after = held(clinic.service)[f"/users/{person}"]
    assert after["metadata"] == {"cost": "100", "unit": "B"}
    answers = after["customFields"]
    assert (answers["Department"]["choices"][0]["name"], answers["B"]["text"]) == ("Engineering", "7")
    assert not [*(tmp_path / "state").glob("lmsconf/probe-*")]


def test_people_who_cannot_be_restored_stop_the_next_probe(open_clinic: Open, tmp_path: Path) -> None:
    """It makes nothing, and names the person, what differs, and the file to delete."""
    moments = Moments(tmp_path / "state", 0)
    clinic = declaring(open_clinic(more=MORE, on_log=moments), PROJECT)
    moments.service = clinic.service
    clinic.probe(*SUBJECTS)
    moments.service = None
    moments.back_to(clinic.service, next(name for name in moments.kept if moments.kept[name]))
    (file,) = (tmp_path / "state").glob("lmsconf/probe-*")
    file.write_text(file.read_text().replace('"cost": "100"', '"cost": "100", "gone": "1"'))
    faults = Fault(operation="users.update-metadata", status=409, times=99)
    clinic.service._faults = FaultScript(faults)
    clinic.run("doctor", "--probe", "--yes", *SUBJECTS, code=1)
    assert f"left by an earlier probe: the metadata of {BO}: not as before" in clinic.err
    assert f"Put it back by hand, then delete {file}." in " ".join(clinic.err.split())
    file.write_text("{}")
    assert clinic.run("doctor", "--probe", "--yes", *SUBJECTS)[0] == 1
    assert "is damaged" in clinic.err


# Calls that a service accepts without the planned effect: what is there instead, and the value that explains it.


ANSWERS = "users.update-custom-field-choice"
MORE_PEOPLE: Mapping[str, object] = {
    "custom_fields": [
        {"name": "Department", "type": "CHOICE", "choices": ["Sales", "Engineering"]},
        {"name": "Badge", "type": "TEXT", "description": "Old"},
        {"name": "Desk", "type": "TEXT"},
    ],
    "people": [
        {"email": "anna.berg@acme.example", "admin": True},
        {"email": BO, "answers": {"Department": "Sales", "Desk": "2"}, "metadata": {"cost": "1"}},
        *({"email": f"p{number}@acme.example"} for number in range(5)),
    ],
    "groups": [{"name": "Coaches", "members": [BO], "managers": ["anna.berg@acme.example"]}],
    "content_targets": [{"content": "GDPR basics", "assign_to": ["everyone"], "visible_from": "2026-01-05T08:00:00Z"}],
}
Change = Callable[[str, str, dict[str, Any]], dict[str, Any] | None]
"""(method, path, body) → the body that the service goes by; None: it goes by nothing, and says that it did."""


class Own(Sandbox):
    """A service that goes by another body than it was sent."""

    change: ClassVar[Change] = staticmethod(lambda method, path, body: body)

    def answer(self, method: str, path: str, query: str, headers: Mapping[str, str], body: bytes) -> SandboxResponse:
        if method in ("GET", "DELETE") or not body:
            return super().answer(method, path, query, headers, body)
        taken = self.change(method, path, json.loads(body))
        if taken is None:
            return json_response(200, {})
        return super().answer(method, path, query, headers, json.dumps(taken).encode())


def without(ending: str, *names: str) -> Change:
    """The service does not know these parts of the body of requests whose path ends so."""

    def change(method: str, path: str, body: dict[str, Any]) -> dict[str, Any] | None:
        if not path.endswith(ending):
            return body
        rest = {name: value for name, value in body.items() if name not in names}
        return rest or None

    return change


def in_full_minutes(method: str, path: str, body: dict[str, Any]) -> dict[str, Any]:
    """The service cuts the seconds off the end of a window."""
    return {name: str(value).replace(":59Z", ":00Z") if name == "finishTime" else value for name, value in body.items()}


def unless_there(method: str, path: str, body: dict[str, Any]) -> dict[str, Any] | None:
    """The service leaves an assignment to everyone as it is."""
    return None if body.get("targetId") == "EVERYONE" else body


GROUP = "groups: [{name: Coaches, members: {include: [p0@acme.example]}}]"
WHOLE = f"groups: [{{name: Coaches, members: [{BO}, p0@acme.example]}}]"
EVERYONE = "content_targets: [{content: GDPR basics, assign_to: [{everyone: true, MORE_PEOPLE}]}]"
NEW = "content_targets: [{content: Fire safety, assign_to: [{group: Coaches, MORE_PEOPLE}]}]"
VALUES: list[tuple[Mapping[str, str], Change | None, str, str, Mapping[str, str]]] = [
    (
        {"manual-groups.add.mode": "replace"},
        None,
        WHOLE,
        f"members lack {BO} (the list now holds only the 1 person who was added: the service replaces)",
        {"manual-groups.add.mode": "replace"},
    ),
    (
        {f"{ANSWERS}.omitted": "clear"},
        None,
        f'users: [{{email: {BO}, answers: {{Desk: "3", Department: Sales}}}}]',
        'answers.Department is (none), not "Sales" (the service clears the answers that a call omits)',
        {f"{ANSWERS}.omitted": "clear"},
    ),
    (
        {},
        in_full_minutes,
        NEW.replace("MORE_PEOPLE", "visible_until: 2035-06-30"),
        'visible_until is "2035-06-30T23:59:00+00:00", not "2035-06-30T23:59:59+00:00" (the service cuts seconds off)',
        {"content-targets.time-precision": "minute"},
    ),
    (
        {},
        unless_there,
        EVERYONE.replace("MORE_PEOPLE", "mandatory: true, visible_from: 2026-01-05T08:00:00Z"),
        "mandatory is false, not true (an assignment that is there stays as it is)",
        {"content-targets.on-existing": "recreate"},
    ),
    (
        {},
        lambda method, path, body: {**body, "description": "Old"} if method == "PUT" else body,
        "custom_fields: [{name: Badge, description: null}]",
        'description is "Old", not (none)',
        {"custom-fields.clear-description": '"null"'},
    ),
    (
        {"users.update-metadata.mode": "merge"},
        None,
        f"users: [{{email: {BO}, metadata: {{cost: null}}}}]",
        'metadata.cost is "1", not (none) (the service keeps what a call omits)',
        {"users.update-metadata.mode": "merge"},
    ),
]
"""The service's dialect, what it goes by, a manifest, what is said of what is there, and the lines to paste."""
KEYS: list[tuple[Change, str, str, list[str]]] = [
    (
        without("/members", "userIds"),
        GROUP,
        "members lack p0@acme.example (nobody was added)",
        ["manual-groups.add-members.userIds (now userIds)"],
    ),
    (
        without("/managers", "userIds"),
        GROUP.replace("members", "managers"),
        "managers lack p0@acme.example (nobody was added, as where managers need the right)",
        ["manual-groups.add-managers.userIds (now userIds)", "manual-groups.who-can-manage (now anybody)"],
    ),
    (
        without("/users", "firstName"),
        "users: [{email: nia@acme.example, first_name: Nia, last_name: Ny, language: sv}]",
        'first_name is "", not "Nia"',
        ["users.create.firstName (now firstName)"],
    ),
    (
        without("/targets", "mandatory"),
        NEW.replace("MORE_PEOPLE", "mandatory: true"),
        "mandatory is false, not true",
        ["content-targets.create.mandatory (now mandatory)"],
    ),
    (
        without("/targets", "startTime"),
        NEW.replace("MORE_PEOPLE", "visible_from: 2031-01-05"),
        'visible_from is (none), not "2031-01-05T00:00:00+00:00"',
        ["content-targets.create.startTime (now startTime)"],
    ),
    (
        lambda method, path, body: {**body, "startTime": "2026-01-05T08:00:00Z"} if "contentId" in body else body,
        EVERYONE.replace("MORE_PEOPLE", "mandatory: true, visible_from: null"),
        'visible_from is "2026-01-05T08:00:00+00:00", not (none) (null does not open it; omit or empty may)',
        ["content-targets.clear-time (now null)"],
    ),
    (
        lambda method, path, body: None if path.endswith("/set-custom-archived-date") else body,
        f"users: [{{email: {BO}, custom_archive_date: 2030-01-01}}]",
        'custom_archive_date is (none), not "2030-01-01T00:00:00+00:00"',
        ["users.set-custom-archived-date.date (now date)"],
    ),
    (
        lambda method, path, body: None if path.endswith("-choice") else body,
        f"users: [{{email: {BO}, answers: {{Department: Engineering}}}}]",
        'answers.Department is "Sales", not "Engineering"',
        [f"{ANSWERS}.value (now id)", f"{ANSWERS}.value-text (now text)"],
    ),
    (
        lambda method, path, body: None if path.endswith("-choice") else body,
        f"users: [{{email: {BO}, answers: {{Department: null}}}}]",
        'answers.Department is "Sales", not (none)',
        [f"{ANSWERS}.clear-choice (now empty)", f"{ANSWERS}.clear-text (now empty)"],
    ),
    (
        lambda method, path, body: None if path.endswith("/rename") else body,
        "groups: [{name: Trainers, previously: [Coaches]}]",
        'name is "Coaches", not "Trainers"',
        ["manual-groups.rename.name (now name)"],
    ),
    (
        lambda method, path, body: None if path.endswith("/update-fullname") else body,
        f"users: [{{email: {BO}, first_name: Bosse}}]",
        'first_name is "", not "Bosse"',
        [],
    ),
]
"""What a service goes by, a manifest, what is said of what is there, and the keys to look at."""


def stating_all(
    open_clinic: Open, dialect: Mapping[str, str], change: Change | None, manifest: str
) -> tuple[ServedProject, str]:
    """A project that states every key as it is assumed, and what its apply says."""
    made = Sandbox if change is None else type("Drawn", (Own,), {"change": staticmethod(change)})
    clinic = open_clinic(dialect, MORE_PEOPLE, made=made)
    default, known = ApiSpec.default(), load_api_description()
    stated = {key: default.behaviour(key) for key in (*known.behaviours, *known.names)}
    options = "timezone: UTC\nguards: off\npeople: {create: true}\n"
    lines = "".join(f"  {key}: {json.dumps(value)}\n" for key, value in stated.items())
    clinic.configure(f"{PROJECT}{options}dialect:\n{lines}")
    clinic.declare(manifest)
    out = clinic.run("apply", "--auto-approve", code=6).out
    return clinic, out


@pytest.mark.sampled
@pytest.mark.parametrize(("dialect", "change", "manifest", "said", "values"), VALUES)
def test_the_report_says_what_is_there_and_what_to_set(
    open_clinic: Open,
    dialect: Mapping[str, str],
    change: Change | None,
    manifest: str,
    said: str,
    values: Mapping[str, str],
) -> None:
    """Though the project states every key: the value that explains what is read back, as lines to paste."""
    _, out = stating_all(open_clinic, dialect, change, manifest)
    assert f"the service accepted the calls, but it is still not as planned: {said} [apply/no-effect]" in out
    lines = "".join(f"      {key}: {value}\n" for key, value in values.items())
    assert f"  Set in the project file, and apply again:\n    dialect:\n{lines}" in out


@pytest.mark.sampled(day=8)
@pytest.mark.parametrize(("change", "manifest", "said", "keys"), KEYS)
def test_the_report_says_what_is_there_and_where_to_look(
    open_clinic: Open, change: Change, manifest: str, said: str, keys: list[str]
) -> None:
    """Where several values would explain it, the keys of what is not as planned are named, and no others."""
    _, out = stating_all(open_clinic, {}, change, manifest)
    assert f"but it is still not as planned: {said} [apply/no-effect]" in out
    look = f"Check the dialect keys {', '.join(keys)}, or find them out with `lmsconf doctor --probe`."
    assert (look if keys else "Plan again to see what remains.") in out
