"""The folder in which the laws put their projects, and the doors to a workspace."""

from collections.abc import Iterator
from contextlib import ExitStack
from typing import Protocol

import pytest
from laws.random_manifests import RandomManifests
from laws.random_workspaces import RandomWorkspace
from laws.sandbox_project import SandboxProject, open_stage

from lmsconf.sandbox.faults import FaultScript

Both = tuple[RandomWorkspace, RandomManifests]


class Open(Protocol):
    """Opens a world with a wish; the sandbox before it is let go."""

    def __call__(self, both: Both, faults: FaultScript | None = None) -> SandboxProject: ...


@pytest.fixture(scope="module")
def opened(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Open]:
    folder = tmp_path_factory.mktemp("laws")
    with ExitStack() as before:

        def open(both: Both, faults: FaultScript | None = None) -> SandboxProject:
            before.close()
            stage = open_stage(folder, *both, faults)
            before.callback(stage.sandbox.close_workspace)
            return stage

        yield open
