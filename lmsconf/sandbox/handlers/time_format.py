"""Instants: epoch milliseconds internally; the dialect's format or ISO 8601 in requests and responses."""

from __future__ import annotations

import re
from datetime import UTC, datetime
from functools import lru_cache
from typing import Final

from lmsconf.sandbox.request_context import Json

_ISO: Final = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d(:\d\d(\.\d{1,6})?)?(Z|[+-]\d\d:?\d\d)", re.ASCII)
_DIGITS: Final = re.compile(r"-?\d{1,15}", re.ASCII)
_TOO_FAR: Final = 10**15


def parse_time(value: Json, format: str) -> int:
    """Parse a time. Raises ValueError if it is not in that format."""
    if format == "epoch-ms-number":
        if isinstance(value, int) and abs(value) < _TOO_FAR:
            return value
    elif isinstance(value, str):
        if format == "epoch-ms" and _DIGITS.fullmatch(value):
            return int(value)
        if format != "epoch-ms" and _ISO.fullmatch(value):
            return round(datetime.fromisoformat(value).timestamp() * 1000)
    raise ValueError(f"{value!r} is not a time in the form {format}")


@lru_cache(maxsize=4096)  # most assignments share the start or the end of a month
def format_time(instant: int, format: str) -> str:
    """Format an instant: milliseconds if the dialect uses them, otherwise ISO 8601 in UTC, to the second."""
    if format in ("epoch-ms", "epoch-ms-number"):
        return str(instant)
    return datetime.fromtimestamp(instant / 1000, UTC).isoformat(timespec="seconds").removesuffix("+00:00") + "Z"
