"""The lock object: a group with a reserved name, by which a run keeps runs on other machines off a workspace.

The API cannot make a thing only if nobody else did. So a run looks, makes its lock, and looks again: whoever sees
another's lock at the second look takes its own back. Of two runs that begin at once at most one goes on, perhaps none.
A lock holds for its lease and is renewed on the way, so that one left by a run that died gives way by itself. A run
looks every few seconds whether its lock is still there, so that taking a lock away stops it.

What this cannot do: a call that was sent just before the lease ended may still arrive after somebody else got the
lock, and a service that shows a new group late can let two in.
"""

from __future__ import annotations

import re
import secrets
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Final

from lmsconf.apply.ambiguous_writes import Clock
from lmsconf.apply.interrupts import heard
from lmsconf.errors import AnswerLost, BadAnswer, LmsconfError, Rejected, Unauthorized
from lmsconf.kinds.shared.listings import LISTINGS
from lmsconf.kinds.shared.names import GROUP, RESERVED
from lmsconf.model.api import Rows
from lmsconf.model.moments import utc_text
from lmsconf.model.values import Call, Json
from lmsconf.project.settings import LockTerms
from lmsconf.workspace.connection import Connection

_NAME: Final = re.compile(re.escape(RESERVED) + r"(?P<key>\w+) until (?P<until>\S+) held by (?P<owner>.+)", re.DOTALL)
_RENEWED_AFTER: Final = 1 / 3
_SAFE_UNTIL: Final = 0.9
_CLOCKS_DIFFER: Final = 60.0
"""Seconds by which the clocks of two machines may disagree about when a lease is over."""
_LOOKED_AFTER: Final = 5.0
"""Seconds for which a look at our own lock is believed: soon enough for whoever takes it away and waits for the run to
stop, and rare enough that the looks do not count beside the calls."""
_VISIBLE_WITHIN: Final = 10.0
"""Seconds in which a new group has to show, however short the project's settling time is."""
_LOOKS: Final = 3
"""Other runs' locks come and go, which can leave a hole between the pages of one look."""
_FORBIDDEN: Final = 403
_LAST: Final = datetime(9999, 12, 31, tzinfo=UTC).timestamp()
_GONE: Final = (404, 410)


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


