"""Reports → JSON: what a person has, who is in an audience, whose access changes, tests of manifests, and problems."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from lmsconf.documents.document import (
    TOOL,
    file_changed_error,
    object_json,
    parse_document,
    refuse_missing,
    render_canonical_json,
    render_json,
    to_json,
    value_at,
    verify_format,
    without_keys,
)
from lmsconf.errors import Problem, Severity
from lmsconf.model.access import AccessTestReport, AccessTestResult, AudienceReport, PersonAccess, ReportHeader
from lmsconf.model.canonical_json import Json
from lmsconf.model.effects import Effects

ACCESS_FORMAT: Final = "lmsconf.access/1"
AUDIENCE_FORMAT: Final = "lmsconf.audience/1"
TEST_FORMAT: Final = "lmsconf.test/1"
PEOPLE_FORMAT: Final = "lmsconf.people/1"
PROBLEMS_FORMAT: Final = "lmsconf.problems/1"


def access_json(report: PersonAccess) -> str:
    """Return what a person has, and why, as a document."""
    values = without_keys(object_json(report), "header")
    return render_json({"format": ACCESS_FORMAT, **_header_json(report.header), **values})


def audience_json(report: AudienceReport) -> str:
    """Return who is in an audience as a document."""
    values = without_keys(object_json(report), "header")
    return render_json({"format": AUDIENCE_FORMAT, **_header_json(report.header), **values})


def _header_json(header: ReportHeader) -> dict[str, Json]:
    return {
        "tool": TOOL,
        "created_at": header.created_at,
        "workspace": {"name": header.workspace, "url": header.url},
        "people": header.people,
        "planned": header.planned,
        "basis": header.basis.value,
        "reasons": to_json(header.reasons),
        "requests": header.requests,
        "problems": to_json(header.problems),
    }


def access_tests_json(report: AccessTestReport) -> str:
    """Return the results as a document."""
    return render_json(
        {
            "format": TEST_FORMAT,
            "tool": TOOL,
            "created_at": report.created_at,
            "workspace": {"name": report.workspace, "url": report.url},
            "people": report.people,
            "state": "live" if report.live else "planned",
            "summary": {"passed": len(report.results) - len(report.failed), "failed": len(report.failed)},
            "tests": [_result(result) for result in report.results],
        }
    )


def _result(result: AccessTestResult) -> Json:
    test = result.test
    return {
        "name": test.name,
        "statement": test.statement,
        "passed": result.passed,
        "reason": result.reason,
        "audiences": to_json(test.audiences),
        "content": test.content,
        "about": None if test.about is None else dict(test.about),
        "source": to_json(test.source),
    }


def people_json(effects: Effects) -> str:
    """Return whose access changes, and where that is not known, as a document `lmsconf.people/1`."""
    unknown: list[Json] = [
        {
            "audience": None if one.audience is None else str(one.audience),
            "contents": [name for name, _ in one.contents],
            "reason": one.reason,
        }
        for one in effects.unknown
    ]
    rows = to_json(effects.rows or ())
    return render_canonical_json({"format": PEOPLE_FORMAT, "rows": rows, "unknown": unknown})


def problems_json(problems: Sequence[Problem]) -> str:
    """Return the text of the document; the list of problems may be empty."""
    severities = [problem.severity for problem in problems]
    summary: dict[str, Json] = {f"{severity.value}s": severities.count(severity) for severity in Severity}
    return render_json(
        {
            "format": PROBLEMS_FORMAT,
            "tool": TOOL,
            "summary": summary,
            "problems": to_json(problems),
        }
    )


def load_problems(text: str) -> tuple[Problem, ...]:
    """Return the problems in a document.

    Raises LmsconfError for another format, StalePlan for text that is not JSON or has a missing or invalid value.
    """
    document = parse_document(text)
    verify_format(document, PROBLEMS_FORMAT)
    try:
        problems = value_at(document, tuple[Problem, ...], "problems")
        refuse_missing(document["problems"], to_json(problems), "problems")
    except ValueError as error:
        raise file_changed_error() from error
    return problems
