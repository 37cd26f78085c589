"""Remote lock: a manual group with a reserved name, which keeps runs on other machines from changing the workspace.

The API has no conditional create. So a run lists the locks, creates its own, and lists them again; a run that finds
another live lock in the second listing deletes its own. Of two concurrent runs at most one proceeds, perhaps none. A
lock is a lease that is renewed during the run, so the lock of a dead run expires. A run checks every few seconds that
its lock still exists, so that deleting the lock stops the run. The name of the group holds the key, the expiry and the
owner of the lock.

Limits: a call sent just before the lease ended may arrive after another run acquired the lock, and a service that lists
a new group late can let two runs in.
"""

from __future__ import annotations

import re
import secrets
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from lmsconf.api.spec.operations import MANUAL_GROUPS
from lmsconf.errors import InvalidResponse, LmsconfError, Rejected, Unauthorized, WriteOutcomeUnknown
from lmsconf.model.calls import Call
from lmsconf.model.canonical_json import Json
from lmsconf.model.names import LOCK_PREFIX
from lmsconf.model.time_formats import format_utc
from lmsconf.project.settings import LockSettings
from lmsconf.support.interrupts import Interrupts
from lmsconf.workspace.connection import Connection
from lmsconf.workspace.reader import WaitClock

CLOCKS_DIFFER: Final = 60.0
"""Seconds of clock skew tolerated between two machines when a lease expires."""


class LockHeldElsewhere(LmsconfError, code="lock/held-elsewhere"):
    """Another run holds the lock; nothing was changed."""


class LockLost(LmsconfError, code="lock/lost"):
    """This run no longer holds the lock; nothing more is sent."""


class WorkspaceLock(Struct, frozen=True, kw_only=True):
    """A live lock. until: seconds since the epoch; None if its name does not declare it."""

    id: str
    key: str
    until: float | None
    owner: str

    @classmethod
    def parse(cls, id: str, name: str) -> WorkspaceLock:
        """Return the lock that a group is whose name begins as that of a lock."""
        match = re.fullmatch(re.escape(LOCK_PREFIX) + r"(\w+) until (\S+) held by (.+)", name, re.DOTALL)
        seconds = None
        key, until, owner = match.groups() if match else ("", "", name.removeprefix(LOCK_PREFIX))
        with suppress(ValueError):
            seconds = datetime.fromisoformat(until).timestamp()
        return cls(id=id, key=key, until=seconds, owner=owner)

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
        return self.until is None or now < self.until + CLOCKS_DIFFER


def _text(seconds: float) -> str:
    if seconds >= datetime(9999, 12, 31, tzinfo=UTC).timestamp():
        # A date written by hand into a name, which overflows in UTC.
        return "the end of time"
    return format_utc(datetime.fromtimestamp(seconds, UTC))


_RENEWED_AFTER: Final = 1 / 3
_SAFE_UNTIL: Final = 0.9
_CHECKED_EVERY: Final = 5.0
"""Seconds between checks of our own lock.

Short enough to stop soon after it is deleted, long enough that the checks cost little beside the calls.
"""


