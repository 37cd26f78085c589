"""Problems as the document `lmsconf.problems/1`: what a script gets where there is no plan."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from lmsconf.documents.document import TOOL, Reader, changed, expect_format, parse, problem_json, problem_value, render
from lmsconf.errors import Problem, Severity
from lmsconf.model.values import Json

FORMAT: Final = "lmsconf.problems/1"


def dumps(problems: Sequence[Problem]) -> str:
    """What went wrong, or nothing did."""
    severities = [problem.severity for problem in problems]
    summary: dict[str, Json] = {f"{severity.value}s": severities.count(severity) for severity in Severity}
    return render(
        {
            "format": FORMAT,
            "tool": TOOL,
            "summary": summary,
            "problems": [problem_json(problem) for problem in problems],
        }
    )


def loads(text: str) -> tuple[Problem, ...]:
    """The problems of a document. Raises LmsconfError for one of another format, StalePlan for one that was edited."""
    document = parse(text)
    expect_format(document, FORMAT)
    try:
        return Reader(document).each("problems", problem_value)
    except ValueError as error:
        raise changed() from error
