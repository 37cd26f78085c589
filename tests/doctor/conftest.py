"""Opens clinics: a seeded service behind a port, named to the commands by the environment alone."""

import json
from collections.abc import Iterator, Mapping
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
from integrity.served_project import staged
from waiting import nobody_waits

from lmsconf.sandbox.service import Sandbox

from .clinic import MANIFEST, SEED, Clinic, Open


@pytest.fixture
def open_clinic(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Open]:
    """Opens a clinic with the company of `SEED` in it, and `more` in its place; `how` is what `staged` takes."""
    nobody_waits(monkeypatch)
    with ExitStack() as opened:

        def open(
            dialect: Mapping[str, str | int] | None = None,
            more: Mapping[str, object] | None = None,
            made: type[Sandbox] = Sandbox,
            **how: Any,
        ) -> Clinic:
            seed = json.dumps({**SEED, **(more or {})})
            it = opened.enter_context(staged(tmp_path, seed, monkeypatch, "", dialect, made=made, **how))
            monkeypatch.setenv("LMSCONF_URL", it.url)
            monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
            clinic = Clinic(it.root, it.sandbox, it.url)
            clinic.declare(MANIFEST, dialect={})
            return clinic

        yield open


@pytest.fixture
def clinic(open_clinic: Open) -> Clinic:
    """A clinic whose service is as lmsconf assumes."""
    return open_clinic()
