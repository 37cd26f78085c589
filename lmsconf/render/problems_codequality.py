"""Problems as GitLab's Code Quality report, which a merge request shows at the lines of the manifests.

Descriptions are escaped by `escape_terminal`.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Sequence
from typing import Final

from lmsconf.errors import Problem, Severity
from lmsconf.model.canonical_json import Json, sha256
from lmsconf.model.plan import Plan
from lmsconf.render.change_summary import sort_by_severity
from lmsconf.render.escape import escape_terminal
from lmsconf.render.plan_wording import problem_message
from lmsconf.render.sarif import PROJECT, sarif_text

_SEVERITIES: Final = {Severity.ERROR: "blocker", Severity.WARNING: "major", Severity.NOTE: "info"}


def plan_codequality(plan: Plan) -> str:
    """Return the problems of a plan, lints among them."""
    return problems_codequality(plan.all_problems)


def problems_codequality(problems: Sequence[Problem]) -> str:
    """Return one finding for each problem. GitLab needs a file and a line: without one it is the project file's."""
    seen: Counter[str] = Counter()
    findings: list[Json] = []
    for problem in sort_by_severity(problems):
        # Without the line, so that GitLab knows the finding again after other lines have changed.
        place = problem.source or PROJECT
        content = sha256([place.file, problem.address, problem.message, problem.code])
        findings.append(_finding(problem, sha256([content, seen[content]])))
        seen[content] += 1
    return json.dumps(findings, indent=2, ensure_ascii=False) + "\n"


def _finding(problem: Problem, fingerprint: str) -> Json:
    place = problem.source or PROJECT
    return {
        "description": sarif_text([problem_message(problem), *(problem.hint or "").split("\n")]),
        "check_name": problem.code,
        "fingerprint": fingerprint,
        "severity": _SEVERITIES[problem.severity],
        "location": {"path": escape_terminal(place.file), "lines": {"begin": place.line or 1}},
    }
