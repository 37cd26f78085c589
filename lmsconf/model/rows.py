"""Rows ⇄ JSON: structs and named tuples of strings, numbers, booleans, rows, and sets or lists of them."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from types import NoneType, UnionType
from typing import Any, TypeVar, Union, cast, get_args, get_origin, get_type_hints

from lmsconf.model.canonical_json import Json

Row = TypeVar("Row")
_Read = Callable[[Json], object]


def row_to_json(value: object, *, in_order: bool = False) -> Json:
    """Return a row as JSON: fields by name, sets sorted, fields that are None left out.

    Lists of objects (choices, conditions, answers) have no meaningful order and are sorted too. in_order: keep their
    order in the response.
    """
    if value is None or isinstance(value, str | bool | int | float):
        return value
    if hasattr(value, "_asdict"):
        return {key: row_to_json(item, in_order=in_order) for key, item in value._asdict().items() if item is not None}
    if isinstance(value, frozenset | tuple):
        items = [row_to_json(item, in_order=in_order) for item in value]
        # A tuple of other values is a pair of a key and its value, whose order matters.
        is_set = isinstance(value, frozenset) or (not in_order and all(isinstance(item, dict) for item in items))
        return sorted(items, key=str) if is_set else items
    return {
        name: row_to_json(item, in_order=in_order)
        for name in value.__struct_fields__  # type: ignore[attr-defined]  # a row is a struct
        if (item := getattr(value, name)) is not None
    }


def row_from_json(kind: type[Row], value: Json) -> Row:
    """Parse what `row_to_json` returned. Raises ValueError for wrong types, unknown keys and missing keys."""
    return cast(Row, _reads(cast(Any, kind))(value))


@cache
def _reads(type_: Any) -> _Read:  # type hints have no type of their own
    """Return the parser of a type, built once and cached: inspecting type hints is slow."""
    parts = get_args(type_)
    match get_origin(type_):
        case origin if origin is Union or origin is UnionType:
            # Fields that are None are left out of the JSON, so only the other type occurs.
            [wanted] = [part for part in parts if part is not NoneType]
            return _reads(wanted)
        case origin if origin is frozenset:
            item = _reads(*parts)
            return lambda value: frozenset(map(item, _list(value)))
        case origin if origin is tuple and parts[-1] is Ellipsis:
            item = _reads(parts[0])
            return lambda value: tuple(map(item, _list(value)))
        case origin if origin is tuple:
            items = [_reads(part) for part in parts]
            return lambda value: tuple(read(one) for read, one in zip(items, _list(value), strict=True))
    if hasattr(type_, "__struct_fields__") or hasattr(type_, "_fields"):
        return _reads_row(type_)
    return _reads_scalar(getattr(type_, "__supertype__", type_))


def _reads_row(type_: Any) -> _Read:
    hints = get_type_hints(type_)
    fields = {name: _reads(hint) for name, hint in hints.items()}
    # A named tuple has no defaults for the fields that are left out because they are None.
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
