"""The stage of every drift test."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from integrity.served_project import ServedProject, staged

from .drifted_project import MANIFESTS, OWNED, SEED


@pytest.fixture
def stage(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[ServedProject]:
    """A workspace that is as its manifests say."""
    with staged(tmp_path, SEED, monkeypatch, OWNED) as stage:
        stage.write(MANIFESTS)
        yield stage
