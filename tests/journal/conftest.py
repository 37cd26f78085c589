"""A scene for each test."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from journal.journal_project import JournalProject


@pytest.fixture
def scene(tmp_path: Path) -> Iterator[JournalProject]:
    made = JournalProject(tmp_path)
    yield made
    made.sandbox.close_workspace()
