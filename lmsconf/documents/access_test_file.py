"""The results of the `tests:` of manifests → JSON, `lmsconf.test/1`."""

from __future__ import annotations

from typing import Final

from lmsconf.documents.change_values import location_json
from lmsconf.documents.document import TOOL, render_json, string_list
from lmsconf.model.access_tests import AccessTestReport, AccessTestResult
from lmsconf.model.canonical_json import Json

FORMAT: Final = "lmsconf.test/1"


def dumps(report: AccessTestReport) -> str:
    """Return the results as a document."""
    return render_json(
        {
            "format": FORMAT,
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
        "audiences": string_list(test.audiences),
        "content": test.content,
        "about": None if test.about is None else dict(test.about),
        "source": location_json(test.source),
    }
