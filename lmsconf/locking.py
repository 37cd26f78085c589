"""The lock object: a group with a reserved name, by which a run keeps runs on other machines off a workspace.

The API cannot make a thing only if nobody else did. So a run looks, makes its lock, and looks again: whoever sees
another's lock at the second look takes its own back. Of two runs that begin at once at most one goes on, perhaps none.
A lock holds for its lease and is renewed on the way, so that one left by a run that died gives way by itself.

What this cannot do: a call that was sent just before the lease ended may still arrive after somebody else got the
lock, and a service that shows a new group late can let two in.
"""

from __future__ import annotations

import re
import secrets
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Final

from lmsconf.connect import Connection
from lmsconf.core.kind import Rows
from lmsconf.core.values import Call
from lmsconf.errors import AnswerLost, BadAnswer, LmsconfError, Rejected
from lmsconf.kinds.names import RESERVED
from lmsconf.settings import LockTerms
from lmsconf.settling import Timing

_NAME: Final = re.compile(re.escape(RESERVED) + r"(?P<key>\w+) until (?P<until>\S+) held by (?P<owner>.+)", re.DOTALL)
_RENEWED_AFTER: Final = 1 / 3
_SAFE_UNTIL: Final = 0.9
_CLOCKS_DIFFER: Final = 60.0
"""Seconds by which the clocks of two machines may disagree about when a lease is over."""
_VISIBLE_WITHIN: Final = 10.0
_LOOKS: Final = 3
"""Other runs' locks come and go, which can leave a hole between the pages of one look."""


class LockHeld(LmsconfError):
    """Another run has the workspace; nothing was changed."""

    code = "lock/held-elsewhere"


class LockLost(LmsconfError):
    """The lock is not ours any more; nothing more is sent."""

    code = "lock/lost"


@dataclass(frozen=True, slots=True, kw_only=True)
class Lock:
    """A lock as it is live. until: seconds since the epoch; None where its name does not say."""

    id: str
    key: str
    until: float | None
    owner: str

    @classmethod
    def read(cls, id: str, name: str) -> Lock | None:
        """The lock that a group is, if it is one."""
        if not name.startswith(RESERVED):
            return None
        found = _NAME.fullmatch(name)
        if found is None:
            return cls(id=id, key="", until=None, owner=name.removeprefix(RESERVED))
        with suppress(ValueError):
            return cls(id=id, key=found["key"], until=_seconds(found["until"]), owner=found["owner"])
        return cls(id=id, key=found["key"], until=None, owner=found["owner"])

    @property
    def name(self) -> str:
        """The name that the group has."""
        return f"{RESERVED}{self.key} until {_text(self.until or 0)} held by {self.owner}"

    @property
    def said(self) -> str:
        """Who has it and how long, for people."""
        until = "for ever" if self.until is None else f"until {_text(self.until)}"
        return f"{self.owner}, {until} (id {self.id})"

    def holds(self, now: float) -> bool:
        """Whether it keeps others out."""
        return self.until is None or now < self.until + _CLOCKS_DIFFER


