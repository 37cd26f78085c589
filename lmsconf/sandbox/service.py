"""The service itself, without a network: a request goes in as plain values, its answer comes out as bytes.

Two thin doors lead here, `transport` for clients in the same process and `serve` for a port, so that both give the
same answers byte for byte.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Final, NamedTuple, cast

from lmsconf.api.spec import ApiSpec, Operation
from lmsconf.sandbox.api_refusal import Refusal, unauthorized
from lmsconf.sandbox.checks import Checker
from lmsconf.sandbox.faults import Fault, Faults, Lost
from lmsconf.sandbox.handlers import HANDLERS
from lmsconf.sandbox.handlers.accounts import archive_due, is_archiving_due
from lmsconf.sandbox.keys import Keyring
from lmsconf.sandbox.request_context import Json, RequestContext
from lmsconf.sandbox.store import IN_MEMORY, Repository, Store

_METHODS: Final = ("GET", "POST", "PUT", "PATCH", "DELETE")
_BEARER: Final = "bearer "
_BEFORE: Final = "before the last change"
_NO_JSON: Final = b"<!doctype html><title>Bad gateway</title><p>The service is being looked after.</p>"


class Answer(NamedTuple):
    """What goes back. The body is empty where there is nothing to say."""

    status: int
    headers: dict[str, str]
    body: bytes


class Asked(NamedTuple):
    """What came in."""

    method: str
    path: str
    query: str
    headers: Mapping[str, str]
    body: bytes


class Logged(NamedTuple):
    """One request as it was seen: `operation` is None where nothing was called, status 0 where the answer was lost."""

    method: str
    path: str
    operation: str | None
    status: int
    writes: bool


class Service:
    """One workspace that answers requests, from any number of threads.

    path    a file to keep the workspace in, or in memory
    token   the first of the API keys that it takes; `keys` makes others
    seed    a seed file, planted if the workspace is still empty
    faults  what goes wrong, on script
    on_log  hears of every request after it is answered
    """

    def __init__(
        self,
        path: str | Path = IN_MEMORY,
        *,
        wire: ApiSpec | None = None,
        token: str = "sandbox",  # noqa: S107  the embedded workspace keeps no secret
        clock: Callable[[], float] = time.time,
        ids: Callable[[str], str] | None = None,
        seed: Path | None = None,
        faults: Faults | None = None,
        on_log: Callable[[Logged], None] | None = None,
    ) -> None:
        self.wire = wire or ApiSpec.default()
        self.log: list[Logged] = []
        self.store = Store(path, clock=clock, ids=ids)
        self.keys = Keyring(token)
        self._checkers: dict[str, Checker] = {}
        self._faults = faults
        self._on_log = on_log
        if seed is not None:
            self._plant(seed)

    def answer(self, method: str, path: str, query: str, headers: Mapping[str, str], body: bytes) -> Answer:
        """The answer to one request. Header names are lower case. Raises Lost where a fault cuts the connection."""
        asked = Asked(method, path, query, headers, body)
        operation, parameters = self.wire.route(method, path) or (None, {})
        fault = self._faults.strike(operation.id, writes=operation.writes) if self._faults and operation else None
        status = 0
        try:
            answer = _under(fault, lambda: self._answer(asked, operation, parameters, fault))
            status = answer.status
        finally:
            self._note(asked, operation, status)
        return answer

    def checkpoint(self, name: str) -> None:
        """Keeps the workspace as it is now under a name, for as long as this service lives."""
        self.store.checkpoint(name)

    def restore(self, name: str) -> None:
        """Makes the workspace what it was at that checkpoint; the log goes on. Raises LmsconfError for no such name."""
        self.store.restore(name)

    def close(self) -> None:
        """Clients close their transport when they are done; the workspace stays for the next one."""

    def shut(self) -> None:
        """Ends the workspace: a file is let go, what was in memory is gone."""
        self.store.close()

    def _answer(
        self, asked: Asked, operation: Operation | None, parameters: Mapping[str, str], fault: Fault | None
    ) -> Answer:
        """The answer, whatever comes of it: the credential is looked at first, then the request, then it is done."""
        try:
            self._check_credential(asked.headers.get("authorization", ""))
            if operation is None:
                raise self._nowhere(asked)
            if operation.id not in HANDLERS:
                raise Refusal(501, "not_implemented", f"{operation.id} is not carried out here")
            content_type = asked.headers.get("content-type", "")
            request = self._checker(operation).check(parameters, asked.query, content_type, asked.body)
            with self._ledger(operation, stale=fault is not None and fault.stale) as ledger:
                done = HANDLERS[operation.id](RequestContext(ledger, self.wire.behaviour), request)
            return _said(cast(Json, operation.heard.to_wire(done)))
        except Refusal as refusal:
            return _refused(refusal)

    @contextmanager
    def _ledger(self, operation: Operation, *, stale: bool) -> Iterator[Repository]:
        """One transaction for it; what is refused half-way leaves no trace. Archive dates that came are kept first."""
        if stale:
            with self.store.reading_at(_BEFORE) as ledger:
                yield ledger
            return
        if not operation.writes:
            with self.store.reading() as ledger:
                if not is_archiving_due(ledger):
                    yield ledger
                    return
        elif self._faults and self._faults.looks_back:
            self.store.checkpoint(_BEFORE)
        with self.store.writing() as ledger:
            archive_due(ledger)
            yield ledger

    def _check_credential(self, given: str) -> None:
        scheme, credential = given[: len(_BEARER)], given[len(_BEARER) :]
        if not given:
            raise unauthorized("the header Authorization is missing")
        if scheme.lower() != _BEARER or not self.keys.opens(credential):
            raise unauthorized("the credential is not valid")

    def _checker(self, operation: Operation) -> Checker:
        # Two threads may make the same one at once; that only costs time.
        if operation.id not in self._checkers:
            self._checkers[operation.id] = Checker(operation)
        return self._checkers[operation.id]

    def _nowhere(self, asked: Asked) -> Refusal:
        """404 for a path that is not there, 405 for a method that this path does not take."""
        allowed = [method for method in _METHODS if self.wire.route(method, asked.path)]
        if allowed:
            takes = ", ".join(allowed)
            message = f"{asked.path} takes {takes}, not {asked.method}"
            return Refusal(405, "method_not_allowed", message, {"allow": takes})
        return Refusal(404, "not_found", f"there is no endpoint {asked.path}")

    def _note(self, asked: Asked, operation: Operation | None, status: int) -> None:
        name, writes = (operation.id, operation.writes) if operation else (None, False)
        entry = Logged(asked.method, asked.path, name, status, writes)
        self.log.append(entry)
        if self._on_log is not None:
            self._on_log(entry)

    def _plant(self, seed: Path) -> None:
        from lmsconf.sandbox.seed import load, plant  # YAML is only needed here

        with self.store.writing() as ledger:
            if ledger.is_empty():
                plant(ledger, load(seed), source=str(seed), wire=self.wire)


def _under(fault: Fault | None, answer: Callable[[], Answer]) -> Answer:
    """The answer as a fault would have it. Raises Lost for a connection that breaks, before or after it is done."""
    if fault is None:
        return answer()
    time.sleep(fault.delay)
    if fault.cut:
        raise Lost
    if fault.status is not None:
        refused = json_answer(fault.status, {"error": "fault", "message": "this answer was asked for"})
        return refused._replace(headers=refused.headers | dict(fault.headers))
    done = answer()
    if fault.lose_answer:
        raise Lost
    return _spoilt(done, fault)


def _spoilt(answer: Answer, fault: Fault) -> Answer:
    """The answer with half of its body, or with a body that is no JSON, where the fault says so."""
    if fault.spoil == "html":
        return Answer(200, {"content-type": "text/html", "content-length": str(len(_NO_JSON))}, _NO_JSON)
    if fault.spoil == "truncated" and answer.body:
        half = answer.body[: len(answer.body) // 2]
        return answer._replace(body=half, headers=answer.headers | {"content-length": str(len(half))})
    return answer


def _said(value: Json) -> Answer:
    return Answer(204, {}, b"") if value is None else json_answer(200, value)


def _refused(refusal: Refusal) -> Answer:
    answer = json_answer(refusal.status, {"error": refusal.code, "message": refusal.message})
    return answer._replace(headers=answer.headers | dict(refusal.headers))


def json_answer(status: int, value: Json) -> Answer:
    """An answer that carries JSON."""
    body = json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode()
    return Answer(status, {"content-type": "application/json", "content-length": str(len(body))}, body)
