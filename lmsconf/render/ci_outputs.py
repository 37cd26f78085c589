"""Single values of a plan for CI scripts that cannot parse JSON."""

from __future__ import annotations

import json

from lmsconf.documents.plan_file import plan_digest
from lmsconf.model.values import Plan


def plan_line(plan: Plan) -> str:
    """Return the plan's digest and a newline, for `apply --expect-digest`."""
    return f"{plan_digest(plan)}\n"


def plan_gitlab(plan: Plan) -> str:
    """Return GitLab's merge request report of type `terraform`: three counts.

    A replacement counts as a deletion and a creation, as in the reports of GitLab's own template.
    """
    counts = plan.summary
    report = {
        "create": counts.create + counts.replace,
        "update": counts.update,
        "delete": counts.delete + counts.replace,
    }
    return json.dumps(report) + "\n"
