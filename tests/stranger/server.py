"""A stranger's service on a loopback port: the endpoints of `endpoints`, as HTTP, with a log of what was asked."""

from __future__ import annotations

import gzip
import json
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, unquote, urlsplit

from .endpoints import Service
from .people import DONE, Made, Refused
from .state import Choices

Garble = Callable[[str, Any], object]
TOKEN = "stranger-token-0815"  # opens nothing but this server


@dataclass(frozen=True, slots=True)
class Request:
    """One request that was answered."""

    method: str
    path: str
    body: Any
    status: int

    @property
    def writes(self) -> bool:
        """Whether it could change the workspace; none of the POSTs here only reads."""
        # Results are read with a POST.
        return self.method != "GET" and not self.path.startswith("/analyse/")


@dataclass(frozen=True, slots=True)
class Answer:
    """What goes back."""

    status: int
    body: bytes = b""
    type: str = "application/json"
    retry_after: str | None = None


class IndependentServer:
    """A service under way. One request at a time is served, however many connections there are.

    garble: changes what a reading request answers, given its path, before it goes out. loses: whether the answer to a
    request, which was carried out, never arrives.
    """

    def __init__(self, choices: Choices) -> None:
        self.choices = choices
        self.service = Service(choices)
        self.held = self.service.held
        self.requests: list[Request] = []
        self.url = ""
        self.garble: Garble = lambda path, value: value
        self.loses: Callable[[Request], bool] = lambda request: False
        self._lock = threading.Lock()
        self._asked = 0
        self._stuttered: set[tuple[str, str]] = set()

    def writes(self) -> list[Request]:
        """The requests so far that could change something."""
        return [one for one in self.requests if one.writes]

    def answer(self, method: str, target: str, token: str | None, content: bytes) -> Answer:
        """The answer to one request."""
        with self._lock:
            body = json.loads(content) if content else None
            given = self._answer(method, target, token, body)
            request = Request(method, target, body, given.status)
            self.requests.append(request)
            return Answer(0) if self.loses(request) else given

    def _answer(self, method: str, target: str, token: str | None, body: Any) -> Answer:
        self._asked += 1
        if token != f"Bearer {TOKEN}":
            return self._refusal(401, "who are you?")
        if self._asked <= self.choices.busy_first:
            return self._refusal(429, "warming up", retry_after="1")
        if self.choices.throttle and self._asked % self.choices.throttle == 0:
            return self._refusal(429, "slow down", retry_after="0")
        parts = urlsplit(target)
        path = [unquote(part) for part in parts.path.removeprefix("/").split("/")]
        try:
            value = self.service.perform(method, path, parse_qs(parts.query), body)
        except Refused as refused:
            return self._refusal(refused.status, str(refused))
        if self.choices.stutter and method == "DELETE" and (method, target) not in self._stuttered:
            self._stuttered.add((method, target))
            return self._refusal(503, "done, and too busy to say so", retry_after="0")
        if method == "DELETE" and self.choices.removed:
            return Answer(200, json.dumps({"id": path[-1], "deleted": True}).encode())
        return self._success(self.garble(parts.path, value) if method == "GET" else value)

    def _refusal(self, status: int, reason: str, retry_after: str | None = None) -> Answer:
        type, body = self.choices.refusal(status, reason)
        return Answer(status, body, type, retry_after)

    def _success(self, value: object) -> Answer:
        if value is DONE:
            return Answer(self.choices.done, self.choices.done_body, "text/plain")
        status = 200
        if isinstance(value, Made):
            status, value = self.choices.made, value.value
            if self.choices.wrap == "extra":
                value = {**value, "message": "made", "meta": {"took": 3}}
            elif self.choices.wrap == "nothing":
                return Answer(self.choices.done)
            elif self.choices.wrap == "mute":
                value = {"status": "ok"}
            elif self.choices.wrap == "inside":
                value = {"data": value, "status": "ok"}
        return Answer(status, json.dumps(value).encode())


@contextmanager
def serving(choices: Choices) -> Iterator[IndependentServer]:
    """A service with these choices, listening until the block ends."""
    stranger = IndependentServer(choices)
    server = ThreadingHTTPServer(("127.0.0.1", 0), _handler(stranger))
    server.daemon_threads = True
    stranger.url = f"http://127.0.0.1:{server.server_port}"
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    try:
        yield stranger
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def _in_pieces(body: bytes) -> bytes:
    """A body as chunks of eleven bytes."""
    pieces = [body[start : start + 11] for start in range(0, len(body), 11)]
    return b"".join(b"%x\r\n%s\r\n" % (len(piece), piece) for piece in (*pieces, b""))


def _handler(stranger: IndependentServer) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        disable_nagle_algorithm = True

        def do_GET(self) -> None:
            content = self.rfile.read(int(self.headers.get("Content-Length") or 0))
            answer = stranger.answer(self.command, self.path, self.headers.get("Authorization"), content)
            if answer.status == 0:
                self.close_connection = True
                return
            body = gzip.compress(answer.body) if stranger.choices.packed and answer.body else answer.body
            self.send_response(answer.status)
            if stranger.choices.packed and answer.body:
                self.send_header("Content-Encoding", "gzip")
            if answer.retry_after is not None:
                self.send_header("Retry-After", answer.retry_after)
            if not stranger.choices.keep_alive:
                self.send_header("Connection", "close")
            if answer.status != 204:
                self.send_header("Content-Type", answer.type)
                if not stranger.choices.chunked:
                    self.send_header("Content-Length", str(len(body)))
                else:
                    self.send_header("Transfer-Encoding", "chunked")
                    body = _in_pieces(body)
            self.end_headers()
            if answer.status != 204:
                self.wfile.write(body)

        do_POST = do_PUT = do_DELETE = do_GET

        def log_message(self, format: str, *args: object) -> None:
            """Nothing: what was asked is in `requests`."""

    return Handler
