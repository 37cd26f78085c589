"""Times as text: ISO 8601, used in all documents, or epoch milliseconds. Live times are cut to whole seconds."""

from __future__ import annotations

import re
from contextlib import suppress
from datetime import UTC, date, datetime, time, timedelta, tzinfo
from typing import Final

from lmsconf.model.names import count_noun

ISO: Final = re.compile(
    r"(?P<date>\d{4}-\d{2}-\d{2})"
    r"(?:[T ](?P<time>\d{2}:\d{2}(?::\d{2})?)(?:[.,]\d+)?\s*(?P<offset>Z|[+-]\d{2}(?::?\d{2}(?::\d{2})?)?)?)?"
)
# Fifteen digits reach the year 9999; ten digits could be seconds.
_EPOCH_MS: Final = re.compile(r"-?\d{11,15}", re.ASCII)
_DAY_FIRST: Final = re.compile(r"(\d{1,2})([./-])(\d{1,2})\2(\d{4})")
_YEAR_FIRST: Final = re.compile(r"(\d{4})[./-]?(\d{1,2})[./-]?(\d{1,2})")
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)


def cut_time(moment: datetime, precision: str) -> datetime:
    """Return a time cut to the `minute`, the `hour` or the `day` before it, which begins at midnight UTC."""
    return moment - (moment - _EPOCH) % timedelta(**{f"{precision}s": 1})


def format_utc(at: datetime, timespec: str = "seconds") -> str:
    """Format as ISO 8601 in UTC, with a Z: `2026-03-01T08:00:00Z`. timespec: as for `datetime.isoformat`."""
    return at.astimezone(UTC).isoformat(timespec=timespec).replace("+00:00", "Z")


def from_epoch(seconds: int) -> datetime:
    """Return the time of epoch seconds, in UTC."""
    return _EPOCH + timedelta(seconds=seconds)


def format_epoch(seconds: int) -> str:
    """Format epoch seconds as `format_utc` does."""
    return format_utc(from_epoch(seconds))


def parse_response_time(text: str) -> datetime:
    """Parse a time of a response: ISO 8601 (UTC if it has no offset) or epoch milliseconds. Raises ValueError."""
    text = text.strip()
    try:
        if _EPOCH_MS.fullmatch(text):
            return from_epoch(int(text) // 1000)
        match = ISO.fullmatch(text)
        if match is None:
            raise ValueError(f'"{text}" cannot be read as a time')
        clock = time.fromisoformat(match["time"] or "00:00")
        return local_to_utc(date.fromisoformat(match["date"]), clock, match["offset"] or "Z")
    except OverflowError:
        raise ValueError(f'"{text}" is outside the years 1 to 9999') from None


def is_local_time(text: str) -> bool:
    """Whether a time is ISO 8601 without an offset."""
    match = ISO.fullmatch(text.strip())
    return match is not None and not match["offset"]


def with_offset(text: str, zone: str) -> str:
    """Return a time of a response in UTC if it is ISO 8601 without an offset; any other text as it is.

    zone: its IANA name. Of an hour that occurs twice, it is in the first.
    """
    if is_local_time(text):
        with suppress(ValueError, OverflowError):
            return format_utc(parse_response_time(text).replace(tzinfo=read_zone(zone)))
    return text


NO_ZONES: Final = frozenset({"Factory", "localtime", "posixrules"})
"""Files of zoneinfo that depend on the machine, or stand for no place."""


def read_zone(name: str) -> tzinfo:
    """Return the zone of an IANA name. Raises KeyError, ValueError or OSError for any other."""
    from zoneinfo import ZoneInfo  # few commands need it

    if name in NO_ZONES or name.startswith(("posix/", "right/")):
        raise ValueError(name)
    return ZoneInfo(name)


def is_zone(name: str) -> bool:
    """Whether a text is the IANA name of a zone."""
    with suppress(KeyError, ValueError, OSError):
        read_zone(name)
        return True
    return False


def format_request_time(moment: datetime, form: str, zone: str = "UTC") -> str | int:
    """Format a time for a request. form: `iso`, `iso-ms`, `iso-local`, `epoch-ms` (digits) or `epoch-ms-number`.

    zone: the IANA name of the zone of `iso-local`.
    """
    if form == "iso-local":
        return moment.astimezone(read_zone(zone)).replace(tzinfo=None).isoformat(timespec="seconds")
    if form in ("iso", "iso-ms"):
        return format_utc(moment, "milliseconds" if form == "iso-ms" else "seconds")
    milliseconds = (moment - _EPOCH) // timedelta(milliseconds=1)
    return milliseconds if form == "epoch-ms-number" else str(milliseconds)


def time_format_of(text: str) -> str:
    """Return the form of a time in a response: `epoch-ms` or `iso`."""
    return "epoch-ms" if _EPOCH_MS.fullmatch(text.strip()) else "iso"


def duration_in_words(seconds: float) -> str:
    """Return such as `40 seconds`, `2 minutes 30 seconds`, `38 minutes` or `2 hours 10 minutes`: rounded, never 0."""
    if seconds < 90:
        return count_noun(max(round(seconds), 1), "second")
    if seconds < 595:
        return _two(*divmod(round(seconds / 10) * 10, 60), "minute", "second")
    minutes = round(seconds / 60)
    return count_noun(minutes, "minute") if minutes < 90 else _two(*divmod(minutes, 60), "hour", "minute")


def _two(first: int, rest: int, first_unit: str, rest_unit: str) -> str:
    return count_noun(first, first_unit) + (f" {count_noun(rest, rest_unit)}" if rest else "")


def local_to_utc(day: date, clock: time, offset: str) -> datetime:
    """Return a local time at an offset such as `Z`, `+01`, `+0100` or `+01:00` in UTC. Raises ValueError."""
    if offset != "Z" and ":" not in offset:
        offset = f"{offset[:3]}:{offset[3:] or '00'}"
    return datetime.fromisoformat(f"{day.isoformat()}T{clock.isoformat()}{offset}").astimezone(UTC)


def date_in_other_order(text: str) -> date | None:
    """Parse a date in another order of its parts; None if it is ambiguous or invalid."""
    first, last = _YEAR_FIRST.fullmatch(text.strip()), _DAY_FIRST.fullmatch(text.strip())
    with suppress(ValueError):
        if first:
            return date(int(first[1]), int(first[2]), int(first[3]))
        if last and (last[2] == "." or int(last[1]) > 12 or last[1] == last[3]):
            return date(int(last[4]), int(last[3]), int(last[1]))
    return None
