"""Record of a request and its response without secrets: no headers but Date, no bodies."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Exchange:
    """One attempt of one call.

    attempt: from 1. seconds: duration. status: None without a response. failure: why there is none.
    date: the Date header, the service's clock.
    """

    operation: str | None
    method: str
    path: str
    query: str
    attempt: int
    seconds: float
    status: int | None
    failure: str | None = None
    date: str | None = None
