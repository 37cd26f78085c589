"""The wire over the network: pools of httpcore with a network backend of ours, through the proxy of the environment.

httpx's own transport takes no such backend, and twice the computing.
"""

from __future__ import annotations

import logging
import os
import re
import ssl
from collections.abc import Mapping
from importlib import import_module
from typing import Final
from urllib.parse import SplitResult
from urllib.request import getproxies, proxy_bypass

import httpcore

from lmsconf.api.transport.certificates import is_tls_refused, load_trust, no_trust
from lmsconf.api.transport.deadline import Deadline
from lmsconf.api.transport.deadline_network import DeadlineNetwork
from lmsconf.api.transport.wire import DeliveryStatus, WireRequest, WireResponse
from lmsconf.errors import LmsconfError
from lmsconf.support.redaction import redact_secrets
from lmsconf.support.url_rules import is_loopback

_KEPT_SECONDS: Final = 4.0
_PLAIN_PATH: Final = re.compile(r"(?:/[A-Za-z0-9_~%-]+(?:\.[A-Za-z0-9_~%-]+)*)*")
DELIVERY_BY_ERROR: Final[Mapping[type[Exception], DeliveryStatus]] = {
    httpcore.ConnectError: DeliveryStatus.NOT_SENT,
    httpcore.ConnectTimeout: DeliveryStatus.NOT_SENT,
    httpcore.PoolTimeout: DeliveryStatus.NOT_SENT,
    httpcore.UnsupportedProtocol: DeliveryStatus.FINAL,
    httpcore.TimeoutException: DeliveryStatus.AMBIGUOUS,
    httpcore.ReadTimeout: DeliveryStatus.AMBIGUOUS,
    httpcore.WriteTimeout: DeliveryStatus.AMBIGUOUS,
    httpcore.NetworkError: DeliveryStatus.AMBIGUOUS,
    httpcore.ReadError: DeliveryStatus.AMBIGUOUS,
    httpcore.WriteError: DeliveryStatus.AMBIGUOUS,
    httpcore.ProxyError: DeliveryStatus.AMBIGUOUS,
    httpcore.ProtocolError: DeliveryStatus.AMBIGUOUS,
    httpcore.LocalProtocolError: DeliveryStatus.AMBIGUOUS,
    httpcore.RemoteProtocolError: DeliveryStatus.AMBIGUOUS,
}
"""An error missing from the table, as of a later httpcore, is ambiguous."""


class _Redacting(logging.Filter):
    """Redact secrets from the log records of httpx and httpcore, which include response headers."""

    def filter(self, record: logging.LogRecord) -> bool:
        record.msg, record.args = redact_secrets(record.getMessage()), ()
        return True


_REDACTING: Final = _Redacting()
for _name in ("httpx", *(f"httpcore.{part}" for part in ("connection", "http11", "proxy"))):
    logging.getLogger(_name).addFilter(_REDACTING)


class PoolWire:
    """Sends requests to one service. Reads share a connection that is kept alive; a fresh one is closed at its end."""

    failures: tuple[type[Exception], ...] = (*DELIVERY_BY_ERROR, OSError)

    def __init__(self, parts: SplitResult, deadline: Deadline) -> None:
        self._scheme, self._host = parts.scheme.encode("ascii"), (parts.hostname or "").encode("ascii")
        self._port = parts.port
        self._path = _base_path(parts)
        self.proxy_variable = _proxy(parts)[1] or None
        # A service may close a kept-alive connection just as it is reused, which makes a write ambiguous. So each write
        # gets a new connection; a read is simply retried.
        self._kept = _pool(parts, deadline, keepalive_connections=1)
        self._fresh = _pool(parts, deadline, keepalive_connections=0)

    def send(self, request: WireRequest, *, fresh: bool) -> WireResponse:
        """Send one request; return once the headers have arrived. Raises `failures`."""
        target = self._path + request.target.encode("ascii")
        asked = httpcore.Request(
            request.method.encode("ascii"),
            httpcore.URL(scheme=self._scheme, host=self._host, port=self._port, target=target),
            headers=request.headers,
            content=request.body,
            extensions={"timeout": request.timeouts},
        )
        response = (self._fresh if fresh else self._kept).handle_request(asked)
        return WireResponse(response.status, response.headers, response.iter_stream(), response.close)

    def delivery_status(self, error: Exception) -> DeliveryStatus:
        """Return the delivery status of the request that raised the error."""
        status = DELIVERY_BY_ERROR.get(type(error), DeliveryStatus.AMBIGUOUS)
        # A retry would get the same certificate.
        return DeliveryStatus.FINAL if status is DeliveryStatus.NOT_SENT and is_tls_refused(error) else status

    def close(self) -> None:
        """Close all connections."""
        self._kept.close()
        self._fresh.close()


