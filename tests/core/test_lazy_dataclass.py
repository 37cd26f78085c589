"""A lazily compiled dataclass behaves as one of the standard library."""

from __future__ import annotations

import copy
import dataclasses
import pickle
from collections.abc import Callable
from typing import Any, ClassVar

import pytest

from lmsconf.support.lazy_dataclass import dataclass as lazy_dataclass


def _classes(dataclass: Callable[..., Any]) -> dict[str, Any]:
    """The same classes by one decorator."""

    @dataclass(frozen=True, slots=True)
    class Plain:
        """Two values."""

        a: int
        b: str = "b"

    @dataclass(frozen=True, slots=True, kw_only=True)
    class Keywords:
        a: int = 1
        b: list[int] = dataclasses.field(default_factory=list, compare=False)
        c: int = dataclasses.field(default=3, init=False)

    @dataclass(slots=True)
    class Changing:
        a: int
        b: dict[str, int] = dataclasses.field(default_factory=dict, repr=False)

    @dataclass(slots=True, eq=False)
    class ByIdentity:
        a: int

    @dataclass(frozen=True, slots=True)
    class Below(Plain):
        c: int = 5

    @dataclass(frozen=True, slots=True)
    class Own:
        a: int

        def __eq__(self, other: object) -> bool:
            return isinstance(other, Own)

        def __hash__(self) -> int:
            return 7

        def __repr__(self) -> str:
            return "own"

    @dataclass(frozen=True, slots=True, order=True)
    class Ordered:
        kind: ClassVar[str] = "ordered"
        a: int
        b: str = dataclasses.field(default="b", compare=False)

    @dataclass(frozen=True, slots=True)
    class Empty:
        pass

    return {one.__name__: one for one in (Plain, Keywords, Changing, ByIdentity, Below, Own, Ordered, Empty)}


STANDARD, LAZY = _classes(dataclasses.dataclass), _classes(lazy_dataclass)
ARGUMENTS: dict[str, list[tuple[tuple[object, ...], dict[str, object]]]] = {
    "Plain": [((1,), {}), ((1, "c"), {}), ((), {"b": "x", "a": 2}), ((), {}), ((1,), {"z": 1}), ((1, 2, 3), {})],
    "Keywords": [((), {}), ((), {"a": 2, "b": [1]}), ((1,), {}), ((), {"c": 4})],
    "Changing": [((1,), {}), ((1, {"x": 1}), {}), ((), {"a": 1}), ((), {})],
    "ByIdentity": [((1,), {})],
    "Below": [((1,), {}), ((1, "c", 6), {}), ((), {"c": 7})],
    "Own": [((1,), {})],
    "Ordered": [((1,), {}), ((), {"a": 1, "b": "c"}), ((), {"a": 1, "kind": "x"})],
    "Empty": [((), {}), ((1,), {})],
}
CASES = [(name, args, named) for name, calls in ARGUMENTS.items() for args, named in calls]


def _outcome(work: Callable[[], object]) -> object:
    """What a call returns, as text, or its error."""
    try:
        return repr(work())
    except Exception as error:
        return type(error), str(error)


@pytest.mark.parametrize(("name", "args", "named"), CASES)
def test_instances_are_made_alike(name: str, args: tuple[object, ...], named: dict[str, object]) -> None:
    """The same arguments give the same values, text and errors: the first time, and once `__init__` is compiled."""
    cls = _classes(lazy_dataclass)[name]
    for _ in range(50):
        made = _outcome(lambda: cls(*args, **named))
        if name != "ByIdentity" or not isinstance(made, str):
            assert made == _outcome(lambda: STANDARD[name](*args, **named))


@pytest.mark.parametrize("name", [name for name in LAZY if name != "Empty"])
def test_instances_are_compared_and_changed_alike(name: str) -> None:
    """Equality, hashes, changes of frozen values, copies and pickled copies are as with the standard library."""
    told = []
    for classes in (STANDARD, LAZY):
        cls = classes[name]
        one, same, other = (cls(a=number) for number in (1, 1, 2))
        told.append(
            [
                one == same,
                one == other,
                one == "text",
                [_outcome(lambda one=one, than=than: one < than) for than in (same, other, "text")],
                [_outcome(lambda one=one, than=than: one >= than) for than in (same, other, "text")],
                isinstance(one, classes["Plain"]),
                cls.__match_args__,
                [(field.name, field.init, field.kw_only) for field in dataclasses.fields(cls)],
                _outcome(lambda one=one, same=same: hash(one) == hash(same)),
                _outcome(lambda one=one: setattr(one, "a", 5)),
                _outcome(lambda one=one: delattr(one, "a")),
                dataclasses.replace(other, a=9).a,
                copy.copy(other).a,
                copy.deepcopy(other).a,
                hasattr(one, "__dict__"),
            ]
        )
    assert told[0] == told[1]


def test_a_frozen_value_can_be_pickled() -> None:
    """A frozen value with slots survives pickling, though its attributes cannot be set."""
    assert pickle.loads(pickle.dumps(Kept(1))) == Kept(1)  # noqa: S301  # our own bytes


@lazy_dataclass(frozen=True, slots=True)
class Kept:
    a: int
    b: str = "b"


def test_values_of_other_classes_are_not_equal() -> None:
    """A class below another one has values of its own, though their fields are the same."""
    assert LAZY["Plain"](1) != LAZY["Below"](1)
    assert hash(LAZY["Plain"](1)) == hash(STANDARD["Plain"](1))


def test_slots_below_a_dataclass_without_slots_are_refused() -> None:
    """The fields of such a base would have no place."""

    @lazy_dataclass(frozen=True)
    class Loose:
        a: int

    @lazy_dataclass(frozen=True, slots=True)
    class Tight(Loose):
        b: int

    with pytest.raises(TypeError, match="Tight has slots, and its base class Loose has none"):
        Tight(1, 2)
