"""The developers' guide names files and packages that exist, and all packages."""

from __future__ import annotations

import re
from pathlib import Path

from test_imports import MAY_IMPORT

ROOT = Path(__file__).parent.parent.parent
GUIDE = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")


def test_every_file_of_the_guide_exists() -> None:
    """A path in backticks that begins with lmsconf/, tests/ or schemas/ is a file or a folder."""
    named = re.findall(r"`((?:lmsconf|tests|schemas)/[\w/.]+)`", GUIDE)
    assert len(named) > 25
    assert [path for path in named if not (ROOT / path).exists()] == []


def test_the_guide_lists_every_package_in_the_order_of_imports() -> None:
    """Its table has a row for each package, and the order in which they may import."""
    rows = re.findall(r"^\| `(\w+)(?:\.py|/)` \|", GUIDE, re.MULTILINE)
    assert rows == list(MAY_IMPORT)


def test_the_guide_has_the_test_line_of_the_readme() -> None:
    """One command sets up and tests, the same on both pages."""
    line = re.search(r"```sh\n(.*)\n```", GUIDE)
    assert line is not None
    assert line.group(1) in (ROOT / "README.md").read_text(encoding="utf-8")
