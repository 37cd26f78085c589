"""A probe that is killed, wherever it is: the next one finds and removes what was left, and all is as before."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from itertools import count
from pathlib import Path
from typing import cast

import pytest
from sampling import of_today
from wire.second_dialect import second_dialect

from lmsconf.sandbox.service import LoggedRequest, SandboxService
from lmsconf.support.state_folder import write_own_file

from .served_project import BO, GDPR, PROJECT, ServedProject, held
from .test_probe_answers import OwnWay
from .test_probe_people import CREATES, WHOLE, declaring

Open = Callable[..., ServedProject]
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


class StaysAnswered(OwnWay):
    """A service that does not delete a field that is answered."""

    keeps_answered = True


class Moments:
    """Hears of the requests of a probe, and keeps the workspace, and what the probe has kept of people, after writes.

    Nothing else is left of a process that is killed there, and a request that only reads changes neither.
    """

    def __init__(self, state: Path, first: int, step: int) -> None:
        self.state, self.service, self.kept = state, cast(SandboxService, None), dict[str, dict[str, bytes]]()
        self._numbers, self._step, self._first = count(), step, first

    def __call__(self, entry: LoggedRequest) -> None:
        if entry.writes and self.service and next(self._numbers) % self._step == self._first:
            name = f"write {len(self.kept) * self._step + self._first + 1}: {entry.operation}"
            self.service.checkpoint(name)
            self.kept[name] = {file.name: file.read_bytes() for file in self.state.glob("lmsconf/probe-*")}

    def back_to(self, name: str) -> None:
        """The workspace and the files as they were at that moment."""
        self.service.restore(name)
        for file in self.state.glob("lmsconf/probe-*"):
            file.unlink()
        for file, content in self.kept[name].items():
            write_own_file(self.state / "lmsconf" / file, content.decode())


SECOND = second_dialect()
CASES: Mapping[str, tuple[Mapping[str, str | int], Mapping[str, object], type[SandboxService], str]] = {
    "people": ({}, MORE, SandboxService, PROJECT),
    "people of a second dialect": (SECOND, MORE, SandboxService, PROJECT),
    "accounts": ({}, MORE, SandboxService, CREATES),
    "accounts of a second dialect": (SECOND, MORE, SandboxService, CREATES),
    "one free field": ({}, NINE, SandboxService, PROJECT),
    "answered fields stay": ({}, NINE, StaysAnswered, PROJECT),
    "answered fields stay in a second dialect": (SECOND, MORE, StaysAnswered, PROJECT),
}
PARTS = 20


@pytest.mark.parametrize(
    ("case", "part"), of_today([(case, part) for part in range(PARTS) for case in CASES], parts=70, name="killed")
)
def test_after_a_kill_at_any_call_the_next_probe_restores_all(
    open_clinic: Open, tmp_path: Path, case: str, part: int
) -> None:
    """After each write once: whoever was named, and whatever was made, is as before."""
    dialect, more, made, project = CASES[case]
    moments = Moments(tmp_path / "state", part, PARTS)
    clinic = declaring(open_clinic(dialect, more=more, made=made, on_log=moments), project)
    before = held(clinic.service)
    moments.service = clinic.service
    clinic.probe(*SUBJECTS)
    assert held(clinic.service) == before
    moments.service = cast(SandboxService, None)
    assert moments.kept
    for name in moments.kept:
        moments.service = clinic.service
        moments.back_to(name)
        moments.service = cast(SandboxService, None)
        (clinic.folder / "lmsconf.yaml").write_text(project, encoding="utf-8")
        code, out = clinic.run("doctor", "--probe", "--yes", *SUBJECTS)
        assert code == 0, name + out + clinic.err
        assert held(clinic.service) == before, name
