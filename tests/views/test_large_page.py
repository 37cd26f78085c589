"""The page of a large plan as a file: what stands in it in full, what is packed, and that together they are all."""

from __future__ import annotations

import gzip
import json
import re
from base64 import b64decode
from dataclasses import replace
from functools import cache
from itertools import pairwise
from typing import Any

import pytest
from document_samples import COMPLETE, EMPTY, change, outcome
from drift_samples import ALL
from hostile.active_content import html_words
from hostile.payloads import HALF, NAMES
from large_plans import large
from test_html import Page

from lmsconf.errors import SourceLocation
from lmsconf.model.address import Address
from lmsconf.model.outcomes import CallStatus
from lmsconf.model.plan import Action, Plan
from lmsconf.render import apply_html, drift_html, plan_html
from lmsconf.render.escape import escape_html
from lmsconf.render.html.packed_rows import FULL_MARKUP, LARGE_PAGE

PACK = re.compile(r'<script type="application/gzip" data-pack="(\w+)">([\w+/=\n]+)</script>')
LISTS = re.compile(r' data-packed="(\w+)" data-first="(\d+)" data-last="(\d+)">')


def unpacked(text: str) -> dict[str, tuple[dict[str, Any], list[str]]]:
    """Name of a pack → its index and the markup of its rows."""
    packs = {}
    for name, lines in PACK.findall(text):
        index, *blocks = (json.loads(gzip.decompress(b64decode(line))) for line in lines.split("\n"))
        assert index["blocks"] == list(map(len, blocks))
        packs[name] = (index, [row for block in blocks for row in block])
    return packs


