"""The page as a file: its elements fit into each other, its links lead somewhere, and it asks nobody for anything."""

import re
from base64 import b64encode
from collections import Counter
from collections.abc import Callable, Sequence
from functools import partial
from hashlib import sha256
from html.parser import HTMLParser

import pytest
from fleet.fleet_project import large_fleet
from hostile.active_content import html_words
from msgspec.structs import replace
from views.document_samples import COMPLETE, MIXED, PLANS, REPORTS, change
from views.drift_samples import ALL, DRIFTS, large

from lmsconf.model.address import Address
from lmsconf.model.calls import CallStatus
from lmsconf.model.plan import Action, Plan
from lmsconf.render import APPLY_VIEWS, DRIFT_VIEWS, FLEET_VIEWS
from lmsconf.render.html import MAX_BOXES, plan_html
from lmsconf.render.resource_wording import MOST_ROWS

PAGES: dict[str, Callable[[], str]] = {
    **{f"plan-{name}": partial(plan_html, plan) for name, plan in PLANS.items()},
    **{f"apply-{name}": partial(APPLY_VIEWS["html"], report) for name, report in REPORTS.items()},
    **{f"drift-{name}": partial(DRIFT_VIEWS["html"], drift) for name, drift in DRIFTS.items()},
}
VOID = {"meta", "input"}


