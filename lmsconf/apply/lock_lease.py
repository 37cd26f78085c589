"""The lease of a run's own lock: created, renewed while calls are sent, and deleted."""

from __future__ import annotations

import threading
from collections.abc import Callable
from contextlib import suppress
from typing import TYPE_CHECKING, Final

from msgspec.structs import replace

from lmsconf.apply.lock_names import LockLost, WorkspaceLock
from lmsconf.errors import InvalidResponse, LmsconfError, WriteOutcomeUnknown
from lmsconf.model.calls import Call
from lmsconf.project.settings import LockSettings

if TYPE_CHECKING:
    from lmsconf.apply.remote_lock import LockManager

_RENEWED_AFTER: Final = 1 / 3
_SAFE_UNTIL: Final = 0.9
_CHECKED_EVERY: Final = 5.0
"""Seconds between checks of our own lock.

Short enough to stop soon after it is deleted, long enough that the checks cost little beside the calls.
"""


class LockLease:
    """Our own lock: created, renewed while calls are sent, and deleted.

    A background thread renews the lease too: what a run reads before its first call may take longer than a lease. Only
    `renew_before` decides that the lock is lost. left: after `release`, a message if the lock may still exist.
    """

    def __init__(
        self,
        manager: LockManager,
        terms: LockSettings,
        key: str,
        clock: Callable[[], float],
        idle: Callable[[float, threading.Event], bool],
    ) -> None:
        self._manager, self._terms, self._clock, self._idle = manager, terms, clock, idle
        self._lock = WorkspaceLock(id="", key=key, until=0.0, owner=terms.owner)
        self._checked_at = 0.0
        self._may_exist = False
        self.left: str | None = None
        self._mutex = threading.Lock()
        self._ended = threading.Event()
        self._renewer = threading.Thread(target=self._renew_on, name="lmsconf-lock", daemon=True)

    @property
    def key(self) -> str:
        """Random key that identifies this lock, also while its id is unknown."""
        return self._lock.key

    def create(self) -> None:
        """Create it, with a lease that begins now. Raises LmsconfError if that was rejected."""
        now = self._clock()
        self._lock = replace(self._lock, until=now + self._terms.lease)
        self._checked_at, self._may_exist = now, True
        try:
            id = self._manager.create(self._lock)
        except (WriteOutcomeUnknown, InvalidResponse):
            return  # it is found by its key
        except LmsconfError:
            self._may_exist = False
            raise
        if id:
            self.set_id(id)

    def set_id(self, id: str) -> None:
        """Set the group's id, and start renewing."""
        with self._mutex:
            self._lock = replace(self._lock, id=id)
        if not self._renewer.ident:
            self._renewer.start()

    def renew_before(self, call: Call) -> None:
        """Before each call: check that the lock exists, and renew the lease when a third of it is over.

        A check is valid for a few seconds. Raises LockLost once the lock does not exist or may have expired for others.
        """
        with self._mutex:
            self._refuse_expired(call)
            now = self._clock()
            if self._is_due(now):
                self._renew(now)
            elif not 0 <= now - self._checked_at < _CHECKED_EVERY:
                self._check_exists(now)
            # The response may have arrived late.
            self._refuse_expired(call)

    def release(self) -> None:
        """Delete it. If that fails, `left` holds a message for people; the lock then expires by itself."""
        if not self._may_exist:
            return
        self.left = f"the lock of {self._lock.description} may be left: run `lmsconf unlock`"
        self._ended.set()
        if self._renewer.ident:
            self._renewer.join()
        try:
            locks = (
                [self._lock] if self._lock.id else [lock for lock in self._manager.list_locks() if lock.key == self.key]
            )
            for lock in locks:
                self._manager.delete(lock)
                self.left = None
        except LmsconfError as error:
            self.left = f"the lock of {self._lock.description} could not be removed: {error.message}"

    def _refuse_expired(self, call: Call) -> None:
        if not self._is_safe(self._clock()):
            raise LockLost(
                f"the lock was not renewed in time, and {call.id} was not sent",
                hint="Apply again. If runs are often delayed, set a longer `lease:` under `lock:`.",
            )

    def _is_safe(self, now: float) -> bool:
        return now < self._begun + self._terms.lease * _SAFE_UNTIL

    def _is_due(self, now: float) -> bool:
        return now >= self._begun + self._terms.lease * _RENEWED_AFTER

    @property
    def _begun(self) -> float:
        """When the current lease began."""
        return (self._lock.until or 0.0) - self._terms.lease

    def _renew_on(self) -> None:
        """Renew when due until the run is over. Errors are left to `renew_before`: a new group may show late."""
        while not self._idle(self._terms.lease * _RENEWED_AFTER / 2, self._ended):
            with suppress(LmsconfError), self._mutex:
                now = self._clock()
                if not self._is_safe(now):
                    return  # a lease that may have expired for others is not revived
                if self._is_due(now):
                    self._renew(now)

    def _renew(self, now: float) -> None:
        renewed = replace(self._lock, until=now + self._terms.lease)
        try:
            self._manager.rename(renewed)
        except (WriteOutcomeUnknown, InvalidResponse):
            return  # the current lease still holds; the renewal is retried before the next call
        if self._is_safe(self._clock()):
            # Otherwise another run may have seen the lease expire before it was renewed, and proceed as this one would.
            self._lock, self._checked_at = renewed, now

    def _check_exists(self, now: float) -> None:
        with suppress(InvalidResponse):  # inconclusive; the next call checks again
            self._manager.check_exists(self._lock)
            self._checked_at = now
