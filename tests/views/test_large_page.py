"""The page of a large plan or report: the first 2,000 rows, and how to see all."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from document_samples import COMPLETE, change, outcome
from drift_samples import ALL
from fleet.fleet_samples import large_fleet
from hostile.active_content import html_words
from large_plans import large
from msgspec.structs import replace
from test_html import Page

from lmsconf.model.address import Address
from lmsconf.model.calls import CallStatus
from lmsconf.model.plan import Action, Plan
from lmsconf.render import FLEET_VIEWS, apply_html, drift_html, plan_html
from lmsconf.render.html import MOST_ROWS


def changes_shown(page: Page) -> list[str]:
    return [one for one in page.values("id") if one.startswith("change-")]


def test_every_change_is_shown_up_to_a_number() -> None:
    """Up to 2,000 changes stand on the page; one more, and the page says what it shows, and how to see all."""
    at_most, above = Page(plan_html(large(MOST_ROWS))), Page(plan_html(large(MOST_ROWS + 1)))
    assert "Shown here" not in at_most.words
    assert len(changes_shown(at_most)) == len(changes_shown(above)) == MOST_ROWS == 2_000
    assert "Shown here: the riskiest 2,000 of 2,001. All: lmsconf show PLAN.json --format text" in above.words
    assert "those of the changes above. All: lmsconf show PLAN.json --format json" in above.words


def test_the_riskiest_changes_are_shown() -> None:
    """All deletions are there, although the plan begins with creations, and the number of those is told."""
    plan = large(3_000)
    created = [change(one.address, Action.CREATE, after={}) for one in plan.changes[:2_800]]
    deleted = [change(one.address, Action.DELETE, before={"members": ["a@x.example"]}) for one in plan.changes[2_800:]]
    text = plan_html(replace(plan, changes=(*created, *deleted)))
    groups = text[text.index('id="rows"') : text.index('id="nothing"')].split('<div class="group">')[1:]
    assert [group.count('<details class="row"') for group in groups] == [200, 1_800]
    assert groups[0].count("a@x.example") == 200
    assert "Created: 1,400 assignments, 467 smart groups, 467 groups, 466 custom fields" in html_words(groups[1])


def test_no_link_leads_to_what_is_not_shown() -> None:
    """The calls are those of the shown changes; links of rows, calls, effects and the graph lead to something."""
    for plan in (large(2_500), waiting(large(2_500), 2_480)):
        page = Page(plan_html(plan))
        ids = page.values("id")
        assert len(set(ids)) == len(ids)
        assert {href.removeprefix("#") for href in page.values("href")} <= {*ids}
        assert sum(one.startswith("call-") for one in ids) == MOST_ROWS


def waiting(plan: Plan, number: int) -> Plan:
    """Return a plan only one of whose calls waits for another, so that the graph draws calls."""
    calls = [replace(call, needs=(plan.calls[0].id,) if n == number else ()) for n, call in enumerate(plan.calls)]
    return replace(plan, calls=tuple(calls))


def many(number: int) -> Sequence[Address]:
    return [Address.of("group", f"Team {n}") for n in range(number)]


@pytest.mark.parametrize("page", ["drift", "apply", "fleet"])
def test_other_reports_show_their_first_rows(page: str) -> None:
    """Of calls, those that failed are the first."""
    if page == "drift":
        findings = tuple(replace(ALL.findings[0], address=at) for at in many(2_500))
        text, command = drift_html(replace(ALL, findings=findings)), "lmsconf drift --format text"
    elif page == "apply":
        calls = [outcome(n, at, "a.b", CallStatus.DONE) for n, at in enumerate(many(2_400))]
        failed = [outcome(n, at, "a.b", CallStatus.FAILED) for n, at in enumerate(many(100), 2_400)]
        text = apply_html(replace(COMPLETE, outcomes=(*calls, *failed)))
        command = "lmsconf show REPORT.json --format text"
        assert text.count('data-state="failed"') == 100
    else:
        text, command = FLEET_VIEWS["html"](large_fleet(2_600, 50, 2_500)), "lmsconf fleet show --format text"
    assert text.count('<details class="row"') == MOST_ROWS
    assert "Shown here: the first 2,000 of 2,50" in Page(text).words
    assert f"All: {command}" in Page(text).words
