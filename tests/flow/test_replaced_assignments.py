"""What a plan says of the assignments of an earlier content: who keeps it, and for whom it is not replaced."""

from __future__ import annotations

from pathlib import Path

import pytest

from lmsconf.errors import ProblemsFound

from .project import Project

GROUPS = tuple("ABCDEFG")


def made(root: Path, groups: tuple[str, ...], *, timezone: str = "") -> Project:
    audiences = ", ".join(f"{{group: {name}}}" for name in groups)
    """A project in which both people are in progress on the earlier content, which is assigned to one of them."""
    return Project(
        root,
        "people: [{email: ann@x.example}, {email: bo@x.example}]\n"
        f"groups: [{', '.join(f'{{name: {name}}}' for name in groups)}]\n"
        "content: [{name: Old}, {name: New}]\n"
        f"content_targets: [{{content: Old, assign_to: [{audiences}, {{user: ann@x.example}}]}}]\n"
        "participations:\n  - {user: ann@x.example, content: Old, state: IN_PROGRESS}\n"
        "  - {user: bo@x.example, content: Old, state: IN_PROGRESS}\n",
        timezone,
    )


@pytest.mark.parametrize(
    ("groups", "named"),
    [
        (GROUPS[:6], "group/B, group/C, group/D, group/E, group/F"),
        (GROUPS[:7], "group/B, group/C, group/D, group/E, group/F and 1 more"),
    ],
)
def test_a_note_names_five_audiences_that_keep_the_earlier_content(
    tmp_path: Path, groups: tuple[str, ...], named: str
) -> None:
    """The others are counted."""
    it = made(tmp_path, groups)
    plan = it.plan(
        "content_targets: [{content: New, assign_to: [{group: A}, {user: ann@x.example}],"
        " replaces: {content: Old, then: remove}}]"
    )
    (note,) = (one for one in plan.all_problems if one.code == "content-target/replaces-others")
    assert note.message == f"Old stays assigned to {named}: this entry does not assign New to them"


@pytest.mark.parametrize(
    ("timezone", "says"),
    [
        ("timezone: Europe/Stockholm\n", "and kept until 2026-06-01T00:30:00+02:00"),
        ("timezone: America/New_York\n", "and not kept: `keep` was until 2026-05-31T18:30:00-04:00"),
    ],
)
def test_who_is_in_progress_keeps_a_content_to_the_end_of_a_day_of_the_project(
    tmp_path: Path, timezone: str, says: str
) -> None:
    """The day is that of the project's time zone: one that is over in the west may have just begun in the east.

    Who is in progress without the assignment that is replaced is not counted.
    """
    it = made(tmp_path, ("A",), timezone=timezone)
    plan = it.plan(
        "content_targets: [{content: New, assign_to: [{user: ann@x.example}],"
        " replaces: {content: Old, then: remove}, keep: {in_progress: true, until: '2026-06-01T00:30:00+02:00'}}]"
    )
    (note,) = (one for one in plan.all_problems if one.code == "content-target/in-progress")
    assert note.message == f"content_target/Old -> user/ann@x.example: 1 person is in progress {says}"


@pytest.mark.parametrize(
    ("window", "is_changed"),
    [
        ("", False),
        (", visible_until: '2027-01-31T00:00:00Z'", False),
        (", visible_until: '2026-12-31T00:00:00Z'", False),
        (", visible_until: '2026-12-30T23:59:59Z'", True),
    ],
    ids=["open", "later", "the same", "earlier"],
)
def test_who_has_the_earlier_content_for_longer_keeps_that_assignment(
    tmp_path: Path, window: str, is_changed: bool
) -> None:
    """A member of a group who is in progress keeps the content by an assignment of their own, at least until then."""
    it = Project(
        tmp_path,
        "people: [{email: ann@x.example}]\ngroups: [{name: A, members: [ann@x.example]}]\n"
        "content: [{name: Old}, {name: New}]\ncontent_targets:\n  - {content: Old, assign_to: [{group: A}]}\n"
        f"  - {{content: Old{window}, assign_to: [{{user: ann@x.example}}]}}\n"
        "participations: [{user: ann@x.example, content: Old, state: IN_PROGRESS}]\n",
    )
    plan = it.plan(
        "content_targets: [{content: New, assign_to: [{group: A}], replaces: {content: Old, then: remove},"
        " keep: {in_progress: true, until: '2026-12-31T00:00:00Z'}}]"
    )
    own = [one for one in plan.changes if str(one.address) == "content_target/Old -> user/ann@x.example"]
    assert bool(own) is is_changed
    assert len(plan.changes) - len(own) == 2


def test_a_replaced_content_that_the_catalog_lacks_is_told_with_the_nearest_name(tmp_path: Path) -> None:
    """A name with a typing error is an error, and nothing is replaced."""
    it = made(tmp_path, ("A",))
    with pytest.raises(ProblemsFound) as raised:
        it.plan("content_targets: [{content: New, assign_to: [{group: A}], replaces: {content: Olld, then: remove}}]")
    (problem,) = (one for one in raised.value.problems if one.is_error)
    assert (problem.code, problem.hint) == ("content-target/replaces-unknown", 'Did you mean "Old"?')


def test_a_content_cannot_replace_itself_under_another_name(tmp_path: Path) -> None:
    """An export names a content by its id where manifests cannot hold its name: that is the same content."""
    it = Project(tmp_path, "content: [{name: Old, id: c-1}]\n")
    with pytest.raises(ProblemsFound) as raised:
        it.plan(
            "content_targets:\n  - content: {name: content c-1, id: c-1}\n    assign_to: [everyone]\n"
            "    replaces: {content: Old, then: remove}\n"
        )
    [problem] = [one for one in raised.value.problems if one.is_error]
    assert (problem.code, str(problem.source)) == ("content-target/replaces", "manifests/all.yaml:4:15")
    assert problem.message == (
        "content_target/content c-1 -> everyone: Old is the same content under another name, and cannot replace itself"
    )
