"""A network whose every wait ends at one deadline.

httpx limits each single read, so that a header which comes a byte a second would go on for ever.
"""

from __future__ import annotations

import math
import ssl
import time
from collections.abc import Callable, Iterable
from typing import Any

import httpcore
import httpx


class Deadline:
    """When a request has to be over; set anew for each."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self.until = math.inf
        self._seconds = math.inf

    def set(self, seconds: float) -> None:
        """Begins anew."""
        self._seconds = seconds
        self.until = self._clock() + seconds

    @property
    def is_over(self) -> bool:
        """Whether nothing is left."""
        return self._clock() > self.until

    @property
    def missed(self) -> str:
        """What to say when it is over."""
        return f"no whole answer within {self._seconds:.3g} s"

    def left(self, timeout: float | None, late: type[Exception]) -> float | None:
        """The timeout, or what is left where that is less. Raises `late` where nothing is."""
        left = self.until - self._clock()
        if left <= 0:
            raise late(self.missed)
        return left if timeout is None else min(timeout, left)


class _Stream(httpcore.NetworkStream):
    """A connection that is read and written until the deadline."""

    def __init__(self, stream: httpcore.NetworkStream, deadline: Deadline) -> None:
        self._stream, self._deadline = stream, deadline

    def read(self, max_bytes: int, timeout: float | None = None) -> bytes:
        return self._stream.read(max_bytes, self._deadline.left(timeout, httpcore.ReadTimeout))

    def write(self, buffer: bytes, timeout: float | None = None) -> None:
        self._stream.write(buffer, self._deadline.left(timeout, httpcore.WriteTimeout))

    def close(self) -> None:
        self._stream.close()

    def start_tls(
        self, ssl_context: ssl.SSLContext, server_hostname: str | None = None, timeout: float | None = None
    ) -> httpcore.NetworkStream:
        left = self._deadline.left(timeout, httpcore.ConnectTimeout)
        return _Stream(self._stream.start_tls(ssl_context, server_hostname, left), self._deadline)

    def get_extra_info(self, info: str) -> Any:
        return self._stream.get_extra_info(info)


class _Network(httpcore.NetworkBackend):
    """Connections that keep the deadline."""

    def __init__(self, network: httpcore.NetworkBackend, deadline: Deadline) -> None:
        self._network, self._deadline = network, deadline

    def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,
        local_address: str | None = None,
        socket_options: Iterable[httpcore.SOCKET_OPTION] | None = None,
    ) -> httpcore.NetworkStream:
        left = self._deadline.left(timeout, httpcore.ConnectTimeout)
        stream = self._network.connect_tcp(host, port, left, local_address, socket_options)
        return _Stream(stream, self._deadline)

    def sleep(self, seconds: float) -> None:
        self._network.sleep(seconds)


def keep(transport: httpx.HTTPTransport, deadline: Deadline) -> httpx.HTTPTransport:
    """The transport, bound to the deadline.

    httpx has no door to the network beneath it, so this reaches inside; an httpx that moved it fails here, loudly.
    """
    pool = transport._pool
    pool._network_backend = _Network(pool._network_backend, deadline)
    return transport
