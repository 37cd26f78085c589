"""Verify that grants took effect before any revocation is sent, so that no one loses access to a grant without effect.

The service may accept a list of people and ignore it, because it expects another name for the body field, or apply it
late. The revocations that depend on it are then not sent (API specification, Manual Groups, Smart Groups, User Access,
Content Targeting).
"""

from __future__ import annotations

from collections.abc import Collection
from typing import TYPE_CHECKING

from lmsconf.errors import NoEffect
from lmsconf.kinds.grant_verification import (
    GrantVerification,
    SentCall,
    grant_verification,
    replacement_verification,
    revokes_access,
)
from lmsconf.model.plan import Plan

if TYPE_CHECKING:
    from lmsconf.api.client import Client
    from lmsconf.apply.ambiguous_writes import AmbiguousWriteResolver, IssuedRequest


def grants_to_verify(plan: Plan) -> dict[str, GrantVerification]:
    """Return how the granting calls that a revoking call depends on are verified, by call id.

    Each call that changes a replaced resource counts as revoking, also if it only narrows it.
    """
    replaced = {change.address for change in plan.changes if change.replaced_by}
    revoking = [call for call in plan.calls if revokes_access(call)]
    changing = [call for call in plan.calls if call.address in replaced]
    needed = {need for call in (*revoking, *changing) for need in call.needs}
    strictly = {need for call in changing for need in call.needs}
    checks: dict[str, GrantVerification] = {}
    for call in (one for one in plan.calls if one.id in needed):
        check = grant_verification(call)
        if check is None and call.id in strictly:
            check = replacement_verification(call)
        if check is not None:
            checks[call.id] = check
    return checks


def verify_grant(
    client: Client, sent: IssuedRequest, check: GrantVerification, resolver: AmbiguousWriteResolver
) -> None:
    """Poll until every id that the call grants is visible. Raises NoEffect when the time for that is over."""
    route = client.spec.match_route(sent.call.method, sent.path)
    call = SentCall(route[1] if route else {}, sent.body)
    granted = frozenset(check.granted(call))
    missing: Collection[str] = granted
    for _ in resolver.poll_visibility():
        missing = granted.difference(check.visible(client.call, call))
        if not missing:
            return
    keys = client.spec.dialect_keys(sent.call.operation)
    raise NoEffect(
        f"the service accepted it, and {check.missing.format(missing=len(missing), granted=len(granted))}; "
        f"{check.spared}",
        hint=f"Check the dialect keys {', '.join(keys)}." if keys else "Plan again to see what remains.",
    )
