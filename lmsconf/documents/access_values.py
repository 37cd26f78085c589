"""Reports on people → JSON, `lmsconf.access/1` and `lmsconf.audience/1`."""

from __future__ import annotations

from typing import Final

from lmsconf.documents.change_values import problem_json
from lmsconf.documents.document import TOOL, object_json, render_json, string_list, without_keys
from lmsconf.model.access import AudienceReport, PersonAccess, ReportHeader
from lmsconf.model.canonical_json import Json

ACCESS_FORMAT: Final = "lmsconf.access/1"
AUDIENCE_FORMAT: Final = "lmsconf.audience/1"


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
        "reasons": string_list(header.reasons),
        "requests": header.requests,
        "problems": [problem_json(problem) for problem in header.problems],
    }
