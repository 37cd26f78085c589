"""Draws them all: the plan of the quickstart, the comment and pages about plans of acme."""

import base64
import shutil
import tempfile
from contextlib import chdir
from pathlib import Path
from typing import TYPE_CHECKING, Final

from lmsconf.cli import app, run_command_line
from lmsconf.errors import ExitCode
from tests.pictures.terminal import drawn, page
from tests.views.browser import browser

if TYPE_CHECKING:
    from tests.views.browser import Browser

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
    acme, html, comment = folder / "acme", folder / "plan.html", folder / "comment.md"
    shutil.copytree(EXAMPLES / "acme", acme, ignore=shutil.ignore_patterns("*.db*", ".lmsconf"))
    for arguments in (("html", html), ("markdown", comment)):
        assert _run_in(acme, "plan", "--format", arguments[0], "--output", str(arguments[1])) == ExitCode.OK
    shown = folder / "comment.html"
    shown.write_text(page(comment.read_text(encoding="utf-8")), encoding="utf-8")
    return html, shown


def _narrowed(folder: Path) -> Path:
    """The page about the plan that narrows a condition of acme, once acme is as its manifests say."""
    acme, html = folder / "acme", folder / "narrowed.html"
    consents = ["--allow", "people=396", "--allow", "mandatory=396"]
    assert _run_in(acme, "apply", "--auto-approve", *consents) == ExitCode.OK
    manifest = acme / "manifests" / "smart_groups.yaml"
    manifest.write_text(manifest.read_text(encoding="utf-8").replace("SE, NO, FI, DK", "SE"), encoding="utf-8")
    assert _run_in(acme, "plan", "--format", "html", "--output", str(html)) == ExitCode.OK
    return html


def _run_in(folder: Path, *arguments: str) -> int:
    """The exit code of lmsconf in a folder: lines to paste name no other one."""
    with chdir(folder):
        return run_command_line(app, list(arguments))


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
