"""The sandbox behind a port of this machine: the standard library's HTTP server, and nothing but loopback."""

from __future__ import annotations

import socket
import sys
import threading
import time
from contextlib import suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import TracebackType
from typing import Final

from lmsconf.errors import LmsconfError
from lmsconf.sandbox.faults import Lost
from lmsconf.sandbox.page import PAGE_HEADERS, page
from lmsconf.sandbox.service import Answer, Service, json_answer

LOOPBACK: Final = "127.0.0.1"
LARGEST_BODY: Final = 32 * 1024 * 1024
_NAMES: Final = (LOOPBACK, "localhost", "[::1]")
"""What this machine calls itself. A request under any other name is answered by nothing."""
_USUAL_PORT: Final = 80
_MOST_HEADERS: Final = 100
_LONGEST_HEADER: Final = 65536


class Server:
    """A sandbox that listens. `serve_forever` stays until interrupted; `start` returns and serves in the background.

    A browser that opens the address is shown a page about the workspace; everything else is as in process.
    """

    def __init__(self, sandbox: Service, port: int = 0, *, latency: float = 0.0) -> None:
        try:
            self._http = _HTTP(sandbox, port, latency)
        except OSError as error:
            raise LmsconfError(
                f"cannot listen on {LOOPBACK}:{port}: {error.strerror}", hint="Choose another port with --port"
            ) from error

    @property
    def url(self) -> str:
        """Where clients find it."""
        return f"http://{LOOPBACK}:{self._http.server_port}"

    def start(self) -> Server:
        """Serves in a thread of its own."""
        threading.Thread(target=self._http.serve_forever, args=(0.02,), daemon=True).start()
        return self

    def serve_forever(self) -> None:
        """Serves in this thread, until it is interrupted."""
        try:
            self._http.serve_forever()
        finally:
            self._http.server_close()

    def stop(self) -> None:
        """Ends what `start` began, connections that are still open as well."""
        self._http.shutdown()
        self._http.server_close()

    def __enter__(self) -> Server:
        return self.start()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()


def serve(sandbox: Service, port: int = 0, *, latency: float = 0.0) -> Server:
    """A server for that sandbox, listening already. Port 0 takes a free one; `latency`: seconds before each answer."""
    return Server(sandbox, port, latency=latency)


class _HTTP(ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 128

    def __init__(self, sandbox: Service, port: int, latency: float) -> None:
        self.sandbox = sandbox
        self.latency = latency
        self._open: set[socket.socket] = set()
        super().__init__((LOOPBACK, port), _Conversation)
        at = {f"{name}:{self.server_port}" for name in _NAMES}
        self.names = frozenset(at | set(_NAMES) if self.server_port == _USUAL_PORT else at)

    def process_request(self, request: socket.socket | tuple[bytes, socket.socket], address: object) -> None:
        if isinstance(request, socket.socket):
            self._open.add(request)
        super().process_request(request, address)

    def shutdown_request(self, request: socket.socket | tuple[bytes, socket.socket]) -> None:
        if isinstance(request, socket.socket):
            self._open.discard(request)
        super().shutdown_request(request)

    def server_close(self) -> None:
        """Connections that are kept alive would otherwise hold their threads until the client goes."""
        super().server_close()
        for connection in list(self._open):
            with suppress(OSError):  # the client may have gone a moment before
                connection.shutdown(socket.SHUT_RDWR)

    def handle_error(self, request: socket.socket | tuple[bytes, socket.socket], address: object) -> None:
        """A client that goes away in the middle is nothing to report."""
        if not isinstance(sys.exception(), ConnectionError):
            super().handle_error(request, address)


class _Conversation(BaseHTTPRequestHandler):
    """One connection. Header and body leave in one packet, or each answer would wait for a delayed acknowledgement."""

    protocol_version = "HTTP/1.1"
    server_version = "lmsconf-sandbox"
    sys_version = ""
    wbufsize = 65536
    disable_nagle_algorithm = True
    server: _HTTP
    raw_requestline: bytes

    def parse_request(self) -> bool:
        """Takes a request in its usual form apart; the library does any other.

        Its reader is made for e-mail, and takes longer than most of the answers.
        """
        self._given: dict[str, str] = {}
        words = self.raw_requestline.decode("iso-8859-1").split()
        if len(words) != 3 or words[2] != self.protocol_version or words[1][:1] != "/" or words[1][:2] == "//":
            usual = super().parse_request()
            self._given = {name.lower(): value for name, value in self.headers.items()} if usual else {}
            return usual
        self.command, self.path, self.request_version = words
        self.requestline = " ".join(words)
        if not self._read_headers():
            self.send_error(400, "the header of the request cannot be read")
            return False
        self.close_connection = self._given.get("connection", "").lower() == "close"
        return self._given.get("expect", "").lower() != "100-continue" or self.handle_expect_100()

    def _read_headers(self) -> bool:
        """Reads as far as the empty line, and says whether it found one. A header that stands twice is one list."""
        self.close_connection = True
        for _ in range(_MOST_HEADERS):
            line = self.rfile.readline(_LONGEST_HEADER)
            if line in (b"\r\n", b"\n"):
                return True
            name, colon, value = line.decode("iso-8859-1").partition(":")
            if not colon or not line.endswith(b"\n") or name != name.strip() or not name:
                return False
            name, value = name.lower(), value.strip()
            self._given[name] = f"{self._given[name]}, {value}" if name in self._given else value
        return False

    def _serve(self) -> None:
        headers = self._given
        host = headers.get("host", "")
        if host.lower() not in self.server.names:
            # A name that leads here is no name of this machine: a page of that site asks, through somebody's browser.
            return self._give_up(421, f"this is not {host[:60]}", error="misdirected")
        size = headers.get("content-length", "0")
        if "transfer-encoding" in headers or not size.isascii() or not size.isdigit():
            return self._give_up(411, "a request says the length of its body")
        if int(size) > LARGEST_BODY:
            return self._give_up(413, f"a body has at most {LARGEST_BODY} bytes")
        body = self.rfile.read(int(size))
        if self.server.latency:  # even a sleep of no time lets every other thread go first
            time.sleep(self.server.latency)
        path, _, query = self.path.partition("?")
        if self.command == "GET" and path == "/" and "text/html" in headers.get("accept", ""):
            return self._send(self._page())
        try:
            return self._send(self.server.sandbox.answer(self.command, path, query, headers, body))
        except Lost:
            self.close_connection = True

    do_GET = do_POST = do_PUT = do_PATCH = do_DELETE = _serve  # the names that the library looks for

    def _send(self, answer: Answer) -> None:
        self.send_response(answer.status)
        for name, value in answer.headers.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(answer.body)

    def _page(self) -> Answer:
        """The page for people. It takes no credential, and shows what is in a sandbox to who is on this machine."""
        body = page(self.server.sandbox).encode()
        return Answer(200, {**PAGE_HEADERS, "content-length": str(len(body))}, body)

    def _give_up(self, status: int, message: str, *, error: str = "bad_request") -> None:
        """Refuses a request whose body is not read, which is the end of the connection."""
        self.close_connection = True
        self._send(json_answer(status, {"error": error, "message": message}))

    def log_message(self, format: str, *values: object) -> None:
        """Says nothing: the sandbox keeps a log of its own."""
