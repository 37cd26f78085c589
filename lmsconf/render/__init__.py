"""Views: pure functions that render plans, reports, drift, snapshots and problems to text, one table per value type.

No file, clock or terminal is used.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from importlib import import_module
from typing import TypeAlias, cast

Views: TypeAlias = Mapping[str, Callable[..., str]]
"""Format → the function that renders a value in it."""


def _views(what: str, **printers: str) -> Views:
    """Return the views of a type of values.

    printers: format → the template, which has the value as `report`, or the module that has `what_format`.
    """
    return {format: partial(_rendered, printer, f"{what}_{format}") for format, printer in printers.items()}


def _rendered(printer: str, name: str, value: object, **options: object) -> str:
    """Render a value; the module is imported only now: a command prints one format, and there are many."""
    if printer.endswith(".j2"):
        return cast("str", import_module("lmsconf.render.jinja").template_view(printer, report=value, **options))
    module = import_module(f"lmsconf.{'documents' if printer == 'reports' else 'render'}.{printer}")
    return cast("str", getattr(module, name)(value, **options))


PLAN_VIEWS = _views("plan", text="text", json="reports", markdown="markdown", html="html")
PLAN_EXTRACTS = _views("plan", digest="reports", gitlab="reports")
"""Views of single values of a plan, for scripts."""
PLAN_PROBLEMS_VIEWS = _views("problems", github="ci_formats", sarif="ci_formats", codequality="ci_formats")
"""Views of problems, or those of a plan, which show each at its line in a code review."""
APPLY_VIEWS = _views("apply", text="apply.txt.j2", json="reports", markdown="markdown", html="apply.html.j2")
DRIFT_VIEWS = _views(
    "drift",
    text="drift.txt.j2",
    json="reports",
    junit="drift.xml.j2",
    sarif="ci_formats",
    markdown="markdown",
    html="drift.html.j2",
)
GRAPH_VIEWS = _views("graph", mermaid="graph.mermaid.j2", dot="graph.dot.j2")
"""A Mermaid flowchart, which GitHub and GitLab render in Markdown, and a DOT digraph, for Graphviz."""
FLEET_VIEWS = _views("fleet", text="fleet.txt.j2", json="reports", markdown="markdown", html="fleet.html.j2")
SNAPSHOT_VIEWS = _views("snapshot", text="snapshot.txt.j2", markdown="markdown", html="snapshot.html.j2")
"""There is no JSON view: a snapshot file is JSON already."""
PROBLEMS_VIEWS = {
    **_views("problems", text="text", json="reports", markdown="markdown", html="problems.html.j2"),
    **PLAN_PROBLEMS_VIEWS,
}
RUN_VIEWS = _views("run", text="run.txt.j2", json="reports")
RUNS_VIEWS = _views("runs", text="runs.txt.j2", json="reports")
ACCESS_VIEWS = _views("access", text="access.txt.j2", json="reports", csv="people_reports")
AUDIENCE_VIEWS = _views("audience", text="audience.txt.j2", json="reports", csv="people_reports")
EXPLAIN_VIEWS = _views("explain", text="explain.txt.j2", json="help_pages")
TEST_VIEWS = _views("tests", text="tests.txt.j2", json="reports", junit="tests.xml.j2")
