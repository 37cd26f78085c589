"""Draws them all: the plan of the quickstart, the comment and pages about plans of acme."""

import base64
import shutil
import tempfile
from pathlib import Path
from typing import Final

from tests.flow.shell import lmsconf
from tests.pictures.terminal import drawn, page
from tests.views.browser import Browser, browser

EXAMPLES: Final = Path(__file__).parent.parent.parent / "examples"
PICTURES: Final = EXAMPLES / "pictures"
_SIZE: Final = (1000, 720)
_QUALITY: Final = 70
_PHONE: Final = (390, 720)


def main() -> None:
    """Writes every picture anew."""
    PICTURES.mkdir(exist_ok=True)
    plan = (EXAMPLES / "quickstart" / "plan.txt").read_text(encoding="utf-8")
    (PICTURES / "plan.svg").write_text(drawn(plan, "lmsconf plan"), encoding="utf-8")
    with tempfile.TemporaryDirectory() as folder, browser() as chromium:
        html, comment = _rendered(Path(folder))
        _take(chromium, comment, "light", "comment.webp")
        _take(chromium, html, "light", "page-light.webp")
        _take(chromium, html, "dark", "page-dark.webp")
        narrowed = _narrowed(Path(folder))
        _take(chromium, narrowed, "light", "people-light.webp")
        _take(chromium, narrowed, "dark", "people-dark.webp")
        _take(chromium, narrowed, "light", "people-phone.webp", _PHONE)


def _rendered(folder: Path) -> tuple[Path, Path]:
    """The page about the plan of acme, and its comment as a page."""
    acme, html, comment = folder / "acme", folder / "plan.html", folder / "comment.html"
    shutil.copytree(EXAMPLES / "acme", acme, ignore=shutil.ignore_patterns("*.db*", ".lmsconf"))
    lmsconf(acme, "plan", "--format", "html", "--output", str(html), code=0)
    markdown = lmsconf(acme, "plan", "--format", "markdown", code=0).out
    comment.write_text(page(markdown), encoding="utf-8")
    return html, comment


def _narrowed(folder: Path) -> Path:
    """The page about the plan that narrows a condition of acme, once acme is as its manifests say."""
    acme, html = folder / "acme", folder / "narrowed.html"
    lmsconf(acme, "apply", "--auto-approve", "--allow", "people=396", "--allow", "mandatory=396", code=0)
    manifest = acme / "manifests" / "smart_groups.yaml"
    manifest.write_text(manifest.read_text(encoding="utf-8").replace("SE, NO, FI, DK", "SE"), encoding="utf-8")
    lmsconf(acme, "plan", "--format", "html", "--output", str(html), code=0)
    return html


def _take(chromium: Browser, shown: Path, scheme: str, name: str, size: tuple[int, int] = _SIZE) -> None:
    """A picture of the upper part of a page."""
    chromium.open(shown, scheme)
    width, height = size
    chromium.call("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=False)
    chromium.settle()
    taken = chromium.call("Page.captureScreenshot", format="webp", quality=_QUALITY, optimizeForSpeed=False)
    (PICTURES / name).write_bytes(base64.b64decode(taken["data"]))


if __name__ == "__main__":
    main()