class LockLease:
    """Our own lock: created, renewed while calls are sent, and deleted.

    A background thread renews the lease too: what a run reads before its first call may take longer than a lease. Only
    `renew_before` decides that the lock is lost. key: identifies the lock, also while its id is unknown.
    """

    def __init__(
        self,
        manager: LockManager,
        terms: LockSettings,
        key: str,
        clock: Callable[[], float],
        idle: Callable[[float, threading.Event], bool],
    ) -> None:
        self._manager, self._terms, self.key, self._clock, self._idle = manager, terms, key, clock, idle
        self._lock = WorkspaceLock(id="", key=key, until=0.0, owner=terms.owner)
        self._checked_at = self._begun = 0.0
        self._may_exist = False
        self._mutex, self._ended = threading.Lock(), threading.Event()
        self._renewer = threading.Thread(target=self._renew_on, name="lmsconf-lock", daemon=True)

    def create(self) -> None:
        """Create it, with a lease that begins now, and renew it. Raises LmsconfError if that was rejected."""
        now = self._clock()
        self._lock, self._checked_at, self._begun = replace(self._lock, until=now + self._terms.lease), now, now
        self._renewer.start()
        self._may_exist = True
        try:
            answer = self._manager.call("manual-groups.create", self._lock, is_named=True)
        except (WriteOutcomeUnknown, InvalidResponse):
            return  # it is found by its key
        except LmsconfError:
            self._may_exist = False
            raise
        if isinstance(answer, dict) and answer.get("groupId"):
            self.set_id(str(answer["groupId"]))

    def set_id(self, id: str) -> None:
        """Set the group's id, without which the lock is not renewed."""
        with self._mutex:
            self._lock = replace(self._lock, id=id)

    def renew_before(self, call: Call) -> None:
        """Before each call: check that the lock exists, and renew the lease when a third of it is over.

        A check is valid for a few seconds. Raises LockLost once the lock does not exist or may have expired for others.
        """
        with self._mutex:
            self._refuse_expired(call)
            now = self._clock()
            if self._is_over(_RENEWED_AFTER):
                self._renew()
            elif not 0 <= now - self._checked_at < _CHECKED_EVERY:
                # By its id: a listing may miss it, as it moves between pages while calls create and delete groups.
                with suppress(InvalidResponse):  # inconclusive; the next call checks again
                    self._manager.call("manual-groups.members", self._lock)
                    self._checked_at = now
            # The response may have arrived late.
            self._refuse_expired(call)

    def release(self) -> None:
        """Delete it. If that fails, the manager has a message in `left`, and the lock expires by itself."""
        self._ended.set()
        if not self._may_exist:
            return
        self._manager.left = f"the lock of {self._lock.description} may be left: run `lmsconf unlock`"
        self._renewer.join()
        try:
            for lock in [self._lock] if self._lock.id else self._manager.list_locks():
                if lock.key == self.key:
                    self._manager.delete(lock)
                    self._manager.left = None
        except LmsconfError as error:
            self._manager.left = f"the lock of {self._lock.description} could not be removed: {error.message}"

    def _refuse_expired(self, call: Call) -> None:
        if self._is_over(_SAFE_UNTIL):
            raise LockLost(
                f"the lock was not renewed in time, and {call.id} was not sent",
                hint="Apply again. If runs are often delayed, set a longer `lease:` under `lock:`.",
            )

    def _is_over(self, share: float) -> bool:
        """Whether so much of the lease is over."""
        return self._clock() >= self._begun + self._terms.lease * share

    def _renew_on(self) -> None:
        """Renew when due until the run is over. Errors are left to `renew_before`: a new group may show late."""
        while not self._idle(self._terms.lease * _RENEWED_AFTER / 2, self._ended):
            with suppress(LmsconfError), self._mutex:
                if self._is_over(_SAFE_UNTIL):
                    return  # a lease that may have expired for others is not revived
                if self._lock.id and self._is_over(_RENEWED_AFTER):
                    self._renew()

    def _renew(self) -> None:
        now = self._clock()
        renewed = replace(self._lock, until=now + self._terms.lease)
        try:
            self._manager.call("manual-groups.rename", renewed, is_named=True)
        except (WriteOutcomeUnknown, InvalidResponse):
            return  # the current lease still holds; the renewal is retried before the next call
        if not self._is_over(_SAFE_UNTIL):
            # Otherwise another run may have seen the lease expire before it was renewed, and proceed as this one would.
            self._lock, self._checked_at, self._begun = renewed, now, now


