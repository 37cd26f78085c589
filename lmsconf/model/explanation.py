"""The explanation of a manifest key, as shown by `explain`."""

from __future__ import annotations

from msgspec import Struct


class ExplainedKey(Struct, frozen=True, kw_only=True):
    """One key below the explained one."""

    name: str
    type: str
    meaning: str
    needed: bool


class KeyExplanation(Struct, frozen=True, kw_only=True):
    """One position in a manifest: its path, type and meaning, and the keys below it."""

    path: str
    type: str
    meaning: str
    keys: tuple[ExplainedKey, ...]
