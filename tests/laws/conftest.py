"""The folder in which the laws put their projects, and the doors to a workspace."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest

from laws.random_manifests import Wish
from laws.random_workspaces import World
from laws.sandbox_project import Stage, open_stage

Open = Callable[[tuple[World, Wish]], Stage]


@pytest.fixture(scope="module")
def opened(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Open]:
    """Opens a world with a wish; the sandbox before it is let go."""
    folder = tmp_path_factory.mktemp("laws")
    last: list[Stage] = []

    def open(both: tuple[World, Wish]) -> Stage:
        while last:
            last.pop().sandbox.shut()
        last.append(open_stage(folder, *both))
        return last[0]

    yield open
    while last:
        last.pop().sandbox.shut()