def mostly_created(changes: int, deleted: int) -> Plan:
    """A plan of creations with deletions among them."""
    plan = large(changes)
    made = [
        change(one.address, Action.DELETE, before={"members": ["last@acme.example"]})
        if number % (changes // deleted) == 0
        else change(one.address, Action.CREATE, after={"members": []})
        for number, one in enumerate(plan.changes)
    ]
    return replace(plan, changes=tuple(made))


@cache
def big() -> Plan:
    """A plan with a large page."""
    return large(3_000)


@cache
def big_page() -> str:
    """Its page."""
    return plan_html(big())


@pytest.mark.sampled
def test_a_page_is_large_above_its_limit() -> None:
    """Up to 2,000 changes stand on the page as they are; one more, and the rows beyond the riskiest are packed."""
    below, above = plan_html(large(LARGE_PAGE)), plan_html(large(LARGE_PAGE + 1))
    assert (PACK.findall(below), LISTS.findall(below)) == ([], [])
    assert below.count('<details class="row" ') == LARGE_PAGE
    assert "data-unread" not in below
    assert [name for name, _ in PACK.findall(above)] == ["rows", "calls"]
    assert len(above) < len(below) / 3


@pytest.mark.sampled
def test_every_row_is_there_once() -> None:
    """Rows in full and rows packed are all changes and all calls, none twice, and each link leads to one of them."""
    packs = unpacked(big_page())
    page = Page(big_page())
    packed = [Page(row) for _, rows in packs.values() for row in rows]
    ids = [*page.values("id"), *(one for row in packed for one in row.values("id"))]
    assert len(set(ids)) == len(ids)
    assert {f"change-{n}" for n in range(1, 3_001)} | {f"call-{n}" for n in range(1, 3_001)} <= {*ids}
    hrefs = [*page.values("href"), *(one for row in packed for one in row.values("href"))]
    assert {href.removeprefix("#") for href in hrefs} <= {*ids}
    assert page.words.count("is archived") + sum("is archived" in row.words for row in packed) == 300


@pytest.mark.sampled
def test_the_index_says_where_rows_are() -> None:
    """The lists take all rows of their packs in order; anchors and values of filters are those of the rows."""
    packs = unpacked(big_page())
    for name, (index, rows) in packs.items():
        parts = [(int(first), int(last)) for pack, first, last in LISTS.findall(big_page()) if pack == name]
        assert parts[0][0] == 0
        assert parts[-1][1] == len(rows)
        assert all(end == begin for (_, end), (begin, _) in pairwise(parts))
        if name != "notes":
            assert [f'id="{anchor}"' in row for anchor, row in zip(index["ids"], rows, strict=True)] == [True] * len(
                rows
            )
    index, rows = packs["rows"]
    for filter_, column in index["columns"].items():
        values = [column["values"][number] for number in column["rows"]]
        assert values == [Page(row).values(f"data-{filter_}")[0] for row in rows]
    assert set(index["columns"]) == {"kind", "state", "file"}


@pytest.mark.sampled
def test_deletions_stand_first_and_in_full() -> None:
    """A few hundred deletions are in the HTML itself with what they lose; nothing says that any were left out."""
    text = plan_html(mostly_created(6_000, 200))
    rows = text[text.index('id="rows"') : text.index('id="nothing"')]
    deleted, created = rows.split('<div class="group">')[1:]
    assert deleted.count('<details class="row"') == deleted.count("last@acme.example") == 200
    assert "data-unread" not in deleted
    assert (
        "5,800 rows can be shown only with JavaScript. Without it: lmsconf show PLAN.json --format text"
        in html_words(created)
    )
    assert len(unpacked(text)["rows"][1]) == 5_800


@pytest.mark.sampled
def test_too_many_deletions_say_what_is_left_out() -> None:
    """Where there are too many deletions, the first stand in full and the page says how many, why, and what to do."""
    rows = big_page()[big_page().index('id="rows"') : big_page().index('id="nothing"')]
    deleted, replaced, taken, created = rows.split('<div class="group">')[1:]
    full = deleted.count('<details class="row"')
    assert 100 < full < 600
    assert FULL_MARKUP * 0.95 < len(deleted) < FULL_MARKUP + 1_000
    assert (
        f"{full} of 600 are included in full, within 300 kB. {600 - full} more rows can be shown only with JavaScript. "
        "Without it: lmsconf show PLAN.json --format text"
    ) in html_words(deleted)
    for others in (replaced, taken, created):
        assert others.count('<details class="row"') < 10
        assert "can be shown only with JavaScript. Without it: lmsconf show PLAN.json" in html_words(others)
    assert (
        "3,000 rows can be shown only with JavaScript. Without it: lmsconf show PLAN.json --format json"
        in html_words(big_page()[big_page().index('id="calls"') :])
    )


@pytest.mark.sampled
def test_a_huge_deletion_hides_no_other() -> None:
    """A deletion that is longer than all that may stand in full is packed; the others are in the HTML all the same."""
    plan = mostly_created(2_400, 3)
    huge = replace(plan.changes[0], before={"members": [f"p{n}@acme.example" for n in range(FULL_MARKUP // 20)]})
    text = plan_html(replace(plan, changes=(huge, *plan.changes[1:])))
    rows = text[text.index('id="rows"') : text.index('id="nothing"')]
    deleted = rows.split('<div class="group">')[1]
    assert deleted.count('<details class="row"') == deleted.count("last@acme.example") == 2
    assert "2 of 3 are included in full, within 300 kB. 1 more row can be shown only with JavaScript." in html_words(
        deleted
    )


@pytest.mark.sampled
def test_equal_plans_are_equal_files() -> None:
    """What is packed holds no time: a page that is written again is the same, byte for byte."""
    assert plan_html(big()) == big_page()


@pytest.mark.slow
@pytest.mark.sampled
def test_ten_thousand_changes_are_a_small_file() -> None:
    """The page of 10,000 changes has at most 1.5 MB."""
    assert len(plan_html(large(10_000)).encode()) <= 1_500_000


@pytest.mark.sampled
def test_the_policy_is_as_strict_as_that_of_a_small_page() -> None:
    """Only the hashes differ; the scripts beside the one that runs are data, and put no markup into the page."""
    policies = [
        re.sub(r"sha256-[\w+/=]+", "…", str(attrs["content"]))
        for text in (big_page(), plan_html(EMPTY))
        for _, attrs in Page(text).elements
        if "http-equiv" in attrs
    ]
    assert policies[0] == policies[1]
    scripts = [attrs.get("type") for tag, attrs in Page(big_page()).elements if tag == "script"]
    assert scripts == ["application/gzip"] * 3 + [None]
    (script,) = re.findall(r"<script>(.*?)</script>", big_page(), re.DOTALL)
    assert not re.search(
        r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|eval\(|Function\(|fetch\(|import\(", script
    )


@pytest.mark.sampled
def test_hostile_names_are_packed_escaped() -> None:
    """Rows of hostile names have the elements and attributes of any row, and say what they say on a small page."""
    names = [f"{name}{number}" for number, name in enumerate(NAMES + HALF)]
    changes = [
        replace(
            change(Address.of("group", name), Action.CREATE, after={"members": [name]}),
            source=SourceLocation(f"{name}.yaml", 1),
        )
        for name in [*names, *(f"Team {number}" for number in range(LARGE_PAGE))]
    ]
    index, rows = unpacked(plan_html(replace(EMPTY, changes=tuple(changes))))["rows"]
    assert len(rows) == len(changes)
    small = plan_html(replace(EMPTY, changes=tuple(changes[: len(names)])))
    assert "".join(rows[: len(names)]) in small
    known = {(tag, tuple(attrs)) for tag, attrs in Page(rows[-1]).elements}
    for name, row in zip(names, rows, strict=False):
        assert {(tag, tuple(attrs)) for tag, attrs in Page(row).elements} == known, name
        assert html_words(escape_html(name)) in Page(row).words, name
    files = [index["columns"]["file"]["values"][number] for number in index["columns"]["file"]["rows"]]
    assert files == [Page(row).values("data-file")[0] for row in rows]


@pytest.mark.parametrize("page", ["drift", "apply"])
@pytest.mark.sampled
def test_other_reports_are_packed_too(page: str) -> None:
    """A drift report and an apply report of thousands of rows hold them packed, and say how to see them otherwise."""
    if page == "drift":
        findings = tuple(replace(ALL.findings[0], address=Address.of("group", f"Team {n}")) for n in range(2_500))
        text, command = drift_html(replace(ALL, findings=findings)), "lmsconf drift --format text"
    else:
        done = [outcome(n, Address.of("group", f"Team {n}"), "a.b", CallStatus.DONE) for n in range(2_400)]
        failed = [outcome(n, Address.of("group", f"Team {n}"), "a.b", CallStatus.FAILED) for n in range(2_400, 2_500)]
        text = apply_html(replace(COMPLETE, outcomes=(*done, *failed)))
        command = "lmsconf show REPORT.json --format text"
        assert text.count('<details class="row"') == 100
    rows = unpacked(text)["rows"][1]
    assert len(rows) + text.count('<details class="row"') == 2_500
    assert f"can be shown only with JavaScript. Without it: {command}" in Page(text).words
