"""`dataclass` of the standard library, but a class's `__init__` is compiled when it has some instances.

The standard decorator compiles six methods for each class, 0.4 ms: a third of the time of a small plan, since most
classes that a command imports get few instances or none. Here only `__init__` is compiled, and the others are closures.
Fields, `replace`, `fields`, inheritance and slots are the standard library's.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from operator import attrgetter
from typing import TYPE_CHECKING, Any, NoReturn

_UNSET = dataclasses.MISSING
_FEW = 20
"""The instances of a class that are made before its `__init__` is compiled, which takes as long."""


def _dataclass(
    cls: type | None = None,
    /,
    *,
    frozen: bool = False,
    slots: bool = False,
    kw_only: bool = False,
    eq: bool = True,
    order: bool = False,
) -> Any:
    """Return the class as a dataclass. Without `slots`, and with `order`, the standard decorator builds it."""

    def build(cls: type) -> type:
        if order or not slots:
            return dataclasses.dataclass(cls, frozen=frozen, slots=slots, kw_only=kw_only, eq=eq, order=order)
        given = {name for name, method in cls.__dict__.items() if callable(method)}
        cls.__doc__ = cls.__doc__ or cls.__name__  # the standard decorator would write the signature, which takes long
        built: type = dataclasses.dataclass(cls, init=False, repr=False, eq=False, slots=True, kw_only=kw_only)
        for name, method in _methods(built, frozen=frozen, eq=eq).items():
            if name not in given:
                setattr(built, name, method)
        return built

    return build if cls is None else build(cls)


if TYPE_CHECKING:
    from dataclasses import dataclass as dataclass
else:
    dataclass = _dataclass


def _methods(cls: type, *, frozen: bool, eq: bool) -> dict[str, object]:
    """Return the methods of a dataclass by name."""
    methods: dict[str, object] = {"__init__": _init(cls, frozen=frozen), "__repr__": _repr}
    if eq:
        values = _values(tuple(field.name for field in dataclasses.fields(cls) if field.compare))
        methods |= {"__eq__": _eq(values), "__hash__": _hash(values) if frozen else None}
    if frozen:
        methods |= {"__setattr__": _refuse_change, "__delattr__": _refuse_deletion}
        methods |= {"__getstate__": _getstate, "__setstate__": _setstate}
    return methods


def _init(cls: type, *, frozen: bool) -> Callable[..., None]:
    """Return an `__init__` that sets the first instances field by field, then replaces itself by the compiled one."""
    left = _FEW

    def __init__(self: object, *args: object, **named: object) -> None:
        nonlocal left
        left -= 1
        if left < 0 or not _set_fields(self, args, named):
            compiled = _compile_init(cls, frozen=frozen)
            cls.__init__ = compiled  # type: ignore[misc]  # that is the point
            compiled(self, *args, **named)

    return __init__


def _set_fields(self: object, args: tuple[object, ...], named: dict[str, object]) -> bool:
    """Set the fields of an instance. Return False if the arguments do not fit: the compiled `__init__` refuses them."""
    given = iter(args)
    used = 0
    for field in dataclasses.fields(self):  # type: ignore[arg-type]  # each instance is one of a dataclass
        value: object = _UNSET
        if field.init:
            value = _UNSET if field.kw_only else next(given, _UNSET)
            if value is _UNSET and field.name in named:
                value = named[field.name]
                used += 1
        if value is _UNSET:
            value = field.default
        if value is _UNSET:
            if field.default_factory is _UNSET:
                if field.init:
                    return False
                continue
            value = field.default_factory()
        object.__setattr__(self, field.name, value)
    return used == len(named) and next(given, _UNSET) is _UNSET


def _compile_init(cls: type, *, frozen: bool) -> Callable[..., None]:
    """Compile the `__init__` of a dataclass, as the standard library would write it."""
    names: dict[str, object] = {"_unset": _UNSET}
    positional: list[str] = []
    keywords: list[str] = []
    lines: list[str] = []
    for field in dataclasses.fields(cls):
        name = value = field.name
        parameter = name
        if field.default is not _UNSET:
            names[f"_default_{name}"] = field.default
            parameter = f"{name}=_default_{name}"
            value = name if field.init else f"_default_{name}"
        elif field.default_factory is not _UNSET:
            names[f"_make_{name}"] = field.default_factory
            parameter = f"{name}=_unset"
            value = f"_make_{name}() if {name} is _unset else {name}" if field.init else f"_make_{name}()"
        elif not field.init:
            continue
        if field.init:
            (keywords if field.kw_only else positional).append(parameter)
        if frozen:
            names[f"_set_{name}"] = getattr(cls, name).__set__  # of the slot; object.__setattr__ would look it up
        lines.append(f"_set_{name}(self, {value})" if frozen else f"self.{name} = {value}")
    parameters = ", ".join(["self", *positional, *(["*", *keywords] if keywords else [])])
    exec(f"def __init__({parameters}):\n " + "\n ".join(lines or ["pass"]), names)  # noqa: S102  # names of fields only
    compiled: Any = names["__init__"]
    compiled.__qualname__ = f"{cls.__qualname__}.__init__"
    return compiled  # type: ignore[no-any-return]  # made by exec


def _values(names: tuple[str, ...]) -> Callable[[object], tuple[object, ...]]:
    """Return a function that takes an instance and returns the values of its fields as a tuple."""
    if len(names) > 1:
        return attrgetter(*names)
    return lambda instance: tuple(getattr(instance, name) for name in names)


def _eq(values: Callable[[object], tuple[object, ...]]) -> Callable[[object, object], bool]:
    def __eq__(self: object, other: object) -> bool:
        return values(self) == values(other) if other.__class__ is self.__class__ else NotImplemented

    return __eq__


def _hash(values: Callable[[object], tuple[object, ...]]) -> Callable[[object], int]:
    def __hash__(self: object) -> int:
        return hash(values(self))

    return __hash__


def _repr(self: Any) -> str:
    shown = (f"{field.name}={getattr(self, field.name)!r}" for field in dataclasses.fields(self) if field.repr)
    return f"{type(self).__qualname__}({', '.join(shown)})"


def _refuse_change(self: object, name: str, value: object) -> NoReturn:
    raise dataclasses.FrozenInstanceError(f"cannot assign to field {name!r}")


def _refuse_deletion(self: object, name: str) -> NoReturn:
    raise dataclasses.FrozenInstanceError(f"cannot delete field {name!r}")


def _getstate(self: Any) -> list[object]:
    return [getattr(self, field.name) for field in dataclasses.fields(self)]


def _setstate(self: Any, state: list[object]) -> None:
    for field, value in zip(dataclasses.fields(self), state, strict=True):
        object.__setattr__(self, field.name, value)
