"""Pure functions from values to text, by format: no file, clock or terminal in sight."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TypeAlias

from lmsconf.core.values import ApplyReport, Plan
from lmsconf.errors import Problem
from lmsconf.views.json import apply_json, plan_json, problems_json
from lmsconf.views.text import apply_line, apply_text, plan_text, problems_text

PlanView: TypeAlias = Callable[[Plan], str]
ApplyView: TypeAlias = Callable[[ApplyReport], str]
ProblemsView: TypeAlias = Callable[[Sequence[Problem]], str]

PLAN_VIEWS: Mapping[str, PlanView] = {"text": plan_text, "json": plan_json}
APPLY_VIEWS: Mapping[str, ApplyView] = {"text": apply_text, "json": apply_json}
PROBLEMS_VIEWS: Mapping[str, ProblemsView] = {"text": problems_text, "json": problems_json}

__all__ = [
    "APPLY_VIEWS",
    "PLAN_VIEWS",
    "PROBLEMS_VIEWS",
    "apply_json",
    "apply_line",
    "apply_text",
    "plan_json",
    "plan_text",
    "problems_json",
    "problems_text",
]
