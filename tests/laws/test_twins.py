"""A snapshot that is loaded into a sandbox makes a workspace that reads as the one that it was taken of."""

from __future__ import annotations

import dataclasses
import json

import pytest
from hypothesis import given
from wire.second_dialect import second_dialect

from laws.conftest import Open
from laws.hypothesis_profile import tried
from laws.random_manifests import RandomManifests, wishes
from laws.random_workspaces import RandomWorkspace
from laws.sandbox_project import NOW
from lmsconf.documents import snapshot_file
from lmsconf.sandbox.seed import fill_workspace
from lmsconf.sandbox.service import Sandbox

Both = tuple[RandomWorkspace, RandomManifests]


@pytest.mark.parametrize("second", [False, True], ids=["assumed", "second"])
def test_a_twin_reads_as_the_workspace(opened: Open, second: bool) -> None:
    """What a snapshot holds is in the twin, by the same ids, whatever the dialect."""

    @tried(200)
    @given(wishes())
    def holds(both: Both) -> None:
        world, wish = both
        stage = opened((dataclasses.replace(world, dialect=second_dialect()) if second else world, wish))
        text = snapshot_file.dumps(stage.workspace.snapshot(manifests=stage.manifests()))
        twin = Sandbox(spec=stage.sandbox.spec, clock=lambda: NOW)
        try:
            with twin.store.write_transaction() as repository:
                fill_workspace(repository, json.loads(text), spec=twin.spec)
            again = stage.seen_through(twin).workspace.snapshot(manifests=stage.manifests())
            assert snapshot_file.dumps(again) == text
        finally:
            twin.close_workspace()

    holds()
