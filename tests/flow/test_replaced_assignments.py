"""What a plan says of the assignments of an earlier content: who keeps it, and for whom it is not replaced."""

from __future__ import annotations

from pathlib import Path

import pytest

from .project import Project

GROUPS = tuple("ABCDEFG")


def made(root: Path, groups: tuple[str, ...], *, timezone: str = "") -> Project:
    audiences = ", ".join(f"{{group: {name}}}" for name in groups)
    return Project(
        root,
        f"people: [{{email: ann@x.example}}]\ngroups: [{', '.join(f'{{name: {name}}}' for name in groups)}]\n"
        "content: [{name: Old}, {name: New}]\n"
        f"content_targets: [{{content: Old, assign_to: [{audiences}, {{user: ann@x.example}}]}}]\n"
        "participations: [{user: ann@x.example, content: Old, state: IN_PROGRESS}]\n",
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
    """The day is that of the project's time zone: one that is over in the west may have just begun in the east."""
    it = made(tmp_path, ("A",), timezone=timezone)
    plan = it.plan(
        "content_targets: [{content: New, assign_to: [{user: ann@x.example}],"
        " replaces: {content: Old, then: remove}, keep: {in_progress: true, until: '2026-06-01T00:30:00+02:00'}}]"
    )
    (note,) = (one for one in plan.all_problems if one.code == "content-target/in-progress")
    assert note.message == f"content_target/Old -> user/ann@x.example: 1 person is in progress {says}"
