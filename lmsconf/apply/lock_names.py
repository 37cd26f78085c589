"""A lock's group, whose name holds its key, its expiry and its owner; and the errors of locks."""

from __future__ import annotations

import re
from contextlib import suppress
from datetime import UTC, datetime
from typing import Final

from msgspec import Struct

from lmsconf.errors import LmsconfError
from lmsconf.model.names import LOCK_PREFIX
from lmsconf.model.time_formats import format_utc

_NAME: Final = re.compile(
    re.escape(LOCK_PREFIX) + r"(?P<key>\w+) until (?P<until>\S+) held by (?P<owner>.+)", re.DOTALL
)
_CLOCKS_DIFFER: Final = 60.0
"""Seconds of clock skew tolerated between two machines when a lease expires."""
_LAST: Final = datetime(9999, 12, 31, tzinfo=UTC).timestamp()


class LockHeldElsewhere(LmsconfError):
    """Another run holds the lock; nothing was changed."""

    code = "lock/held-elsewhere"


class LockLost(LmsconfError):
    """This run no longer holds the lock; nothing more is sent."""

    code = "lock/lost"


class WorkspaceLock(Struct, frozen=True, kw_only=True):
    """A live lock. until: seconds since the epoch; None if its name does not declare it."""

    id: str
    key: str
    until: float | None
    owner: str

    @classmethod
    def parse(cls, id: str, name: str) -> WorkspaceLock | None:
        """Parse a group as a lock; None if it is not one."""
        if not name.startswith(LOCK_PREFIX):
            return None
        match = _NAME.fullmatch(name)
        if match is None:
            return cls(id=id, key="", until=None, owner=name.removeprefix(LOCK_PREFIX))
        with suppress(ValueError):
            return cls(id=id, key=match["key"], until=_seconds(match["until"]), owner=match["owner"])
        return cls(id=id, key=match["key"], until=None, owner=match["owner"])

    @property
    def name(self) -> str:
        """The name of the lock's group."""
        return f"{LOCK_PREFIX}{self.key} until {_text(self.until or 0)} held by {self.owner}"

    @property
    def description(self) -> str:
        """Owner, expiry and id, for people."""
        until = "without an end" if self.until is None else f"until {_text(self.until)}"
        return f"{self.owner}, {until} (id {self.id})"

    def is_active(self, now: float) -> bool:
        """Whether it excludes other runs."""
        return self.until is None or now < self.until + _CLOCKS_DIFFER


def _text(seconds: float) -> str:
    if seconds >= _LAST:
        # A date written by hand into a name, which overflows in UTC.
        return "the end of time"
    return format_utc(datetime.fromtimestamp(seconds, UTC))


def _seconds(text: str) -> float:
    return datetime.fromisoformat(text).timestamp()
