"""How many requests `plan --base --since` costs: those of what a change touches, whatever else is declared."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from pathlib import Path

import pytest

from lmsconf.apply.applier import Applier
from lmsconf.model.effects import Basis
from lmsconf.model.plan import Plan
from lmsconf.workspace.base_comparison import BaseManifests, ManifestsVersion
from lmsconf.workspace.connection import Connection
from lmsconf.workspace.plan_since import plan_since
from lmsconf.workspace.project_manifests import load_manifests
from lmsconf.workspace.settings_comparison import settings_by_path

from .project import Project, _seen

PAGES = "dialect: {paging.limit: 20}\n"


def seed(people: int, groups: int) -> str:
    return "\n".join(
        [
            "people: [" + ", ".join(f"{{email: p{n}@acme.example, id: u-{n:05}}}" for n in range(people)) + "]",
            declared(groups),
        ]
    )


def declared(groups: int) -> str:
    """So many groups, each with one person."""
    lines = [f"- {{name: G{n}, members: [p{n}@acme.example]}}" for n in range(groups)]
    return "\n".join(["groups:", *lines]) + "\n"


def planned(project: Project, before: str, now: str, *, effects: bool) -> tuple[Plan, Counter[str]]:
    """The plan of a change against a snapshot taken just before, and its requests by operation."""
    settings = project.settings
    policy = replace(settings.policy, effects=effects)
    project.write(before)
    version = ManifestsVersion(load_manifests(settings), policy, settings_by_path(settings))
    base = BaseManifests(name="main", version=version)
    with Connection(settings) as connection:
        snapshot = Applier(settings=settings, connection=connection).snapshot()
    project.write(now)
    with Connection(settings) as connection:
        workspace = Applier(settings=settings, connection=connection)
        made = plan_since(workspace, load_manifests(settings), policy, base, snapshot)
        return made, Counter(call.operation or "" for call in _seen(connection))


@pytest.mark.parametrize("size", [40, 400])
def test_one_changed_group_among_many(tmp_path: Path, size: int) -> None:
    """Its two lists, the pages of the names of groups, and the number of people; nobody else is listed."""
    project = Project(tmp_path, seed(size, size), PAGES)
    now = declared(size).replace("[p7@acme.example]", "[p7@acme.example, p9@acme.example]")
    made, asked = planned(project, declared(size), now, effects=False)
    assert [str(change.address) for change in made.changes] == ["group/G7"]
    assert asked.pop("manual-groups.list") <= size // 20 + 2
    assert asked == {"manual-groups.members": 1, "manual-groups.managers": 1, "users.list": 1}


def test_effects_read_people_live(tmp_path: Path) -> None:
    """Numbers about people rest on what is read now, not on the snapshot: the people and the catalog are listed."""
    project = Project(tmp_path, seed(40, 40))
    now = declared(40).replace("[p7@acme.example]", "[p7@acme.example, p9@acme.example]")
    made, asked = planned(project, declared(40), now, effects=True)
    assert made.effects.basis is Basis.EXACT
    assert asked["users.list"] >= 2
    assert asked["content.list"] >= 1
    assert asked["smart-groups.list"] >= 1


def test_a_change_of_nothing_asks_for_the_number_of_people(tmp_path: Path) -> None:
    """One request."""
    project = Project(tmp_path, seed(40, 40))
    made, asked = planned(project, declared(40), "# A comment.\n" + declared(40), effects=False)
    assert made.changes == ()
    assert asked == {"users.list": 1}
