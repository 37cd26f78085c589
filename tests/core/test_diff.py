"""Differences between two forms: key by key, and lists without order by what comes and what goes."""

from __future__ import annotations

import pytest

from lmsconf.model.forms import Form
from lmsconf.model.plan import FieldChange
from lmsconf.planner.diff import KeyedNames, diff_forms


def test_single_values_have_a_before_and_an_after() -> None:
    """Changed, of another type, new, gone, and inside another key; in the order of the keys."""
    before: Form = {"gone": "g", "name": "Old", "size": 1, "same": "x", "more": {"a": "1", "b": "2", "c": "3"}}
    after: Form = {"name": "New", "size": "1", "same": "x", "more": {"a": "1", "b": "3", "d": "4"}, "new": "n"}
    assert diff_forms(before, after) == (
        FieldChange(path="gone", before="g", after=None),
        FieldChange(path="name", before="Old", after="New"),
        FieldChange(path="size", before=1, after="1"),
        FieldChange(path="more.b", before="2", after="3"),
        FieldChange(path="more.c", before="3", after=None),
        FieldChange(path="more.d", before=None, after="4"),
        FieldChange(path="new", before=None, after="n"),
    )


def test_equal_forms_do_not_differ() -> None:
    """Nor do lists without order that hold the same."""
    form: Form = {"name": "A", "members": frozenset({"x", "y"}), "choices": KeyedNames({"1": "X"})}
    assert diff_forms(form, {**form, "members": frozenset({"y", "x"}), "choices": KeyedNames({"1": "X"})}) == ()


def test_a_list_without_order_is_told_by_what_comes_and_what_goes() -> None:
    """Sorted, and nothing that stays."""
    found = diff_forms({"members": frozenset("abc")}, {"members": frozenset("bcde")})
    assert found == (FieldChange(path="members", added=("d", "e"), removed=("a",)),)


@pytest.mark.parametrize(
    ("after", "changes"),
    [
        ({"1": "A", "2": "B"}, ()),
        ({"2": "B", "1": "A"}, ()),
        ({"1": "A", "3": "C"}, (FieldChange(path="choices", added=("C",), removed=("B",)),)),
        ({"1": "A", "2": "B", "3": "C"}, (FieldChange(path="choices", added=("C",)),)),
        ({"1": "A"}, (FieldChange(path="choices", removed=("B",)),)),
        ({"1": "Z", "2": "B"}, (FieldChange(path="choices.A", before="A", after="Z"),)),
        (
            {"1": "B", "2": "A"},
            (
                FieldChange(path="choices.A", before="A", after="B"),
                FieldChange(path="choices.B", before="B", after="A"),
            ),
        ),
    ],
)
def test_names_that_have_an_identity_can_be_renamed(after: dict[str, str], changes: tuple[FieldChange, ...]) -> None:
    """What has the key that it had is the same thing under another name, and neither comes nor goes."""
    assert diff_forms({"choices": KeyedNames({"1": "A", "2": "B"})}, {"choices": KeyedNames(after)}) == changes


def test_keyed_names_show_in_their_order_and_compare_without_it() -> None:
    """Equal ones are one in a set; anything else is not equal to them."""
    one, other = KeyedNames({"1": "A", "2": "B"}), KeyedNames({"2": "B", "1": "A"})
    assert (one.to_json(), other.to_json()) == (["A", "B"], ["B", "A"])
    assert len({one, other}) == 1
    assert KeyedNames({"1": "A"}) != one
    assert one != {"1": "A", "2": "B"}


@pytest.mark.parametrize(
    ("old", "new", "changes"),
    [
        (
            [{"who": "a", "from": None}],
            [{"who": "a", "from": "May"}],
            (FieldChange(path="to.0.from", before=None, after="May"),),
        ),
        (
            [{"who": "a"}, {"who": "b"}],
            [{"who": "a"}, {"who": "c"}],
            (FieldChange(path="to.1.who", before="b", after="c"),),
        ),
        (
            [{"in": {"deep": frozenset("a")}}],
            [{"in": {"deep": frozenset("b")}}],
            (FieldChange(path="to.0.in.deep", added=("b",), removed=("a",)),),
        ),
        ([{"who": "a", "n": 1}], [{"who": "a", "n": True}], (FieldChange(path="to.0.n", before=1, after=True),)),
        (["a", "b"], ["a", "c"], (FieldChange(path="to.1", before="b", after="c"),)),
        ([{"who": "a"}], [{"who": "a"}, {"who": "b"}], (FieldChange(path="to.1", before=None, after={"who": "b"}),)),
        (["a"], ["a", "b"], (FieldChange(path="to.1", before=None, after="b"),)),
        (["a", "b"], ["a"], (FieldChange(path="to.1", before="b", after=None),)),
        ([frozenset("a"), "x"], [frozenset("b"), "x"], (FieldChange(path="to.0", added=("b",), removed=("a",)),)),
        (
            [frozenset("a"), "x"],
            ["x", frozenset("a")],
            (
                FieldChange(path="to.0", before=["a"], after="x"),
                FieldChange(path="to.1", before="x", after=["a"]),
            ),
        ),
        ({"a": "1", "b": "2"}, {}, (FieldChange(path="to", before={"a": "1", "b": "2"}, after={}),)),
        ({"a": "1", "b": "2"}, {"c": "3"}, (FieldChange(path="to", before={"a": "1", "b": "2"}, after={"c": "3"}),)),
        (
            {"a": "1", "b": "2", "c": "3"},
            {"a": "1", "d": "4", "e": "5"},
            (FieldChange(path="to", before={"a": "1", "b": "2", "c": "3"}, after={"a": "1", "d": "4", "e": "5"}),),
        ),
        ({"a": "1"}, ["a"], (FieldChange(path="to", before={"a": "1"}, after=["a"]),)),
    ],
)
def test_values_inside_values_are_told_by_their_place(
    old: object, new: object, changes: tuple[FieldChange, ...]
) -> None:
    """In lists whose order matters by position, in mappings by key; mappings with little in common as a whole."""
    assert diff_forms({"to": old}, {"to": new}) == changes


def test_a_list_in_place_of_a_text_is_another_value() -> None:
    """And a text in place of a list: nothing is added or removed, at the first level and below it."""
    for one, other in ((frozenset({"x"}), "y"), ("y", frozenset({"x"})), (None, frozenset({"x"}))):
        change = {"before": ["x"] if one == frozenset({"x"}) else one, "after": ["x"] if other != "y" else "y"}
        assert diff_forms({"a": one}, {"a": other}) == (FieldChange(path="a", **change),)
        assert diff_forms({"more": {"a": one}}, {"more": {"a": other}}) == (FieldChange(path="more.a", **change),)


def test_lists_without_order_are_compared_inside_a_key() -> None:
    """As at the first level: by what comes and what goes, and by what has another name."""
    found = diff_forms({"more": {"a": frozenset("ab")}}, {"more": {"a": frozenset("bc")}})
    assert found == (FieldChange(path="more.a", added=("c",), removed=("a",)),)
    renamed = diff_forms({"more": {"a": KeyedNames({"1": "A"})}}, {"more": {"a": KeyedNames({"1": "B"})}})
    assert renamed == (FieldChange(path="more.a.A", before="A", after="B"),)
