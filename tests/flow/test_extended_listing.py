"""Members and managers from the listing of people with their groups, believed only where it fits the others."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from .altered_listing import planned
from .project import Project

SEED = """
people:
  - {email: ann@x.se}
  - {email: bo@x.se}
groups:
  - {name: A, members: [ann@x.se], managers: [bo@x.se]}
  - {name: B, members: [ann@x.se, bo@x.se], managers: [bo@x.se]}
"""
Row = dict[str, object]
_SMART = {"groupId": "g-1", "name": "A smart group"}


def unchanged(rows: list[Row]) -> None:
    """As the service lists them."""


def another_person(rows: list[Row]) -> None:
    """Somebody else is listed in place of a person."""
    rows[0]["userId"] = "u-9"


def without_groups(rows: list[Row]) -> None:
    """A person is listed without groups."""
    del rows[0]["memberOfGroups"]


def without_ids(rows: list[Row]) -> None:
    """A group of a person has no id."""
    rows[0]["memberOfGroups"] = [{"name": "A"}, {"groupId": "g-2", "name": "B"}]


def of_another_name(rows: list[Row]) -> None:
    """A group has the id of another one, and its own name."""
    rows[1]["memberOfGroups"] = [_SMART, {"groupId": "g-2", "name": "B"}]


def managed_by_another_name(rows: list[Row]) -> None:
    """So has one that a person manages."""
    rows[0]["managerOfGroups"] = [_SMART]


def without_names(rows: list[Row]) -> None:
    """Groups are listed by id alone."""
    for row in rows:
        for key in ("memberOfGroups", "managerOfGroups"):
            groups = row[key]
            assert isinstance(groups, list)
            row[key] = [{"groupId": group["groupId"]} for group in groups]


@pytest.mark.parametrize(
    "edit",
    [
        unchanged,
        without_names,
        another_person,
        without_groups,
        without_ids,
        of_another_name,
        managed_by_another_name,
    ],
)
def test_a_listing_that_does_not_fit_hides_and_invents_no_member(
    tmp_path: Path, edit: Callable[[list[Row]], None]
) -> None:
    """Where people, groups or ids are missing, or an id is that of another group, each group is asked."""
    it = Project(tmp_path, SEED)
    it.write(SEED[SEED.index("groups:") :])
    assert planned(it, edit, ("GET", "/users/extended-info")).changes == ()
