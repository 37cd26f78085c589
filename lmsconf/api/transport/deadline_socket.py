"""Sockets whose reads and writes time out at the deadline of a request.

A socket's own timeout limits each single read, so a response sent one byte a second would never time out.
"""

from __future__ import annotations

import io
import select
import socket

from lmsconf.api.transport.deadline import Deadline


class DeadlineSocket:
    """A connected socket, as far as `http.client` reads responses from it.

    silent: the most seconds that one read or write may wait. max_bytes: limit of one response as sent, header included;
    beyond it, reading raises OSError.
    """

    def __init__(self, connected: socket.socket, deadline: Deadline, *, silent: float, max_bytes: int) -> None:
        self.connected = connected
        self._deadline, self._silent, self._max_bytes = deadline, silent, max_bytes
        self._timeout: float | None = None

    def limit_wait(self) -> None:
        """Set the timeout of the next read or write. Raises TimeoutError after the deadline."""
        timeout = self._deadline.cap_timeout(self._silent)
        if timeout != self._timeout:  # each change is a system call
            self._timeout = timeout
            self.connected.settimeout(timeout)

    def sendall(self, data: bytes) -> None:
        self.limit_wait()
        self.connected.sendall(data)

    def makefile(self, mode: str) -> io.BufferedReader:
        return io.BufferedReader(ResponseStream(self, self._max_bytes))

    def has_input(self) -> bool:
        """Whether an idle connection can be read: the service has closed it, or has sent what nobody asked for."""
        if not hasattr(select, "poll"):  # Windows
            return bool(select.select([self.connected], [], [], 0)[0])
        poll = select.poll()
        poll.register(self.connected, select.POLLIN)
        return bool(poll.poll(0))

    def close(self) -> None:
        """Close the socket, once the responses that are read from it are closed too."""
        self.connected.close()


class ResponseStream(io.RawIOBase):
    """The bytes of one response."""

    def __init__(self, source: DeadlineSocket, max_bytes: int) -> None:
        self._source, self._left, self._max_bytes = source, max_bytes, max_bytes
        self._file = source.connected.makefile("rb", buffering=0)

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: bytearray | memoryview, /) -> int:  # type: ignore[override]  # never None: it blocks
        self._source.limit_wait()
        count = self._file.readinto(buffer) or 0
        self._left -= count
        if self._left < 0:
            raise OSError(f"the response is longer than {self._max_bytes:,} bytes")
        return count

    def close(self) -> None:
        self._file.close()
        super().close()
