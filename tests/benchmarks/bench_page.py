"""Size, first paint and memory of the page about a plan, from 1,000 to 20,000 changes, beside a page of a single line.

    python tests/benchmarks/bench_page.py [--repeat 7]

Needs Chromium. The time of the first paint is the browser's own: from the begin of loading until something is seen.
"""

import sys
import tempfile
from pathlib import Path
from statistics import median
from typing import NamedTuple

from measuring import Run, exponent, goal, options, process, tell

TESTS = Path(__file__).parents[1]
sys.path[:0] = [str(TESTS), str(Path(__file__).parents[2])]

from views.browser import CHROMIUM, Browser, browser  # noqa: E402  found on the path that was just added

SIZES = (1_000, 2_000, 10_000, 20_000)
JUDGED, MEGABYTES, PAINT = 10_000, 4, 1_000
"""How many changes the goals are for, and the most MB and milliseconds."""

_EMPTY = '<!doctype html><html lang="en"><title>Empty</title><a href="#main">One line.</a></html>'
_MAKE = """
import sys
sys.path[:0] = sys.argv[1:3]
from pathlib import Path
from views.drift_samples import large
from lmsconf.render.html import plan_html
Path(sys.argv[4]).write_text(plan_html(large(int(sys.argv[3]))), encoding="utf-8")
"""
_PAINTED = """new Promise(done => new PerformanceObserver(list => {
    const [first] = list.getEntriesByName("first-contentful-paint");
    if (first) done(first.startTime);
}).observe({type: "paint", buffered: true}))"""


class Opened(NamedTuple):
    """What a browser took for a page: milliseconds until the first paint, MiB of JavaScript and DOM, and elements."""

    paint: float
    memory: float
    elements: int


def main() -> None:
    repeat = options(__doc__, 7).parse_args().repeat
    if CHROMIUM is None:
        sys.exit("there is no Chromium here")
    with tempfile.TemporaryDirectory() as temporary, browser() as chromium:
        pages = {size: Path(temporary) / f"{size}.html" for size in SIZES}
        made = {size: written(size, page) for size, page in pages.items()}
        pages[0] = Path(temporary) / "empty.html"
        pages[0].write_text(_EMPTY, encoding="utf-8")
        rounds = [{size: opened(chromium, page) for size, page in pages.items()} for _ in range(repeat)]
        megabytes = {size: page.stat().st_size / 1e6 for size, page in pages.items()}
    middle = {size: Opened(*map(median, zip(*(one[size] for one in rounds), strict=True))) for size in pages}
    tell(f"medians of {repeat} openings in turn; the page is made once, in a process of its own")
    tell("  changes       MB  first paint  browser  elements  made in  by")
    for size, one in middle.items():
        run = made.get(size)
        by = "  (one line)" if run is None else f"  {run.wall:5.1f} s  {run.memory:.0f} MiB"
        tell(
            f"  {size:8,}  {megabytes[size]:7.2f}  {one.paint:8.0f} ms {one.memory:4.0f} MiB  {one.elements:8,.0f}{by}"
        )
    growth = exponent(SIZES[1:], [made[size].cpu for size in SIZES[1:]])
    for what, figure, most in (
        (f"size of the page of {JUDGED:,} changes, MB", megabytes[JUDGED], MEGABYTES),
        ("its first paint, ms", middle[JUDGED].paint, PAINT),
        ("growth of making it, from 2,000 to 20,000 changes: N^", growth, 1.05),
    ):
        tell(f"  {what} {figure:.2f}  {goal(figure, most)}")


def written(size: int, page: Path) -> Run:
    """A process that makes a plan of so many changes, and its page."""
    return process([sys.executable, "-c", _MAKE, str(TESTS), str(TESTS.parent), str(size), str(page)])


def opened(chromium: Browser, page: Path) -> Opened:
    """Opens a page until something of it is seen, and measures it once it rests."""
    chromium.open(page)
    chromium.settle()
    paint = float(chromium.run(_PAINTED))
    chromium.call("HeapProfiler.collectGarbage")
    heap = chromium.call("Runtime.getHeapUsage")
    memory = (heap["usedSize"] + heap["embedderHeapUsedSize"] + heap["backingStorageSize"]) / 2**20
    return Opened(paint, memory, chromium.run("document.querySelectorAll('*').length"))


if __name__ == "__main__":
    main()
