"""The workspace that manifests are edited for."""

from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest
from integrity.served_project import ServedProject, staged
from texts import text_of

SEED: Final = text_of(__file__, "conftest_seed.yaml")
OPTIONS: Final = "timezone: Europe/Stockholm\nvars: {boss: dag@x.se, teams: [Team, Crew]}\n"


@pytest.fixture
def stage(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[ServedProject]:
    """A workspace, and a project that says something else."""
    with staged(tmp_path, SEED, monkeypatch, OPTIONS) as stage:
        yield stage
