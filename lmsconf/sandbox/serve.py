"""Serve the sandbox on a loopback port, with the standard library's HTTP server, and a read-only HTML page about it."""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Mapping
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Final

from lmsconf.sandbox.faults import ConnectionLost
from lmsconf.sandbox.service import Sandbox, SandboxResponse, json_response
from lmsconf.support.files import os_errors_as

PAGE_HEADERS: Final[Mapping[str, str]] = {
    "content-type": "text/html; charset=utf-8",
    "content-security-policy": "default-src 'none'; style-src 'unsafe-inline'; frame-ancestors 'none'",
    "x-content-type-options": "nosniff",
    "referrer-policy": "no-referrer",
    "cache-control": "no-store",
}
"""No resource is loaded, no script runs, nothing is cached."""
MOST_ROWS: Final = 50
_SECTIONS: Final = (
    (
        "People",
        ("Id", "E-mail", "Name", "Rights", "State"),
        "SELECT id, email, trim(first_name || ' ' || last_name), trim(iif(admin, 'admin ', '') || "
        "iif(manager, 'manager', '')), iif(archived_at IS NULL, 'active', 'archived') FROM people",
    ),
    (
        "Custom fields",
        ("Id", "Name", "Type", "Choices"),
        "SELECT id, name, type, (SELECT group_concat(name, ', ') FROM "
        "(SELECT name FROM choices WHERE field = fields.id ORDER BY position)) FROM fields",
    ),
    (
        "Groups",
        ("Id", "Name", "Kind", "Managers"),
        "SELECT id, name, kind, (SELECT count(*) FROM managers WHERE grp = groups.id) FROM groups",
    ),
    (
        "Content",
        ("Id", "Name", "Type", "Assignments"),
        "SELECT id, name, type, (SELECT count(*) FROM targets WHERE content = contents.id) FROM contents",
    ),
)
"""Title, headings and query of each table; the query must end with the table's name."""


def render_page(service: Sandbox) -> str:
    """Render the page: the last calls, the latest first, and the first rows of each kind.

    All text from the workspace and from calls is escaped; there is no script. Calls that failed are red.
    """
    from jinja2 import Environment, FileSystemLoader, StrictUndefined  # slow to import, and only a browser needs it

    calls = service.log[-MOST_ROWS:][::-1]
    tables: list[dict[str, object]] = [
        {
            "title": "Last calls",
            "headings": ("Method", "Path", "Operation", "Status"),
            "rows": [(call.method, call.path, call.operation, str(call.status or "lost")) for call in calls],
            "total": len(service.log),
            "is_bad": [not 200 <= call.status < 400 for call in calls],
        }
    ]
    with service.store.read_transaction() as repository:
        for title, headings, query in _SECTIONS:
            tables.append(
                {
                    "title": title,
                    "headings": headings,
                    "rows": repository.rows(f"{query} ORDER BY seq LIMIT {MOST_ROWS}"),
                    "total": repository.number(f"SELECT count(*) FROM {query.rpartition(' ')[2]}"),  # noqa: S608  as above
                }
            )
    environment = Environment(
        loader=FileSystemLoader(Path(__file__).parent), autoescape=True, undefined=StrictUndefined
    )
    return environment.get_template("page.html.j2").render(tables=tables)


LOOPBACK: Final = "127.0.0.1"
LARGEST_BODY: Final = 32 * 1024 * 1024


class Server(ThreadingHTTPServer):
    """A listening sandbox. `serve_forever` blocks until interrupted; `start` serves in a background thread.

    A browser that opens the URL gets an HTML page about the workspace; all other requests are handled as in process.

    port: 0 selects a free one. latency: seconds before each response. names: the hosts of this machine. A request with
    any other Host header is rejected with 421.
    """

    daemon_threads = True
    request_queue_size = 128
    is_stopped = False

    def __init__(self, sandbox: Sandbox, port: int = 0, *, latency: float = 0.0) -> None:
        self.sandbox, self.latency = sandbox, latency
        with os_errors_as(f"cannot listen on {LOOPBACK}:{port}", "Choose another port with --port"):
            super().__init__((LOOPBACK, port), _Conversation)
        ports = ("", ":80") if self.server_port == 80 else (f":{self.server_port}",)
        self.names = frozenset(host + port for host in (LOOPBACK, "localhost", "[::1]") for port in ports)

    @property
    def url(self) -> str:
        """The base URL for clients."""
        return f"http://{LOOPBACK}:{self.server_port}"

    def start(self) -> Server:
        """Serve in a background thread."""
        threading.Thread(target=self.serve_forever, args=(0.02,), daemon=True).start()
        return self

    def stop(self) -> None:
        """Stop what `start` began. On connections that clients keep, nothing is answered any more."""
        self.is_stopped = True
        self.shutdown()
        self.server_close()

    def __enter__(self) -> Server:
        return self.start()

    def __exit__(self, *_: object) -> None:
        self.stop()

    def handle_error(self, request: object, address: object) -> None:
        """Report no error for a client that disconnects."""
        if not isinstance(sys.exception(), ConnectionError):
            super().handle_error(request, address)  # type: ignore[arg-type]  # as it was given


serve = Server


class _Conversation(BaseHTTPRequestHandler):
    """One connection. Sends headers and body in one packet: two would wait for a delayed acknowledgement."""

    protocol_version = "HTTP/1.1"
    server_version, sys_version = "lmsconf-sandbox", ""
    wbufsize = 65536
    disable_nagle_algorithm = True
    server: Server

    def _serve(self) -> None:
        if self.server.is_stopped:
            self.close_connection = True
            return None
        headers = {name.lower(): ", ".join(self.headers.get_all(name, [])) for name in self.headers}
        host, size = headers.get("host", ""), headers.get("content-length", "0")
        is_sized = "transfer-encoding" not in headers and size.isascii() and size.isdigit()
        rules = (
            (bool(self.headers.defects), 400, "bad_request", "the header of the request cannot be read"),
            # DNS rebinding: a web page whose host name resolves to this machine sends requests through a browser.
            (host.lower() not in self.server.names, 421, "misdirected", f"this is not {host[:60]}"),
            (not is_sized, 411, "bad_request", "a request must have a Content-Length"),
            (
                is_sized and int(size) > LARGEST_BODY,
                413,
                "bad_request",
                f"a body has at most {LARGEST_BODY} bytes",
            ),
        )
        for is_broken, status, error, message in rules:
            if is_broken:
                self.close_connection = True  # its body is not read
                return self._send(json_response(status, {"error": error, "message": message}))
        body = self.rfile.read(int(size))
        if self.server.latency:  # even sleep(0) yields to every other thread
            time.sleep(self.server.latency)
        path, _, query = self.path.partition("?")
        if self.command == "GET" and path == "/" and "text/html" in headers.get("accept", ""):
            # It needs no credential, and shows the sandbox to every user of this machine.
            page = render_page(self.server.sandbox).encode()
            return self._send(SandboxResponse(200, {**PAGE_HEADERS, "content-length": str(len(page))}, page))
        try:
            return self._send(self.server.sandbox.answer(self.command, path, query, headers, body))
        except ConnectionLost:
            self.close_connection = True

    do_GET = do_POST = do_PUT = do_PATCH = do_DELETE = _serve  # the method names that the library calls

    def _send(self, answer: SandboxResponse) -> None:
        """Send a response."""
        self.send_response(answer.status)
        for name, value in (*answer.headers.items(), *([("Connection", "close")] if self.close_connection else [])):
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(answer.body)

    def log_message(self, format: str, *values: object) -> None:
        """Log nothing: the sandbox has its own log."""
