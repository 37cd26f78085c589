"""The page in a real browser. Without one on this machine these tests are skipped."""

import os
import re
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from audit.scene import evidence, project_with_runs
from fleet.fleet_project import large_fleet
from msgspec.structs import replace
from texts import text_of
from views.browser import CHROMIUM, Browser, browser
from views.document_samples import LOSSES, MIXED, NAMES, PEOPLE, PLANS, REPORTS, change
from views.drift_samples import DRIFTS, large

from lmsconf.kinds.kind_table import KINDS
from lmsconf.model.address import Address
from lmsconf.model.plan import Action, ChangeOrigin, FieldChange
from lmsconf.model.snapshot import Listing, Snapshot
from lmsconf.render import APPLY_VIEWS, DRIFT_VIEWS, FLEET_VIEWS, PROBLEMS_VIEWS, SNAPSHOT_VIEWS
from lmsconf.render.html import plan_html
from lmsconf.sandbox.serve import render_page
from lmsconf.sandbox.service import Sandbox
from lmsconf.workspace.connection import fill_if_empty

EXAMPLES = Path(__file__).parent.parent.parent / "examples"
AXE = os.environ.get("LMSCONF_AXE", "")
pytestmark = [pytest.mark.slow, pytest.mark.skipif(CHROMIUM is None, reason="no chromium on the PATH")]


def evidence_page() -> str:
    """The page of evidence of four runs."""
    with TemporaryDirectory() as folder:
        return (evidence(project_with_runs(Path(folder) / "project")) / "index.html").read_text(encoding="utf-8")


NAMED = replace(PEOPLE, effects=replace(LOSSES, rows=NAMES))
PAGES = {
    "mixed": lambda: plan_html(MIXED),
    "hostile": lambda: plan_html(PLANS["hostile"]),
    "people": lambda: plan_html(NAMED),
    "partial": lambda: APPLY_VIEWS["html"](REPORTS["partial"]),
    "drift": lambda: DRIFT_VIEWS["html"](DRIFTS["all"]),
    "evidence": evidence_page,
    "fleet": lambda: FLEET_VIEWS["html"](large_fleet()),
}

WIDE = (
    *MIXED.changes,
    change(
        Address.of("group", "Department heads of the Nordic sales region"),
        Action.UPDATE,
        line=3,
        fields=(
            FieldChange(path="self_enrolment_conditions", before=1, after=2),
            FieldChange(path="description", before="a", after="b"),
            FieldChange(path="members", added=("new@acme.example",), removed=("old@acme.example",) * 120),
        ),
    ),
    replace(
        change(Address.parse("content_target/GDPR basics -> group/Department heads"), Action.DELETE),
        source=None,
        reason="it goes with group/Department heads",
    ),
)


@pytest.fixture(scope="module")
def chromium() -> Iterator[Browser]:
    with browser() as found:
        yield found


