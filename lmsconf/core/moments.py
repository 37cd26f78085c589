"""Moments as texts, the way all documents and names of files have them."""

from __future__ import annotations

from datetime import UTC, datetime


def utc_text(at: datetime, timespec: str = "seconds") -> str:
    """ISO 8601 in UTC, with a Z: `2026-03-01T08:00:00Z`. timespec: how exactly, as for `datetime.isoformat`."""
    return at.astimezone(UTC).isoformat(timespec=timespec).replace("+00:00", "Z")
