"""The embedded service: a request as plain values, its response as bytes; and the same as an httpx transport.

`Sandbox` is for clients in the same process, without a socket, and `serve` for a port: both return the same responses
byte for byte.

httpx.Client(transport=Sandbox("workspace.db"), base_url="http://sandbox")
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from types import MappingProxyType
from typing import Final, NamedTuple, cast

import httpx
from msgspec import Struct
from msgspec.json import encode
from msgspec.structs import replace

from lmsconf.api.spec import ApiSpec, Operation
from lmsconf.sandbox.faults import ConnectionLost, Fault, FaultScript
from lmsconf.sandbox.handlers import DELETED_TWICE, find_handler
from lmsconf.sandbox.handlers.users import archive_due_accounts, is_archiving_due
from lmsconf.sandbox.request_context import STORED_NUL, ApiKeys, Refusal, RequestContext, unauthorized, validate_request
from lmsconf.sandbox.store import IN_MEMORY, Json, Repository, Store

_METHODS: Final = ("GET", "POST", "PUT", "PATCH", "DELETE")
_BEARER: Final = "bearer "
_BEFORE: Final = "before the last change"
_NUL: Final = STORED_NUL.encode()
_NO_JSON: Final = b"<!doctype html><title>Bad gateway</title><p>The service is being looked after.</p>"


class SandboxResponse(Struct, frozen=True):
    """A response. The body may be empty."""

    status: int
    headers: dict[str, str]
    body: bytes


class SandboxRequest(Struct, frozen=True):
    """A request."""

    method: str
    path: str
    query: str
    headers: Mapping[str, str]
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
        self.keys = ApiKeys(token)
        self._faults = faults
        self._on_log = on_log

    def answer(self, method: str, path: str, query: str, headers: Mapping[str, str], body: bytes) -> SandboxResponse:
        """Answer one request. Header names are lower case. Raises ConnectionLost if a fault cuts the connection."""
        request = SandboxRequest(method, path, query, headers, body)
        operation, parameters = self.spec.match_route(method, path) or (None, {})
        fault = self._faults.take_fault(operation.id, writes=operation.writes) if self._faults and operation else None
        status = 0
        try:
            if fault is not None and fault.delay:
                time.sleep(fault.delay)
            answer = _apply_fault(fault, lambda: self._answer(request, operation, parameters, fault))
            status = answer.status
        finally:
            self._log_request(request, operation, status)
        return answer

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        """Answer one request. A lost response raises the httpx error of a broken connection."""
        path, _, query = request.url.raw_path.decode("ascii").partition("?")
        try:
            answer = self.answer(request.method, path, query, dict(request.headers.items()), request.read())
        except ConnectionLost as error:
            raise httpx.RemoteProtocolError(str(error), request=request) from error
        return httpx.Response(answer.status, headers=answer.headers, stream=httpx.ByteStream(answer.body))

    @property
    def has_faults(self) -> bool:
        """Whether a fault script may delay or refuse requests."""
        return self._faults is not None

    def close_workspace(self) -> None:
        """Close the workspace and its file; one in memory is lost."""
        self.store.close()

    def _answer(
        self, request: SandboxRequest, operation: Operation | None, parameters: Mapping[str, str], fault: Fault | None
    ) -> SandboxResponse:
        """Check the credential, then the request, then carry it out; return the response of either."""
        try:
            self._check_credential(request.headers.get("authorization", ""))
            if operation is None:
                raise self._no_endpoint(request)
            handler = find_handler(operation.id)
            content_type = request.headers.get("content-type", "")
            query, body = validate_request(operation, parameters, request.query, content_type, request.body)
            with self._transaction(operation, stale=fault is not None and fault.stale) as repository:
                context = RequestContext(repository, self.spec.behaviour, parameters, query, body)
                if operation.id != DELETED_TWICE:
                    context.require_resources()
                done = handler(context)
            return (
                SandboxResponse(204, {}, b"")
                if done is None
                else json_response(200, cast(Json, operation.response_names.to_wire(done)))
            )
        except OverflowError:
            return json_response(400, {"error": "bad_request", "message": "a number is beyond 64 bits"})
        except Refusal as refusal:
            return json_response(refusal.status, {"error": refusal.code, "message": str(refusal)}, refusal.headers)

    @contextmanager
    def _transaction(self, operation: Operation, *, stale: bool) -> Iterator[Repository]:
        """One transaction, rolled back for a rejected request. Archive dates that are due are applied first."""
        if stale:
            with self.store.read_at_checkpoint(_BEFORE) as repository:
                yield repository
            return
        if not operation.writes:
            with self.store.read_transaction() as repository:
                if not is_archiving_due(repository):
                    yield repository
                    return
        elif self._faults and self._faults.has_stale_reads:
            self.store.checkpoint(_BEFORE)
        with self.store.write_transaction() as repository:
            archive_due_accounts(repository)
            yield repository

    def _check_credential(self, given: str) -> None:
        scheme, credential = given[: len(_BEARER)], given[len(_BEARER) :]
        if not given:
            raise unauthorized("the header Authorization is missing")
        if scheme.lower() != _BEARER or not self.keys.is_active(credential):
            raise unauthorized("the credential is not valid")

    def _no_endpoint(self, request: SandboxRequest) -> Refusal:
        """404 for an unknown path, 405 for a method that the path does not support."""
        allowed = [method for method in _METHODS if self.spec.match_route(method, request.path)]
        if allowed:
            takes = ", ".join(allowed)
            message = f"{request.path} takes {takes}, not {request.method}"
            return Refusal(405, "method_not_allowed", message, {"allow": takes})
        return Refusal(404, "not_found", f"there is no endpoint {request.path}")

    def _log_request(self, request: SandboxRequest, operation: Operation | None, status: int) -> None:
        name, writes = (operation.id, operation.writes) if operation else (None, False)
        entry = LoggedRequest(request.method, request.path, name, status, writes)
        self.log.append(entry)
        if self._on_log is not None:
            self._on_log(entry)


def _apply_fault(fault: Fault | None, answer: Callable[[], SandboxResponse]) -> SandboxResponse:
    """Apply a fault to the response. Raises ConnectionLost if it breaks the connection, before or after the request."""
    if fault is None:
        return answer()
    if fault.cut:
        raise ConnectionLost
    if fault.status is not None:
        return json_response(fault.status, {"error": "fault", "message": "this response was requested"}, fault.headers)
    done = answer()
    if fault.lose_answer:
        raise ConnectionLost
    return _corrupt_body(done, fault)


def _corrupt_body(answer: SandboxResponse, fault: Fault) -> SandboxResponse:
    """Cut the body in half, or replace it by one that is not JSON, if the fault says so."""
    if fault.spoil == "html":
        return SandboxResponse(200, {"content-type": "text/html", "content-length": str(len(_NO_JSON))}, _NO_JSON)
    if fault.spoil == "truncated" and answer.body:
        half = answer.body[: len(answer.body) // 2]
        return replace(answer, body=half, headers=answer.headers | {"content-length": str(len(half))})
    return answer


def json_response(status: int, value: Json, headers: Mapping[str, str] = MappingProxyType({})) -> SandboxResponse:
    """A response with a JSON body. headers: further ones."""
    body = encode(value).replace(_NUL, b"\\u0000")
    own = {"content-type": "application/json", "content-length": str(len(body))}
    return SandboxResponse(status, {**own, **headers}, body)