def _base_path(parts: SplitResult) -> bytes:
    """Return the path of the service's URL without its last slash, normalised as httpx does."""
    path = parts.path.rstrip("/")
    if _PLAIN_PATH.fullmatch(path):
        return path.encode("ascii")
    from lmsconf.support.httpx_import import httpx  # takes long, and few paths need it

    return httpx.URL(f"{parts.scheme}://{parts.netloc}{path}").raw_path.rstrip(b"/")


def _pool(parts: SplitResult, deadline: Deadline, *, keepalive_connections: int) -> httpcore.ConnectionPool:
    """Return a pool of one connection, through the proxy of the environment. Raises LmsconfError for a wrong proxy."""
    proxy, variable = _proxy(parts)
    trust = load_trust() if parts.scheme == "https" else no_trust()
    network = DeadlineNetwork(deadline)
    if proxy is None:
        return httpcore.ConnectionPool(
            ssl_context=trust,
            max_connections=1,
            max_keepalive_connections=keepalive_connections,
            keepalive_expiry=_KEPT_SECONDS,
            network_backend=network,
        )
    from lmsconf.support.httpx_import import httpx

    try:
        return _proxy_pool(proxy, trust, network, keepalive_connections=keepalive_connections)
    except (ImportError, ValueError, httpx.InvalidURL) as error:
        # The message of httpx may contain the proxy's password.
        kind = proxy.partition("://")[0]
        reason = (
            "socks needs the package socksio"
            if isinstance(error, ImportError)
            else f"{kind} is not a supported type of proxy"
        )
        raise LmsconfError(
            f"the proxy that {variable} names cannot be used: {redact_secrets(reason)}",
            hint=f"Set {variable} to http://HOST:PORT, or NO_PROXY={parts.hostname} to go there without a proxy.",
        ) from error


def _proxy_pool(
    proxy: str, trust: ssl.SSLContext, network: httpcore.NetworkBackend, *, keepalive_connections: int
) -> httpcore.ConnectionPool:
    """Return a pool of one connection through a proxy.

    Raises ValueError or InvalidURL for a proxy that is not one of HTTP or SOCKS, ImportError without socksio for SOCKS.
    """
    from lmsconf.support.httpx_import import httpx

    where = httpx.Proxy(proxy)
    url = httpcore.URL(
        scheme=where.url.raw_scheme, host=where.url.raw_host, port=where.url.port, target=where.url.raw_path
    )
    proxy_type: type[httpcore.SOCKSProxy | httpcore.HTTPProxy] = httpcore.HTTPProxy
    if where.url.scheme.startswith("socks"):
        import_module("socksio")
        proxy_type = httpcore.SOCKSProxy
    return proxy_type(
        proxy_url=url,
        proxy_auth=where.raw_auth,
        ssl_context=trust,
        max_connections=1,
        max_keepalive_connections=keepalive_connections,
        keepalive_expiry=_KEPT_SECONDS,
        network_backend=network,
    )


def _proxy(parts: SplitResult) -> tuple[str | None, str]:
    """Return the proxy for a host, None without one, and the name of the variable that sets it."""
    host, proxies = parts.hostname or "", getproxies()
    if is_loopback(host) or proxy_bypass(host):
        return None, ""
    for scheme in (parts.scheme, "all"):
        if proxy := proxies.get(scheme):
            names = (f"{scheme}_proxy", f"{scheme.upper()}_PROXY")
            variable = next((name for name in names if os.environ.get(name)), "the system")
            # As in other programs, a bare host and port in these variables means plain http.
            return (proxy if "://" in proxy else f"http://{proxy}"), variable
    return None, ""
