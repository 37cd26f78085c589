"""What programs take from a plan: single facts, for scripts that have no other way to read JSON."""

from __future__ import annotations

import json

from lmsconf.documents.plan_file import plan_digest
from lmsconf.model.values import Plan


def plan_line(plan: Plan) -> str:
    """The plan's digest, alone on its line, for `apply --expect-digest`."""
    return f"{plan_digest(plan)}\n"


def plan_gitlab(plan: Plan) -> str:
    """The report that GitLab shows on a merge request, of the type `terraform`: three counts.

    A replacement is a deletion and a creation there, as in the reports that GitLab's own template makes.
    """
    counts = plan.summary
    report = {
        "create": counts.create + counts.replace,
        "update": counts.update,
        "delete": counts.delete + counts.replace,
    }
    return json.dumps(report) + "\n"
