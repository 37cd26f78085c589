"""The explanation of a manifest key, as shown by `explain`."""

from __future__ import annotations

from lmsconf.support.lazy_dataclass import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class ExplainedKey:
    """One key below the explained one."""

    name: str
    type: str
    meaning: str
    needed: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class KeyExplanation:
    """One position in a manifest: its path, type and meaning, and the keys below it."""

    path: str
    type: str
    meaning: str
    keys: tuple[ExplainedKey, ...]
