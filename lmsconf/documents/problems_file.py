"""Problems as a document, `lmsconf.problems/1`: the JSON output of a command that has no plan to show."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from lmsconf.documents.document import (
    TOOL,
    DocumentReader,
    changed,
    expect_format,
    parse,
    problem_json,
    problem_value,
    render,
)
from lmsconf.errors import Problem, Severity
from lmsconf.model.values import Json

FORMAT: Final = "lmsconf.problems/1"


def dumps(problems: Sequence[Problem]) -> str:
    """Return the text of the document; the list of problems may be empty."""
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
    """Return the problems in a document.

    Raises LmsconfError for another format, StalePlan for text that is not JSON or has a missing or invalid value.
    """
    document = parse(text)
    expect_format(document, FORMAT)
    try:
        return DocumentReader(document).each("problems", problem_value)
    except ValueError as error:
        raise changed() from error
