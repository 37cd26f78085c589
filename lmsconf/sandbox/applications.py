"""The applications that people may have access to, and the defaults of a new account."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Final

APPLICATIONS: Final = ("achievements", "analyse", "create", "learn", "follow-up")
LEARNER: Final = ("learn",)


def default_applications(*, admin: bool, manager: bool) -> tuple[str, ...]:
    """The default applications of a new account: everyone learns, managers also follow up."""
    return APPLICATIONS if admin else ("learn", "follow-up") if manager else LEARNER


def encode_applications(applications: Iterable[str]) -> str:
    """The applications as stored, in the specification's order."""
    given = set(applications)
    return json.dumps([application for application in APPLICATIONS if application in given])
