"""What code reviews and CI systems display.

problems_github       annotations: workflow commands of GitHub Actions
problems_codequality  GitLab's Code Quality report
problems_sarif        SARIF 2.1.0, for code scanning
drift_sarif           the same for a drift report, with a rule for each state of a finding

prefix, where there is one: the path of the project in its repository, with a slash at the end.

Names are escaped by `escape_terminal`, in URIs by percent-encoding.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Sequence
from functools import partial
from typing import Final
from urllib.parse import quote

from lmsconf import __version__
from lmsconf.errors import Problem, SourceLocation
from lmsconf.model.canonical_json import sha256
from lmsconf.model.drift import DriftReport, DriftState
from lmsconf.model.lint_codes import RULES
from lmsconf.model.plan import Plan
from lmsconf.render.escape import escape_terminal
from lmsconf.render.jinja import template_text
from lmsconf.render.plan_wording import problem_message
from lmsconf.render.resource_wording import sort_by_severity

PROJECT: Final = SourceLocation("lmsconf.yaml", 1, 1)
"""The location of a finding about an undeclared resource: the project file, which declares ownership."""


def problems_of(shown: Plan | Sequence[Problem]) -> Sequence[Problem]:
    """Return the problems that are shown: of a plan, lints among them."""
    return sort_by_severity(shown.all_problems if isinstance(shown, Plan) else shown)


def problems_github(shown: Plan | Sequence[Problem], prefix: str = "") -> str:
    """Return a GitHub Actions workflow command per problem, which annotates its line of the file."""
    return template_text(
        "github.txt.j2",
        problems=problems_of(shown),
        prefix=prefix,
        value=partial(_escaped, r"[%\r\n:,]"),
        data=partial(_escaped, r"[%\r\n]"),
    )


def _escaped(active: str, text: str) -> str:
    """Escape text so that it cannot end the workflow command or start another. active: what does."""
    return re.sub(active, lambda match: f"%{ord(match[0]):02X}", escape_terminal(text))


def problems_codequality(shown: Plan | Sequence[Problem], prefix: str = "") -> str:
    """Return one finding for each problem, as GitLab's Code Quality report."""
    return _document("codequality.json.j2", prefix, problems=problems_of(shown))


def problems_sarif(shown: Plan | Sequence[Problem], prefix: str = "") -> str:
    """Return problems with one rule for each of their codes."""
    problems, workspace = (shown.all_problems, shown.workspace) if isinstance(shown, Plan) else (shown, "")
    analysis = f"lmsconf/plan/{workspace}/" if workspace else "lmsconf/validate/"
    return _document(
        "sarif.json.j2",
        prefix,
        problems=problems,
        codes=sorted({problem.code for problem in problems} | RULES.keys()),
        lints=RULES,
        analysis=analysis,
        workspace=workspace,
        drift=None,
    )


def drift_sarif(drift: DriftReport, prefix: str = "") -> str:
    """Return the report as SARIF with one run and a rule per state."""
    return _document("sarif.json.j2", prefix, drift=drift, states=list(DriftState))


def _document(template: str, prefix: str, **values: object) -> str:
    """Return the JSON of a template, which knows these values, and how texts are written."""
    text = template_text(
        template,
        version=__version__,
        PROJECT=PROJECT,
        prefix=prefix,
        # File names may contain undecodable bytes (surrogates).
        uri=lambda file: quote(prefix + file, errors="surrogatepass"),
        sha256=sha256,
        escape_terminal=escape_terminal,
        problem_text=_problem_text,
        lines_text=_lines_text,
        **values,
    )
    return json.dumps(json.loads(text), indent=2, ensure_ascii=False) + "\n"


def _lines_text(lines: Iterable[str]) -> str:
    """Join lines to a message. `](` is split with a space, so that no name forms a Markdown link."""
    return "\n".join(escape_terminal(line) for line in lines if line).replace("](", "] (")


def _problem_text(problem: Problem) -> str:
    """Return a problem with its address and, on lines of its own, its hint."""
    return _lines_text([problem_message(problem), *(problem.hint or "").split("\n")])
