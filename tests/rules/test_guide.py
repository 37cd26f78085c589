"""The developers' guide names files and packages that exist, and all packages; its pages have one shape."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from test_imports import MAY_IMPORT

from lmsconf.support.folders import guide_topics, read_guide_page

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


@pytest.mark.parametrize("topic", guide_topics())
def test_pages_of_the_guide_have_one_shape(topic: str) -> None:
    """A title, what the page is for in a sentence that the list of topics has room for, at the end links to others."""
    page = re.sub(r"^<!-- .* -->\n", "", read_guide_page(topic), flags=re.MULTILINE)
    title, purpose, *_, last = page.strip().split("\n\n")
    assert re.fullmatch(r"# .+", title)
    assert purpose.endswith(".")
    assert len(purpose.partition(". ")[0].rstrip(".")) <= 57  # `lmsconf help` in 80 columns
    assert not purpose.startswith(("#", "|", "-", "```"))
    assert len(re.findall(r"^- \[[\w-]+\]\([\w-]+\.md\): ", last, re.MULTILINE)) >= 2
