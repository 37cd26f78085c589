"""JSON, parsed strictly: what the standard does not allow, and what parsers interpret differently, is refused; and
its texts changed at every depth.
"""

from __future__ import annotations

import json
import math
from collections import Counter
from collections.abc import Callable
from typing import Any, Final, NoReturn

from lmsconf.errors import shorten


def parse_json(text: str, *, surrogates: bool = False) -> Any:
    """Return the value of a JSON text.

    surrogates: allow half of a surrogate pair in strings. Raises ValueError for anything but JSON, and for duplicate
    keys, NaN, infinities, other lone surrogates, and nesting that is too deep.
    """
    try:
        value = _DECODER.decode(text)
        if not surrogates and (r"\ud" in text or r"\uD" in text):
            json.dumps(value, ensure_ascii=False).encode()
    except RecursionError:
        raise ValueError("it is nested too deeply") from None
    return value


def _unique(pairs: list[tuple[str, object]]) -> dict[str, object]:
    """Return an object. Raises ValueError for a key that it has twice."""
    members = dict(pairs)
    if len(members) != len(pairs):
        twice = next(name for name, number in Counter(name for name, _ in pairs).items() if number > 1)
        raise ValueError(f"duplicate key {shorten(twice)!r}")
    return members


def _finite(text: str) -> float:
    """Return a number. Raises ValueError for one that is too large for a float."""
    number = float(text)
    return number if math.isfinite(number) else _refuse(text)


def _refuse(text: str) -> NoReturn:
    raise ValueError(f"{shorten(text)} is not a JSON number")


_DECODER: Final = json.JSONDecoder(object_pairs_hook=_unique, parse_constant=_refuse, parse_float=_finite)


def map_texts(value: Any, change: Callable[[str], str], *, keys: bool = False) -> Any:
    """Return a value with every text changed; the keys of mappings, too, if `keys`."""
    if isinstance(value, str):
        return change(value)
    if isinstance(value, list | tuple):
        return [map_texts(item, change, keys=keys) for item in value]
    if not isinstance(value, dict):
        return value
    return {change(key) if keys else key: map_texts(item, change, keys=keys) for key, item in value.items()}
