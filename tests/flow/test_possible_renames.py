"""A creation beside something like it that no manifest declares: what is compared, how much, and what lets it pass."""

import re
from collections import Counter
from pathlib import Path
from typing import Final

import pytest
from manifest.cases import Case, cases, shown
from texts import listed_cases

from lmsconf.errors import Severity
from lmsconf.model.plan import Plan, PossibleRename

from .project import Project
from .shell import lmsconf

CROWD: Final = [f"p{n:03}@acme.example" for n in range(40)]
PEOPLE: Final = "people:\n" + "".join(f"  - {{email: {one}}}\n" for one in CROWD)
TWO: Final = "[p001@acme.example, p002@acme.example]"
FIELD: Final = "custom_fields: [{name: D, type: CHOICE, choices: [X, Y]}]\n"
POSSIBLE: Final = "guard/possible-rename"
CLOSE: Final = "rename/close-name"
PAGES: Final = "dialect: {paging.limit: 20}\n"


def told(plan: Plan) -> list[tuple[str, str]]:
    """What is said of renames: code and address."""
    found = [one for one in plan.all_problems if one.code.startswith(("rename/", "guard/"))]
    return [(one.code, one.address or "") for one in found]


def members(number: int) -> str:
    """Two people of this number alone."""
    first = number % len(CROWD)
    return f"[{CROWD[first]}, {CROWD[(first + 1 + number // len(CROWD)) % len(CROWD)]}]"


def groups(*names: str, members: str = TWO) -> str:
    return "groups:\n" + "".join(f"  - {{name: {name}, members: {members}}}\n" for name in names)


def test_of_many_that_it_may_be_the_first_are_named(tmp_path: Path) -> None:
    """Three with their lines, and how many more: 56 names in each of many lines hide what else a plan says."""
    it = Project(tmp_path, PEOPLE + groups(*(f"Old {number:02}" for number in range(56))))
    found = [one for one in it.plan(groups("New one", "New two")).all_problems if one.code == POSSIBLE]
    assert [one.address for one in found] == ["group/New one", "group/New two"]
    for one in found:
        assert re.search(r"beside (group/Old \d\d, ){2}group/Old \d\d and 53 more, with the same members", one.message)
        assert re.search(r'write (previously: \["Old \d\d"\] or ){3}53 more\. To create it', str(one.hint))


@listed_cases("live", "new", "is_told")
def test_most_of_the_same_conditions_are_a_note(tmp_path: Path, live: str, new: str, is_told: bool) -> None:
    """Each choice of a field is one; without choices the field is."""
    fields = ", ".join(f"{{name: {name}, type: CHOICE, choices: [A, B, C, E]}}" for name in "DFG")
    old = f"custom_fields: [{fields}]\nsmart_groups: [{{name: S, conditions: [{live}]}}]\n"
    plan = Project(tmp_path, old).plan(f"smart_groups: [{{name: Quite other, conditions: [{new}]}}]")
    assert told(plan) == ([(CLOSE, "smart_group/Quite other")] if is_told else [])


@pytest.mark.sampled(day=8)
@pytest.mark.parametrize("case", cases(Path(__file__).with_name("possible_renames.txt")), ids=lambda case: case.title)
def test_what_is_said_of_a_creation_that_may_be_a_rename(tmp_path: Path, case: Case) -> None:
    """What it may be, what would be lost, and the line that makes it a rename; deletions are compared in any case."""
    first, _, rest = case.text.partition("\n")
    live, _, wanted = rest.partition("---\n")
    plan = Project(tmp_path, PEOPLE + live).plan(wanted, compares=int(first.removeprefix("compares: ")))
    found = [one for one in plan.all_problems if one.code.startswith(("rename/", "guard/"))]
    assert shown(found) + "".join(map(candidates, plan.renames)) == case.told


def candidates(one: PossibleRename) -> str:
    """What a creation may be, and what is close to it."""
    alike, close = (", ".join(old.address.name for old in part) or "-" for part in (one.alike, one.close))
    return f"{one.address} may be {alike}, is close to {close}\n"


def test_members_are_read_where_a_group_with_members_comes(tmp_path: Path) -> None:
    """Of those that no manifest declares; for no other plan, and of nobody's managers."""
    it = Project(tmp_path, PEOPLE + groups("A", "B", "C", members="[p001@acme.example]"), PAGES)
    asked = {}
    for name, manifests in {
        "members": groups("New") + "  - {name: A}\n",
        "one": groups("New", members="[p001@acme.example]"),
        "none": "groups: [{name: New}]",
        "live": groups("A"),
    }.items():
        it.plan(manifests)
        asked[name] = Counter(str(call.operation) for call in it.calls if "manual-groups.m" in str(call.operation))
    # Everybody stands on two pages, and that is no more than two groups to ask.
    assert asked == {
        "members": {"manual-groups.members": 2},
        "one": {},
        "none": {},
        "live": {"manual-groups.members": 1, "manual-groups.managers": 1},
    }


def test_conditions_are_read_where_a_smart_group_comes(tmp_path: Path) -> None:
    """One answer each, and none where all that is declared is live."""
    seed = (
        PEOPLE
        + FIELD
        + "smart_groups: ["
        + ", ".join(
            f"{{name: S{n}, conditions: [{{field: D, choices: [{choice}]}}]}}" for n, choice in enumerate("XYY")
        )
        + "]\n"
    )
    it = Project(tmp_path, seed)
    plan = it.plan("smart_groups: [{name: New, conditions: [{field: D, choices: [X]}]}]")
    assert told(plan) == [(POSSIBLE, "smart_group/New")]
    assert sum(call.operation == "smart-groups.get" for call in it.calls) == 3
    it.plan("smart_groups: [{name: S0, conditions: [{field: D, choices: [X]}]}]")
    assert sum(call.operation == "smart-groups.get" for call in it.calls) == 1


def test_two_hundred_are_compared_and_the_rest_is_told(tmp_path: Path) -> None:
    """The first by id; where a drift report reads the whole workspace, it compares all of it."""
    old = [f"{{name: Old {n}, id: g-{n:03}, members: {members(n)}}}" for n in range(210)]
    it = Project(tmp_path, PEOPLE + "groups: [" + ", ".join(old) + "]\n")
    plan = it.plan(groups("A", members=members(5)) + groups("B", members=members(205)).partition("\n")[2])
    assert told(plan) == [("rename/not-compared", ""), (POSSIBLE, "group/A")]
    (note,) = (one for one in plan.problems if one.code == "rename/not-compared")
    assert note.severity is Severity.NOTE
    assert note.message.startswith("200 of the 210 groups")
    assert note.message.endswith("and 10 were not")
    assert "rename/not-compared" in lmsconf(tmp_path, "drift").out
    assert "rename/not-compared" not in lmsconf(tmp_path, "drift", "--coverage").out


def test_a_saved_plan_that_was_allowed_is_applied(tmp_path: Path) -> None:
    """What it leaves unchanged is not looked at again, and is nobody's twin."""
    it = Project(tmp_path, PEOPLE + groups("Old", "Kept"))
    it.write(groups("New", "Kept"))
    assert lmsconf(tmp_path, "plan", "--out", "saved.plan").code == 0
    assert lmsconf(tmp_path, "apply", "saved.plan").code == 4
    assert lmsconf(tmp_path, "apply", "saved.plan", "--allow", "recreates=1").code == 0
    it.write(groups("New", "Newer", "Old", "Kept"))
    assert lmsconf(tmp_path, "plan", "--out", "saved.plan").code == 0
    assert lmsconf(tmp_path, "apply", "saved.plan").code == 0
