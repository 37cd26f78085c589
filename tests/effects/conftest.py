"""Tests of a project in a folder run on the sandbox as lmsconf assumes the service, and sampled in a second dialect."""

import pytest
from flow.conftest import SPOKEN
from flow.conftest import spoken as spoken

IN_BOTH = {"test_guards_by_people", "test_not_known"}


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Every test of those modules, once in each dialect."""
    if metafunc.module.__name__.rpartition(".")[2] in IN_BOTH:
        metafunc.parametrize("spoken", SPOKEN, indirect=True)
