"""What is said of a plan that no longer fits, and which state of a resource is between that before a run and after it.

Plans are written down here, so that each differs from the next one in a single value.
"""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from flow.project import Project
from manifest.cases import Case, cases
from msgspec.structs import replace
from views.document_samples import EMPTY

from lmsconf.apply.staleness import find_foreign_changes, find_stale_resources
from lmsconf.errors import LmsconfError, Problem, Severity, StalePlan
from lmsconf.model.address import Address, RemoteId
from lmsconf.model.calls import Call
from lmsconf.model.canonical_json import sha256
from lmsconf.model.plan import Action, Change, GuardCount, Plan
from lmsconf.planner.diff import KeyedNames, diff_forms
from lmsconf.planner.plan import desired_state_of_changes

A, B = Address.of("group", "A"), Address.of("group", "B")
AGAIN = "Plan again and review it."


def change(before: Any, after: Any, *, at: Address = A, id: str | None = "g", **more: Any) -> Change:
    """A change from one form to another."""
    action = Action.CREATE if before is None else Action.DELETE if after is None else Action.UPDATE
    made = Change(
        address=at,
        action=action,
        id=id and RemoteId(id),
        about=None,
        source=None,
        before=before,
        after=after,
        fields=(),
    )
    return replace(made, **more)


def plan(*changes: Change | None, calls: tuple[Call, ...] = (), marks: Mapping[str, str] = {}, **more: Any) -> Plan:
    """A plan of these changes. marks: fingerprints beside those of the states before them."""
    made = [one for one in changes if one is not None]
    return replace(
        EMPTY,
        changes=tuple(made),
        calls=calls,
        policy={},
        fingerprints={str(one.address): sha256(one.before) for one in made} | dict(marks),
        **more,
    )


def told(problems: tuple[Problem, ...]) -> list[str]:
    """The problems as text, without the hint that all of them have."""
    for problem in problems:
        assert problem.code == "plan/stale"
        assert problem.hint is not None
        assert problem.hint.endswith(AGAIN)
    return [f"{one.message}\n{one.hint}".removesuffix(f"\n{AGAIN}") for one in problems]


def written(line: str) -> Change | None:
    """A change of a table: its forms before and after, and perhaps its reason, as JSON."""
    said = line.partition(": ")[2]
    if said == "nothing":
        return None
    before, after, *reason = json.loads(said)
    return change(before, after, reason=reason[0] if reason else None)


@pytest.mark.parametrize("case", cases(Path(__file__).with_name("stale_differences.txt")), ids=lambda case: case.title)
def test_a_stale_plan_says_what_differs_key_by_key(case: Case) -> None:
    """Reviewed, live then and live now; what all of them have is counted, and of a long list ten items are shown."""
    then, now = map(written, case.text.splitlines())
    assert told(find_stale_resources(plan(then), plan(now))) == [case.told.removesuffix("\n")]


def test_what_can_no_longer_be_planned_is_told_with_what_was_reviewed() -> None:
    """The error, the reviewed and the earlier state, and how to mend it; nothing else is said of that resource."""
    errors = (
        Problem(code="x", message="no such person", hint="Write another.", address="group/A"),
        Problem(code="x", message="no such field", address="group/B"),
        Problem(code="x", message="the listing failed"),
    )
    reviewed = plan(change({"note": "x"}, {"note": "y"}), change(None, {"note": "z"}, at=B))
    shown = [
        'no such person, which was different when the plan was made\nreviewed:  {"note": "y"}\n'
        'live then: {"note": "x"}\nWrite another.',
        'no such field, which was different when the plan was made\nreviewed:  {"note": "z"}\nlive then: not there',
        "the listing failed, which was different when the plan was made",
    ]
    assert told(find_stale_resources(reviewed, plan(), errors)) == shown
    assert told(find_foreign_changes(reviewed, plan(), errors)) == shown


