"""Runs every test of a project on the sandbox as lmsconf assumes the service, and a share in a second dialect."""

from collections.abc import Mapping

import pytest
from wire.second_dialect import known_dialect, second_dialect

from . import project

DIALECTS: dict[str, Mapping[str, str | int]] = {"assumed": {}, "second": {**known_dialect(), **second_dialect()}}
SPOKEN = ("assumed", pytest.param("second", marks=pytest.mark.sampled(gate=3)))


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Every test, once in each dialect."""
    metafunc.parametrize("spoken", SPOKEN, indirect=True)


@pytest.fixture(autouse=True)
def spoken(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """The dialect that the service of this test speaks, and that its project file says."""
    name = str(getattr(request, "param", "assumed"))
    monkeypatch.setattr(project, "SPOKEN", DIALECTS[name])
    return name
