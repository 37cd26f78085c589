"""Problems as SARIF 2.1.0, which code scanning shows at the lines of the manifests: those of `validate` and of plans.

All names are escaped by `escape_terminal`, in URIs by percent-encoding.
"""

from __future__ import annotations

import json
from collections.abc import Sequence

from lmsconf import __version__
from lmsconf.errors import Problem, Severity
from lmsconf.model.canonical_json import Json, sha256
from lmsconf.model.lints import RULES
from lmsconf.model.plan import Plan
from lmsconf.render.plan_wording import problem_message
from lmsconf.render.sarif import FINGERPRINT, PROJECT, SCHEMA, sarif_location, sarif_text


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
