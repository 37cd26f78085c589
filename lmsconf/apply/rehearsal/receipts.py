"""Whether the receipt in a plan file shows that exactly this plan was rehearsed, and succeeded."""

from __future__ import annotations

from lmsconf.errors import StalePlan
from lmsconf.model.plan import Plan, RehearsalOutcome

_AGAIN = "Rehearse it with: lmsconf plan --rehearse --out FILE. Review and apply that file."


def refuse_unrehearsed(plan: Plan, digest: str) -> None:
    """Raise StalePlan unless the plan, with this digest, was rehearsed successfully.

    The receipt is covered by the seal and the signature of the plan file, which loading it verifies.
    """
    if plan.rehearsal is None:
        raise StalePlan("the plan was not rehearsed, and --require-rehearsal is given", hint=_AGAIN)
    receipt = plan.rehearsal.receipt
    if receipt.plan_digest != digest:
        raise StalePlan(
            f"the rehearsal in the file is of a plan with the digest {receipt.plan_digest}, and this one's is {digest}",
            hint=_AGAIN,
        )
    if receipt.outcome is not RehearsalOutcome.SUCCESS:
        words = {RehearsalOutcome.REFUSED: "some of its calls were refused"}
        why = words.get(receipt.outcome, "a second plan on the twin was not empty")
        raise StalePlan(
            f"the rehearsal of the plan did not succeed: {why}",
            hint="`lmsconf show FILE` shows what happened. Change the manifests, and rehearse again.",
        )
