"""Tests of a project in a folder run on the sandbox as lmsconf assumes the service, and sampled in a second dialect."""

import pytest
from flow import project
from flow.conftest import DIALECTS, SPOKEN

IN_BOTH = {"test_guards_by_people", "test_not_known"}


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Every test of those modules, once in each dialect."""
    if metafunc.module.__name__.rpartition(".")[2] in IN_BOTH:
        metafunc.parametrize("spoken", SPOKEN, indirect=True)


@pytest.fixture(autouse=True)
def spoken(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """The dialect that the service of this test speaks, and that its project file says."""
    name = str(getattr(request, "param", "assumed"))
    monkeypatch.setattr(project, "SPOKEN", DIALECTS[name])
    return name
