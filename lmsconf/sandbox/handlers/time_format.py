"""Instants: epoch milliseconds internally; the dialect's format or ISO 8601 in requests and responses."""

from __future__ import annotations

import re
from datetime import UTC, datetime
from functools import lru_cache
from typing import Final

from lmsconf.sandbox.request_context import Json

_ISO: Final = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d(:\d\d(\.\d{1,6})?)?(Z|[+-]\d\d:?\d\d)", re.ASCII)
_FORMS: Final = {
    "iso-ms": re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z", re.ASCII),
    "iso-local": re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d", re.ASCII),
}
"""The stricter forms of ISO 8601; the one without a zone is in UTC."""
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
        if format != "epoch-ms" and _FORMS.get(format, _ISO).fullmatch(value):
            moment = datetime.fromisoformat(value)
            return round((moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp() * 1000)
    raise ValueError(f"{value!r} is not a time in the form {format}")


@lru_cache(maxsize=4096)  # most assignments share the start or the end of a month
def format_time(instant: int, format: str) -> str:
    """Format an instant: milliseconds if the dialect uses them, otherwise ISO 8601 in UTC, in the dialect's form."""
    if format in ("epoch-ms", "epoch-ms-number"):
        return str(instant)
    timespec = "milliseconds" if format == "iso-ms" else "seconds"
    text = datetime.fromtimestamp(instant / 1000, UTC).isoformat(timespec=timespec).removesuffix("+00:00")
    return text if format == "iso-local" else text + "Z"
