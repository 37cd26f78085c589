"""Strict JSON: reject what the standard does not allow, and what parsers interpret differently."""

from __future__ import annotations

import json
import math
import threading
from typing import Final, NoReturn, cast

from lmsconf.model.canonical_json import Json

_ONE_AT_A_TIME: Final = threading.Lock()


def decode(body: bytes) -> Json:
    """Decode JSON in UTF-8.

    Raises ValueError for anything else, including duplicate keys, NaN, infinities, lone surrogates and nesting that is
    too deep.
    """
    # One at a time: decoding gains nothing from threads, and each takes many times the memory of the text.
    with _ONE_AT_A_TIME:
        try:
            value = _DECODER.decode(body.decode("utf-8-sig"))
            if b"\\ud" in body or b"\\uD" in body:
                json.dumps(value, ensure_ascii=False).encode()
        except RecursionError:
            raise ValueError("it is nested too deeply") from None
    return cast("Json", value)


def encode(value: object) -> bytes:
    """Encode a request body. Raises ValueError for what is not JSON, including tuples."""
    _check(value)
    return _ENCODER.encode(value).encode()


def _check(value: object) -> None:
    """Reject what json.dumps converts silently: a reference not yet replaced by its id is a tuple, not a list."""
    if isinstance(value, dict):
        for key, item in value.items():
            if not isinstance(key, str):
                raise ValueError(f"{key!r} is not a JSON key")
            _check(item)
    elif isinstance(value, list):
        for item in value:
            _check(item)
    elif value is not None and not isinstance(value, str | int | float):
        raise ValueError(f"{value!r} is not a JSON value")


def _unique(pairs: list[tuple[str, object]]) -> dict[str, object]:
    members = dict(pairs)
    if len(members) != len(pairs):
        raise ValueError("duplicate key in one object")
    return members


def _finite(text: str) -> float:
    number = float(text)
    if not math.isfinite(number):
        _refuse(text)
    return number


def _refuse(text: str) -> NoReturn:
    raise ValueError(f"{text} is not a number")


_DECODER: Final = json.JSONDecoder(object_pairs_hook=_unique, parse_constant=_refuse, parse_float=_finite)
_ENCODER: Final = json.JSONEncoder(ensure_ascii=False, allow_nan=False, separators=(",", ":"))
