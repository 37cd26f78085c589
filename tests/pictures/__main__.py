"""Draws them all: the plan of the quickstart, the comment and the page about the plan of acme."""

from __future__ import annotations

import base64
import shutil
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Final

from lmsconf.cli import app
from lmsconf.cli.frame import run_command_line
from lmsconf.errors import ExitCode
from tests.pictures.comment import page
from tests.pictures.terminal import drawn
from tests.views.browser import browser

if TYPE_CHECKING:
    from tests.views.browser import Browser

EXAMPLES: Final = Path(__file__).parent.parent.parent / "examples"
PICTURES: Final = EXAMPLES / "pictures"
_SIZE: Final = (1000, 720)


def main() -> None:
    """Writes every picture anew."""
    PICTURES.mkdir(exist_ok=True)
    plan = (EXAMPLES / "quickstart" / "plan.txt").read_text(encoding="utf-8")
    (PICTURES / "plan.svg").write_text(drawn(plan, "lmsconf plan"), encoding="utf-8")
    with tempfile.TemporaryDirectory() as folder, browser() as chromium:
        html, comment = _rendered(Path(folder))
        _take(chromium, comment, "light", "comment.png")
        _take(chromium, html, "light", "page-light.png")
        _take(chromium, html, "dark", "page-dark.png")


def _rendered(folder: Path) -> tuple[Path, Path]:
    """The page about the plan of acme, and its comment as a page."""
    acme, html, comment = folder / "acme", folder / "plan.html", folder / "comment.md"
    shutil.copytree(EXAMPLES / "acme", acme, ignore=shutil.ignore_patterns("*.db*", ".lmsconf"))
    for arguments in (("html", html), ("markdown", comment)):
        code = run_command_line(app, ["-C", str(acme), "plan", "--format", arguments[0], "--output", str(arguments[1])])
        assert code == ExitCode.OK
    shown = folder / "comment.html"
    shown.write_text(page(comment.read_text(encoding="utf-8")), encoding="utf-8")
    return html, shown


def _take(chromium: Browser, shown: Path, scheme: str, name: str) -> None:
    """A picture of the upper part of a page."""
    chromium.open(shown, scheme)
    width, height = _SIZE
    chromium.call("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=False)
    chromium.settle()
    taken = chromium.call("Page.captureScreenshot", format="png", optimizeForSpeed=False)
    (PICTURES / name).write_bytes(base64.b64decode(taken["data"]))


if __name__ == "__main__":
    main()
