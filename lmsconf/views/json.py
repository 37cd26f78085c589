"""The documents that scripts rely on. A plan and a report print exactly as they are saved."""

from __future__ import annotations

from collections.abc import Sequence

from lmsconf.core.document import TOOL, problem_json, render
from lmsconf.core.planfile import dumps as plan_json
from lmsconf.core.reportfile import dumps as apply_json
from lmsconf.core.values import Json
from lmsconf.errors import Problem, Severity

PROBLEMS_FORMAT = "lmsconf.problems/1"

__all__ = ["apply_json", "plan_json", "problems_json"]


def problems_json(problems: Sequence[Problem]) -> str:
    """What went wrong, or nothing did, as `lmsconf.problems/1`."""
    severities = [problem.severity for problem in problems]
    summary: dict[str, Json] = {f"{severity.value}s": severities.count(severity) for severity in Severity}
    return render(
        {
            "format": PROBLEMS_FORMAT,
            "tool": TOOL,
            "summary": summary,
            "problems": [problem_json(problem) for problem in problems],
        }
    )
