"""A drift report as SARIF 2.1.0, which code scanning shows at the lines of the manifests.

The fingerprint of a finding is independent of its values and line numbers, so that consumers match it across reports.
All names are escaped by `escape_terminal`, in URIs by percent-encoding.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Final
from urllib.parse import quote

from lmsconf import __version__
from lmsconf.errors import Problem, Severity, SourceLocation
from lmsconf.model.canonical_json import Json, sha256
from lmsconf.model.drift import DriftFinding, DriftReport, DriftState, IgnoredFinding
from lmsconf.render import drift_wording
from lmsconf.render.escape import escape_terminal
from lmsconf.render.plan_wording import problem_message

SCHEMA: Final = "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json"
ROOT: Final = "%SRCROOT%"
FINGERPRINT: Final = "lmsconfAddress/v1"
PROJECT: Final = SourceLocation("lmsconf.yaml", 1, 1)
"""The location of a finding about an undeclared resource: the project file, which declares ownership."""

_LEVELS: Final = {
    DriftState.CHANGED: "warning",
    DriftState.MISSING: "warning",
    DriftState.RENAMED: "warning",
    DriftState.UNDECLARED: "warning",
    DriftState.UNMANAGED: "note",
}


def drift_sarif(drift: DriftReport) -> str:
    """Return the report as SARIF with one run and a rule per state."""
    counted: list[Json] = [_result(drift, finding) for finding in drift.findings]
    to_come: list[Json] = [_not_applied(drift, finding) for finding in drift.not_applied]
    results = [*counted, *to_come, *(_suppressed(drift, ignored_finding) for ignored_finding in drift.ignored)]
    document = {"$schema": SCHEMA, "version": "2.1.0", "runs": [_run(drift, results)]}
    return json.dumps(document, indent=2, ensure_ascii=False) + "\n"


def _run(drift: DriftReport, results: list[Json]) -> Json:
    return {
        "tool": {
            "driver": {
                "name": "lmsconf",
                "version": __version__,
                "rules": [_rule(state) for state in DriftState],
            }
        },
        # One analysis id per workspace, so that a report on one does not close the findings of another.
        "automationDetails": {"id": f"lmsconf/drift/{_uri(drift.workspace)}/"},
        "columnKind": "unicodeCodePoints",
        "invocations": [
            {
                "executionSuccessful": not any(problem.is_error for problem in drift.problems),
                "endTimeUtc": drift.created_at,
                "toolExecutionNotifications": [_notification(problem) for problem in drift.problems],
            }
        ],
        "results": results,
    }


def _rule(state: DriftState) -> Json:
    return {
        "id": _rule_id(state),
        "name": "".join(word.capitalize() for word in ("drift", *state.value.split("_"))),
        "shortDescription": {"text": f"A resource {drift_wording.IS[state]}."},
        "fullDescription": {"text": drift_wording.MEANS[state]},
        "defaultConfiguration": {"level": _LEVELS[state]},
        "help": {"text": f"{drift_wording.MEANS[state]} Each finding shows how to revert it and how to keep it."},
        "properties": {"tags": ["drift"]},
    }


def _rule_id(state: DriftState) -> str:
    return f"drift/{state.value.replace('_', '-')}"


def _result(drift: DriftReport, finding: DriftFinding) -> dict[str, Json]:
    return {
        "ruleId": _rule_id(finding.state),
        "ruleIndex": list(DriftState).index(finding.state),
        "level": _LEVELS[finding.state],
        "message": {"text": sarif_text(_message_lines(finding))},
        "locations": [sarif_location(finding.source or PROJECT, str(finding.address))],
        "partialFingerprints": {FINGERPRINT: sha256([drift.workspace, str(finding.address), finding.state.value])},
    }


def _message_lines(finding: DriftFinding) -> Iterable[str]:
    """Yield the message lines, headline first: most SARIF viewers list only the first line."""
    yield f"{drift_wording.finding_headline(finding)}."
    yield from drift_wording.cause_sentences(finding)
    yield from map(drift_wording.field_line, finding.fields)
    yield from drift_wording.remedy_lines(finding)


def _not_applied(drift: DriftReport, finding: DriftFinding) -> Json:
    suppression: Json = {"kind": "external", "status": "accepted", "justification": drift_wording.NOT_APPLIED}
    return {**_result(drift, finding), "suppressions": [suppression]}


def _suppressed(drift: DriftReport, ignored: IgnoredFinding) -> Json:
    entry = ignored.entry
    until = f" (until {entry.until})" if entry.until else ""
    suppression: Json = {
        "kind": "external",
        "status": "accepted",
        "justification": escape_terminal(f"{entry.reason}{until}"),
        "location": sarif_location(entry.source),
    }
    return {**_result(drift, ignored.finding), "suppressions": [suppression]}


def _notification(problem: Problem) -> Json:
    level = "note" if problem.severity is Severity.NOTE else problem.severity.value
    notification: dict[str, Json] = {
        "descriptor": {"id": problem.code},
        "level": level,
        "message": {"text": sarif_text([problem_message(problem), *(problem.hint or "").split("\n")])},
    }
    return notification if problem.source is None else {**notification, "locations": [sarif_location(problem.source)]}


def sarif_location(source: SourceLocation, address: str | None = None) -> Json:
    """Return a place in a file, with the address of the resource as its logical location."""
    at: dict[str, Json] = {"artifactLocation": {"uri": _uri(source.file), "uriBaseId": ROOT}}
    if source.line:
        at["region"] = {"startLine": source.line, **({"startColumn": source.column} if source.column else {})}
    if address is None:
        return {"physicalLocation": at}
    return {
        "physicalLocation": at,
        "logicalLocations": [{"fullyQualifiedName": escape_terminal(address), "kind": "resource"}],
    }


def _uri(path: str) -> str:
    """Percent-encode a path for a URI; file names may contain undecodable bytes (surrogates)."""
    return quote(path, errors="surrogatepass")


def sarif_text(lines: Iterable[str]) -> str:
    """Join lines to a message. `](` is split with a space, so that no name forms a Markdown link."""
    return "\n".join(escape_terminal(line) for line in lines if line).replace("](", "] (")