def test_an_error_that_the_plan_did_not_have_makes_it_stale() -> None:
    """A warning does not, and neither does an error that was reviewed."""
    one = change({"note": "x"}, {"note": "y"})
    known = Problem(code="a", message="known", address="group/A")
    new, warning = replace(known, code="b", message="new"), replace(known, code="c", severity=Severity.WARNING)
    then, now = plan(one), plan(one)
    for find in (find_stale_resources, find_foreign_changes):
        assert find(replace(then, problems=(known,)), replace(now, problems=(known, warning))) == ()
        found = find(replace(then, problems=(known,)), replace(now, problems=(known, new, warning)))
        assert [(problem.code, problem.message) for problem in found] == [("plan/stale", "new")]


# Whether a plan still fits, as it was made of a workspace.


SEED = """
people: [{email: anna@acme.example}, {email: bo@acme.example}, {email: cy@acme.example}]
groups: [{name: A, members: [anna@acme.example, bo@acme.example, cy@acme.example]}]
"""


@pytest.fixture
def it(tmp_path: Path) -> Project:
    """A group of three; the manifest takes out two of them."""
    made = Project(tmp_path, SEED)
    made.write("groups: [{name: A, members: [anna@acme.example]}]")
    return made


def found(then: Plan, now: Plan) -> list[tuple[str, str | None]]:
    return [(problem.code, problem.address) for problem in find_stale_resources(then, now)]


@pytest.mark.parametrize("guard", ["deletes", "removals", "answers", "updates"])
def test_what_a_plan_takes_away_is_compared_both_ways(it: Project, guard: str) -> None:
    """A plan that says less than is taken by now is stale, and so is one that says more."""
    made = it.plan()
    more = replace(made, measures=(*made.measures, GuardCount(guard=guard, of="group/A members", taken=1, size=3)))
    assert found(made, made) == []
    for then, now in ((made, more), (more, made)):
        assert [code for code, _ in found(then, now)] == [StalePlan.code]


def test_a_plan_that_was_edited_is_refused(it: Project) -> None:
    """A change whose form lacks what identifies it, or that its kind does not allow, is not carried out from a file.

    With another id, or another difference than the one that was planned, it is stale although nothing live differs.
    """
    made = it.plan()
    [change] = made.changes
    nameless = replace(change, after={"members": ["anna@acme.example"]})
    with pytest.raises(StalePlan, match="group/A: the plan describes it incompletely"):
        desired_state_of_changes(replace(made, changes=(nameless,)))
    anna = Address.of("user", "anna@acme.example")
    gone = replace(change, address=anna, action=Action.DELETE, before={"email": anna.name}, after=None)
    with pytest.raises(LmsconfError, match="people are never deleted"):
        desired_state_of_changes(replace(made, changes=(gone,)))
    for edited in (replace(change, id="g-other"), replace(change, fields=())):
        [problem] = find_stale_resources(replace(made, changes=(edited,)), made)
        assert (problem.code, problem.address) == (StalePlan.code, "group/A")
        assert "a new plan has another id for it, or another difference" in problem.message


def test_a_group_that_a_run_has_created_is_part_of_the_plan(it: Project) -> None:
    """A run that was cut short after it created a group goes on with the members of the group."""
    made = it.plan("groups: [{name: B, members: [anna@acme.example]}]")
    it.send("manual-groups.create", body={"name": "B"})
    left = it.plan()
    assert [one.action for one in left.changes] == [Action.UPDATE]
    assert find_foreign_changes(made, left) == ()


@pytest.mark.parametrize(
    ("live", "fits"), [("ab", True), ("b", True), ("bd", True), ("ad", False), ("", False), ("abe", False)]
)
def test_a_list_between_both_states_is_part_of_the_plan(live: str, fits: bool) -> None:
    """It holds every member that the plan keeps, and none that is in neither state."""
    planned = change({"members": [*"abc"]}, {"members": [*"bd"]})
    left = change({"members": [*live]}, {"members": [*"bd"]})
    assert (find_foreign_changes(plan(planned), plan(left)) == ()) is fits


