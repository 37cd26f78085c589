"""The wire to a service in this process: no socket, no URL, and no library for either."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol

from lmsconf.api.transport.wire import DeliveryStatus, WireRequest, WireResponse


class InProcessResponse(Protocol):
    """What a service in this process answers."""

    @property
    def status(self) -> int: ...

    @property
    def headers(self) -> Mapping[str, str]: ...

    @property
    def body(self) -> bytes: ...


class InProcessService(Protocol):
    """A service in this process, as the sandbox is."""

    def answer(self, method: str, path: str, query: str, headers: Mapping[str, str], body: bytes) -> InProcessResponse:
        """Answer one request. Header names are lower case. Raises ConnectionError for a response that is lost."""
        ...


class InProcessWire:
    """Hands requests to a service in this process."""

    failures: tuple[type[Exception], ...] = (OSError,)
    proxy_variable: str | None = None

    def __init__(self, service: InProcessService) -> None:
        self._service = service

    def send(self, request: WireRequest, *, fresh: bool) -> WireResponse:
        """Hand over one request, and return its response. Raises OSError."""
        path, _, query = request.target.partition("?")
        headers = {name.decode("latin-1").lower(): value.decode("latin-1") for name, value in request.headers}
        answer = self._service.answer(request.method, path, query, headers, request.body or b"")
        raw = {name.lower(): value for name, value in answer.headers.items()}
        return WireResponse(answer.status, raw, (answer.body,), _nothing)

    def delivery_status(self, error: Exception) -> DeliveryStatus:
        """Return AMBIGUOUS: the service may have carried the request out."""
        return DeliveryStatus.AMBIGUOUS

    def close(self) -> None:
        """Do nothing: there is no connection."""


def _nothing() -> None:
    """Close nothing."""
