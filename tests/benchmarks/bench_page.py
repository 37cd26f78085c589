"""The first paint of the page about a plan of 1,000 changes, beside that of a page with a single line.

    python tests/benchmarks/bench_page.py [--repeat 7]

Needs Chromium. The time is the browser's own: from the begin of loading until something is seen.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from pathlib import Path
from statistics import median

from measuring import tell

sys.path[:0] = [str(Path(__file__).parents[1] / "views"), str(Path(__file__).parents[2])]

from browser import CHROMIUM, Browser, browser  # noqa: E402  found on the path that was just added
from large_plans import large  # noqa: E402  it too

from lmsconf.render import plan_html  # noqa: E402  it too

_EMPTY = '<!doctype html><html lang="en"><title>Empty</title><a href="#main">One line.</a></html>'
_PAINTED = """new Promise(done => new PerformanceObserver(list => {
    const [first] = list.getEntriesByName("first-contentful-paint");
    if (first) done(first.startTime);
}).observe({type: "paint", buffered: true}))"""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--repeat", type=int, default=7, help="counted openings of each")
    repeat = parser.parse_args().repeat
    if CHROMIUM is None:
        sys.exit("there is no Chromium here")
    with tempfile.TemporaryDirectory() as temporary, browser() as chromium:
        pages = {"plan.html": plan_html(large(1_000)), "empty.html": _EMPTY}
        for name, text in pages.items():
            (Path(temporary) / name).write_text(text, encoding="utf-8")
        paints: dict[str, list[float]] = {name: [] for name in pages}
        for _ in range(repeat):
            for name in pages:
                paints[name].append(painted(chromium, Path(temporary) / name))
    ours, empty = median(paints["plan.html"]), median(paints["empty.html"])
    tell(f"first paint, medians of {repeat} openings in turn")
    tell(f"  a plan of 1,000 changes  {ours:5.0f} ms, {len(pages['plan.html']) / 1e6:.1f} MB (the promise is a second)")
    tell(f"  a page of one line       {empty:5.0f} ms")
    tell(f"  plan : one line  {ours / empty:.1f}")


def painted(chromium: Browser, page: Path) -> float:
    """Milliseconds until something of the page is seen."""
    chromium.open(page)
    chromium.settle()
    return float(chromium.run(_PAINTED))


if __name__ == "__main__":
    main()
