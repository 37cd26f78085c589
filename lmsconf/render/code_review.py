"""Problems and drift at the lines of the manifests, as code reviews show them.

problems_github       annotations: workflow commands of GitHub Actions
problems_codequality  GitLab's Code Quality report
problems_sarif        SARIF 2.1.0, for code scanning
drift_sarif           the same for a drift report, with a rule for each state of a finding

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
from lmsconf.model.drift import DriftReport, DriftState
from lmsconf.model.lint_codes import RULES
from lmsconf.model.plan import Plan
from lmsconf.render.change_summary import sort_by_severity
from lmsconf.render.escape import escape_terminal
from lmsconf.render.plan_wording import problem_message

PROJECT: Final = SourceLocation("lmsconf.yaml", 1, 1)
"""The location of a finding about an undeclared resource: the project file, which declares ownership."""
_COMMANDS: Final = {Severity.ERROR: "error", Severity.WARNING: "warning", Severity.NOTE: "notice"}
_DATA: Final = re.compile(r"[%\r\n]")
_PROPERTY: Final = re.compile(r"[%\r\n:,]")


def problems_of(shown: Plan | Sequence[Problem]) -> Sequence[Problem]:
    """Return the problems that are shown: of a plan, lints among them."""
    return sort_by_severity(shown.all_problems if isinstance(shown, Plan) else shown)


def problems_github(shown: Plan | Sequence[Problem]) -> str:
    """Return a GitHub Actions workflow command per problem, which annotates its line of the file."""
    return "".join(f"{_annotation(problem)}\n" for problem in problems_of(shown))


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


def problems_codequality(shown: Plan | Sequence[Problem]) -> str:
    """Return one finding for each problem. GitLab needs a file and a line: without one it is the project file's."""
    seen: Counter[str] = Counter()
    findings: list[Json] = []
    for problem in problems_of(shown):
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


def problems_sarif(shown: Plan | Sequence[Problem]) -> str:
    """Return problems with one rule for each of their codes."""
    problems, workspace = (shown.all_problems, shown.workspace) if isinstance(shown, Plan) else (shown, "")
    analysis = f"lmsconf/plan/{workspace}/" if workspace else "lmsconf/validate/"
    codes = sorted({problem.code for problem in problems} | RULES.keys())
    return _sarif(problems=problems, analysis=analysis, workspace=workspace, codes=codes, lints=RULES, drift=None)


_LEVELS: Final = {
    DriftState.CHANGED: "warning",
    DriftState.MISSING: "warning",
    DriftState.RENAMED: "warning",
    DriftState.UNDECLARED: "warning",
    DriftState.UNMANAGED: "note",
}


def drift_sarif(drift: DriftReport) -> str:
    """Return the report as SARIF with one run and a rule per state."""
    return _sarif(drift=drift, states=list(DriftState), levels=_LEVELS, rule_id=_rule_id)


def _rule_id(state: DriftState) -> str:
    return f"drift/{state.value.replace('_', '-')}"


def _sarif(**values: object) -> str:
    """Return a document of the template, which knows these values, and how texts are written."""
    from lmsconf.render.jinja import json_document  # the other formats need no template

    document = json_document(
        "sarif.json.j2",
        version=__version__,
        PROJECT=PROJECT,
        uri=_uri,
        sha256=sha256,
        escape_terminal=escape_terminal,
        problem_text=_problem_text,
        lines_text=_lines_text,
        **values,
    )
    return json.dumps(document, indent=2, ensure_ascii=False) + "\n"


def _uri(path: str) -> str:
    """Percent-encode a path for a URI; file names may contain undecodable bytes (surrogates)."""
    return quote(path, errors="surrogatepass")


def _lines_text(lines: Iterable[str]) -> str:
    """Join lines to a message. `](` is split with a space, so that no name forms a Markdown link."""
    return "\n".join(escape_terminal(line) for line in lines if line).replace("](", "] (")


def _problem_text(problem: Problem) -> str:
    """Return a problem with its address and, on lines of its own, its hint."""
    return _lines_text([problem_message(problem), *(problem.hint or "").split("\n")])
