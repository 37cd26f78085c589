"""Two runs of the same manifests at once, in thousands of orders of their requests."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from sampling import WHOLE, of_today

from lmsconf.workspace.project_manifests import load_manifests

from .interleaving import project, race

MANIFEST = "groups: [{name: Coaches}, {name: Mentors}]\n"
WANTED = ["Coaches", "Mentors"]
CHUNK, CHUNKS = 250, 20
"""5,000 orders in all, which SIMULATION=all plays."""
ENDS = {"done", "held", "stale", "nothing to do", "error: read/incomplete"}
"""The last one where the other's lock came or went between two pages of the same listing, and then again."""


@pytest.mark.parametrize("chunk", range(CHUNKS))
def test_with_the_lock_nothing_is_made_twice(tmp_path: Path, chunk: int) -> None:
    """Whatever the order: what is live is there once, no lock is left, and each run ends in words of its own."""
    settings = project(tmp_path, MANIFEST)
    manifests = load_manifests(settings)
    done = 0
    # An order takes a twentieth of a second: every day plays a twentieth of this commit's tenth, and the gate a tenth.
    step = 1 if os.environ.get("SIMULATION") == "all" else 10 if WHOLE else 20
    seeds = of_today(range(chunk * CHUNK, (chunk + 1) * CHUNK))[chunk % step :: step]
    for seed in seeds:
        found = race(settings, manifests, seed, locked=True)
        assert set(found.names) <= set(WANTED), (seed, found)
        assert len(found.names) == len(set(found.names)), (seed, found)
        assert set(found.ends) <= ENDS, (seed, found)
        assert (found.names == WANTED) == ("done" in found.ends), (seed, found)
        done += "done" in found.ends
    assert done > len(seeds) / 4 or len(seeds) < 10


@pytest.mark.sampled
def test_without_the_lock_there_are_duplicates(tmp_path: Path) -> None:
    """The same test can fail: without the lock, many orders leave something twice."""
    settings = project(tmp_path, MANIFEST)
    manifests = load_manifests(settings)
    races = [race(settings, manifests, seed, locked=False).names for seed in range(60)]
    doubled = sum(len(names) > len(set(names)) for names in races)
    assert doubled > 60 / 10
