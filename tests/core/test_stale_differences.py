"""What is said of a plan that no longer fits, and which state of a resource is between that before a run and after it.

Plans are written down here, so that each differs from the next one in a single value.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest
from msgspec.structs import replace

from lmsconf.apply.staleness import find_foreign_changes, find_stale_resources
from lmsconf.errors import Problem, Severity
from lmsconf.model.address import Address, Ref, RemoteId
from lmsconf.model.calls import Call
from lmsconf.model.canonical_json import sha256
from lmsconf.model.plan import Action, Change, GuardCount, Plan

A, B = Address.of("group", "A"), Address.of("group", "B")
AGAIN = "Plan again and review it."
LETTERS = [*"abcdefghijkl"]


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


def call(id: str, at: Address = A, body: object = None) -> Call:
    return Call(id=id, address=at, operation="o", method="POST", path="/p", query={}, body=body)


def plan(*changes: Change | None, calls: tuple[Call, ...] = (), marks: Mapping[str, str] = {}, **more: Any) -> Plan:
    """A plan of these changes. marks: fingerprints beside those of the states before them."""
    made = [one for one in changes if one is not None]
    return Plan(
        workspace="w",
        url="u",
        people=None,
        created_at="",
        expires_at="",
        policy={},
        manifests_digest="",
        manifests_files=(),
        offline=False,
        timezone=None,
        changes=tuple(made),
        calls=calls,
        guards=(),
        unmanaged=(),
        fingerprints={str(one.address): sha256(one.before) for one in made} | dict(marks),
        problems=(),
        **more,
    )


def told(problems: tuple[Problem, ...]) -> list[str]:
    """The problems as text, without the hint that all of them have."""
    for problem in problems:
        assert problem.code == "plan/stale"
        assert problem.hint is not None
        assert problem.hint.endswith(AGAIN)
    return [f"{one.message}\n{one.hint}".removesuffix(f"\n{AGAIN}") for one in problems]


CHANGED = "group/A has changed since the plan was made: "


@pytest.mark.parametrize(
    ("then", "now", "said"),
    [
        (
            change({"members": ["a", "b"]}, {"members": ["b", "c"]}),
            change({"members": ["b", "d"]}, {"members": ["b", "c"]}),
            CHANGED + 'members changed\nmembers (1 unchanged):\n  reviewed:  "c"\n  live then: "a"\n  live now:  "d"',
        ),
        (
            change({"members": ["a"]}, {"members": LETTERS[:10]}),
            change({"members": LETTERS[1:]}, {"members": LETTERS[:10]}),
            CHANGED + 'members changed\nmembers:\n  reviewed:  "a", "b", "c", "d", "e", "f", "g", "h", "i", "j"\n'
            '  live then: "a"\n  live now:  "b", "c", "d", "e", "f", "g", "h", "i", "j", "k", and 1 more',
        ),
        (
            change({"members": ["a"]}, {"members": ["a", "b"]}),
            change({"members": ["a", "a"]}, {"members": ["a", "b"]}),
            CHANGED + 'members changed\nmembers (1 unchanged):\n  reviewed:  "b"\n  live then: only the unchanged\n'
            '  live now:  "a"',
        ),
        (
            change(
                {"name": "A", "note": None, "hidden": False, "metadata": {"ort": "Å"}, "members": []}, {"note": "x: y"}
            ),
            change({"name": "B", "note": "none", "hidden": True, "metadata": {}, "members": ["a"]}, {"note": "x: y"}),
            CHANGED + "name, note, hidden, metadata, members changed\n"
            'name:\n  reviewed:  not there\n  live then: "A"\n  live now:  "B"\n'
            'note:\n  reviewed:  "x: y"\n  live then: none\n  live now:  "none"\n'
            "hidden:\n  reviewed:  not there\n  live then: false\n  live now:  true\n"
            'metadata:\n  reviewed:  not there\n  live then: {"ort": "Å"}\n  live now:  {}\n'
            'members:\n  reviewed:  not there\n  live then: none\n  live now:  "a"',
        ),
        (
            change({"note": "x"}, {"note": "y", "members": ["a"]}),
            change({"note": "x", "members": ["b"]}, {"note": "y", "members": ["a"]}),
            CHANGED + 'members changed\nmembers:\n  reviewed:  "a"\n  live then: not there\n  live now:  "b"',
        ),
        (
            change({"note": "x", "members": ["a"], "managers": ["a", "b"]}, {"note": "y", "groups": ["a", "c"]}),
            change({"note": "x", "managers": ["b", "a"], "groups": ["a", "b"]}, {"note": "y", "groups": ["a", "c"]}),
            CHANGED + "members, groups changed\n"
            'members:\n  reviewed:  not there\n  live then: "a"\n  live now:  not there\n'
            'groups (1 unchanged):\n  reviewed:  "c"\n  live then: not there\n  live now:  "b"',
        ),
        (
            change(None, {"note": "y"}),
            change({"note": "x"}, {"note": "y"}),
            CHANGED
            + 'it did not exist, and now exists\nnote:\n  reviewed:  "y"\n  live then: not there\n  live now:  "x"',
        ),
        (
            change({"note": "x"}, {"note": "y"}),
            change(None, {"note": "y"}),
            CHANGED
            + 'it existed, and no longer exists\nnote:\n  reviewed:  "y"\n  live then: "x"\n  live now:  not there',
        ),
        (
            change({"note": "x"}, None),
            None,
            CHANGED + 'it is already deleted\nnote:\n  reviewed:  not there\n  live then: "x"\n  live now:  not there',
        ),
        (
            change({"note": "x"}, {"note": "y"}),
            None,
            "group/A: it is already as planned; the plan may have been applied before",
        ),
        (None, change({"note": "x"}, {"note": "y"}), "group/A: it is not part of the plan, but would now be"),
        (
            None,
            change({"note": "x"}, None, reason="it is owned"),
            "group/A: it is not part of the plan, but would now be: it is owned",
        ),
    ],
)
def test_a_stale_plan_says_what_differs_key_by_key(then: Change | None, now: Change | None, said: str) -> None:
    """Reviewed, live then and live now; what all of them have is counted, and of a long list ten items are shown."""
    assert told(find_stale_resources(plan(then), plan(now))) == [said]


def test_a_difference_that_the_plan_does_not_show_is_told() -> None:
    """Its fingerprint is of more than the keys that change: another state, of which no declared key differs."""
    one = change({"note": "x"}, {"note": "y"})
    found = told(find_stale_resources(plan(one), plan(one, marks={"group/A": "other"})))
    assert found == [CHANGED + "something changed that the plan does not contain"]


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


def test_the_order_of_lists_and_pairs_means_nothing() -> None:
    """Services list in any order, and so do answers in a body: the plan fits all the same."""
    bodies = [{Ref(A): "1", Ref(B): "2"}, {Ref(B): "2", Ref(A): "1"}]
    forms = [{"members": ["a", "b"]}, {"members": ["b", "a"]}]
    people = ("ann", "bo"), ("bo", "ann")
    then, now = (
        plan(
            change(form, form),
            calls=(replace(call("c1", body={"all": [body]}), people=names),),
            marks={"group/A": "same"},
        )
        for form, body, names in zip(forms, bodies, people, strict=True)
    )
    assert find_stale_resources(then, now) == ()
    other = replace(now, calls=(call("c1", body={"all": [{Ref(A): "1", Ref(B): "3"}]}),))
    assert told(find_stale_resources(then, other)) == [
        "group/A: what it needs has changed since the plan was made, so its calls would differ"
    ]


def test_calls_in_another_order_make_a_plan_stale() -> None:
    """The calls of each resource are the same, and what was reviewed is the order of all."""
    changes = (change({"note": "x"}, {"note": "y"}), change({"note": "x"}, {"note": "y"}, at=B))
    then, now = (plan(*changes, calls=calls) for calls in ((call("c1"), call("c2", B)), (call("c2", B), call("c1"))))
    assert find_stale_resources(then, then) == ()
    assert told(find_stale_resources(then, now)) == ["a new plan has other calls, or another order of calls"]
    swapped = plan(*changes, calls=(call("c1", B), call("c2")))
    assert told(find_stale_resources(then, swapped)) == [
        "c1 (group/A): a new plan has another call there; the file may have been edited"
    ]


def counted(guard: str, taken: int | None) -> GuardCount:
    return GuardCount(guard=guard, of="x", taken=taken, size=9)


@pytest.mark.parametrize("guard", ["deletes", "removals", "answers"])
@pytest.mark.parametrize(
    ("then", "now", "fits"),
    [(2, 2, True), (2, 1, True), (2, 3, False), (0, 1, False), (2, None, False), (None, 5, True), (None, None, True)],
)
def test_what_is_left_of_a_plan_takes_no_more_than_the_plan(
    guard: str, then: int | None, now: int | None, fits: bool
) -> None:
    """Less is left after a part of it was done; where the plan did not know the number, any is part of it."""
    one = change({"note": "x"}, {"note": "y"})
    reviewed, left = (plan(one, measures=(counted(guard, taken), counted("updates", 1))) for taken in (then, now))
    found = told(find_foreign_changes(reviewed, replace(left, measures=(*left.measures, counted("updates", 9)))))
    assert found == ([] if fits else ["what is left of the plan removes other things than its guards counted"])


DONE_IN_PART = {
    "not begun": (change({"members": ["a"]}, {"members": ["b"]}), change({"members": ["a"]}, {"members": ["b"]})),
    "an item added": (change({"members": ["a"]}, {"members": ["b"]}), change({"members": ["a", "b"]}, {})),
    "an item removed": (change({"members": ["a"]}, {"members": ["b"]}), change({"members": []}, {})),
    "one key done": (change({"x": 1, "y": 1}, {"x": 2, "y": 2}), change({"x": 2, "y": 1}, {})),
    "one key of a mapping": (
        change({"m": {"x": "1", "y": "1"}}, {"m": {"x": "2", "z": "2"}}),
        change({"m": {"x": "2", "y": "1", "z": "2"}}, {}),
    ),
    "none and nothing": (change({"x": None}, {"x": 1}), change({}, {})),
    "nothing and none": (change({"y": 1}, {"y": 2}), change({"x": None, "y": 1}, {})),
    "created": (change(None, {"x": 1}, id=None), change({"x": 1, "y": 5}, {"x": 1}, id="new")),
    "created, and a list not filled": (change(None, {"m": ["a"]}, id=None), change({"m": []}, {}, id="new")),
    "to be created still": (change(None, {"x": 1}, id=None), change(None, {"x": 1}, id=None)),
    "replaced": (change({"x": 1}, {"x": 2}, action=Action.REPLACE), change({"x": 1}, {}, id="new")),
    "deleted to be replaced": (change({"x": 1}, {"x": 2}, action=Action.REPLACE), change(None, {"x": 2}, id=None)),
    "emptied to be deleted": (change({"m": ["a", "b"]}, None), change({"m": ["a"]}, None)),
}
BY_OTHERS = {
    "another item": (change({"members": ["a"]}, {"members": ["b"]}), change({"members": ["a", "c"]}, {})),
    "an item twice": (change({"members": ["a"]}, {"members": ["a", "b"]}), change({"members": ["a", "a"]}, {})),
    "an item lacks that stays": (change({"m": ["a"]}, {"m": ["a", "b"]}), change({"m": []}, {})),
    "another value": (change({"x": 1}, {"x": 2}), change({"x": 3}, {})),
    "no value": (change({"x": 1}, {"x": 2}), change({"x": None}, {})),
    "another key": (change({"x": 1}, {"x": 2}), change({"x": 1, "y": 1}, {})),
    "another key of a mapping": (change({"m": {"x": "1"}}, {"m": {"x": "2"}}), change({"m": {"x": "1", "y": "1"}}, {})),
    "another value in a mapping": (change({"m": {"x": "1"}}, {"m": {"x": "2"}}), change({"m": {"x": "3"}}, {})),
    "created otherwise": (change(None, {"x": 1}, id=None), change({"x": 2}, {"x": 1}, id="new")),
    "created again": (change({"x": 1}, {"x": 2}), change({"x": 1}, {"x": 2}, id="new")),
    "deleted by others": (change({"x": 1}, {"x": 2}), change(None, {"x": 2})),
    "to be deleted by now": (change({"x": 1}, {"x": 2}), change({"x": 1}, None)),
    "not to be deleted any more": (change({"x": 1}, None), change({"x": 1}, {"x": 1})),
    "another one to delete": (change({"x": 1}, None), change({"x": 1}, None, id="new")),
    "filled, and to be deleted": (change({"m": ["a"]}, None), change({"m": ["a", "b"]}, None)),
    "not part of it": (None, change({"x": 1}, {"x": 2})),
}


@pytest.mark.parametrize("case", [*DONE_IN_PART, *BY_OTHERS])
def test_what_is_left_of_a_resource_is_between_before_and_after(case: str) -> None:
    """A run goes on from what it can have left itself, and from nothing that others have made since."""
    then, now = (DONE_IN_PART | BY_OTHERS)[case]
    found = find_foreign_changes(plan(then), plan(now))
    assert {problem.address for problem in found} == ({"group/A"} if case in BY_OTHERS else set())


def test_what_a_plan_rests_on_may_not_change_before_the_rest_of_it() -> None:
    """A resource without a change of its own is compared by its fingerprint; one that the plan changes is not."""
    one = change({"note": "x"}, {"note": "y"})
    reviewed = plan(one, marks={"group/B": "1"})
    assert find_foreign_changes(reviewed, plan(replace(one, before={"note": "y"}), marks={"group/B": "1"})) == ()
    assert told(find_foreign_changes(reviewed, plan(one, marks={"group/B": "2", "group/A": "3"}))) == [
        "group/B has changed since the plan was made"
    ]
