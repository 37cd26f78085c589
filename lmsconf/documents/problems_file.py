"""Problems as a document, `lmsconf.problems/1`: the JSON output of a command that has no plan to show."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from lmsconf.documents.change_values import problem_json
from lmsconf.documents.document import (
    TOOL,
    JsonObjectReader,
    file_changed_error,
    parse_document,
    render_json,
    verify_format,
)
from lmsconf.errors import Problem, Severity
from lmsconf.model.canonical_json import Json

FORMAT: Final = "lmsconf.problems/1"


def dumps(problems: Sequence[Problem]) -> str:
    """Return the text of the document; the list of problems may be empty."""
    severities = [problem.severity for problem in problems]
    summary: dict[str, Json] = {f"{severity.value}s": severities.count(severity) for severity in Severity}
    return render_json(
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
    document = parse_document(text)
    verify_format(document, FORMAT)
    try:
        return JsonObjectReader(document).value("problems", tuple[Problem, ...])
    except ValueError as error:
        raise file_changed_error() from error
