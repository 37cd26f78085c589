"""`dataclass` of the standard library, but of a class with slots only those are made before it is used.

The standard decorator takes 0.4 ms for each class: a third of the time of a small plan, since most classes that a
command imports get few instances or none. Here fields are read when the first instance is made, and `__init__` is
compiled when there are some. What `fields`, `replace` and `match` read is made by the standard library when they do.
Fields, inheritance and slots are as there; `InitVar` and `KW_ONLY` are not supported.
"""

from __future__ import annotations

import dataclasses
import operator
from collections.abc import Callable
from functools import cached_property
from typing import TYPE_CHECKING, Any, NoReturn

_UNSET = dataclasses.MISSING
_CLASS_VARIABLE = ("ClassVar", "typing.ClassVar")
_ORDERS: tuple[Callable[[Any, Any], Any], ...] = (operator.lt, operator.le, operator.gt, operator.ge)
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
    """Return the class as a dataclass. Without `slots`, the standard decorator builds it."""

    def build(cls: type) -> type:
        if not slots:
            return dataclasses.dataclass(cls, frozen=frozen, slots=slots, kw_only=kw_only, eq=eq, order=order)
        own = dict(cls.__dict__)
        names = [name for name, kind in cls.__annotations__.items() if not str(kind).startswith(_CLASS_VARIABLE)]
        declared = _Declaration({name: own.pop(name, _UNSET) for name in names}, kw_only=kw_only)
        given = {name for name, method in own.items() if callable(method)}
        methods = _methods(declared, frozen=frozen, eq=eq, order=order)
        own |= {name: method for name, method in methods.items() if name not in given}
        own |= {name: _MadeWhenUsed(declared, name, make) for name, make in _STANDARD.items()}
        inherited = {slot for base in cls.__mro__[1:] for slot in base.__dict__.get("__slots__", ())}
        own["__slots__"] = tuple(name for name in names if name not in inherited)
        own |= {"__doc__": cls.__doc__ or cls.__name__, "__qualname__": cls.__qualname__, "__declared__": declared}
        own.pop("__dict__", None)
        own.pop("__weakref__", None)
        declared.cls = type(cls)(cls.__name__, cls.__bases__, own)
        return declared.cls

    return build if cls is None else build(cls)


if TYPE_CHECKING:
    from dataclasses import dataclass as dataclass
else:
    dataclass = _dataclass


class _Declaration:
    """What a class itself declares. defaults: field → its default, `field(…)` or MISSING. cls: the decorated class."""

    cls: type

    def __init__(self, defaults: dict[str, Any], *, kw_only: bool) -> None:
        self._defaults, self._kw_only = defaults, kw_only

    @cached_property
    def fields(self) -> tuple[dataclasses.Field[Any], ...]:
        """Its fields, after those of its bases. Raises TypeError for a base that is a dataclass without slots."""
        found: dict[str, dataclasses.Field[Any]] = {}
        for base in reversed(self.cls.__mro__[1:]):
            if declared := base.__dict__.get("__declared__"):
                found |= {field.name: field for field in declared.fields}
            elif "__dataclass_fields__" in base.__dict__:
                raise TypeError(f"{self.cls.__name__} has slots, and its base class {base.__name__} has none")
        for name, default in self._defaults.items():
            field: Any = default if isinstance(default, dataclasses.Field) else dataclasses.field(default=default)
            field.name = name
            if field.kw_only is _UNSET:
                field.kw_only = self._kw_only
            found[name] = field
        return tuple(found.values())

    @cached_property
    def values(self) -> Callable[[object], tuple[object, ...]]:
        """A function that takes an instance and returns the values that are compared."""
        names = [field.name for field in self.fields if field.compare]
        if len(names) > 1:
            return operator.attrgetter(*names)
        return lambda instance: tuple(getattr(instance, name) for name in names)

    @cached_property
    def standard(self) -> Any:
        """A class with the same fields of its own, by the standard decorator."""
        given = {name: default for name, default in self._defaults.items() if default is not _UNSET}
        # Without a docstring the standard decorator would write one, of the signature, which takes long.
        about = {
            "__annotations__": self.cls.__annotations__,
            "__module__": self.cls.__module__,
            "__doc__": self.cls.__doc__,
        }
        same = type(self.cls.__name__, (), {**given, **about})
        return dataclasses.dataclass(same, init=False, repr=False, eq=False, kw_only=self._kw_only)

    @property
    def standard_fields(self) -> dict[str, object]:
        """`__dataclass_fields__` of the class."""
        inherited = (getattr(base, "__dataclass_fields__", {}) for base in reversed(self.cls.__mro__[1:]))
        return {
            name: field for fields in (*inherited, self.standard.__dataclass_fields__) for name, field in fields.items()
        }


