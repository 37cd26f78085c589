"""httpx transport over a pool of httpcore with a network backend of ours, which httpx's own transport does not take."""

from __future__ import annotations

import ssl
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from importlib import import_module
from typing import Final

import httpcore

from lmsconf.support.httpx_import import httpx

_KEPT_SECONDS: Final = 4.0


class PoolTransport(httpx.BaseTransport):
    """Send httpx's requests through a pool. Raises httpx's errors, as httpx's own transport does."""

    def __init__(self, pool: httpcore.ConnectionPool) -> None:
        self._pool = pool

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        """Send one request, and return its response once the headers have arrived."""
        sent = httpcore.Request(
            method=request.method,
            url=_core_url(request.url),
            headers=request.headers.raw,
            content=request.stream,
            extensions=request.extensions,
        )
        with _raising_httpx_errors():
            response = self._pool.handle_request(sent)
        return httpx.Response(
            response.status, headers=response.headers, stream=_Body(response), extensions=response.extensions
        )

    def close(self) -> None:
        """Close all connections."""
        self._pool.close()


class _Body(httpx.SyncByteStream):
    """The body of a response."""

    def __init__(self, response: httpcore.Response) -> None:
        self._response = response

    def __iter__(self) -> Iterator[bytes]:
        with _raising_httpx_errors():
            yield from self._response.iter_stream()

    def close(self) -> None:
        self._response.close()


def connection_pool(
    proxy: str | None, ssl_context: ssl.SSLContext, network: httpcore.NetworkBackend, *, keepalive_connections: int
) -> httpcore.ConnectionPool:
    """Return a pool of one connection. keepalive_connections: 1 for keep-alive, else 0.

    Raises ValueError or InvalidURL for a proxy that is not one of HTTP or SOCKS, ImportError without socksio for SOCKS.
    """
    if proxy is None:
        return httpcore.ConnectionPool(
            ssl_context=ssl_context,
            max_connections=1,
            max_keepalive_connections=keepalive_connections,
            keepalive_expiry=_KEPT_SECONDS,
            network_backend=network,
        )
    where = httpx.Proxy(proxy)
    if where.url.scheme.startswith("socks"):
        import_module("socksio")
        return httpcore.SOCKSProxy(
            proxy_url=_core_url(where.url),
            proxy_auth=where.raw_auth,
            ssl_context=ssl_context,
            max_connections=1,
            max_keepalive_connections=keepalive_connections,
            keepalive_expiry=_KEPT_SECONDS,
            network_backend=network,
        )
    return httpcore.HTTPProxy(
        proxy_url=_core_url(where.url),
        proxy_auth=where.raw_auth,
        ssl_context=ssl_context,
        max_connections=1,
        max_keepalive_connections=keepalive_connections,
        keepalive_expiry=_KEPT_SECONDS,
        network_backend=network,
    )


def _core_url(url: httpx.URL) -> httpcore.URL:
    return httpcore.URL(scheme=url.raw_scheme, host=url.raw_host, port=url.port, target=url.raw_path)


@contextmanager
def _raising_httpx_errors() -> Iterator[None]:
    """Restate errors of httpcore as those of httpx; others pass."""
    try:
        yield
    except tuple(ERRORS) as error:
        restated = next(ERRORS[base] for base in type(error).__mro__ if base in ERRORS)
        raise restated(str(error)) from error


ERRORS: Final[Mapping[type[BaseException], type[httpx.TransportError]]] = {
    httpcore.TimeoutException: httpx.TimeoutException,
    httpcore.ConnectTimeout: httpx.ConnectTimeout,
    httpcore.ReadTimeout: httpx.ReadTimeout,
    httpcore.WriteTimeout: httpx.WriteTimeout,
    httpcore.PoolTimeout: httpx.PoolTimeout,
    httpcore.NetworkError: httpx.NetworkError,
    httpcore.ConnectError: httpx.ConnectError,
    httpcore.ReadError: httpx.ReadError,
    httpcore.WriteError: httpx.WriteError,
    httpcore.ProxyError: httpx.ProxyError,
    httpcore.UnsupportedProtocol: httpx.UnsupportedProtocol,
    httpcore.ProtocolError: httpx.ProtocolError,
    httpcore.LocalProtocolError: httpx.LocalProtocolError,
    httpcore.RemoteProtocolError: httpx.RemoteProtocolError,
}
