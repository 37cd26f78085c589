"""Golden files: `pytest tests/views --update-golden` rewrites them, and the difference is read."""

from collections.abc import Callable
from pathlib import Path

import pytest

GOLDEN = Path(__file__).parent.parent / "golden"


@pytest.fixture
def golden(request: pytest.FixtureRequest) -> Callable[[str, str], None]:
    """Compares a text with the golden file of that name."""

    def compare(name: str, text: str) -> None:
        path = GOLDEN / name
        if request.config.getoption("--update-golden", default=False):
            path.write_bytes(text.encode())
        assert path.read_bytes().decode() == text

    return compare