class LockManager:
    """List, create and delete locks of one workspace. `left`: a message when a lock could not be deleted.

    settle: seconds until a new group is visible; it gets at least ten.
    idle: waits between renewals, and returns True when they must end. tell: gets `left` when a lock was not deleted.
    """

    def __init__(
        self,
        connection: Connection,
        *,
        settle: float = 0.0,
        clock: Callable[[], float] = time.time,
        timing: WaitClock | None = None,
        idle: Callable[[float, threading.Event], bool] = lambda seconds, over: over.wait(seconds),
        key: Callable[[], str] = lambda: secrets.token_hex(4),
        tell: Callable[[str], None] = lambda left: None,
    ) -> None:
        self._connection, self._clock, self._timing, self._key = connection, clock, timing or WaitClock(), key
        self._idle, self._tell, self._visible_within = idle, tell, max(settle, 10.0)
        self.left: str | None = None

    def list_locks(self) -> list[WorkspaceLock]:
        """Return every live lock. Raises LmsconfError if the groups cannot be listed completely."""
        # Locks of other runs are created and deleted, which can leave a gap between pages.
        for _ in range(3):
            with self._connection.worker_pool(1) as pool:
                rows = self._connection.reader(pool).rows(MANUAL_GROUPS)
            if not rows.incomplete:
                named = ((str(row["groupId"]), str(row.get("name"))) for row in rows.rows)
                return [WorkspaceLock.parse(id, name) for id, name in named if name.startswith(LOCK_PREFIX)]
        raise LmsconfError(
            f"cannot tell whether another run has locked the workspace: {rows.incomplete}", hint="Try again."
        )

    def delete(self, lock: WorkspaceLock) -> None:
        """Delete a lock; a missing one is no error."""
        with suppress(LockLost):
            self.call("manual-groups.delete", lock)

    @contextmanager
    def hold(self, terms: LockSettings) -> Iterator[LockLease]:
        """Hold the workspace's lock while the context is active. Raises LockHeldElsewhere if another run holds it.

        The lock is deleted on every exit, even if it was never visible.
        """
        now = self._clock()
        before = self.list_locks()
        self._refuse(lock for lock in before if lock.is_active(now))
        lease = LockLease(self, terms, self._key(), self._clock, self._idle)
        try:
            with _deferred_interrupts():
                lease.create()
            self._wait_until_listed(lease)
            self._refuse(lock for lock in self.list_locks() if lock.key != lease.key and lock.is_active(now))
            for left in before:
                self.delete(left)
            yield lease
        finally:
            # The run is over by now, and its report must not be lost to an interruption.
            try:
                with suppress(KeyboardInterrupt), _deferred_interrupts():
                    lease.release()
            finally:
                if self.left:
                    self._tell(self.left)

    def _wait_until_listed(self, lease: LockLease) -> None:
        """Wait until our own lock is listed, identified by its key."""
        until = self._timing.now() + self._visible_within
        while (own := next((lock for lock in self.list_locks() if lock.key == lease.key), None)) is None:
            if self._timing.now() >= until:
                raise LmsconfError(
                    f"the lock was created, but is not in the list of groups after {self._visible_within:g} seconds",
                    hint="Set a longer `settle:` to wait longer. `lmsconf unlock` lists the locks.",
                )
            self._timing.tell(until - self._timing.now())
            self._timing.sleep(0.5, threading.Event())
        lease.set_id(own.id)

    def _refuse(self, others: Iterator[WorkspaceLock]) -> None:
        for other in others:
            raise LockHeldElsewhere(
                f"another run has locked the workspace: {other.description}",
                hint=f"Wait until it ends. If it no longer runs: lmsconf unlock --id {other.id}",
            )

    def call(self, operation: str, lock: WorkspaceLock, *, is_named: bool = False) -> Json:
        """Call an operation on a lock's group, or on a new one; map 403, 404 and 410 to our errors.

        is_named: the group gets the lock's name.
        """
        path = {"groupId": lock.id} if lock.id else {}
        body = self._connection.spec.body_to_wire(operation, name=lock.name) if is_named else None
        try:
            with self._connection.worker_pool(1) as pool:
                return pool.submit(lambda client: client.call(operation, path=path, body=body)).result()
        except Rejected as refused:
            if refused.is_forbidden:  # the groups could be read before
                raise refused.restated(
                    Unauthorized,
                    "This token can read but has no permission to change groups, and a lock is a group. Use one that "
                    "has.",
                ) from refused
            if lock.id and refused.is_missing:
                raise LockLost(
                    f"the lock was deleted: {refused.message}", hint="Somebody unlocked the workspace. Apply again."
                ) from refused
            raise


@contextmanager
def _deferred_interrupts() -> Iterator[None]:
    """Defer Ctrl-C and SIGTERM to the end of the context, so that a request's result is known.

    A second interruption is raised at once.
    """
    interrupts = Interrupts()
    with interrupts.installed():
        interrupts.defer()
        yield
    if interrupts.first is not None:
        raise interrupts.first
