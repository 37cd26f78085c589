"""Manifest forms: how a resource looks in a manifest, in shapes that compare fast and print plainly.

A form maps a manifest key to a text, a boolean, None, a frozenset (a list without order), or a value that knows its
own plain shape. Sorting happens only when a form is printed.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Protocol, TypeAlias, runtime_checkable

from lmsconf.model.values import Json


@runtime_checkable
class Shown(Protocol):
    """A value of a form that says itself how it stands in a manifest."""

    def plain(self) -> Json:
        """The value in manifest shape."""
        ...


Form: TypeAlias = "dict[str, object]"


def plain(value: object) -> Json:
    """The JSON shape of a form or a part of one; sets become sorted lists."""
    if value is None or isinstance(value, str | bool | int | float):
        return value
    if isinstance(value, Shown):
        return value.plain()
    if isinstance(value, Mapping):
        return {str(key): plain(item) for key, item in value.items()}
    if isinstance(value, frozenset):
        return in_order(plain(item) for item in value)
    if isinstance(value, tuple | list):
        return [plain(item) for item in value]
    raise TypeError(f"{type(value).__name__} has no place in a manifest form")


def in_order(items: object) -> list[Json]:
    """The items of a list without order, in the one order that every plan shows them in."""
    return sorted(items, key=_order)  # type: ignore[call-overload,no-any-return]  # items is an iterable of Json


def _order(item: Json) -> str:
    return item if isinstance(item, str) else json.dumps(item, sort_keys=True, ensure_ascii=False)
