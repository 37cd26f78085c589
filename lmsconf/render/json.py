"""JSON: the documents that lmsconf saves, printed as they are, and single values for CI scripts."""

from __future__ import annotations

import json

from lmsconf.documents.plan_file import dumps as plan_json
from lmsconf.documents.plan_file import plan_digest
from lmsconf.documents.problems_file import dumps as problems_json
from lmsconf.documents.report_file import dumps as apply_json
from lmsconf.model.plan import Plan

__all__ = ["apply_json", "plan_digest_line", "plan_gitlab", "plan_json", "problems_json"]


def plan_digest_line(plan: Plan) -> str:
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
