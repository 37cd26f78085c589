"""Client of the API. It knows no manifest.

service, sdk                 Service: the whole API for programs, every operation a typed method; generated
client, request, values, arguments, decode, errors
                             one call: checked, sent, retried where that is safe, decoded, errors mapped
transport                    HTTP with deadlines
retry, rate_limiter, circuit_breaker, limits
                             what is tried again and when, how fast, and when to give up
worker_pool, priority_queue  requests side by side, the most urgent first
pagination, listed, reader   listings read to their proven end
spec                         operations and dialect as data
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from lmsconf.api.endpoint_group import LEFT_OUT
    from lmsconf.api.service import Service

__all__ = ["LEFT_OUT", "Service"]


def __getattr__(name: str) -> object:
    """The names of a script, imported when it asks for them: httpx takes longer to import than most commands to run."""
    if name == "Service":
        from lmsconf.api.service import Service

        return Service
    if name == "LEFT_OUT":
        from lmsconf.api.endpoint_group import LEFT_OUT

        return LEFT_OUT
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
