"""Opens clinics: a seeded service behind a port, named to the commands by the environment alone."""

from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack
from pathlib import Path

import pytest
from waiting import nobody_waits, served

from lmsconf.api.spec import ApiSpec
from lmsconf.sandbox.faults import FaultScript
from lmsconf.sandbox.service import LoggedRequest, Sandbox

from .served_project import MANIFEST, PROJECT, ServedProject, planted

Open = Callable[..., ServedProject]


@pytest.fixture
def open_clinic(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Iterator[Open]:
    """Opens a clinic whose service speaks a dialect, which its project does not know; `more` of a seed, `faults`,
    `on_log`, which hears of every request, and `made`, a service with habits of its own."""
    nobody_waits(monkeypatch)
    with ExitStack() as opened:

        def open(
            dialect: Mapping[str, str | int] | None = None,
            more: Mapping[str, object] | None = None,
            faults: FaultScript | None = None,
            on_log: Callable[[LoggedRequest], None] | None = None,
            made: type[Sandbox] = Sandbox,
        ) -> ServedProject:
            service = planted(made(spec=ApiSpec(dialect), faults=faults, on_log=on_log), more)
            opened.callback(service.close_workspace)
            server = opened.enter_context(served(service, monkeypatch))
            monkeypatch.setenv("LMSCONF_URL", server.url)
            monkeypatch.setenv("LMSCONF_TOKEN", "sandbox")
            monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
            monkeypatch.delenv("LMSCONF_WORKSPACE", raising=False)
            (tmp_path / "manifests").mkdir(exist_ok=True)
            (tmp_path / "manifests" / "all.yaml").write_text(MANIFEST, encoding="utf-8")
            (tmp_path / "lmsconf.yaml").write_text(PROJECT, encoding="utf-8")
            return ServedProject(tmp_path, service, capsys)

        yield open


@pytest.fixture
def clinic(open_clinic: Open) -> ServedProject:
    """A clinic whose service is as lmsconf assumes."""
    return open_clinic()