class _MadeWhenUsed:
    """An attribute of a decorated class that is made when it is first read."""

    def __init__(self, declared: _Declaration, name: str, make: Callable[[_Declaration], object]) -> None:
        self._declared, self._name, self._make = declared, name, make

    def __get__(self, instance: object, owner: type) -> object:
        made = self._make(self._declared)
        setattr(self._declared.cls, self._name, made)
        return made


_STANDARD: dict[str, Callable[[_Declaration], object]] = {
    "__dataclass_fields__": lambda declared: declared.standard_fields,
    "__dataclass_params__": lambda declared: declared.standard.__dataclass_params__,
    "__match_args__": lambda declared: tuple(
        field.name for field in declared.fields if field.init and not field.kw_only
    ),
}


def _methods(declared: _Declaration, *, frozen: bool, eq: bool, order: bool) -> dict[str, object]:
    """Return the methods of a dataclass by name."""
    methods: dict[str, object] = {"__init__": _init(declared, frozen=frozen), "__repr__": _repr}
    if eq:
        methods |= {"__eq__": _comparison(declared, operator.eq), "__hash__": _hash(declared) if frozen else None}
    if order:
        methods |= {f"__{compare.__name__}__": _comparison(declared, compare) for compare in _ORDERS}
    if frozen:
        methods |= {"__setattr__": _refuse_change, "__delattr__": _refuse_deletion}
        methods |= {"__getstate__": _getstate, "__setstate__": _setstate}
    return methods


def _init(declared: _Declaration, *, frozen: bool) -> Callable[..., None]:
    """Return an `__init__` that sets the first instances field by field, then replaces itself by the compiled one."""
    left = _FEW

    def __init__(self: object, *args: object, **named: object) -> None:
        nonlocal left
        left -= 1
        if left < 0 or not _set_fields(declared.fields, self, args, named):
            compiled = _compile_init(declared, frozen=frozen)
            declared.cls.__init__ = compiled  # type: ignore[misc]  # that is the point
            compiled(self, *args, **named)

    return __init__


def _set_fields(
    fields: tuple[dataclasses.Field[Any], ...], self: object, args: tuple[object, ...], named: dict[str, object]
) -> bool:
    """Set the fields of an instance. Return False if the arguments do not fit: the compiled `__init__` refuses them."""
    given = iter(args)
    used = 0
    for field in fields:
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


def _compile_init(declared: _Declaration, *, frozen: bool) -> Callable[..., None]:
    """Compile the `__init__` of a dataclass, as the standard library would write it."""
    names: dict[str, object] = {"_unset": _UNSET}
    positional: list[str] = []
    keywords: list[str] = []
    lines: list[str] = []
    for field in declared.fields:
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
            # Of the slot; object.__setattr__ would look it up.
            names[f"_set_{name}"] = getattr(declared.cls, name).__set__
        lines.append(f"_set_{name}(self, {value})" if frozen else f"self.{name} = {value}")
    parameters = ", ".join(["self", *positional, *(["*", *keywords] if keywords else [])])
    exec(f"def __init__({parameters}):\n " + "\n ".join(lines or ["pass"]), names)  # noqa: S102  # names of fields only
    compiled: Any = names["__init__"]
    compiled.__qualname__ = f"{declared.cls.__qualname__}.__init__"
    return compiled  # type: ignore[no-any-return]  # made by exec


def _comparison(declared: _Declaration, compare: Callable[[Any, Any], Any]) -> Callable[[object, object], Any]:
    def method(self: object, other: object) -> Any:
        if other.__class__ is not self.__class__:
            return NotImplemented
        values = declared.values
        return compare(values(self), values(other))

    return method


def _hash(declared: _Declaration) -> Callable[[object], int]:
    def __hash__(self: object) -> int:
        return hash(declared.values(self))

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
