"""A probe that is killed, wherever it is: the next one finds and removes what was left, and all is as before."""

import random
import signal
import subprocess
import sys
from collections.abc import Mapping, Sequence
from itertools import count
from pathlib import Path
from typing import Any

import pytest
from random_services.points import drawn
from random_services.scenario import BO as RANDOM_BO
from random_services.scenario import FIRST, opened, photo
from random_services.scenario import Project as RandomProject
from sampling import GATE, of_today, schedules_of_today
from sampling import WHOLE as ALL_CASES
from waiting import HANGS, HeldResponse
from wire.second_dialect import second_dialect

from lmsconf.sandbox.faults import Fault, FaultScript
from lmsconf.sandbox.service import LoggedRequest, Sandbox
from lmsconf.support.files import write_own_file

from .clinic import BO, CREATES, GDPR, P0, PROJECT, Clinic, Open, held
from .test_probe_people import WHOLE, StaysAnswered, declaring

SUBJECTS = ("--user", BO, "--user", P0, "--content", GDPR)
MORE = {**WHOLE, "people": [{**one, "manager": True} if one["email"] == P0 else one for one in WHOLE["people"]]}
"""A workspace in which one of the two people has the manager right."""
NINE = {
    **MORE,
    "custom_fields": [*MORE["custom_fields"], *({"name": f"Field {number}", "type": "TEXT"} for number in range(6))],
}
"""Another in which one field is free."""
PARTS = 20
"""Into how many tests the writes of a probe are divided."""


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


def after_a_probe(
    open_clinic: Open, tmp_path: Path, case: str = "people", part: int = 0
) -> tuple[Clinic, dict[str, Any], Moments]:
    """A clinic that was probed, what it held before, and the moments after a part of the writes."""
    dialect, more, made, project = CASES[case]
    moments = Moments(tmp_path / "state", part)
    clinic = declaring(open_clinic(dialect, more, made, on_log=moments), project)
    before, moments.service = held(clinic), clinic.sandbox
    clinic.probed(*SUBJECTS)
    moments.service = None
    assert moments.kept
    clinic.configure(project)
    return clinic, before, moments


@pytest.mark.sampled(daily=False)
@pytest.mark.parametrize(("case", "part"), chosen([(case, part) for part in range(PARTS) for case in CASES], "killed"))
def test_after_a_kill_at_any_call_the_next_probe_restores_all(
    open_clinic: Open, tmp_path: Path, case: str, part: int
) -> None:
    """After each write once: the people named are as before, and nothing that the probe made is left."""
    clinic, before, moments = after_a_probe(open_clinic, tmp_path, case, part)
    project = clinic.project
    for name in moments.kept:
        moments.back_to(clinic.sandbox, name)
        clinic.configure(project)
        clinic.probed(*SUBJECTS)
        assert held(clinic) == before, name


@pytest.mark.sampled(daily=False)
@pytest.mark.parametrize(
    ("case", "moment"),
    chosen([(case, moment) for moment in range(25) for case in [*CASES][:4]], "moments"),
)
def test_after_a_kill_at_any_moment_the_next_probe_restores_all(open_clinic: Open, case: str, moment: int) -> None:
    """A process that SIGKILL ends while any of its requests waits for the response: the same."""
    dialect, more, made, project = CASES[case]
    number, seen = 0, count(1)
    waits = HeldResponse(lambda _: number > 0 and next(seen) == number)
    clinic = declaring(open_clinic(dialect, more, made, on_log=waits), project)
    before = held(clinic)
    clinic.probed(*SUBJECTS)
    asked = len(clinic.sandbox.log)
    clinic.configure(project)
    words = [sys.executable, "-m", "lmsconf", "-C", str(clinic.root), "doctor", "--probe", "--yes", *SUBJECTS]
    number = random.Random(f"{case} {moment}").randrange(1, asked)  # noqa: S311  no secret
    with subprocess.Popen(words, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as process, waits:
        process.kill()
        process.wait(HANGS)
    assert process.returncode == -signal.SIGKILL
    clinic.probed(*SUBJECTS)
    assert held(clinic) == before


@pytest.mark.sampled(daily=False)
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
    clinic, _, moments = after_a_probe(open_clinic, tmp_path)
    kept = next(name for name in moments.kept if "update-metadata" in name or "custom-fields" in name)
    moments.back_to(clinic.sandbox, kept)
    person = {"userId": "u-2"}
    clinic.hand("users.update-metadata", person, {"metadata": {"unit": "B"}})
    clinic.hand("users.update-custom-field-choice", person, {"f-1": "ch-2", "f-3": ""})
    assert f"An earlier probe was killed. What it changed of {BO} is restored." in clinic.probed(*SUBJECTS).err
    shown: Any = clinic.hand("users.get", person)
    assert shown["metadata"] == {"cost": "100", "unit": "B"}
    answers = clinic.answers()[BO]
    assert (answers["Department"], answers["B"]) == (["Engineering"], "7")
    assert not [*(tmp_path / "state").glob("lmsconf/probe-*")]


def test_what_people_had_stays_kept_where_it_cannot_be_given_back(open_clinic: Open) -> None:
    """A probe that took something, and is refused when it gives it back, names that, and the next one restores it."""
    clinic = declaring(open_clinic(more=WHOLE))
    before = held(clinic)
    clinic.sandbox._faults = FaultScript(Fault(operation="users.update-metadata", status=409, after=1, times="always"))
    assert f"the metadata of {BO}: not as before" in clinic("doctor", "--probe", "--yes", "--user", BO).told
    clinic.sandbox._faults = FaultScript()
    clinic.probed("--user", BO)
    assert held(clinic) == before


def test_people_who_cannot_be_restored_stop_the_next_probe(open_clinic: Open, tmp_path: Path) -> None:
    """It makes nothing, and names the person, what differs, and the file to delete."""
    clinic, _, moments = after_a_probe(open_clinic, tmp_path)
    moments.back_to(clinic.sandbox, next(name for name in moments.kept if moments.kept[name]))
    [file] = (tmp_path / "state").glob("lmsconf/probe-*")
    file.write_text(file.read_text().replace('"cost": "100"', '"cost": "100", "gone": "1"'))
    clinic.sandbox._faults = FaultScript(Fault(operation="users.update-metadata", status=409, times=99))
    told = clinic.probed(*SUBJECTS, code=1).err
    assert f"left by an earlier probe: the metadata of {BO}: not as before" in told
    assert f"Put it back by hand, then delete {file}." in " ".join(told.split())
    file.write_text("{}")
    assert "is damaged" in clinic.probed(*SUBJECTS, code=1).err
