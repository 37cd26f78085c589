"""The applications that people may have access to, and those that a new account begins with."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Final

APPLICATIONS: Final = ("achievements", "analyse", "create", "learn", "follow-up")
LEARNER: Final = ("learn",)


def begins_with(*, admin: bool, manager: bool) -> tuple[str, ...]:
    """What somebody has access to as long as nothing else is said: everybody learns, managers follow up too."""
    return APPLICATIONS if admin else ("learn", "follow-up") if manager else LEARNER


def stored(applications: Iterable[str]) -> str:
    """The applications as they are stored, in the specification's order."""
    given = set(applications)
    return json.dumps([one for one in APPLICATIONS if one in given])
