"""The suite really speaks two dialects: what it says of a project is what the project and its service go by."""

from __future__ import annotations

from pathlib import Path

import pytest

from lmsconf.errors import Rejected
from lmsconf.workspace.connection import Connection

from . import project
from .project import Project


def test_the_project_says_every_key(tmp_path: Path) -> None:
    """All keys of the dialect reach the settings, also where a test says one of them itself."""
    assert Project(tmp_path, "", "timezone: UTC\n").settings.dialect == dict(project.SPOKEN)
    it = Project(tmp_path, "", "dialect:\n  paging.limit: 7   # why\n")
    assert it.settings.dialect == {**project.SPOKEN, "paging.limit": 7}


def test_the_service_takes_its_own_words_only(tmp_path: Path, spoken: str) -> None:
    """A body in the words of the other dialect is refused."""
    it = Project(tmp_path, "groups: [{name: A, id: g-1}]")
    mine = it.spec.behaviour("manual-groups.rename.name")
    assert (mine == "name") is (spoken == "assumed")
    other = "name" if spoken == "second" else "label"
    with Connection(it.settings) as connection, connection.worker_pool(1) as pool:
        path = "/groups/g-1/rename"
        with pytest.raises(Rejected, match="400"):
            pool.submit(lambda client: client.send("POST", path, body={other: "B"})).result()
        pool.submit(lambda client: client.send("POST", path, body={mine: "B"})).result()