class LockManager:
    """Sees, makes and takes back locks of one workspace. `left` says when one could not be taken back.

    settle: seconds that something new may take to show. idle: waits between renewals, and says whether they are over.
    """

    def __init__(
        self,
        connection: Connection,
        *,
        settle: float = 0.0,
        clock: Callable[[], float] = time.time,
        timing: Clock | None = None,
        idle: Callable[[float, threading.Event], bool] = lambda seconds, over: over.wait(seconds),
        key: Callable[[], str] = lambda: secrets.token_hex(4),
    ) -> None:
        self._connection, self._clock, self._timing, self._key = connection, clock, timing or Clock(), key
        self._idle = idle
        self._shows_within = max(settle, _VISIBLE_WITHIN)
        self.left: str | None = None

    def locks(self) -> list[Lock]:
        """Every lock that is live. Raises LmsconfError where the groups cannot be read whole."""
        for _ in range(_LOOKS):
            with self._connection.crew(1) as crew:
                rows = self._connection.reader(crew).rows(LISTINGS[GROUP])
            if not rows.incomplete:
                return list(_locks(rows))
        raise LmsconfError(
            f"whether another run has locked the workspace is not known: {rows.incomplete}", hint="Try again."
        )

    def make(self, lock: Lock) -> str:
        """Makes the lock's group. Its id, or nothing where the answer does not say it."""
        body = self._connection.wire.body("manual-groups.create", name=lock.name)
        answer = self._call("manual-groups.create", body=body)
        return str(answer.get("groupId") or "") if isinstance(answer, dict) else ""

    def remove(self, lock: Lock) -> None:
        """Takes a lock away; one that is gone is no error."""
        with suppress(LockLost):
            self._call("manual-groups.delete", lock)

    def rename(self, lock: Lock) -> None:
        """Gives the lock's group the name that the lock has. Raises LockLost when there is no such group."""
        body = self._connection.wire.body("manual-groups.rename", name=lock.name)
        self._call("manual-groups.rename", lock, body=body)

    def look(self, lock: Lock) -> None:
        """Raises LockLost when the lock's group is gone.

        It is asked for by its id: calls under way make and delete groups, which can push one from a page of the list
        to the other, past the look.
        """
        self._call("manual-groups.members", lock)

    @contextmanager
    def held(self, terms: LockTerms) -> Iterator[LockLease]:
        """The workspace is this run's while it lasts. Raises LockHeld when it is another's.

        The lock is taken away again on every way out, also where it was not seen yet.
        """
        now = self._clock()
        before = self.locks()
        self._refuse(lock for lock in before if lock.holds(now))
        mine = LockLease(self, terms, self._key(), self._clock, self._idle)
        try:
            with _uncut():
                mine.make()
            self._await(mine)
            self._refuse(lock for lock in self.locks() if lock.key != mine.key and lock.holds(now))
            for left in before:
                self.remove(left)
            yield mine
        finally:
            # The run is over anyway by now, and its report must not be lost to an interruption.
            with suppress(KeyboardInterrupt), _uncut():
                mine.let_go()
            self.left = mine.left

    def _await(self, mine: LockLease) -> None:
        """Comes back once our own lock shows. The key tells which one it is."""
        until = self._timing.now() + self._shows_within
        while True:
            for lock in self.locks():
                if lock.key == mine.key:
                    mine.found(lock.id)
                    return
            if self._timing.now() >= until:
                raise LmsconfError(
                    f"the lock was made and does not show in the list of groups within {self._shows_within:g} seconds",
                    hint="A longer `settle:` waits longer. See `lmsconf unlock` for locks that are live.",
                )
            self._timing.sleep(0.5, threading.Event())

    def _refuse(self, others: Iterator[Lock]) -> None:
        for other in others:
            raise LockHeld(
                f"another run has locked the workspace: {other.said}",
                hint=f"Wait for it. If it is dead: lmsconf unlock --id {other.id}",
            )

    def _call(self, operation: str, lock: Lock | None = None, *, body: dict[str, object] | None = None) -> Json:
        """The answer to a call, about a lock that is there already or one that is new."""
        path = {"groupId": lock.id} if lock else {}
        try:
            with self._connection.crew(1) as crew:
                return crew.submit(lambda client: client.call(operation, path=path, body=body)).result()
        except Rejected as refused:
            if refused.status == _FORBIDDEN:
                raise _forbidden(refused) from refused
            if lock and refused.status in _GONE:
                hint = "Somebody unlocked it. Apply once more."
                raise LockLost(f"the lock is gone: {refused.message}", hint=hint) from refused
            raise


