"""JSON, parsed strictly: what the standard does not allow, and what parsers interpret differently, is refused."""

from __future__ import annotations

import json
import math
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
    members = dict(pairs)
    if len(members) != len(pairs):
        names = [name for name, _ in pairs]
        twice = next(name for name in names if names.count(name) > 1)
        raise ValueError(f"duplicate key {shorten(twice)!r}")
    return members


def _finite(text: str) -> float:
    number = float(text)
    if not math.isfinite(number):
        _refuse(text)
    return number


def _refuse(text: str) -> NoReturn:
    raise ValueError(f"{shorten(text)} is not a JSON number")


_DECODER: Final = json.JSONDecoder(object_pairs_hook=_unique, parse_constant=_refuse, parse_float=_finite)
