"""API client, independent of manifests.

sdk, endpoint_group          Service: every operation of the API as a typed method; sdk is generated
client, request_encoding     one call: validated, sent, retried where safe, decoded, failures mapped to ApiError
transport                    httpx within a deadline and a size limit; whether a request was delivered
retry_and_rate_limit         retry policy, when to stop sending, rate of requests
response_limits              size limits of responses
concurrent_requests          requests sent at the same time
pagination                   listings, read page by page and checked for completeness
spec                         operations and dialect as data
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from lmsconf.api.endpoint_group import LEFT_OUT
    from lmsconf.api.sdk.service import Service

__all__ = ["LEFT_OUT", "Service"]


_MODULES = {"LEFT_OUT": "lmsconf.api.endpoint_group", "Service": "lmsconf.api.sdk.service"}


def __getattr__(name: str) -> object:
    """Import the public names on first access: importing httpx takes longer than most commands run."""
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(_MODULES[name]), name)
