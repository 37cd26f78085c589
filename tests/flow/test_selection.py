"""`--only` and `--except` name what is declared, under `absent` or live; a pattern that matches nothing is an error."""

from pathlib import Path

import pytest
from texts import listed_cases

from lmsconf.errors import ExitCode

from .project import Project
from .shell import lmsconf

pytestmark = pytest.mark.sampled(day=8)

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


@listed_cases("pattern")
def test_except_accepts_what_is_declared_absent_or_live(tmp_path: Path, pattern: str) -> None:
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


@pytest.mark.sampled
@listed_cases("typed")
def test_short_forms_mean_the_resource(tmp_path: Path, typed: str) -> None:
    """A section's name, a name alone, and the words of a view; the plan tells which pattern they stand for."""
    plan = Project(tmp_path, SEED, OPTIONS).plan(MANIFESTS, only=(typed,))
    assert [str(change.address) for change in plan.changes] == ["group/New"]
    assert plan.selection.only in {("group/New",), ("group/N*",)}


@pytest.mark.parametrize("typed", ["assignment of Intro to group/Loose", "Intro to group/Loose", "content/Int*"])
def test_phrases_and_patterns_mean_live_assignments(tmp_path: Path, typed: str) -> None:
    """Also of what no manifest declares: here an assignment that the project owns; and all of a content."""
    plan = Project(tmp_path, SEED, OPTIONS).plan(MANIFESTS, excluded=(typed,))
    assert "content_target/Intro -> group/Loose" not in {str(change.address) for change in plan.changes}
    assert {str(change.address) for change in plan.changes} >= {"group/New", "group/Own x"}


def test_words_that_mean_several_resources_are_an_error(tmp_path: Path) -> None:
    """It lists them, as they are to be written."""
    Project(tmp_path, SEED).write(
        "groups: [{name: A b}]\ncustom_fields: [{name: F, type: CHOICE, choices: [x]}]\n"
        "smart_groups: [{name: A b, conditions: [{field: F, choices: [x]}]}]\n"
    )
    ran = lmsconf(tmp_path, "plan", "--only", "A b", code=1)
    assert "--only A b: 2 resources match [select/ambiguous]" in ran.err
    assert "Write one of: --only 'group/A b'; --only 'smart_group/A b'." in ran.err


@listed_cases("typed", "near")
def test_an_unknown_address_gets_the_nearest(tmp_path: Path, typed: str, near: str) -> None:
    """Declared or live, as it is to be written; exit 1."""
    it = Project(tmp_path, SEED, OPTIONS)
    it.write("groups: [{name: Sales}]\ncontent_targets: [{content: Intro, assign_to: [{group: Sales}]}]\n")
    ran = lmsconf(tmp_path, "plan", "--except", typed, code=1)
    assert f"--except {typed}: no resource matches [select/nothing]" in ran.err
    assert f"Did you mean {near}" in ran.err


def test_the_word_of_a_kind_suggests_no_name(tmp_path: Path) -> None:
    """A group called like the kind is not what somebody meant who names another group: the hint shows an address."""
    Project(tmp_path, "groups: [{name: Group North}]").write("groups: [{name: Group North}]\n")
    ran = lmsconf(tmp_path, "plan", "--only", "group/Mentors", code=1)
    assert "--only group/Mentors: no resource matches [select/nothing]" in ran.err
    assert "Did you mean" not in ran.err
    assert "An address is group/Sales" in ran.err
    assert "* is a wildcard" in ran.err


STARRED = """
people: [{email: bo@x.example}]
groups: [{name: All}, {name: "[A]ll"}, {name: A*}, {name: Own *}, {name: Own 1}, {name: R/D}]
content: [{name: "*"}, {name: "1/2"}]
content_targets: [{content: "*", assign_to: [{group: All}]}, {content: "1/2", assign_to: [{group: All}, {group: R/D}]}]
"""


@pytest.mark.sampled(day=1)
def test_every_address_of_a_plan_can_be_pasted(tmp_path: Path) -> None:
    """It means that resource alone, though its name has wildcards, brackets or slashes, and nothing declares it."""
    it = Project(tmp_path, STARRED, "ownership: {groups: ['Own*'], content_targets: all}\n")
    who = "members: [bo@x.example]"
    it.write(f"groups: [{{name: All, {who}}}, {{name: '[A]ll', {who}}}, {{name: A*, {who}}}, {{name: R/D, {who}}}]\n")
    whole = [str(change.address) for change in it.plan().changes]
    assert {"group/A*", "group/[A]ll", "group/R/D", "group/Own *", "content_target/1/2 -> group/R/D"} <= set(whole)
    for address in whole:
        rest = it.plan(excluded=(address,))
        assert [str(change.address) for change in rest.changes] == [one for one in whole if one != address]
    only = it.plan(only=("group/A*",))
    assert [str(change.address) for change in only.changes] == ["group/A*"]
    assert [str(change.address) for change in it.plan(only=only.selection.only).changes] == ["group/A*"]


@pytest.mark.parametrize(
    ("option", "members"),
    [("--only=group/*", "bo@acme.example"), ("--except=user/*", "bo@acme.example, anna@new.example")],
    ids=["removed", "unchanged"],
)
def test_a_rename_that_is_not_selected_shows_the_live_email(tmp_path: Path, option: str, members: str) -> None:
    """A group may lose the person, or keep them under the e-mail that a later plan sets."""
    seed = """
people: [{email: anna@acme.example}, {email: bo@acme.example}]
groups: [{name: A, members: [anna@acme.example, bo@acme.example]}]
"""
    Project(tmp_path, seed, "").write(
        f"users: [{{email: anna@new.example, previously: [anna@acme.example]}}]\n"
        f"groups: [{{name: A, members: [{members}]}}]\n"
    )
    shown = lmsconf(tmp_path, "plan", option).out
    assert ("- anna@acme.example" in shown) is ("anna" not in members)
    assert "- anna@new.example" not in shown
    assert lmsconf(tmp_path, "apply", "--auto-approve", option).code == ExitCode.OK
