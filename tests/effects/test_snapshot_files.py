"""What a plan does to people as far as a snapshot file tells, and why the rest is not known."""

from __future__ import annotations

from pathlib import Path

import pytest
from flow.edited_snapshot import Edit, plan_against
from flow.project import Project

from effects.test_whole_effects import SEED
from lmsconf.model.plan import Plan

FEWER = "groups: [{name: Team, members: [ann@x.example, old@x.example]}]"
NARROWED = "smart_groups: [{name: Nordics, conditions: [{field: Country, choices: [SE]}]}]"
TAKEN = """
absent:
  content_targets:
    - {content: B, assign_to: [{smart_group: Nordics}]}
    - {content: A, assign_to: [{group: Team}]}
"""


def planned(tmp_path: Path, change: str, edit: Edit = lambda _: None) -> Plan:
    """The plan of a change against a snapshot of the workspace that was edited."""
    return plan_against(Project(tmp_path, SEED, "guards: off\n"), change, edit)


def numbers(plan: Plan) -> dict[str, tuple[int | None, int | None]]:
    """People before and after, by content and by group."""
    effects = plan.effects
    contents = {one.content: (one.before, one.after) for one in effects.contents}
    return contents | {str(one.address): (one.before, one.after) for one in effects.groups}


@pytest.mark.parametrize(
    ("change", "found"),
    [
        (FEWER, {"A": (2, 1), "group/Team": (2, 1)}),
        (NARROWED, {"B": (3, 2), "smart_group/Nordics": (3, 2)}),
        (TAKEN, {"A": (2, 0), "B": (3, 0)}),
    ],
)
def test_a_whole_snapshot_tells_who_loses_what(tmp_path: Path, change: str, found: dict[str, tuple[int, int]]) -> None:
    """The members of smart groups follow from the answers in it."""
    plan = planned(tmp_path, change)
    assert (numbers(plan), plan.effects.reasons, plan.effects.basis.value) == (found, (), "exact")


@pytest.mark.parametrize(
    ("listing", "change"),
    [
        ("user", FEWER),
        ("content", FEWER),
        ("group", NARROWED),
        ("smart_group", FEWER),
        ("custom_field", FEWER),
        ("content_target", FEWER),
    ],
)
def test_an_incomplete_listing_in_a_snapshot_makes_everything_unknown(
    tmp_path: Path, listing: str, change: str
) -> None:
    """The reason names the listing, and why it is not complete."""
    plan = planned(tmp_path, change, lambda said: said["incomplete"].update({listing: "1 of 2 came"}))
    assert (numbers(plan), plan.effects.people.lose, plan.effects.basis.value) == ({}, None, "unknown")
    assert plan.effects.reasons == (
        f"the snapshot has no complete listing of {listing.replace('_', ' ')}s: 1 of 2 came",
    )


@pytest.mark.parametrize(
    ("lacks", "change", "found", "reason"),
    [
        (("user", "answers"), NARROWED, {"B": None, "smart_group/Nordics": None}, "an unknown format"),
        (("group", "members"), TAKEN, {"A": None, "B": (3, 0)}, "the members of group/Team were not read"),
        (("smart_group", "conditions"), TAKEN, {"A": (2, 0), "B": None}, "Nordics: its conditions were not read"),
    ],
)
def test_what_a_snapshot_lacks_of_one_resource_makes_what_rests_on_it_unknown(
    tmp_path: Path, lacks: tuple[str, str], change: str, found: dict[str, tuple[int, int] | None], reason: str
) -> None:
    """Nobody is taken to be in a group whose members or conditions the file does not hold, nor to be in none."""
    kind, key = lacks
    plan = planned(tmp_path, change, lambda said: said[kind][0].pop(key))
    assert numbers(plan) == {name: sizes or (None, None) for name, sizes in found.items()}
    assert reason in " ".join(plan.effects.reasons)
