"""What carries a request: to a service over the network, through a transport of httpx, or to the sandbox in process.

Each kind of wire knows which of its errors leave open whether the request arrived. An ambiguous write is never retried
blindly, so only errors that occur before the first byte count as not sent.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from enum import Enum
from typing import NamedTuple, Protocol

RawHeaders = Sequence[tuple[bytes, bytes]]


class DeliveryStatus(Enum):
    """NOT_SENT: a retry is safe. FINAL: not sent, and a retry would fail the same. AMBIGUOUS: may have been sent."""

    NOT_SENT = "not sent"
    FINAL = "final"
    AMBIGUOUS = "ambiguous"


class WireRequest(NamedTuple):
    """One request. target: path and query, percent-encoded. timeouts: in seconds, by the names that httpx has."""

    method: str
    target: str
    headers: RawHeaders
    body: bytes | None
    timeouts: Mapping[str, float]


class WireResponse(NamedTuple):
    """The beginning of one response.

    headers: lower-case name → value. chunks: its body as it arrives. close: to be called in any case.
    """

    status: int
    headers: Mapping[str, str]
    chunks: Iterable[bytes]
    close: Callable[[], None]


class Wire(Protocol):
    """Sends requests one after the other."""

    failures: tuple[type[Exception], ...]
    """All that `send` and the chunks of a response may raise."""

    proxy_variable: str | None
    """The environment variable with the proxy that requests go through; None without a proxy."""

    def send(self, request: WireRequest, *, fresh: bool) -> WireResponse:
        """Send one request; return once the headers have arrived. fresh: on a new connection. Raises `failures`."""
        ...

    def delivery_status(self, error: Exception) -> DeliveryStatus:
        """Return the delivery status of the request that raised the error."""
        ...

    def close(self) -> None:
        """Close all connections that this wire has opened."""
        ...
