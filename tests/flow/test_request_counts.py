"""How many requests a few declared resources cost in a large workspace: no more where there is more of all else."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

from .project import Project

PAGES = "dialect: {paging.limit: 20}\n"
FIVE = """\
custom_fields: [{name: Country}]
groups:
- {name: G1, members: [p1@acme.example, p100@acme.example]}
- {name: G2, managers: [p2@acme.example]}
smart_groups: [{name: S1, managers: [p200@acme.example]}]
content_targets: [{content: C1, assign_to: [{group: G1}]}]
"""


def workspace(people: int, groups: int, smart_groups: int, contents: int) -> str:
    """The five declared resources as they are declared, and many others."""
    lists = {1: "members: [p1@acme.example, p100@acme.example]", 2: "managers: [p2@acme.example]"}
    managed = {1: ", managers: [p200@acme.example]"}
    condition = "conditions: [{field: Country, choices: [SE]}]"
    return "\n".join(
        [
            "people: [" + ", ".join(f"{{email: p{n}@acme.example, id: u-{n:05}}}" for n in range(people)) + "]",
            "custom_fields: [{name: Country, type: CHOICE, choices: [SE, NO]}]",
            "groups:",
            *(f"- {{name: G{n}, {lists.get(n, f'members: [p{n}@acme.example]')}}}" for n in range(groups)),
            "smart_groups:",
            *(f"- {{name: S{n}, {condition}{managed.get(n, '')}}}" for n in range(smart_groups)),
            "content: [" + ", ".join(f"{{name: C{n}}}" for n in range(contents)) + "]",
            "content_targets: [{content: C1, assign_to: [{group: G1}]}, {content: C2, assign_to: [everyone]}]",
        ]
    )


@pytest.mark.parametrize("declared", [FIVE, "content_targets: [{content: C1, assign_to: [{group: G1}]}]\n"])
def test_only_pages_of_listings_grow_with_what_is_not_declared(tmp_path: Path, declared: str) -> None:
    """With ten times as much of all else, each listing has more pages, people excepted, and nothing else is asked."""
    counts = []
    for name, size in (("small", (420, 20, 20, 20)), ("large", (4_200, 200, 200, 200))):
        project = Project(tmp_path / name, workspace(*size), PAGES)
        assert project.plan(declared).changes == ()
        counts.append(Counter(call.operation or "" for call in project.calls))
    small, large = counts
    pages = {"manual-groups.list", "smart-groups.list", "content.list"}
    assert {name for name in small | large if small[name] != large[name]} == pages & large.keys()
    assert all(large[name] <= 200 // 20 + 2 for name in pages)
    assert large["users.list"] == 1


def test_a_plan_of_five_resources_asks_for_these(tmp_path: Path) -> None:
    """Pages of names, and the details of the five; people who are in their lists, by id."""
    project = Project(tmp_path, workspace(4_200, 40, 40, 40), PAGES)
    project.plan(FIVE)
    asked = Counter(call.operation or "" for call in project.calls)
    assert {name: asked[name] for name in sorted(asked) if not name.endswith(".list")} == {
        "manual-groups.managers": 2,
        "manual-groups.members": 2,
        "smart-groups.get": 1,
        "users.get": 2,
    }
    assert asked["content-targets.list"] == 1


@pytest.mark.parametrize(("only", "contents"), [("content_target/C1 -> *", 1), ("smart_group/S1", 0)])
def test_a_selection_asks_for_the_targets_of_its_own_contents(tmp_path: Path, only: str, contents: int) -> None:
    """Also where a pattern stands for several assignments; a selection without any asks for none."""
    project = Project(tmp_path, workspace(420, 20, 20, 20), PAGES)
    project.plan(FIVE, only=(only,))
    assert [call.operation for call in project.calls].count("content-targets.list") == contents


@pytest.mark.parametrize(
    ("groups", "leaving", "read"), [(4, (3,), 2), (3, (0, 2), 2), (3, (0, 1, 2), 3), (2, (3, 4), 2)]
)
def test_the_groups_of_archived_people_are_read_by_person_or_all_of_them(
    tmp_path: Path, groups: int, leaving: tuple[int, ...], read: int
) -> None:
    """By person where these are fewer than all groups; the assigned group G1 is read, too."""
    seed = workspace(40, groups, 2, 3).replace(", p100@acme.example", "").replace(", managers: [p200@acme.example]", "")
    project = Project(tmp_path, seed, "guards: off\n")
    people = ", ".join(f"{{email: p{n}@acme.example, archived: true}}" for n in leaving)
    plan = project.plan(f"users: [{people}]")
    assert [call.operation for call in project.calls].count("manual-groups.members") == read
    left = [str(group.address) for group in plan.effects.groups if group.address.kind == "group"]
    assert left == [f"group/G{n}" for n in leaving if n < groups and n != 2]


def test_assignments_that_are_only_created_are_no_share_of_the_others(tmp_path: Path) -> None:
    """No other content is read to tell how small the share is; its own is read again before it is assigned."""
    project = Project(tmp_path, workspace(210, 20, 2, 20), PAGES)
    groups = ", ".join(f"{{group: G{n}}}" for n in range(1, 16))
    project.plan(f"content_targets: [{{content: C1, assign_to: [{groups}]}}]")
    assert [call.operation for call in project.calls].count("content-targets.list") == 2


@pytest.mark.parametrize(("going", "others"), [(2, 32), (5, 64)])
def test_contents_are_read_until_the_share_that_goes_is_small_enough(tmp_path: Path, going: int, others: int) -> None:
    """A tenth may go: 32 contents are asked for at a time until ten times as many assignments as go are known."""
    contents = ", ".join(f"{{name: C{n}}}" for n in range(80))
    assigned = ", ".join(f"{{content: C{n}, assign_to: [everyone]}}" for n in range(80))
    project = Project(tmp_path, f"content: [{contents}]\ncontent_targets: [{assigned}]\n")
    gone = ", ".join(f"C{n}" for n in range(going))
    project.plan(f"absent: {{content_targets: [{{content: [{gone}], assign_to: [everyone]}}]}}", effects=False)
    assert [call.operation for call in project.calls].count("content-targets.list") == going + others


@pytest.mark.parametrize("content", ["C1", "{name: content c-9, id: c-9}"])
@pytest.mark.parametrize(("audience", "times"), [("everyone", 1), ("{group: G1}", 2)])
def test_a_content_is_read_again_before_it_is_assigned(tmp_path: Path, content: str, audience: str, times: int) -> None:
    """Also one that is found by its id alone; one that has its assignment is read once."""
    seed = (
        "groups: [{name: G1}]\ncontent: [{name: C1, id: c-9}]\ncontent_targets: [{content: C1, assign_to: [everyone]}]"
    )
    project = Project(tmp_path, seed)
    project.plan(f"content_targets: [{{content: {content}, assign_to: [{audience}]}}]", effects=False)
    assert [call.operation for call in project.calls].count("content-targets.list") == times
