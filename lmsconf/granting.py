"""Whoever comes is seen to be in before anybody is taken out, so that nobody loses access to a grant without effect.

A service may accept people and not take them: by another name for the list of ids, or later than it says. Then what
would be taken away after it stays (API specification, Manual Groups and Smart Groups).
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import TYPE_CHECKING, Final

from lmsconf.core.values import Call, Plan
from lmsconf.errors import WithoutEffect
from lmsconf.kinds.answers import an_object, ids

if TYPE_CHECKING:
    from lmsconf.client.client import Client
    from lmsconf.settling import Sent, Settling

_LISTS: Final[Mapping[str, tuple[str, str]]] = {
    "manual-groups.add-members": ("manual-groups.members", "userIds"),
    "manual-groups.add-managers": ("manual-groups.managers", "userIds"),
    "smart-groups.add-managers": ("smart-groups.get", "managers"),
}
"""A call that lets people in → where they stand afterwards."""


def awaited_grants(plan: Plan) -> frozenset[str]:
    """The ids of the calls that let people in, after which others take somebody out."""
    grants = {call.id for call in plan.calls if call.operation in _LISTS}
    return frozenset(need for call in plan.calls if _takes_out(call) for need in call.needs if need in grants)


def see(client: Client, sent: Sent, settling: Settling) -> None:
    """Returns once all whom a call let in are seen to be in. Raises WithoutEffect when the time for that is over."""
    coming = _people(sent.body)
    missing: Collection[str] = coming
    for _ in settling.shows():
        missing = coming - _inside(client, sent)
        if not missing:
            return
    operation = sent.call.operation
    keys = client.wire.dialect_keys(operation)
    raise WithoutEffect(
        f"the service accepted it, and {len(missing)} of {len(coming)} are not in the list; nobody is taken out",
        hint=f"Look at the dialect keys {', '.join(keys)}." if keys else "Plan again to see what is left.",
    )


def _takes_out(call: Call) -> bool:
    return call.operation.rpartition(".")[2] in ("remove-member", "remove-manager")


def _people(body: object) -> set[str]:
    """The ids that a body names, under whatever name its list goes."""
    lists = body.values() if isinstance(body, Mapping) else ()
    return {str(one) for value in lists if isinstance(value, list) for one in value}


def _inside(client: Client, sent: Sent) -> set[str]:
    operation, listing = _LISTS[sent.call.operation]
    found = client.wire.route(sent.call.method, sent.path)
    answer = client.call(operation, path=found[1] if found else {})
    return {str(id) for id in ids(an_object(answer, "a group"), listing)}
