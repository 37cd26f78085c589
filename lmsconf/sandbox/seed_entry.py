"""Typed reads of a seed's entry: the value of a key, or InvalidSeedValue."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, TypeAlias

from lmsconf.sandbox.handlers.time_format import parse_time

Entry: TypeAlias = "Mapping[str, object]"
_TRUTH: Final = {"true": True, "false": False, "True": True, "False": False}


class InvalidSeedValue(Exception):
    """An invalid value in one entry of a seed."""


def read_text(entry: Entry, key: str, default: str | None = None) -> str:
    """A text; required without a default."""
    value = entry.get(key, default)
    if isinstance(value, str):
        return value
    raise InvalidSeedValue(f"{key} is missing" if value is None else f"{key} is not text")


def read_flag(entry: Entry, key: str) -> bool:
    """A boolean; False if missing."""
    value = str(entry.get(key, False))
    if value not in _TRUTH:
        raise InvalidSeedValue(f"{key} is neither true nor false")
    return _TRUTH[value]


def read_whole_number(entry: Entry, key: str) -> int:
    """A whole number; 0 if missing."""
    value = str(entry.get(key, 0))
    if not (value.isascii() and value.isdigit()):
        raise InvalidSeedValue(f"{key} is not a whole number")
    return int(value)


def read_instant(entry: Entry, key: str) -> int | None:
    """An instant in epoch milliseconds; None if missing."""
    try:
        return parse_time(read_text(entry, key), "iso") if key in entry else None
    except ValueError as error:
        raise InvalidSeedValue(f"{key}: {error}") from error


def read_list(entry: Entry, key: str) -> list[object]:
    """A list of anything; empty if missing."""
    value = entry.get(key) or []
    if not isinstance(value, list):
        raise InvalidSeedValue(f"{key} is not a list")
    return value


def read_texts(entry: Entry, key: str) -> list[str]:
    """A list of texts; empty if missing."""
    values = [item for item in read_list(entry, key) if isinstance(item, str)]
    if len(values) < len(read_list(entry, key)):
        raise InvalidSeedValue(f"{key} contains an item that is not text")
    return values


def read_mappings(entry: Entry, key: str) -> list[Entry]:
    """A list of mappings; empty if missing."""
    values: list[Entry] = [item for item in read_list(entry, key) if isinstance(item, dict)]
    if len(values) < len(read_list(entry, key)):
        raise InvalidSeedValue(f"{key} contains an item that is not a mapping")
    return values


def read_mapping(entry: Entry, key: str) -> Entry:
    """A mapping; empty if missing."""
    value = entry.get(key) or {}
    if not isinstance(value, dict):
        raise InvalidSeedValue(f"{key} is not a mapping")
    return value