@pytest.fixture(scope="module")
def thousand(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The page of a plan of 1,000 changes."""
    path = tmp_path_factory.mktemp("page") / "plan.html"
    path.write_text(plan_html(large(1_000)), encoding="utf-8")
    return path


def shown(chromium: Browser) -> int:
    """How many rows can be seen."""
    chromium.settle()
    return int(chromium.run("[...document.querySelectorAll('#rows .row')].filter(row => row.offsetParent).length"))


def write(chromium: Browser, text: str) -> None:
    chromium.run(
        f"(s => {{ s.value = {text!r}; s.dispatchEvent(new Event('input')); }})(document.querySelector('#search'))"
    )


def choose(chromium: Browser, name: str, value: str) -> None:
    chromium.run(
        f"(s => {{ s.value = {value!r}; s.dispatchEvent(new Event('change')); }})"
        f"(document.querySelector('select[name={name}]'))"
    )


def test_a_large_page_is_alone(chromium: Browser, thousand: Path) -> None:
    """The page of a plan of 1,000 changes asks for nothing but itself and complains of nothing."""
    chromium.open(thousand)
    chromium.settle()
    assert chromium.complaints == []
    assert chromium.requests == [thousand.as_uri()]


def test_search_and_filters_find(chromium: Browser, thousand: Path) -> None:
    """Words and choices narrow what is seen, together, and the count says how many are left."""
    chromium.open(thousand)
    assert shown(chromium) == 1_000
    choose(chromium, "state", "delete")
    assert shown(chromium) == 200
    assert chromium.run("document.querySelector('#count').textContent") == "200 of 1,000"
    assert chromium.run("[...document.querySelectorAll('.group')].filter(one => !one.hidden).length") == 1
    choose(chromium, "kind", "content_target")
    assert shown(chromium) == 100
    write(chromium, "course 00020")
    assert shown(chromium) == 1
    write(chromium, "no such thing")
    assert shown(chromium) == 0
    assert not chromium.run("document.querySelector('#nothing').hidden")
    choose(chromium, "state", "")
    choose(chromium, "kind", "")
    write(chromium, "people.yaml:7:5")
    assert shown(chromium) == 1
    choose(chromium, "file", "manifests/people.yaml")
    write(chromium, "")
    assert shown(chromium) == 1_000
    assert chromium.complaints == []


def test_keys_move_and_open(chromium: Browser, thousand: Path) -> None:
    """`/` goes to the search, Escape clears and leaves it, j and k move from row to row, Enter opens."""
    chromium.open(thousand)
    chromium.press("/")
    assert chromium.run("document.activeElement.id") == "search"
    write(chromium, "team")
    chromium.press("j")
    assert chromium.run("document.activeElement.id") == "search"
    chromium.press("Escape")
    assert chromium.run("document.querySelector('#search').value") == ""
    at = "[...document.querySelectorAll('#rows .row')].indexOf(document.activeElement.parentElement)"
    places = []
    for key in "jjjk":
        chromium.press(key)
        places.append(chromium.run(at))
    assert places == [0, 1, 2, 1]
    chromium.press("Enter")
    assert chromium.run("document.activeElement.parentElement.open")
    assert chromium.run("document.querySelectorAll('#rows .row[open]').length") == 1


def test_links_open_what_they_lead_to(chromium: Browser, thousand: Path) -> None:
    """A link to a call opens it, and what it is folded up in; one back to a resource shows it in spite of a filter."""
    chromium.open(thousand)
    chromium.run("document.querySelector('#change-1 .calls-of a').click()")
    chromium.settle()
    assert chromium.run("document.querySelector('#call-1').open && document.querySelector('#call-1').offsetHeight > 0")
    write(chromium, "no such thing")
    assert shown(chromium) == 0
    chromium.run("document.querySelector('#call-1 .body a').click()")
    chromium.settle()
    assert chromium.run(
        "document.querySelector('#change-1').open && document.querySelector('#change-1').offsetHeight > 0"
    )


def test_dark_and_light(chromium: Browser, thousand: Path) -> None:
    """The page follows what its reader prefers, and a button changes it."""
    paper = "getComputedStyle(document.body).backgroundColor"
    papers = []
    for scheme in ("light", "dark"):
        chromium.open(thousand, scheme)
        papers.append(chromium.run(paper))
        chromium.run("document.querySelector('#theme').click()")
        papers.append(chromium.run(paper))
        chromium.run("localStorage.clear()")
    light, dark, dark_again, light_again = papers
    assert light != dark
    assert (light, dark) == (light_again, dark_again)


def test_people_are_found(chromium: Browser, tmp_path: Path) -> None:
    """The search of people shows those whose row has all the words, and leaves the rows of changes as they are."""
    path = tmp_path / "page.html"
    path.write_text(PAGES["people"](), encoding="utf-8")
    chromium.open(path)
    for words, expected in (("", 30), ("p07@", 1), ("FIRE loses", 15), ("nobody", 0)):
        chromium.run(
            f"(() => {{ const at = document.querySelector('#people-search'); at.value = {words!r};"
            " at.dispatchEvent(new Event('input')); })()"
        )
        assert chromium.run("document.querySelectorAll('#people-rows tr:not([hidden])').length") == expected
        assert chromium.run("document.querySelector('#people-count').textContent") == f"{expected} of 30"
    assert chromium.run("document.querySelectorAll('#rows .row:not([hidden])').length") == len(PEOPLE.changes)
    assert chromium.run("document.querySelector('#count').textContent") == f"{len(PEOPLE.changes)} shown"


@pytest.mark.parametrize("name", PAGES)
def test_pages_complain_of_nothing(name: str, chromium: Browser, tmp_path: Path) -> None:
    """Plans, reports, drift and evidence, hostile names among them, load without a complaint or a request."""
    path = tmp_path / "page.html"
    path.write_text(PAGES[name](), encoding="utf-8")
    chromium.open(path)
    chromium.settle()
    assert chromium.complaints == []
    assert chromium.requests == [path.as_uri()]
    assert chromium.run("document.querySelectorAll('#rows .row, .record').length") > 0


TANGLED = text_of(__file__, "browser_tangled.txt")
"""The parts of rows that lie on others or beyond their own place, and names that have no room."""


@pytest.mark.parametrize("width", [360, 400, 640, 840, 960, 1280])
def test_rows_have_room_on_every_screen(width: int, chromium: Browser, tmp_path: Path) -> None:
    """Long names beside long facts, and rows without a place, can be read on a phone as on a desk."""
    changes = tuple(replace(one, origin=ChangeOrigin.REPAIR) for one in WIDE)
    pages = {**PAGES, "base": lambda: plan_html(replace(MIXED, base="main", changes=changes))}
    for name in ("base", "drift", "partial", "people"):
        path = tmp_path / "page.html"
        path.write_text(pages[name](), encoding="utf-8")
        chromium.open(path)
        size = {"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": False}
        chromium.call("Emulation.setDeviceMetricsOverride", **size)
        chromium.settle()
        assert chromium.run("document.querySelectorAll('#rows .row').length") >= 3
        assert chromium.run(TANGLED) == []
        assert chromium.run("document.documentElement.scrollWidth") <= width


def every_page() -> dict[str, str]:
    """Each HTML view, of each sample: also those of problems, of a snapshot, and of a workspace that is served."""
    listings = {kind: Listing(incomplete="it was not read") for kind in KINDS}
    snapshot = Snapshot(workspace="production", url=MIXED.url, taken_at=MIXED.created_at, people=4, listings=listings)
    sandbox = fill_if_empty(Sandbox(), EXAMPLES / "acme" / "workspace.yaml")
    for path in ("/users", "/nothing", "/content/all"):
        sandbox.answer("GET", path, "", {"authorization": "Bearer sandbox"}, b"")
    served = render_page(sandbox)
    sandbox.close_workspace()
    return {
        **{f"plan {name}": plan_html(plan) for name, plan in {**PLANS, "named": NAMED}.items()},
        **{f"apply {name}": APPLY_VIEWS["html"](report) for name, report in REPORTS.items()},
        **{f"drift {name}": DRIFT_VIEWS["html"](report) for name, report in DRIFTS.items()},
        "problems": PROBLEMS_VIEWS["html"](MIXED.problems),
        "snapshot": SNAPSHOT_VIEWS["html"](snapshot),
        "sandbox": served,
    }


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_every_page_fits_a_phone(scheme: str, chromium: Browser, tmp_path: Path) -> None:
    """No page is wider than a phone, with all its parts open, and none stays light where its reader wants it dark."""
    wide, papers = [], set()
    for name, text in every_page().items():
        path = tmp_path / "page.html"
        path.write_text(text, encoding="utf-8")
        chromium.open(path, scheme)
        chromium.call("Emulation.setDeviceMetricsOverride", width=375, height=800, deviceScaleFactor=1, mobile=True)
        chromium.run("document.querySelectorAll('details').forEach(one => { one.open = true; })")
        chromium.settle()
        wide += [name] if chromium.run("document.documentElement.scrollWidth") > 375 else []
        papers.add(
            sum(map(int, re.findall(r"\d+", chromium.run("getComputedStyle(document.body).backgroundColor"))[:3]))
        )
    assert wide == []
    assert min(papers) > 700 if scheme == "light" else max(papers) < 100


@pytest.mark.skipif(not AXE, reason="LMSCONF_AXE does not name axe-core's axe.min.js")
@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("name", PAGES)
def test_everybody_can_read_it(name: str, scheme: str, chromium: Browser, tmp_path: Path) -> None:
    """axe finds no violation, with every part of the page open."""
    path = tmp_path / "page.html"
    path.write_text(PAGES[name](), encoding="utf-8")
    chromium.open(path, scheme)
    chromium.run("document.querySelectorAll('details').forEach(one => { one.open = true; })")
    chromium.run(Path(AXE).read_text(encoding="utf-8") + "; 1")
    found = chromium.run("axe.run(document).then(told => [told.passes.length, told.violations.map(v => v.id)])")
    assert found[0] > 20
    assert found[1] == []
