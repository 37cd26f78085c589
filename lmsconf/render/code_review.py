"""Problems and drift at the lines of the manifests, as code reviews show them.

problems_github       annotations: workflow commands of GitHub Actions
problems_codequality  GitLab's Code Quality report
problems_sarif        SARIF 2.1.0, for code scanning
drift_sarif           the same for a drift report, with a rule for each state of a finding

The fingerprint of a finding is independent of its values and line numbers, so that consumers match it across reports.
Names are escaped by `escape_terminal`, in URIs by percent-encoding.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Final
from urllib.parse import quote

from lmsconf import __version__
from lmsconf.errors import Problem, Severity, SourceLocation
from lmsconf.model.canonical_json import Json, sha256
from lmsconf.model.drift import DriftFinding, DriftReport, DriftState, IgnoredFinding
from lmsconf.model.lints import RULES
from lmsconf.model.plan import Plan
from lmsconf.render import drift_report
from lmsconf.render.change_summary import sort_by_severity
from lmsconf.render.escape import escape_terminal
from lmsconf.render.plan_wording import problem_message

SCHEMA: Final = "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json"
ROOT: Final = "%SRCROOT%"
FINGERPRINT: Final = "lmsconfAddress/v1"
PROJECT: Final = SourceLocation("lmsconf.yaml", 1, 1)
"""The location of a finding about an undeclared resource: the project file, which declares ownership."""
_COMMANDS: Final = {Severity.ERROR: "error", Severity.WARNING: "warning", Severity.NOTE: "notice"}
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
    return f"::{_COMMANDS[problem.severity]} {properties}::{'%0A'.join(lines)}"


def _escaped(active: re.Pattern[str], text: str) -> str:
    """Escape text so that it cannot end the workflow command or start another."""
    return active.sub(lambda match: f"%{ord(match[0]):02X}", escape_terminal(text))


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
        "description": _problem_text(problem),
        "check_name": problem.code,
        "fingerprint": fingerprint,
        "severity": _SEVERITIES[problem.severity],
        "location": {"path": escape_terminal(place.file), "lines": {"begin": place.line or 1}},
    }


def plan_sarif(plan: Plan) -> str:
    """Return the problems of a plan, lints among them."""
    return _log(plan.all_problems, f"lmsconf/plan/{plan.workspace}/", plan.workspace)


def problems_sarif(problems: Sequence[Problem]) -> str:
    """Return problems with one rule for each of their codes."""
    return _log(problems, "lmsconf/validate/", "")


def _log(problems: Sequence[Problem], analysis: str, workspace: str) -> str:
    rules = sorted({problem.code for problem in problems} | RULES.keys())
    run: Json = {
        "tool": {"driver": {"name": "lmsconf", "version": __version__, "rules": [_code_rule(code) for code in rules]}},
        "automationDetails": {"id": sarif_text([analysis])},
        "columnKind": "unicodeCodePoints",
        "results": [_problem_result(problem, rules.index(problem.code), workspace) for problem in problems],
    }
    return _document(run)


def _code_rule(code: str) -> Json:
    rule = RULES.get(code)
    if rule is None:
        return {"id": code}
    level = "none" if rule.level.value == "off" else rule.level.value
    return {
        "id": code,
        "shortDescription": {"text": rule.title},
        "fullDescription": {"text": rule.why},
        "defaultConfiguration": {"level": level},
        "help": {"text": f"{rule.why} {rule.remedy}"},
        "properties": {"tags": ["lint"]},
    }


def _problem_result(problem: Problem, rule: int, workspace: str) -> Json:
    return {
        "ruleId": problem.code,
        "ruleIndex": rule,
        "level": problem.severity.value,
        "message": {"text": _problem_text(problem)},
        "locations": [sarif_location(problem.source or PROJECT, problem.address)],
        # Without line numbers and values, so that it is the same finding after other lines have changed.
        "partialFingerprints": {FINGERPRINT: sha256([workspace, problem.address or problem.message, problem.code])},
    }


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
    return _document(_run(drift, results))


def _document(run: Json) -> str:
    return json.dumps({"$schema": SCHEMA, "version": "2.1.0", "runs": [run]}, indent=2, ensure_ascii=False) + "\n"


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
        "shortDescription": {"text": f"A resource {drift_report.IS[state]}."},
        "fullDescription": {"text": drift_report.MEANS[state]},
        "defaultConfiguration": {"level": _LEVELS[state]},
        "help": {"text": f"{drift_report.MEANS[state]} Each finding shows how to revert it and how to keep it."},
        "properties": {"tags": ["drift"]},
    }


def _rule_id(state: DriftState) -> str:
    return f"drift/{state.value.replace('_', '-')}"


def _result(drift: DriftReport, finding: DriftFinding) -> dict[str, Json]:
    # The headline first: most viewers list only the first line.
    lines = [f"{drift_report.finding_headline(finding)}.", *drift_report.finding_details(finding)]
    return {
        "ruleId": _rule_id(finding.state),
        "ruleIndex": list(DriftState).index(finding.state),
        "level": _LEVELS[finding.state],
        "message": {"text": sarif_text(lines)},
        "locations": [sarif_location(finding.source or PROJECT, str(finding.address))],
        "partialFingerprints": {FINGERPRINT: sha256([drift.workspace, str(finding.address), finding.state.value])},
    }


def _not_applied(drift: DriftReport, finding: DriftFinding) -> Json:
    suppression: Json = {"kind": "external", "status": "accepted", "justification": drift_report.NOT_APPLIED}
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
    notification: dict[str, Json] = {
        "descriptor": {"id": problem.code},
        "level": problem.severity.value,
        "message": {"text": _problem_text(problem)},
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


def _problem_text(problem: Problem) -> str:
    """Return a problem with its address and, on lines of its own, its hint."""
    return sarif_text([problem_message(problem), *(problem.hint or "").split("\n")])
