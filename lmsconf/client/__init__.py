"""Speaks the API, and knows no manifest.

service    Service: the whole API for a script, every operation a typed method
api        the typed methods, a module for each endpoint group, and the shapes of what they take and give
group      what those methods stand on
client     Client: one call, checked, sent, tried again where that is safe, decoded
crew       Crew: several clients side by side, the urgent request first
urgency    which request of many is next
reader     Reader: the core's `Api` over a crew; it cannot write
paging     listings read to their proven end
retry      Retry: what is tried again, and when
pace       Pace: one rate for all clients, learnt from a service that says "too many"
budget     Budget: what a run spends on a service that does not answer
fate       which of httpx's errors mean that a request never left
deadline   a network whose every wait ends in time
trace      Exchange: what was asked and answered, for a log
request, http, decode, verdict    the stations of one call: check, send, decode, judge
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from lmsconf.client.group import LEFT_OUT
    from lmsconf.client.service import Service

__all__ = ["LEFT_OUT", "Service"]


def __getattr__(name: str) -> object:
    """The names of a script, imported when it asks for them: httpx takes longer to import than most commands to run."""
    if name == "Service":
        from lmsconf.client.service import Service

        return Service
    if name == "LEFT_OUT":
        from lmsconf.client.group import LEFT_OUT

        return LEFT_OUT
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
