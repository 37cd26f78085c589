"""The embedded service: a request as plain values, its response as bytes; and the same as an httpx transport.

`Sandbox` is for clients in the same process, without a socket, and `serve` for a port: both return the same responses
byte for byte.

httpx.Client(transport=Sandbox("workspace.db"), base_url="http://sandbox")
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from types import MappingProxyType
from typing import Final, NamedTuple, cast

import httpx
from msgspec import Struct
from msgspec.json import encode
from msgspec.structs import replace

from lmsconf.api.spec import ApiSpec, Operation
from lmsconf.api.spec.operations import with_names
from lmsconf.sandbox.faults import ConnectionLost, Fault, FaultScript
from lmsconf.sandbox.handlers import (
    analytics,
    certificates,
    content,
    custom_fields,
    groups,
    users,
)
from lmsconf.sandbox.handlers.users import archive_due_accounts
from lmsconf.sandbox.request_context import (
    STORED_NUL,
    ApiKeys,
    Handler,
    Refusal,
    RequestContext,
    not_found,
    validate_request,
)
from lmsconf.sandbox.store import IN_MEMORY, Json, Store

HANDLERS: Final[Mapping[str, Handler]] = {
    **analytics.HANDLERS,
    **certificates.HANDLERS,
    **content.HANDLERS,
    **custom_fields.HANDLERS,
    **groups.HANDLERS,
    **users.HANDLERS,
}
"""Operation id → its handler."""
_BEFORE: Final = "before the last change"
_NO_JSON: Final = b"<!doctype html><title>Bad gateway</title><p>The service is being looked after.</p>"


class SandboxResponse(Struct, frozen=True):
    """A response. The body may be empty."""

    status: int
    headers: dict[str, str]
    body: bytes


class LoggedRequest(NamedTuple):
    """One logged request: `operation` is None if none matched, status 0 if the response was lost."""

    method: str
    path: str
    operation: str | None
    status: int
    writes: bool


class Sandbox(httpx.BaseTransport):
    """One workspace that answers requests, from any number of threads; a transport for clients in this process.

    path    a file to keep the workspace in; default: in memory
    token   the first of the API keys that it accepts; `keys` creates others
    faults  the fault script
    on_log  called with every request after it is answered; `log` has them all
    """

    def __init__(
        self,
        path: str | Path = IN_MEMORY,
        *,
        spec: ApiSpec | None = None,
        token: str = "sandbox",  # noqa: S107  the embedded workspace keeps no secret
        clock: Callable[[], float] = time.time,
        ids: Callable[[str], str] | None = None,
        faults: FaultScript | None = None,
        on_log: Callable[[LoggedRequest], None] | None = None,
    ) -> None:
        self.spec = spec or ApiSpec.default()
        self.log: list[LoggedRequest] = []
        self.store = Store(path, clock=clock, ids=ids)
        self.keys = ApiKeys([token])
        self._faults = faults
        self._on_log = on_log or (lambda _: None)

    def answer(self, method: str, path: str, query: str, headers: Mapping[str, str], body: bytes) -> SandboxResponse:
        """Answer one request. Header names are lower case. Raises ConnectionLost if a fault cuts the connection."""
        route = self.spec.match_route(method, path)
        operation = route[0] if route else None
        fault = self._faults.take_fault(operation.id, writes=operation.writes) if self._faults and operation else None
        respond = partial(self._carry_out, route, method, path, query, headers, body)
        status = 0
        try:
            answer = respond() if fault is None else _apply_fault(fault, respond)
            status = answer.status
        finally:
            name, writes = (operation.id, operation.writes) if operation else (None, False)
            entry = LoggedRequest(method, path, name, status, writes)
            self.log.append(entry)
            self._on_log(entry)
        return answer

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        """Answer one request. A lost response raises the httpx error of a broken connection."""
        path, _, query = request.url.raw_path.decode("ascii").partition("?")
        try:
            answer = self.answer(request.method, path, query, dict(request.headers.items()), request.read())
        except ConnectionLost as error:
            raise httpx.RemoteProtocolError("the connection broke before an answer came", request=request) from error
        return httpx.Response(answer.status, headers=answer.headers, stream=httpx.ByteStream(answer.body))

    @property
    def has_faults(self) -> bool:
        """Whether a fault script may delay or refuse requests."""
        return self._faults is not None

    def close_workspace(self) -> None:
        """Close the workspace and its file; one in memory is lost."""
        self.store.close()

    def _carry_out(
        self,
        route: tuple[Operation, Mapping[str, str]] | None,
        method: str,
        path: str,
        query: str,
        headers: Mapping[str, str],
        body: bytes,
        *,
        stale: bool = False,
    ) -> SandboxResponse:
        """Check a request and carry it out; a refusal is a response too. stale: it reads what was before."""
        try:
            self._check_credential(headers.get("authorization", ""))
            if route is None:
                raise self._no_endpoint(method, path)
            operation, parameters = route
            given = validate_request(operation, parameters, query, headers.get("content-type", ""), body)
            done = self._run_handler(operation, parameters, *given, stale=stale)
        except OverflowError:
            return json_response(400, {"error": "bad_request", "message": "a number is beyond 64 bits"})
        except Refusal as refusal:
            return json_response(refusal.status, {"error": refusal.code, "message": str(refusal)}, refusal.headers)
        if done is None:
            return SandboxResponse(204, {}, b"")
        return json_response(200, cast(Json, with_names(done, operation.to_response)))

    def _run_handler(
        self,
        operation: Operation,
        path: Mapping[str, str],
        query: Mapping[str, Json],
        body: Mapping[str, Json],
        *,
        stale: bool,
    ) -> Json:
        """Carry out a request that matches the description, in a transaction that a refusal rolls back.

        Archive dates that are due are applied first. stale: in the workspace before the last change.
        """
        if operation.writes and self._faults and self._faults.has_stale_reads:
            self.store.checkpoint(_BEFORE)
        with self.store.read_transaction(_BEFORE) if stale else self.store.write_transaction() as repository:
            if not stale:
                archive_due_accounts(repository)
            context = RequestContext(repository, self.spec.behaviour, path, query, body)
            # A smart group may be deleted twice (API specification, Smart Groups).
            if operation.id != "smart-groups.delete":
                context.require_resources()
            return HANDLERS[operation.id](context)

    def _check_credential(self, given: str) -> None:
        scheme, _, credential = given.partition(" ")
        if scheme.lower() != "bearer" or credential not in self.keys:
            raise Refusal(401, "unauthorized", "the credential is not valid")

    def _no_endpoint(self, method: str, path: str) -> Refusal:
        """404 for an unknown path, 405 for a method that the path does not support."""
        methods = ("GET", "POST", "PUT", "PATCH", "DELETE")
        if allowed := ", ".join(other for other in methods if self.spec.match_route(other, path)):
            return Refusal(405, "method_not_allowed", f"{path} takes {allowed}, not {method}", {"allow": allowed})
        return not_found(f"there is no endpoint {path}")


def _apply_fault(fault: Fault, respond: Callable[..., SandboxResponse]) -> SandboxResponse:
    """Apply a fault to the response. Raises ConnectionLost if it breaks the connection, before or after the request."""
    if fault.delay:
        time.sleep(fault.delay)
    if fault.cut:
        raise ConnectionLost
    if fault.status is not None:
        return json_response(fault.status, {"error": "fault", "message": "this response was requested"}, fault.headers)
    done = respond(stale=fault.stale)
    if fault.lose_answer:
        raise ConnectionLost
    if fault.spoil == "html":
        return SandboxResponse(200, {"content-type": "text/html", "content-length": str(len(_NO_JSON))}, _NO_JSON)
    if fault.spoil == "truncated" and done.body:
        half = done.body[: len(done.body) // 2]
        return replace(done, body=half, headers=done.headers | {"content-length": str(len(half))})
    return done


def json_response(status: int, value: Json, headers: Mapping[str, str] = MappingProxyType({})) -> SandboxResponse:
    """A response with a JSON body. headers: further ones."""
    body = encode(value).replace(STORED_NUL.encode(), b"\\u0000")
    return SandboxResponse(
        status, {"content-type": "application/json", "content-length": str(len(body)), **headers}, body
    )
