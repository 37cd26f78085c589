"""The examples and pages about them: `pytest tests/examples --update-examples` rewrites what lmsconf prints there."""

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from .clone import EXAMPLES, LEFT_BEHIND

REPOSITORY = Path(__file__).parent.parent.parent


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--update-examples", action="store_true", help="rewrite what lmsconf prints in pages and plan.txt")


@pytest.fixture
def updating(request: pytest.FixtureRequest) -> bool:
    """Whether pages are to be rewritten and then read."""
    return bool(request.config.getoption("--update-examples", default=False))


@pytest.fixture
def copy(tmp_path: Path) -> Callable[[str], Path]:
    """Copies an example, without what earlier runs left in it, and gives the copy's folder."""

    def copied(name: str) -> Path:
        return Path(shutil.copytree(EXAMPLES / name, tmp_path / "examples" / name, ignore=LEFT_BEHIND))

    return copied
