"""The page of a large plan in a real browser. Without one on this machine these tests are skipped."""

from __future__ import annotations

import html
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from browser import CHROMIUM, Browser, browser
from document_samples import COMPLETE, EMPTY, change, outcome
from drift_samples import ALL
from hostile.payloads import HALF, NAMES
from large_plans import large

from lmsconf.errors import SourceLocation
from lmsconf.model.address import Address
from lmsconf.model.outcomes import CallStatus
from lmsconf.model.plan import Action
from lmsconf.render import apply_html, drift_html, plan_html
from lmsconf.render.escape import escape_html
from lmsconf.render.resource_wording import short_title

pytestmark = [pytest.mark.slow, pytest.mark.skipif(CHROMIUM is None, reason="no chromium on the PATH")]
SIZE = 3_000
PLAN = large(SIZE)
COUNT = "document.querySelector('#count').textContent"
ROWS = "document.querySelectorAll('#rows .row').length"
LAST = "[...document.querySelectorAll('#rows .row')].at(-1)?.id"
AT = "document.activeElement.parentElement.id"
DIALOGS = "window.alert = window.confirm = window.prompt = () => { throw new Error('a name ran') };"


@pytest.fixture(scope="module")
def chromium() -> Iterator[Browser]:
    with browser() as found:
        yield found


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The page of a plan of 3,000 changes."""
    path = tmp_path_factory.mktemp("page") / "plan.html"
    path.write_text(plan_html(PLAN), encoding="utf-8")
    return path


def open_page(chromium: Browser, path: Path) -> None:
    chromium.open(path)
    chromium.until("!document.querySelector('#main').ariaBusy")


def type_(chromium: Browser, element: str, value: str, event: str) -> None:
    chromium.run(f"(s => {{ s.value = {value!r}; s.dispatchEvent(new Event('{event}')); }})({element})")


def search(chromium: Browser, text: str) -> None:
    type_(chromium, "document.querySelector('#search')", text, "input")


def choose(chromium: Browser, name: str, value: str) -> None:
    type_(chromium, f"document.querySelector('select[name={name}]')", value, "change")


def follow(chromium: Browser, anchor: str) -> None:
    """Follows a link within the page, until what it leads to is open and in the window."""
    chromium.run(f"location.hash = {anchor!r}")
    chromium.until(f"document.getElementById({anchor!r})?.open && !document.querySelector('#main').ariaBusy")
    chromium.until(
        f"(at => at.top < innerHeight && at.bottom > 0)(document.getElementById({anchor!r}).getBoundingClientRect())",
    )


def scroll_to_end(chromium: Browser) -> None:
    chromium.run("document.querySelector('#rows').scrollIntoView({block: 'end'})")


def test_a_large_page_is_alone_and_light(chromium: Browser, path: Path) -> None:
    """The page asks for nothing but itself, complains of nothing, counts all rows, and holds only the first of them."""
    open_page(chromium, path)
    chromium.settle()
    assert chromium.complaints == []
    assert chromium.requests == [path.as_uri()]
    assert chromium.run(COUNT) == "3,000 shown"
    assert chromium.run("document.querySelectorAll('.row').length") < 700
    assert chromium.run("[...document.querySelectorAll('[data-unread]')].every(note => note.hidden)")


def test_rows_come_as_they_are_scrolled_to(chromium: Browser, path: Path) -> None:
    """At the end stands the last row; the rows on the way are let go of, and are back, as they were, further up."""
    open_page(chromium, path)
    follow(chromium, "change-1491")
    chromium.until("document.querySelector('#change-1491').offsetHeight > 60")
    scroll_to_end(chromium)
    chromium.until(f"{LAST} === 'change-3000'")
    chromium.until("!document.querySelector('#change-1491')")
    assert chromium.run(ROWS) < 900
    chromium.run("document.querySelector('#rows').scrollIntoView()")
    follow(chromium, "change-1501")
    chromium.until("document.querySelector('#change-1491')?.open")
    assert not chromium.run("document.querySelector('#change-1492')?.open")
    assert chromium.complaints == []


def test_search_and_filters_find_what_is_packed(chromium: Browser, path: Path) -> None:
    """Words and choices narrow all rows, shown or not; the count and the groups say what is left."""
    open_page(chromium, path)
    chromium.run("document.querySelector('#changes').scrollIntoView()")
    search(chromium, "team 02999 of")
    chromium.until(f"{COUNT} === '1 of 3,000'")
    chromium.until("document.querySelector('#change-3000')?.offsetHeight > 0")
    assert chromium.run("[...document.querySelectorAll('.group')].filter(one => !one.hidden).length") == 1
    search(chromium, "no such thing")
    chromium.until(f"{COUNT} === '0 of 3,000' && !document.querySelector('#nothing').hidden")
    search(chromium, "")
    for name, value in (("state", "delete"), ("kind", "content_target"), ("file", "manifests/people.yaml")):
        choose(chromium, name, value)
    fitting = [
        one
        for one in PLAN.changes
        if (one.action, one.address.kind) == (Action.DELETE, "content_target") and one.source
    ]
    chromium.until(f"{COUNT} === '{len(fitting)} of 3,000'")
    search(chromium, "p19@acme.example")
    holding = [one for one in fitting if "p19@acme.example" in str(one.before)]
    chromium.until(f"{COUNT} === '{len(holding)} of 3,000'")
    chromium.run("document.querySelector('#search').focus()")
    chromium.press("Escape")
    chromium.until(f"{COUNT} === '{len(fitting)} of 3,000'")
    assert chromium.complaints == []


def test_words_of_markup_are_not_found(chromium: Browser, path: Path) -> None:
    """The search reads what a person reads: no element, class or reference."""
    open_page(chromium, path)
    for word in ("<details", "class=", "calls-of", "&gt;"):
        search(chromium, word)
        chromium.until(f"{COUNT} === '0 of 3,000'")


def test_links_lead_to_what_is_packed(chromium: Browser, path: Path) -> None:
    """A link to a packed change or call shows and opens it, also one that a search has put aside."""
    open_page(chromium, path)
    follow(chromium, "call-2900")
    follow(chromium, "change-2900")
    chromium.run("document.querySelector('#change-2900 .calls-of a').click()")
    chromium.until("location.hash === '#call-2900'")
    search(chromium, "team 00007 of")
    chromium.until(f"{COUNT} === '1 of 3,000'")
    follow(chromium, "change-2800")
    assert chromium.run(COUNT) == "3,000 shown"
    chromium.run("location.hash = 'no-such-thing'")
    chromium.settle()
    assert chromium.complaints == []


def test_a_link_from_outside_leads_to_a_packed_row(chromium: Browser, path: Path) -> None:
    """The address of a row opens the page at it."""
    linked = path.with_name("link.html")
    linked.write_text('<a id="main" href="plan.html#change-2950">#main</a>', encoding="utf-8")
    chromium.open(linked)
    chromium.run("void setTimeout(() => document.querySelector('a').click())")  # it answers before the page goes
    chromium.until("document.getElementById('change-2950')?.open")
    top = "document.getElementById('change-2950').getBoundingClientRect().top"
    chromium.until(f"{top} >= 0 && {top} < 200")


def test_keys_move_through_packed_rows(chromium: Browser, path: Path) -> None:
    """j and k go from row to row across what is not shown yet, Enter opens, and k from nowhere goes to the last."""
    open_page(chromium, path)
    search(chromium, "created")
    chromium.run("document.activeElement.blur()")
    chromium.press("k")
    chromium.until(f"document.activeElement.tagName === 'SUMMARY' && {AT} === 'change-3000'")
    search(chromium, "")
    choose(chromium, "state", "create")
    chromium.until(f"{COUNT} === '1,200 of 3,000'")
    order = [number for number, one in enumerate(PLAN.changes, 1) if one.action is Action.CREATE]
    chromium.run("document.activeElement.blur()")
    for number in order[:120]:
        chromium.press("j")
        chromium.until(f"{AT} === 'change-{number}'")
    chromium.press("k")
    chromium.until(f"{AT} === 'change-{order[118]}'")
    chromium.press("Enter")
    assert chromium.run("document.activeElement.parentElement.open")


def test_open_all_opens_what_is_not_shown_yet(chromium: Browser, path: Path) -> None:
    """All that fits is open, also the row that is scrolled to later; a second press closes it again."""
    open_page(chromium, path)
    chromium.run("document.querySelector('#unfold').click()")
    scroll_to_end(chromium)
    follow(chromium, "change-3000")
    assert chromium.run("[...document.querySelectorAll('#rows .row')].every(row => row.open)")
    chromium.run("document.querySelector('#unfold').click()")
    assert chromium.run("[...document.querySelectorAll('#rows .row')].every(row => !row.open)")


def test_paper_has_no_holes(chromium: Browser, path: Path) -> None:
    """Rows that are not shown take no room on paper, and the page says that they are not printed."""
    open_page(chromium, path)
    chromium.call("Emulation.setEmulatedMedia", media="print")
    chromium.settle()
    assert chromium.run("document.querySelectorAll('.later:not(.there)').length") > 10
    assert chromium.run("[...document.querySelectorAll('.later:not(.there)')].every(one => one.offsetHeight === 0)")
    said = "[...document.querySelectorAll('#changes > p')].filter(p => p.offsetHeight).map(p => p.textContent).join()"
    assert "a printer prints, only the rows near the screen and the first ones" in chromium.run(said)
    chromium.call("Emulation.setEmulatedMedia", media="")


def test_without_javascript_the_riskiest_can_be_read(chromium: Browser, path: Path) -> None:
    """The first deletions are there, and of the others the page says how many there are and what prints them."""
    chromium.open(path)
    chromium.call("Emulation.setScriptExecutionDisabled", value=True)
    try:
        chromium.call("Page.reload")
        chromium.until(f"document.readyState === 'complete' && {ROWS} > 0")
        notes = chromium.run(
            "[...document.querySelectorAll('#rows [data-unread]')].filter(p => p.offsetHeight).map(p => p.textContent)"
        )
        assert len(notes) == 4
        assert all("lmsconf show PLAN.json --format text" in note for note in notes)
        assert chromium.run(ROWS) > 100
        assert chromium.run("[...document.querySelectorAll('[data-script]')].every(part => part.hidden)")
    finally:
        chromium.call("Emulation.setScriptExecutionDisabled", value=False)


def test_a_browser_that_cannot_unpack_says_so(chromium: Browser, path: Path) -> None:
    """Where the browser has no DecompressionStream, the notes stay and say why."""
    chromium.open(path)  # the script belongs to a page
    script = chromium.call("Page.addScriptToEvaluateOnNewDocument", source="delete window.DecompressionStream")
    try:
        chromium.call("Page.navigate", url=path.as_uri())
        chromium.until("document.querySelector('[data-unread]')?.textContent.includes('cannot unpack')")
        assert chromium.run("[...document.querySelectorAll('[data-unread]')].every(note => !note.hidden)")
        assert "DecompressionStream" in chromium.run("document.querySelector('[data-unread]').textContent")
    finally:
        chromium.call("Page.removeScriptToEvaluateOnNewDocument", identifier=script["identifier"])


SHOWN = """(() => {
  const rows = [...document.querySelectorAll('#rows .row')];
  const inside = [...document.querySelectorAll('#rows *')];
  return {
    names: rows.map(row => [row.id, row.querySelector('.name').textContent]),
    tags: [...new Set(inside.map(one => one.tagName.toLowerCase()))],
    attributes: [...new Set(inside.flatMap(one => one.getAttributeNames()))],
  };
})()"""
TAGS = {"div", "h3", "p", "code", "details", "summary", "span", "bdi", "dl", "dt", "dd", "ins", "b", "small", "a"}
ATTRIBUTES = {"class", "id", "open", "hidden", "style", "data-kind", "data-state", "data-file", "data-unread"} | {
    f"data-{name}" for name in ("packed", "first", "last")
}


def test_hostile_names_do_nothing_in_packed_rows(chromium: Browser, tmp_path: Path) -> None:
    """Hundreds of names that act on a page are shown when their rows are unpacked, and none of them acts."""
    names = [f"{name[:500]}{number}" for number, name in enumerate([*NAMES, *HALF])]
    changes = [
        replace(
            change(Address.of("group", name), Action.CREATE, after={"members": [name], "description": name}),
            source=SourceLocation(f"{name}.yaml", 1),
        )
        for name in [*(f"Team {number}" for number in range(2_000)), *names]
    ]
    path = tmp_path / "hostile.html"
    path.write_text(plan_html(replace(EMPTY, changes=tuple(changes))), encoding="utf-8")
    open_page(chromium, path)
    chromium.run(DIALOGS)
    search(chromium, "[")  # the words of all rows are read
    chromium.until(f"!{COUNT}.startsWith('2,') && {COUNT}.includes(' of ')")
    search(chromium, "")
    chromium.until(f"{COUNT}.endsWith(' shown')")
    chromium.run("document.querySelector('#unfold').click()")
    seen: dict[str, str] = {}
    for number in range(2_000, len(changes) + 1, 20):
        follow(chromium, f"change-{number}")
        found = chromium.run(SHOWN)
        assert {*found["tags"]} <= TAGS
        assert {*found["attributes"]} <= ATTRIBUTES
        seen.update(found["names"])
    titles = [html.unescape(escape_html(short_title(one.address))) for one in changes]
    expected = {f"change-{number}": title for number, title in enumerate(titles, 1) if number > 2_000}
    assert {anchor: seen.get(anchor) for anchor in expected} == expected
    assert chromium.complaints == []
    assert chromium.requests == [path.as_uri()]


@pytest.mark.parametrize("page", ["drift", "apply"])
def test_other_large_reports_work_too(page: str, chromium: Browser, tmp_path: Path) -> None:
    """Drift and apply reports of thousands of rows are unpacked, searched and linked in the same way."""
    if page == "drift":
        findings = tuple(replace(ALL.findings[0], address=Address.of("group", f"Team {n:04}")) for n in range(2_500))
        text, anchor = drift_html(replace(ALL, findings=findings)), "finding-2500"
    else:
        done = tuple(outcome(n, Address.of("group", f"Team {n:04}"), "a.b", CallStatus.DONE) for n in range(2_500))
        text, anchor = apply_html(replace(COMPLETE, outcomes=done)), "call-2500"
    path = tmp_path / "page.html"
    path.write_text(text, encoding="utf-8")
    open_page(chromium, path)
    assert chromium.run(COUNT) == "2,500 shown"
    search(chromium, "team 2498")
    chromium.until(f"{COUNT} === '1 of 2,500'")
    follow(chromium, anchor)
    assert chromium.run(f"document.getElementById('{anchor}').textContent.includes('Team 2499')")
    assert chromium.complaints == []
    assert chromium.requests == [path.as_uri()]


@pytest.mark.parametrize("width", [360, 840, 1280])
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_packed_rows_fit_every_screen(scheme: str, width: int, chromium: Browser, path: Path) -> None:
    """On a phone as on a desk the page is as wide as the screen, at its top and at its end."""
    chromium.open(path, scheme)
    chromium.call("Emulation.setDeviceMetricsOverride", width=width, height=900, deviceScaleFactor=1, mobile=False)
    chromium.until("!document.querySelector('#main').ariaBusy")
    follow(chromium, "change-3000")
    assert chromium.run("document.documentElement.scrollWidth") <= width
