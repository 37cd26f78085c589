"""How far a run is: requests done, requests in total, and what limits their rate."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

from msgspec import Struct


class RateLimit(Struct, frozen=True, kw_only=True):
    """The rate limit of a run, as far as it is known.

    at: now, in seconds on a monotonic clock; wall: the same since the epoch. rate: requests a second that were accepted
    since there is a limit; None before the first one. resumes_in: seconds in which nothing is sent, as the service
    asked with Retry-After; 0 without.
    """

    at: float
    wall: float
    rate: float | None
    resumes_in: float


class RunProgress(Struct, frozen=True, kw_only=True):
    """How far a phase of a run is, in requests; while a plan is applied, in calls.

    done: finished. total: known so far, finished ones included; it never falls. is_final: it does not grow either, as
    while a plan is applied.
    limit: what limits the rate; None if nothing does.
    """

    done: int
    total: int
    is_final: bool
    limit: RateLimit | None = None


Report: TypeAlias = Callable[[RunProgress], None]
"""Report progress. Calls never overlap."""
