"""Problems at the lines of the manifests, as code reviews show them. Names are escaped by `escape_terminal`.

problems_github       annotations: workflow commands of GitHub Actions
problems_codequality  GitLab's Code Quality report
problems_sarif        SARIF 2.1.0, for code scanning; in URIs, names are escaped by percent-encoding
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Sequence
from typing import Final

from lmsconf import __version__
from lmsconf.errors import Problem, Severity
from lmsconf.model.canonical_json import Json, sha256
from lmsconf.model.lints import RULES
from lmsconf.model.plan import Plan
from lmsconf.render.change_summary import sort_by_severity
from lmsconf.render.escape import escape_terminal
from lmsconf.render.plan_wording import problem_message
from lmsconf.render.sarif import FINGERPRINT, PROJECT, SCHEMA, sarif_location, sarif_text

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
        "description": sarif_text([problem_message(problem), *(problem.hint or "").split("\n")]),
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
        "tool": {"driver": {"name": "lmsconf", "version": __version__, "rules": [_rule(code) for code in rules]}},
        "automationDetails": {"id": sarif_text([analysis])},
        "columnKind": "unicodeCodePoints",
        "results": [_result(problem, rules.index(problem.code), workspace) for problem in problems],
    }
    return json.dumps({"$schema": SCHEMA, "version": "2.1.0", "runs": [run]}, indent=2, ensure_ascii=False) + "\n"


def _rule(code: str) -> Json:
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


def _result(problem: Problem, rule: int, workspace: str) -> Json:
    return {
        "ruleId": problem.code,
        "ruleIndex": rule,
        "level": "note" if problem.severity is Severity.NOTE else problem.severity.value,
        "message": {"text": sarif_text([problem_message(problem), *(problem.hint or "").split("\n")])},
        "locations": [sarif_location(problem.source or PROJECT, problem.address)],
        # Without line numbers and values, so that it is the same finding after other lines have changed.
        "partialFingerprints": {FINGERPRINT: sha256([workspace, problem.address or problem.message, problem.code])},
    }