class LockLease:
    """A lock that is ours, made, kept for as long as calls go out, and taken away.

    Its lease is renewed in the background too: what a run reads before its first call may take longer than a lease.
    Only `keep` judges whether the lock is lost. left: says, after `let_go`, that it may still be there.
    """

    def __init__(
        self,
        smith: LockManager,
        terms: LockTerms,
        key: str,
        clock: Callable[[], float],
        idle: Callable[[float, threading.Event], bool],
    ) -> None:
        self._smith, self._terms, self._clock, self._idle = smith, terms, clock, idle
        self._lock = Lock(id="", key=key, until=0.0, owner=terms.owner)
        self._looked = 0.0
        self._may_be_there = False
        self.left: str | None = None
        self._turn = threading.Lock()
        self._over = threading.Event()
        self._renewer = threading.Thread(target=self._renew_on, name="lmsconf-lock", daemon=True)

    @property
    def key(self) -> str:
        """What tells this lock from all others, also while its id is not known."""
        return self._lock.key

    def make(self) -> None:
        """Makes it, with a lease that begins now. Raises LmsconfError where that was refused."""
        now = self._clock()
        self._lock = replace(self._lock, until=now + self._terms.lease)
        self._looked, self._may_be_there = now, True
        try:
            id = self._smith.make(self._lock)
        except (AnswerLost, BadAnswer):
            return  # it is looked for by its key
        except LmsconfError:
            self._may_be_there = False
            raise
        if id:
            self.found(id)

    def found(self, id: str) -> None:
        """Hears which group it is."""
        with self._turn:
            self._lock = replace(self._lock, id=id)
        if not self._renewer.ident:
            self._renewer.start()

    def keep(self, call: Call) -> None:
        """Before each call: looks whether it is still there, and renews the lease when a third of it is over.

        What was seen in the last seconds is believed. Raises LockLost once it is gone, or may be another's.
        """
        with self._turn:
            self._check(call)
            now = self._clock()
            if self._is_due(now):
                self._renew(now)
            elif not 0 <= now - self._looked < _LOOKED_AFTER:
                self._look(now)
            # The answer may have come late.
            self._check(call)

    def let_go(self) -> None:
        """Takes it away. `left` tells people where that did not succeed; the lock gives way by itself then."""
        if not self._may_be_there:
            return
        self.left = f"the lock of {self._lock.said} may be left: see `lmsconf unlock`"
        self._over.set()
        if self._renewer.ident:
            self._renewer.join()
        try:
            found = [self._lock] if self._lock.id else [lock for lock in self._smith.locks() if lock.key == self.key]
            for lock in found:
                self._smith.remove(lock)
                self.left = None
        except LmsconfError as error:
            self.left = f"the lock of {self._lock.said} could not be taken back: {error.message}"

    def _check(self, call: Call) -> None:
        if not self._is_safe(self._clock()):
            raise LockLost(
                f"the lock was not renewed in time, and {call.id} was not sent",
                hint="Apply once more; a longer `lease:` under `lock:` helps where runs are held up.",
            )

    def _is_safe(self, now: float) -> bool:
        return now < self._begun + self._terms.lease * _SAFE_UNTIL

    def _is_due(self, now: float) -> bool:
        return now >= self._begun + self._terms.lease * _RENEWED_AFTER

    @property
    def _begun(self) -> float:
        """When the lease that holds began."""
        return (self._lock.until or 0.0) - self._terms.lease

    def _renew_on(self) -> None:
        """Renews what is due until the run is over. An error is for `keep` to meet: a new group may be found late."""
        while not self._idle(self._terms.lease * _RENEWED_AFTER / 2, self._over):
            with suppress(LmsconfError), self._turn:
                now = self._clock()
                if not self._is_safe(now):
                    return  # a lease that may be over for others is not revived
                if self._is_due(now):
                    self._renew(now)

    def _renew(self, now: float) -> None:
        renewed = replace(self._lock, until=now + self._terms.lease)
        try:
            self._smith.rename(renewed)
        except (AnswerLost, BadAnswer):
            return  # the lease that is there still holds; it is tried again before the next call
        if self._is_safe(self._clock()):
            # Otherwise somebody may have found it over before it was renewed, and go on as we would.
            self._lock, self._looked = renewed, now

    def _look(self, now: float) -> None:
        with suppress(BadAnswer):  # it tells nothing, and the next call looks again
            self._smith.look(self._lock)
            self._looked = now


@contextmanager
def _uncut() -> Iterator[None]:
    """Ctrl-C and SIGTERM wait until it is over, so that what was sent is known. The second time means at once."""
    cuts: list[KeyboardInterrupt] = []

    def hear(cut: KeyboardInterrupt) -> None:
        cuts.append(cut)
        if len(cuts) > 1:
            raise cut

    with heard(hear):
        yield
    if cuts:
        raise cuts[0]


def _forbidden(refused: Rejected) -> Unauthorized:
    """The same answer, understood better: the groups could be read before."""
    return Unauthorized(
        refused.message,
        hint="The credential can read, and lacks the right to change groups, of which a lock is one. Use one that may.",
        operation=refused.operation,
        status=refused.status,
        body=refused.body,
    )


def _locks(rows: Rows) -> Iterator[Lock]:
    for row in rows.rows:
        if lock := Lock.read(str(row["groupId"]), str(row.get("name"))):
            yield lock


def _text(seconds: float) -> str:
    if seconds >= _LAST:
        # Somebody's own words in a name: no calendar has that day in UTC.
        return "the end of time"
    return utc_text(datetime.fromtimestamp(seconds, UTC))


def _seconds(text: str) -> float:
    return datetime.fromisoformat(text).timestamp()
