"""The folder in which the laws put their projects, and the doors to a workspace."""

from collections.abc import Callable, Iterator

import pytest
from laws.random_manifests import RandomManifests
from laws.random_workspaces import RandomWorkspace
from laws.sandbox_project import SandboxProject, open_stage

Open = Callable[[tuple[RandomWorkspace, RandomManifests]], SandboxProject]


@pytest.fixture(scope="module")
def opened(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Open]:
    """Opens a world with a wish; the sandbox before it is let go."""
    folder = tmp_path_factory.mktemp("laws")
    last: list[SandboxProject] = []

    def open(both: tuple[RandomWorkspace, RandomManifests]) -> SandboxProject:
        while last:
            last.pop().sandbox.close_workspace()
        last.append(open_stage(folder, *both))
        return last[0]

    yield open
    while last:
        last.pop().sandbox.close_workspace()