# Differences between two forms: key by key, and of unordered lists the items added and removed.


def lines(before: object, after: object) -> list[str]:
    """The differences of the value `to` of two forms, in one line each."""
    return [
        f"{one.path}: {one.before!r} -> {one.after!r}" if (one.added, one.removed) == ((), ())
        else f"{one.path}: +{[*one.added]} -{[*one.removed]}"
        for one in diff_forms({"to": before}, {"to": after})
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("after", "differences"),
    [
        ({"1": "A", "2": "B"}, []),
        ({"2": "B", "1": "A"}, []),
        ({"1": "A", "3": "C"}, ["to: +['C'] -['B']"]),
        ({"1": "A", "2": "B", "3": "C"}, ["to: +['C'] -[]"]),
        ({"1": "A"}, ["to: +[] -['B']"]),
        ({"1": "Z", "2": "B"}, ["to.A: 'A' -> 'Z'"]),
        ({"1": "B", "2": "A"}, ["to.A: 'A' -> 'B'", "to.B: 'B' -> 'A'"]),
    ],
)
def test_names_that_have_an_identity_can_be_renamed(after: dict[str, str], differences: list[str]) -> None:
    """What has the key that it had is the same thing under another name, and neither comes nor goes."""
    assert lines(KeyedNames({"1": "A", "2": "B"}), KeyedNames(after)) == differences


@pytest.mark.parametrize(
    ("old", "new", "differences"),
    [
        ([{"who": "a", "from": None}], [{"who": "a", "from": "May"}], ["to.0.from: None -> 'May'"]),
        ([{"who": "a"}, {"who": "b"}], [{"who": "a"}, {"who": "c"}], ["to.1.who: 'b' -> 'c'"]),
        ([{"in": {"deep": frozenset("a")}}], [{"in": {"deep": frozenset("b")}}], ["to.0.in.deep: +['b'] -['a']"]),
        ([{"who": "a", "n": 1}], [{"who": "a", "n": True}], ["to.0.n: 1 -> True"]),
        (["a", "b"], ["a", "c"], ["to.1: 'b' -> 'c'"]),
        ([{"who": "a"}], [{"who": "a"}, {"who": "b"}], ["to.1: None -> {'who': 'b'}"]),
        (["a"], ["a", "b"], ["to.1: None -> 'b'"]),
        (["a", "b"], ["a"], ["to.1: 'b' -> None"]),
        ([frozenset("a"), "x"], [frozenset("b"), "x"], ["to.0: +['b'] -['a']"]),
        ([frozenset("a"), "x"], ["x", frozenset("a")], ["to.0: ['a'] -> 'x'", "to.1: 'x' -> ['a']"]),
        ({"a": "1", "b": "2"}, {}, ["to: {'a': '1', 'b': '2'} -> {}"]),
        ({"a": "1", "b": "2"}, {"c": "3"}, ["to: {'a': '1', 'b': '2'} -> {'c': '3'}"]),
        (
            {"a": "1", "b": "2", "c": "3"},
            {"a": "1", "d": "4", "e": "5"},
            ["to: {'a': '1', 'b': '2', 'c': '3'} -> {'a': '1', 'd': '4', 'e': '5'}"],
        ),
        ({"a": "1"}, ["a"], ["to: {'a': '1'} -> ['a']"]),
    ],
)
def test_values_inside_values_are_told_by_their_place(old: object, new: object, differences: list[str]) -> None:
    """In lists whose order matters by position, in mappings by key; mappings with little in common as a whole."""
    assert lines(old, new) == differences


def test_what_has_another_id_is_no_part_of_the_plan() -> None:
    """The resource was deleted and made again under its name: it is another one, though it looks the same."""
    one = change({"note": "x"}, {"note": "y"})
    assert find_foreign_changes(plan(one), plan(one)) == ()
    assert find_foreign_changes(plan(one), plan(replace(one, id=RemoteId("h")))) != ()
