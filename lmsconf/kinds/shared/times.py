"""Times as manifests and plans write them. Compared as instants, to the second."""

from __future__ import annotations

from datetime import UTC, date, datetime, time, tzinfo
from typing import Final

from lmsconf.errors import LmsconfError, shorten
from lmsconf.model.time_formats import ISO, date_in_other_order, local_to_utc

LAST_SECOND: Final = time(23, 59, 59)
_WRITE = "Write a time such as 2026-01-05T08:00+01:00, or a date."


class BadTime(LmsconfError):
    """A text is not a valid, unambiguous time; `hint` suggests what to write instead."""


def parse_manifest_time(text: str, zone: tzinfo | None, *, end_of_day: bool) -> datetime:
    """Parse a manifest's date or ISO 8601 time to an aware datetime.

    A bare date is its first second, or its last with `end_of_day`; a time without an offset needs `zone`. Raises
    BadTime for a malformed or out-of-range time, one without offset or zone, and a local time that the zone skips or
    repeats.
    """
    parts = ISO.fullmatch(text.strip())
    if parts is None:
        meant = date_in_other_order(text)
        raise BadTime(
            f'"{shorten(text)}" is not a date or an ISO 8601 time such as 2026-01-05 or 2026-01-05T08:00+01:00',
            hint=f"Write {meant}." if meant else _WRITE,
        )
    try:
        day = date.fromisoformat(parts["date"])
        clock = time.fromisoformat(parts["time"]) if parts["time"] else LAST_SECOND if end_of_day else time()
    except ValueError as wrong:
        raise BadTime(f'"{shorten(text)}" is not on the calendar: {wrong}', hint=_WRITE) from None
    if not parts["offset"] and zone is None:
        hint = "Write 2026-01-05T08:00:00+01:00, or set `timezone: Europe/Stockholm` in the project file."
        raise BadTime(f'"{shorten(text)}" has no offset, and the project file has no `timezone`', hint=hint)
    try:
        if zone is None or parts["offset"]:
            return local_to_utc(day, clock, parts["offset"])
        return _in_zone(datetime.combine(day, clock), zone, text)
    except ValueError:
        message = f'"{shorten(text)}" has an offset of a day or more, and there is none'
        raise BadTime(message, hint=_WRITE) from None
    except OverflowError:
        # Near year 1 or 9999 the instant in UTC may fall outside the years that datetime supports.
        raise BadTime(f'"{shorten(text)}" is outside the years 1 to 9999', hint="Remove it for no limit.") from None


def _in_zone(local: datetime, zone: tzinfo, text: str) -> datetime:
    first, second = (local.replace(tzinfo=zone, fold=fold).astimezone(UTC) for fold in (0, 1))
    if first == second:
        return first
    either = " or ".join(format_time(moment, zone) for moment in sorted((first, second)))
    if first.astimezone(zone).replace(tzinfo=None) != local:
        raise BadTime(f'"{shorten(text)}" does not exist in {zone}: the clocks skip it', hint=f"Write {either}.")
    raise BadTime(f'"{shorten(text)}" occurs twice in {zone}: the clocks are set back', hint=f"Write {either}.")


def format_time(moment: datetime, zone: tzinfo | None) -> str:
    """Return an instant as plans and exports show it: ISO 8601 in `zone` (or UTC), with its offset, to the second."""
    try:
        local = moment.astimezone(zone or UTC)
    except OverflowError:
        # The end of the year 9999, a common value for "never", is in the year 10000 in zones east of Greenwich.
        local = moment.astimezone(UTC)
    return local.isoformat(timespec="seconds")


def format_shortest_time(moment: datetime, zone: tzinfo | None, *, end_of_day: bool) -> str:
    """Return the shortest text that `parse_manifest_time` parses to this instant: date, local or with offset."""
    whole = format_time(moment, zone)
    local = whole[:19]
    for text in (whole[:10], local.removesuffix(":00"), local):
        try:
            if parse_manifest_time(text, zone, end_of_day=end_of_day) == moment:
                return text
        except BadTime:
            continue
    return whole
