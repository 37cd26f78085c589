"""Views: pure functions that render plans, reports, drift, snapshots and problems to text, one table per value type.

No file, clock or terminal is used.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from importlib import import_module
from typing import TypeAlias

Views: TypeAlias = Mapping[str, Callable[..., str]]
"""Format → the function that renders a value in it."""


def _views(what: str, **modules: str) -> Views:
    """Return the views of a type of values. modules: format → the module that has the function `what_format`."""
    return {format: partial(_rendered, module, f"{what}_{format}") for format, module in modules.items()}


def _rendered(module: str, name: str, value: object, **options: object) -> str:
    """Render a value; the module is imported only now: a command prints one format, and there are many."""
    view: Callable[..., str] = getattr(import_module(f"lmsconf.render.{module}"), name)
    return view(value, **options)


PLAN_VIEWS = _views("plan", text="text", json="json", markdown="markdown", html="html")
PLAN_EXTRACTS = _views("plan", digest="json", gitlab="json")
"""Views of single values of a plan, for scripts."""
PLAN_PROBLEMS_VIEWS = _views("plan", github="code_review", sarif="code_review", codequality="code_review")
"""Views of a plan's problems, which show each at its line in a code review."""
APPLY_VIEWS = _views("apply", text="report_texts", json="json", markdown="markdown", html="html")
DRIFT_VIEWS = _views(
    "drift", text="report_texts", json="json", junit="junit", sarif="code_review", markdown="markdown", html="html"
)
FLEET_VIEWS = _views("fleet", text="report_texts", json="json", markdown="markdown", html="html")
SNAPSHOT_VIEWS = _views("snapshot", text="report_texts", markdown="markdown", html="html")
"""There is no JSON view: a snapshot file is JSON already."""
PROBLEMS_VIEWS = _views(
    "problems",
    text="text",
    json="json",
    markdown="markdown",
    html="html",
    github="code_review",
    sarif="code_review",
    codequality="code_review",
)
RUN_VIEWS = _views("run", text="report_texts", json="json")
RUNS_VIEWS = _views("runs", text="report_texts", json="json")
