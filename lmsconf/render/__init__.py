"""Views: pure functions that render plans, reports, drift, snapshots and problems to text, one table per value type.

No file, clock or terminal is used.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TypeAlias

from lmsconf.errors import Problem
from lmsconf.model.drift import DriftReport
from lmsconf.model.outcomes import ApplyReport
from lmsconf.model.plan import Plan
from lmsconf.model.snapshot import Snapshot
from lmsconf.render.drift_json import drift_json
from lmsconf.render.html.drift import drift_html
from lmsconf.render.html.plan import apply_html, plan_html, snapshot_html
from lmsconf.render.json import apply_json, plan_digest_line, plan_gitlab, plan_json, problems_json
from lmsconf.render.junit import drift_junit
from lmsconf.render.markdown.drift import drift_markdown
from lmsconf.render.markdown.plan import apply_markdown, plan_markdown, snapshot_markdown
from lmsconf.render.problem_annotations import problems_github, problems_markdown
from lmsconf.render.sarif import drift_sarif
from lmsconf.render.text.drift import drift_text
from lmsconf.render.text.plan import apply_text, plan_text, problems_text, snapshot_text

PlanView: TypeAlias = Callable[[Plan], str]
ApplyView: TypeAlias = Callable[[ApplyReport], str]
DriftView: TypeAlias = Callable[[DriftReport], str]
SnapshotView: TypeAlias = Callable[[Snapshot], str]
ProblemsView: TypeAlias = Callable[[Sequence[Problem]], str]

PLAN_VIEWS: Mapping[str, PlanView] = {
    "text": plan_text,
    "json": plan_json,
    "markdown": plan_markdown,
    "html": plan_html,
}
PLAN_EXTRACTS: Mapping[str, PlanView] = {"digest": plan_digest_line, "gitlab": plan_gitlab}
"""Views of single values of a plan, for scripts."""
APPLY_VIEWS: Mapping[str, ApplyView] = {
    "text": apply_text,
    "json": apply_json,
    "markdown": apply_markdown,
    "html": apply_html,
}
DRIFT_VIEWS: Mapping[str, DriftView] = {
    "text": drift_text,
    "json": drift_json,
    "junit": drift_junit,
    "sarif": drift_sarif,
    "markdown": drift_markdown,
    "html": drift_html,
}
SNAPSHOT_VIEWS: Mapping[str, SnapshotView] = {
    "text": snapshot_text,
    "markdown": snapshot_markdown,
    "html": snapshot_html,
}
"""There is no JSON view: a snapshot file is JSON already."""
PROBLEMS_VIEWS: Mapping[str, ProblemsView] = {
    "text": problems_text,
    "json": problems_json,
    "markdown": problems_markdown,
    "github": problems_github,
}

__all__ = [
    "APPLY_VIEWS",
    "DRIFT_VIEWS",
    "PLAN_EXTRACTS",
    "PLAN_VIEWS",
    "PROBLEMS_VIEWS",
    "SNAPSHOT_VIEWS",
    "apply_html",
    "apply_markdown",
    "apply_text",
    "drift_html",
    "drift_markdown",
    "plan_html",
    "plan_markdown",
    "plan_text",
    "problems_json",
    "problems_text",
]
