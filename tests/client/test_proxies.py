"""Which variable of the environment names the proxy to a service."""

from __future__ import annotations

from collections.abc import Mapping
from urllib.parse import urlsplit

import pytest

from lmsconf.api.transport.deadline import Deadline
from lmsconf.api.transport.pool_wire import PoolWire

from .network import Clock

VARIABLES = ("HTTP_PROXY", "http_proxy", "ALL_PROXY", "all_proxy", "NO_PROXY", "no_proxy")


@pytest.mark.parametrize(
    ("url", "environ", "variable"),
    [
        ("http://lms.example/api", {}, None),
        ("http://lms.example/api", {"HTTP_PROXY": "http://proxy.example:8080"}, "HTTP_PROXY"),
        ("http://lms.example/api", {"http_proxy": "proxy.example:8080"}, "http_proxy"),
        ("http://lms.example/api", {"ALL_PROXY": "http://proxy.example:8080"}, "ALL_PROXY"),
        ("http://lms.example/api", {"HTTP_PROXY": "http://proxy.example", "NO_PROXY": "lms.example"}, None),
        ("http://lms.example/api", {"HTTP_PROXY": "http://proxy.example", "NO_PROXY": "other.example"}, "HTTP_PROXY"),
        ("http://127.0.0.1:8000", {"HTTP_PROXY": "http://proxy.example"}, None),
        ("http://localhost:8000", {"HTTP_PROXY": "http://proxy.example"}, None),
    ],
)
def test_the_variable_of_a_proxy_is_known(
    monkeypatch: pytest.MonkeyPatch, url: str, environ: Mapping[str, str], variable: str | None
) -> None:
    """In either spelling; none where NO_PROXY has the host, nor to a service on this machine."""
    for name in VARIABLES:
        monkeypatch.delenv(name, raising=False)
    for name, value in environ.items():
        monkeypatch.setenv(name, value)
    wire = PoolWire(urlsplit(url), Deadline(Clock()))
    assert wire.proxy_variable == variable
    wire.close()
