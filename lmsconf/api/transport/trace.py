"""What was asked and answered, without what is secret: no header, no body."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Exchange:
    """One try of one call. `status` is None when no answer came, and `failure` says why.

    date: what the service's clock said, as its header has it.
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