class Locksmith:
    """Sees, makes and takes back locks of one workspace. `left` says when one could not be taken back."""

    def __init__(
        self,
        connection: Connection,
        *,
        clock: Callable[[], float] = time.time,
        timing: Timing | None = None,
        key: Callable[[], str] = lambda: secrets.token_hex(4),
    ) -> None:
        self._connection, self._clock, self._timing, self._key = connection, clock, timing or Timing(), key
        self.left: str | None = None

    def locks(self) -> list[Lock]:
        """Every lock that is live. Raises LmsconfError where the groups cannot be read whole."""
        for _ in range(_LOOKS):
            with self._connection.crew(1) as crew:
                rows = self._connection.reader(crew).rows("manual-groups.list", "groups", id="groupId")
            if not rows.incomplete:
                return list(_locks(rows))
        raise LmsconfError(
            f"whether another run has locked the workspace is not known: {rows.incomplete}", hint="Try again."
        )

    def remove(self, lock: Lock) -> None:
        """Takes a lock away; one that is gone is no error."""
        try:
            self._call("manual-groups.delete", path={"groupId": lock.id})
        except Rejected as refused:
            if refused.status not in (404, 410):
                raise

    @contextmanager
    def held(self, terms: LockTerms) -> Iterator[Holding]:
        """The workspace is this run's while it lasts. Raises LockHeld when it is another's."""
        now = self._clock()
        before = self.locks()
        self._refuse(lock for lock in before if lock.holds(now))
        mine = self._made(terms, now)
        try:
            self._refuse(lock for lock in self.locks() if lock.key != mine.key and lock.holds(now))
            for left in before:
                self.remove(left)
            yield Holding(self, terms, mine, self._clock)
        finally:
            try:
                self.remove(mine)
            except LmsconfError as error:
                # What the run did is worth telling; the lock gives way by itself.
                self.left = f"the lock of {mine.said} could not be taken back: {error.message}"

    def rename(self, lock: Lock) -> None:
        """Gives the lock's group the name that the lock has."""
        body = self._connection.wire.body("manual-groups.rename", name=lock.name)
        self._call("manual-groups.rename", path={"groupId": lock.id}, body=body)

    def _made(self, terms: LockTerms, now: float) -> Lock:
        """A lock of our own, as it is seen to be live. Its answer is not needed: the key tells which one it is."""
        mine = Lock(id="", key=self._key(), until=now + terms.lease, owner=terms.owner)
        with suppress(AnswerLost, BadAnswer):
            self._call("manual-groups.create", body=self._connection.wire.body("manual-groups.create", name=mine.name))
        until = self._timing.now() + _VISIBLE_WITHIN
        while True:
            for lock in self.locks():
                if lock.key == mine.key:
                    return lock
            if self._timing.now() >= until:
                raise LmsconfError(
                    "the lock was made and does not show in the list of groups",
                    hint="See `lmsconf unlock` for locks that are live, and try again.",
                )
            self._timing.sleep(0.5)

    def _refuse(self, others: Iterator[Lock]) -> None:
        for other in others:
            raise LockHeld(
                f"another run has locked the workspace: {other.said}",
                hint=f"Wait for it. If it is dead: lmsconf unlock --id {other.id}",
            )

    def _call(
        self, operation: str, *, path: dict[str, str] | None = None, body: dict[str, object] | None = None
    ) -> None:
        with self._connection.crew(1) as crew:
            crew.submit(lambda client: client.call(operation, path=path, body=body)).result()


class Holding:
    """A lock that is held, and kept for as long as calls go out."""

    def __init__(self, smith: Locksmith, terms: LockTerms, lock: Lock, clock: Callable[[], float]) -> None:
        self._smith, self._terms, self._lock, self._clock = smith, terms, lock, clock

    def keep(self, call: Call) -> None:
        """Before each call: renews the lease when a third of it is over. Raises LockLost once it may be another's."""
        until, now = self._lock.until or 0.0, self._clock()
        begun = until - self._terms.lease
        if now >= begun + self._terms.lease * _SAFE_UNTIL:
            raise LockLost(
                f"the lock was not renewed in time, and {call.id} was not sent",
                hint="Apply once more; a longer `lease:` under `lock:` helps where runs are held up.",
            )
        if now >= begun + self._terms.lease * _RENEWED_AFTER:
            self._renew(now + self._terms.lease)

    def _renew(self, until: float) -> None:
        renewed = Lock(id=self._lock.id, key=self._lock.key, until=until, owner=self._lock.owner)
        try:
            self._smith.rename(renewed)
        except AnswerLost:
            return  # the lease that is there still holds; it is tried again before the next call
        except Rejected as refused:
            raise LockLost(
                f"the lock is gone: {refused.message}", hint="Somebody unlocked it. Apply once more."
            ) from refused
        self._lock = renewed


def _locks(rows: Rows) -> Iterator[Lock]:
    for row in rows.rows:
        if lock := Lock.read(str(row["groupId"]), str(row.get("name"))):
            yield lock


def _text(seconds: float) -> str:
    return datetime.fromtimestamp(seconds, UTC).isoformat(timespec="seconds").replace("+00:00", "Z")


def _seconds(text: str) -> float:
    return datetime.fromisoformat(text).timestamp()
