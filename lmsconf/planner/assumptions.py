"""What a plan rests on: the points that the API specification leaves open, and that its calls rely on."""

from __future__ import annotations

from msgspec.structs import replace

from lmsconf.model.address import Address
from lmsconf.model.calls import Call
from lmsconf.model.plan import Action, Assumption, Plan
from lmsconf.planner.context import CallTemplates


def calls_by_key(plan: Plan, call_templates: CallTemplates) -> dict[str, list[Call]]:
    """Return each dialect key that calls of a plan rely on, sorted → those calls, in their order."""
    created = {change.address for change in plan.changes if change.action is Action.CREATE}
    resting: dict[str, list[Call]] = {}
    sent: set[tuple[Address, str]] = set()
    for call in plan.calls:
        # The second call of its kind finds what the first one made.
        finds_nothing = call.address in created and (call.address, call.operation) not in sent
        sent.add((call.address, call.operation))
        relied_on = call_templates.assumed_keys(call.operation, call.path, call.body, finds_nothing=finds_nothing)
        for key in relied_on:
            resting.setdefault(key, []).append(call)
    return dict(sorted(resting.items()))


def with_assumptions(plan: Plan, call_templates: CallTemplates) -> Plan:
    """Return a plan with what its calls rest on."""
    resting = calls_by_key(plan, call_templates)
    assumptions = tuple(
        Assumption(key=key, value=call_templates.behaviour(key), known=call_templates.is_known(key), calls=len(calls))
        for key, calls in resting.items()
    )
    assumed = {call.id for one in assumptions if not one.known for call in resting[one.key]}
    return replace(plan, assumptions=assumptions, assumed_calls=len(assumed))
