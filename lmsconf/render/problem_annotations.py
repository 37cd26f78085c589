"""Problems for a code review: GitHub annotations at the lines of the files."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final

from lmsconf.errors import Problem, Severity
from lmsconf.model.plan import Plan
from lmsconf.render.change_summary import sort_by_severity
from lmsconf.render.escape import escape_terminal

_LEVELS: Final = {Severity.ERROR: "error", Severity.WARNING: "warning", Severity.NOTE: "notice"}
_DATA: Final = re.compile(r"[%\r\n]")
_PROPERTY: Final = re.compile(r"[%\r\n:,]")


def problems_github(problems: Sequence[Problem]) -> str:
    """Return a GitHub Actions workflow command per problem, which annotates its line of the file."""
    return "".join(f"{_annotation(problem)}\n" for problem in sort_by_severity(problems))


def plan_github(plan: Plan) -> str:
    """Return the same for the problems of a plan, lints among them."""
    return problems_github(plan.all_problems)


def _annotation(problem: Problem) -> str:
    where = problem.source
    place = {} if where is None else {"file": where.file, "line": str(where.line), "col": str(where.column)}
    properties = ",".join(
        f"{key}={_escaped(_PROPERTY, value)}" for key, value in {**place, "title": problem.code}.items()
    )
    message = f"{where.cell}: {problem.message}" if where is not None and where.cell else problem.message
    lines = [_escaped(_DATA, text) for text in (message, problem.hint) if text]
    return f"::{_LEVELS[problem.severity]} {properties}::{'%0A'.join(lines)}"


def _escaped(active: re.Pattern[str], text: str) -> str:
    """Escape text so that it cannot end the workflow command or start another."""
    return active.sub(lambda match: f"%{ord(match[0]):02X}", escape_terminal(text))
