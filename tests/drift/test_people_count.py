"""The first line names how many people the workspace has, whether or not the service counts them."""

from __future__ import annotations

import pytest
from stranger.choices import Choices
from stranger.project import FIRST, Case, Open, opening

open_desk = pytest.fixture(opening)


@pytest.mark.parametrize("totals", ["absent", "null", "all"])
def test_people_are_counted_where_the_service_does_not(open_desk: Open, totals: str) -> None:
    """A list that was read to its proven end has a known size, in a plan as in a drift report."""
    desk = open_desk(Case(Choices(totals=totals, page_cap=3), {}), FIRST)
    number = len(desk.stranger.held.users)
    for command in ("plan", "drift"):
        _, out = desk.run(command)
        assert out.splitlines()[0].endswith(f", {number} people."), command


def test_a_list_that_was_not_read_whole_counts_nobody(open_desk: Open) -> None:
    """Rows that come twice are no proven end, so nothing is said that may be wrong."""

    def again(path: str, value: object) -> object:
        if path == "/users" and isinstance(value, dict):
            return {"users": [*value["users"], *value["users"][:1]]}
        return value

    desk = open_desk(Case(Choices(totals="absent"), {}), "groups: [{name: Coaches, members: {include: []}}]")
    desk.stranger.garble = again
    assert "an unknown number of people" in desk.run("plan")[1].splitlines()[0]
