"""Rows as JSON and back: dataclasses and named tuples of texts, numbers, flags, rows, and sets or lists of them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import is_dataclass
from functools import cache
from types import NoneType, UnionType
from typing import Any, TypeVar, Union, cast, get_args, get_origin, get_type_hints

from lmsconf.model.values import Json

Row = TypeVar("Row")
_Read = Callable[[Json], object]


def row_json(value: object, *, in_order: bool = False) -> Json:
    """A row as JSON: its fields by name, sets sorted, what is None left out.

    A list of choices, conditions or answers means nothing by its order, so it is sorted too. in_order: it keeps the
    order in which the service told it.
    """
    if value is None or isinstance(value, str | bool | int | float):
        return value
    if hasattr(value, "_asdict"):
        return {key: row_json(item, in_order=in_order) for key, item in value._asdict().items() if item is not None}
    if isinstance(value, frozenset | tuple):
        items = [row_json(item, in_order=in_order) for item in value]
        # What is no list of objects is a pair, of a key and its value.
        is_set = isinstance(value, frozenset) or (not in_order and all(isinstance(item, dict) for item in items))
        return sorted(items, key=str) if is_set else items
    return {
        name: row_json(item, in_order=in_order)
        for name in value.__dataclass_fields__  # type: ignore[attr-defined]  # a row is a dataclass
        if (item := getattr(value, name)) is not None
    }


def row_value(kind: type[Row], value: Json) -> Row:
    """The row that `row_json` wrote. Raises ValueError for anything else: wrong types, keys too many or too few."""
    return cast(Row, _reads(cast(Any, kind))(value))


@cache
def _reads(type_: Any) -> _Read:  # type hints have no type of their own
    """What makes a value of a type from its JSON. It is put together once a type, and then only called."""
    parts = get_args(type_)
    match get_origin(type_):
        case origin if origin is Union or origin is UnionType:
            # What is None was left out, so it never stands here.
            [wanted] = [part for part in parts if part is not NoneType]
            return _reads(wanted)
        case origin if origin is frozenset:
            item = _reads(parts[0])
            return lambda value: frozenset(map(item, _list(value)))
        case origin if origin is tuple and parts[-1] is Ellipsis:
            item = _reads(parts[0])
            return lambda value: tuple(map(item, _list(value)))
        case origin if origin is tuple:
            items = [_reads(part) for part in parts]
            return lambda value: tuple(read(one) for read, one in zip(items, _list(value), strict=True))
    if is_dataclass(type_) or hasattr(type_, "_fields"):
        return _reads_row(type_)
    return _reads_scalar(getattr(type_, "__supertype__", type_))


def _reads_row(type_: Any) -> _Read:
    hints = get_type_hints(type_)
    fields = {name: _reads(hint) for name, hint in hints.items()}
    # A named tuple has no defaults, and what is None in it was left out all the same.
    optional = {name: None for name, hint in hints.items() if NoneType in get_args(hint)}
    absent = optional if hasattr(type_, "_fields") else {}

    def read(value: Json) -> object:
        if not isinstance(value, dict):
            raise ValueError("an object is missing")
        if unknown := value.keys() - fields.keys():
            raise ValueError(f"there is no key {min(unknown)}")
        try:
            return type_(**{**absent, **{name: fields[name](item) for name, item in value.items()}})
        except TypeError as wrong:
            raise ValueError(f"a key is missing: {wrong}") from wrong

    return read


def _reads_scalar(type_: type[object]) -> _Read:
    def read(value: Json) -> object:
        if type(value) is not type_:
            raise ValueError(f"{value!r} is not of the type {type_.__name__}")
        return value

    return read


def _list(value: Json) -> list[Json]:
    if not isinstance(value, list):
        raise ValueError("a list is missing")
    return value
