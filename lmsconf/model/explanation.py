"""What a place of a manifest means, as a value."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Key:
    """One key below what is explained."""

    name: str
    type: str
    meaning: str
    needed: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Explanation:
    """One place of a manifest: its path, what stands there, what it means, and the keys below it."""

    path: str
    type: str
    meaning: str
    keys: tuple[Key, ...]
