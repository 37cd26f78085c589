"""Remote lock: a manual group with a reserved name, which keeps runs on other machines from changing the workspace.

The API has no conditional create. So a run lists the locks, creates its own, and lists them again; a run that finds
another live lock in the second listing deletes its own. Of two concurrent runs at most one proceeds, perhaps none. A
lock is a lease that is renewed during the run, so the lock of a dead run expires. A run checks every few seconds that
its lock still exists, so that deleting the lock stops the run.

Limits: a call sent just before the lease ended may arrive after another run acquired the lock, and a service that lists
a new group late can let two runs in.
"""

from __future__ import annotations

import secrets
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Final

from lmsconf.api.spec.listings import MANUAL_GROUPS
from lmsconf.apply.ambiguous_writes import WaitClock
from lmsconf.apply.lock_lease import LockLease
from lmsconf.apply.lock_names import LockHeldElsewhere, LockLost, WorkspaceLock
from lmsconf.errors import LmsconfError, Rejected, Unauthorized
from lmsconf.model.api import ListedRows
from lmsconf.model.canonical_json import Json
from lmsconf.project.settings import LockSettings
from lmsconf.support.interrupts import defer_interrupts
from lmsconf.workspace.connection import Connection

_VISIBLE_WITHIN: Final = 10.0
"""Seconds in which a new group must become visible, even if the project's `settle` is shorter."""
_MOST_LISTINGS: Final = 3
"""Attempts at a complete listing: locks of other runs are created and deleted, which can leave a gap between pages."""
_FORBIDDEN_HINT: Final = (
    "This token can read but has no permission to change groups, and a lock is a group. Use one that has."
)


class LockManager:
    """List, create and delete locks of one workspace. `left`: a message when a lock could not be deleted.

    settle: seconds until a new group is visible. idle: waits between renewals, and returns True when they must end.
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
    ) -> None:
        self._connection, self._clock, self._timing, self._key = connection, clock, timing or WaitClock(), key
        self._idle = idle
        self._visible_within = max(settle, _VISIBLE_WITHIN)
        self.left: str | None = None

    def list_locks(self) -> list[WorkspaceLock]:
        """Return every live lock. Raises LmsconfError if the groups cannot be listed completely."""
        for _ in range(_MOST_LISTINGS):
            with self._connection.worker_pool(1) as pool:
                rows = self._connection.reader(pool).rows(MANUAL_GROUPS)
            if not rows.incomplete:
                return list(_locks(rows))
        raise LmsconfError(
            f"cannot tell whether another run has locked the workspace: {rows.incomplete}", hint="Try again."
        )

    def create(self, lock: WorkspaceLock) -> str:
        """Create the lock's group. Returns its id, or "" if the response lacks it."""
        body = self._connection.spec.body_to_wire("manual-groups.create", name=lock.name)
        answer = self._call("manual-groups.create", body=body)
        return str(answer.get("groupId") or "") if isinstance(answer, dict) else ""

    def delete(self, lock: WorkspaceLock) -> None:
        """Delete a lock; a missing one is no error."""
        with suppress(LockLost):
            self._call("manual-groups.delete", lock)

    def rename(self, lock: WorkspaceLock) -> None:
        """Rename the lock's group to the lock's name. Raises LockLost if the group does not exist."""
        body = self._connection.spec.body_to_wire("manual-groups.rename", name=lock.name)
        self._call("manual-groups.rename", lock, body=body)

    def check_exists(self, lock: WorkspaceLock) -> None:
        """Raise LockLost if the lock's group does not exist.

        Reads it by its id: concurrent calls create and delete groups, which can move the lock between pages of the
        listing so that it is missed.
        """
        self._call("manual-groups.members", lock)

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
            with suppress(KeyboardInterrupt), _deferred_interrupts():
                lease.release()
            self.left = lease.left

    def _wait_until_listed(self, lease: LockLease) -> None:
        """Wait until our own lock is listed, identified by its key."""
        until = self._timing.now() + self._visible_within
        while True:
            for lock in self.list_locks():
                if lock.key == lease.key:
                    lease.set_id(lock.id)
                    return
            if self._timing.now() >= until:
                raise LmsconfError(
                    f"the lock was created, but is not in the list of groups after {self._visible_within:g} seconds",
                    hint="Set a longer `settle:` to wait longer. `lmsconf unlock` lists the locks.",
                )
            self._timing.tell(until - self._timing.now())
            self._timing.sleep(0.5, threading.Event())

    def _refuse(self, others: Iterator[WorkspaceLock]) -> None:
        for other in others:
            raise LockHeldElsewhere(
                f"another run has locked the workspace: {other.description}",
                hint=f"Wait until it ends. If it no longer runs: lmsconf unlock --id {other.id}",
            )

    def _call(
        self, operation: str, lock: WorkspaceLock | None = None, *, body: dict[str, object] | None = None
    ) -> Json:
        """Call an operation on an existing lock, or on a new one; map 403, 404 and 410 to our errors."""
        path = {"groupId": lock.id} if lock else {}
        try:
            with self._connection.worker_pool(1) as pool:
                return pool.submit(lambda client: client.call(operation, path=path, body=body)).result()
        except Rejected as refused:
            if refused.is_forbidden:  # the groups could be read before
                raise refused.restated(Unauthorized, _FORBIDDEN_HINT) from refused
            if lock and refused.is_missing:
                hint = "Somebody unlocked the workspace. Apply again."
                raise LockLost(f"the lock was deleted: {refused.message}", hint=hint) from refused
            raise


@contextmanager
def _deferred_interrupts() -> Iterator[None]:
    """Defer Ctrl-C and SIGTERM to the end of the context, so that a request's result is known.

    A second interruption is raised at once.
    """
    interrupts: list[KeyboardInterrupt] = []

    def collect(interrupt: KeyboardInterrupt) -> None:
        interrupts.append(interrupt)
        if len(interrupts) > 1:
            raise interrupt

    with defer_interrupts(collect):
        yield
    if interrupts:
        raise interrupts[0]


def _locks(rows: ListedRows) -> Iterator[WorkspaceLock]:
    for row in rows.rows:
        if lock := WorkspaceLock.parse(str(row["groupId"]), str(row.get("name"))):
            yield lock
