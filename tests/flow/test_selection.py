"""`--only` and `--except` name what is declared, under `absent` or live; a pattern that matches nothing is an error."""

from __future__ import annotations

from pathlib import Path

import pytest

from lmsconf.errors import ProblemsFound

from .project import Project

SEED = """
groups: [{name: A}, {name: Going}, {name: Own x}, {name: Loose}, {name: Else}]
content: [{name: Intro}, {name: Basics}]
content_targets:
  - {content: Intro, assign_to: [{group: A}, {group: Loose}]}
  - {content: Basics, assign_to: [{group: Loose}]}
"""
OPTIONS = "ownership: {groups: ['Own*'], content_targets: declared_content}\nleave_alone: [group/Else]\n"
MANIFESTS = """
groups: [{name: A}, {name: New}]
content_targets: [{content: Intro, assign_to: [{group: A}]}]
absent: {groups: [Going, Gone]}
"""


@pytest.mark.parametrize(
    "pattern",
    [
        "group/New",
        "group/Going",
        "group/Gone",
        "group/Own x",
        "group/Loose",
        "group/Else",
        "content_target/Intro -> group/A",
        "content_target/Intro -> group/Loose",
        "content_target/Basics -> group/Loose",
    ],
)
def test_what_exists_can_be_left_out(tmp_path: Path, pattern: str) -> None:
    """What is to be created, under `absent` and live or not, owned and undeclared, unmanaged, and left alone."""
    plan = Project(tmp_path, SEED, OPTIONS).plan(MANIFESTS, excluded=(pattern,))
    acts = {str(change.address): str(change.action) for change in plan.changes}
    everything = {
        "group/New": "create",
        "group/Going": "delete",
        "group/Own x": "delete",
        "content_target/Intro -> group/Loose": "delete",
    }
    assert acts == {address: act for address, act in everything.items() if address != pattern}


@pytest.mark.parametrize(("option", "key"), [("--only", "only"), ("--except", "excluded")])
def test_a_pattern_that_matches_nothing_is_an_error(tmp_path: Path, option: str, key: str) -> None:
    """It is probably misspelt; the hint shows how an address looks."""
    with pytest.raises(ProblemsFound) as caught:
        Project(tmp_path, SEED, OPTIONS).plan(MANIFESTS, **{key: ("group/A", "group/Nobody")})
    (problem,) = (one for one in caught.value.problems if one.is_error)
    assert (problem.code, problem.message) == ("select/nothing", f"{option} group/Nobody: no resource matches")
    assert "* is a wildcard" in str(problem.hint)