class Page(HTMLParser):
    """The elements of a page with their attributes, and its words."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self._words: list[str] = []
        self._open: list[str] = []
        self.feed(text)
        self.close()
        assert self._open == []
        self.words = "".join(self._words)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        assert len(attrs) == len(dict(attrs))
        self.elements.append((tag, dict(attrs)))
        if tag not in VOID:
            self._open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self._open.pop() == tag

    def handle_data(self, data: str) -> None:
        if not {"style", "script"} & set(self._open):
            self._words.append(data)

    def values(self, attribute: str) -> list[str]:
        return [attrs[attribute] or "" for _, attrs in self.elements if attribute in attrs]


@pytest.mark.sampled(day=4)
@pytest.mark.parametrize("name", PAGES)
def test_a_page_is_whole_and_alone(name: str) -> None:
    """Every element ends where it should, no two have one id, and each link leads to a place on the page. The policy
    allows the two inline parts by their hashes, and no element loads, embeds, sends, or has a handler."""
    text = PAGES[name]()
    page = Page(text)
    ids = Counter(page.values("id"))
    assert [one for one, number in ids.items() if number > 1] == []
    assert [href for href in page.values("href") if href.removeprefix("#") not in ids] == []
    (policy,) = [attrs["content"] or "" for tag, attrs in page.elements if "http-equiv" in attrs]
    assert policy.startswith("default-src 'none'; ")
    for tag, rule in (("style", "style-src"), ("script", "script-src")):
        (inside,) = re.findall(rf"<{tag}>(.*?)</{tag}>", text, re.DOTALL)
        assert f"{rule} 'sha256-{b64encode(sha256(inside.encode()).digest()).decode()}'" in policy
    attributes = {key for _, attrs in page.elements for key in attrs}
    assert not {key for key in attributes if key.startswith("on")}
    assert not {"src", "srcset", "style", "action", "formaction", "data", "poster", "ping", "xlink:href"} & attributes
    assert not {"link", "base", "form", "iframe", "object", "embed", "img"} & {tag for tag, _ in page.elements}
    assert not re.search(r"url\(|@import|fetch\(|XMLHttpRequest|sendBeacon|innerHTML", text)


def test_names_make_no_elements() -> None:
    """A name that is markup stands on the page as it is written, in text and in attributes."""
    name = "<img src=x onerror='alert(1)'>\"><script>alert(1)</script>"
    hostile = replace(MIXED, workspace=name, changes=(change(Address.of("group", name), Action.DELETE),))
    page = Page(plan_html(hostile))
    tags = Counter(tag for tag, _ in page.elements)
    assert (tags["img"], tags["script"]) == (0, 1)
    assert page.words.count(name) >= 3


def chained(changes: int) -> Plan:
    """A plan in which each change has four calls, each of which waits for the one before."""
    plan = large(changes)
    calls = tuple(
        replace(one, id=f"c{4 * n + k}", needs=(f"c{4 * n + k - 1}",))
        for n, one in enumerate(plan.calls)
        for k in range(4)
    )
    return replace(plan, calls=calls)


@pytest.mark.sampled(daily=False)
def test_the_picture_can_be_followed() -> None:
    """Call order is drawn call by call; where that would be too many boxes, the page says so."""
    text = plan_html(large(200))
    assert 0 < text[text.index("<svg") : text.index("</svg>")].count("<title>") <= MAX_BOXES
    assert "more calls than a picture can hold" in Page(plan_html(chained(150))).words


# The page of a large plan or report: the first 2,000 rows, and how to see all.


def changes_shown(page: Page) -> list[str]:
    return [one for one in page.values("id") if one.startswith("change-")]


@pytest.mark.sampled(daily=False)
def test_every_change_is_shown_up_to_a_number() -> None:
    """Up to 2,000 changes stand on the page; one more, and the page says what it shows, and how to see all."""
    at_most, above = Page(plan_html(large(MOST_ROWS, 0))), Page(plan_html(large(MOST_ROWS + 1, 0)))
    assert "Shown here" not in at_most.words
    assert len(changes_shown(at_most)) == len(changes_shown(above)) == MOST_ROWS == 2_000
    assert "Shown here: the riskiest 2,000 of 2,001. All: lmsconf show PLAN.json --format text" in above.words
    assert "those of the changes above. All: lmsconf show PLAN.json --format json" in above.words


@pytest.mark.sampled(daily=False)
def test_the_riskiest_changes_are_shown() -> None:
    """All deletions are there, although the plan begins with creations, and the number of those is told."""
    plan = large(3_000, 0)
    created = [change(one.address, Action.CREATE, after={}) for one in plan.changes[:2_800]]
    deleted = [change(one.address, Action.DELETE, before={"members": ["a@x.example"]}) for one in plan.changes[2_800:]]
    text = plan_html(replace(plan, changes=(*created, *deleted)))
    groups = text[text.index('id="rows"') : text.index('id="nothing"')].split('<div class="group">')[1:]
    assert [group.count('<details class="row"') for group in groups] == [200, 1_800]
    assert groups[0].count("a@x.example") == 200
    assert "Created: 1,400 assignments, 467 smart groups, 467 groups, 466 custom fields" in html_words(groups[1])


@pytest.mark.sampled(daily=False)
def test_no_link_leads_to_what_is_not_shown() -> None:
    """The calls are those of the shown changes; links of rows, calls, effects and the graph lead to something."""
    for plan in (large(2_500, 0), waiting(large(2_500, 0), 2_480)):
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


@pytest.mark.sampled(daily=False)
@pytest.mark.parametrize("page", ["drift", "apply", "fleet"])
def test_other_reports_show_their_first_rows(page: str) -> None:
    """Of calls, those that failed are the first."""
    if page == "drift":
        findings = tuple(replace(ALL.findings[0], address=at) for at in many(2_500))
        text, command = DRIFT_VIEWS["html"](replace(ALL, findings=findings)), "lmsconf drift --format text"
    elif page == "apply":
        states = [*[CallStatus.DONE] * 2_400, *[CallStatus.FAILED] * 100]
        outcomes = tuple(
            replace(COMPLETE.outcomes[0], call=f"c{n}", address=at, status=states[n])
            for n, at in enumerate(many(2_500))
        )
        text = APPLY_VIEWS["html"](replace(COMPLETE, outcomes=outcomes))
        command = "lmsconf show REPORT.json --format text"
        assert text.count('data-state="failed"') == 100
    else:
        text, command = FLEET_VIEWS["html"](large_fleet(2_600, 50, 2_500)), "lmsconf fleet show --format text"
    assert text.count('<details class="row"') == MOST_ROWS
    assert "Shown here: the first 2,000 of 2,50" in Page(text).words
    assert f"All: {command}" in Page(text).words
