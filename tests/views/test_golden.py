"""Every view of every sample, as it was read and found good."""

from __future__ import annotations

import json
import re
from collections.abc import Callable

import pytest
from document_samples import PLANS, REPORTS
from drift_samples import DRIFTS
from fleet.fleet_samples import FLEETS
from json_schemas import schema_validator

from lmsconf.render import APPLY_VIEWS, DRIFT_VIEWS, FLEET_VIEWS, PLAN_VIEWS, problems_json, problems_text

Compare = Callable[[str, str], None]
SUFFIX = {"text": "txt", "markdown": "md"}
ASSETS = re.compile(r"<(style|script)>.*?</\1>|sha256-[\w+/=]+", re.DOTALL)


@pytest.mark.parametrize("name", PLANS)
@pytest.mark.parametrize("view", PLAN_VIEWS)
def test_plans_read_as_they_did(name: str, view: str, golden: Compare) -> None:
    """Each plan reads in each format as its golden file does."""
    golden(f"plan_{name}.{SUFFIX.get(view, view)}", _stable(PLAN_VIEWS[view](PLANS[name])))


@pytest.mark.parametrize("name", REPORTS)
@pytest.mark.parametrize("view", APPLY_VIEWS)
def test_reports_read_as_they_did(name: str, view: str, golden: Compare) -> None:
    """Each apply report reads in each format as its golden file does."""
    golden(f"apply_{name}.{SUFFIX.get(view, view)}", _stable(APPLY_VIEWS[view](REPORTS[name])))


@pytest.mark.parametrize("name", DRIFTS)
@pytest.mark.parametrize("view", ["markdown", "html"])
def test_drift_reads_as_it_did(name: str, view: str, golden: Compare) -> None:
    """Each drift report reads in the formats for comments and browsers as its golden file does."""
    golden(f"drift_{name}.{SUFFIX.get(view, view)}", _stable(DRIFT_VIEWS[view](DRIFTS[name])))


@pytest.mark.parametrize("name", FLEETS)
@pytest.mark.parametrize("view", FLEET_VIEWS)
def test_fleets_read_as_they_did(name: str, view: str, golden: Compare) -> None:
    """The results of each fleet read in each format as their golden file does."""
    golden(f"fleet_{name}.{SUFFIX.get(view, view)}", _stable(FLEET_VIEWS[view](FLEETS[name])))


def test_problems_read_as_they_did(golden: Compare) -> None:
    """Problems are listed with place, reason, code and way out, then counted."""
    problems = [problem for plan in PLANS.values() for problem in plan.all_problems]
    golden("problems.txt", problems_text(problems))
    golden("problems.json", _stable(problems_json(problems)))


@pytest.mark.parametrize(
    ("schema", "text"),
    [
        *(("plan", PLAN_VIEWS["json"](plan)) for plan in PLANS.values()),
        *(("apply", APPLY_VIEWS["json"](report)) for report in REPORTS.values()),
        *(("fleet", FLEET_VIEWS["json"](report)) for report in FLEETS.values()),
        *(("problems", problems_json(plan.all_problems)) for plan in PLANS.values()),
    ],
)
def test_documents_fit_their_schemas(schema: str, text: str) -> None:
    """Every document is what its JSON Schema says, and one with an unknown key is not."""
    validator = schema_validator(schema)
    document = json.loads(text)
    assert [error.message for error in validator.iter_errors(document)] == []
    assert not validator.is_valid({**document, "extra": 1})


def _stable(text: str) -> str:
    """The text without what a release changes: the version, and with it the seal; in a page its style and script."""
    if text.startswith("<!doctype html>"):
        return ASSETS.sub("…", text).replace("><", ">\n<")
    if not text.startswith("{"):
        return text
    document = json.loads(text)
    lines = text.splitlines(keepends=True)
    hidden = {'  "tool"': '  "tool": …,\n', '  "seal"': '  "seal": …,\n'}
    assert set(document) >= {"tool"}
    return "".join(hidden.get(line.partition(":")[0], line) for line in lines)
