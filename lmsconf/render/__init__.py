"""Views: pure functions that render plans, reports, drift, snapshots and problems to text, one table per value type.

No file, clock or terminal is used.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from importlib import import_module
from typing import TypeAlias

from lmsconf.errors import Problem
from lmsconf.model.drift import DriftReport
from lmsconf.model.fleet import FleetReport
from lmsconf.model.outcomes import ApplyReport
from lmsconf.model.plan import Plan
from lmsconf.model.snapshot import Snapshot

PlanView: TypeAlias = Callable[[Plan], str]
ApplyView: TypeAlias = Callable[[ApplyReport], str]
DriftView: TypeAlias = Callable[[DriftReport], str]
FleetView: TypeAlias = Callable[[FleetReport], str]
SnapshotView: TypeAlias = Callable[[Snapshot], str]
ProblemsView: TypeAlias = Callable[[Sequence[Problem]], str]


def _view(module: str, name: str) -> Callable[..., str]:
    """Return a view that imports its module when it is called: a command prints one format, and there are many."""

    def view(value: object, **options: object) -> str:
        made: Callable[..., str] = getattr(import_module(f"lmsconf.render.{module}"), name)
        return made(value, **options)

    return view


apply_html = _view("html", "apply_html")
apply_markdown = _view("markdown", "apply_markdown")
apply_text = _view("text", "apply_text")
drift_html = _view("html", "drift_html")
drift_markdown = _view("markdown", "drift_markdown")
plan_html = _view("html", "plan_html")
plan_markdown = _view("markdown", "plan_markdown")
plan_text = _view("text", "plan_text")
problems_json = _view("json", "problems_json")
problems_text = _view("text", "problems_text")

PLAN_VIEWS: Mapping[str, PlanView] = {
    "text": plan_text,
    "json": _view("json", "plan_json"),
    "markdown": plan_markdown,
    "html": plan_html,
}
PLAN_EXTRACTS: Mapping[str, PlanView] = {
    "digest": _view("json", "plan_digest_line"),
    "gitlab": _view("json", "plan_gitlab"),
}
"""Views of single values of a plan, for scripts."""
PLAN_PROBLEMS_VIEWS: Mapping[str, PlanView] = {
    "github": _view("code_review", "plan_github"),
    "sarif": _view("code_review", "plan_sarif"),
    "codequality": _view("code_review", "plan_codequality"),
}
"""Views of a plan's problems, which show each at its line in a code review."""
APPLY_VIEWS: Mapping[str, ApplyView] = {
    "text": apply_text,
    "json": _view("json", "apply_json"),
    "markdown": apply_markdown,
    "html": apply_html,
}
DRIFT_VIEWS: Mapping[str, DriftView] = {
    "text": _view("text", "drift_text"),
    "json": _view("json", "drift_json"),
    "junit": _view("junit", "drift_junit"),
    "sarif": _view("code_review", "drift_sarif"),
    "markdown": drift_markdown,
    "html": drift_html,
}
FLEET_VIEWS: Mapping[str, FleetView] = {
    "text": _view("text", "fleet_text"),
    "json": _view("json", "fleet_json"),
    "markdown": _view("markdown", "fleet_markdown"),
    "html": _view("html", "fleet_html"),
}
SNAPSHOT_VIEWS: Mapping[str, SnapshotView] = {
    "text": _view("text", "snapshot_text"),
    "markdown": _view("markdown", "snapshot_markdown"),
    "html": _view("html", "snapshot_html"),
}
"""There is no JSON view: a snapshot file is JSON already."""
PROBLEMS_VIEWS: Mapping[str, ProblemsView] = {
    "text": problems_text,
    "json": problems_json,
    "markdown": _view("markdown", "problems_markdown"),
    "html": _view("html", "problems_html"),
    "github": _view("code_review", "problems_github"),
    "sarif": _view("code_review", "problems_sarif"),
    "codequality": _view("code_review", "problems_codequality"),
}

__all__ = [
    "APPLY_VIEWS",
    "DRIFT_VIEWS",
    "FLEET_VIEWS",
    "PLAN_EXTRACTS",
    "PLAN_PROBLEMS_VIEWS",
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
