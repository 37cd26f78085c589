"""The pictures of README and guide: they are there, they are small, and the plan's is the plan of today."""

from __future__ import annotations

import re
from xml.etree import ElementTree

import pytest
from pictures.terminal import drawn

from .conftest import EXAMPLES
from .test_pages import PAGES as SHOWING

PICTURES = EXAMPLES / "pictures"
PAGES = "\n".join(page.read_text(encoding="utf-8") for page in SHOWING)
SHOWN = re.findall(r"!\[([^]]+)]\(([^)]+)\)", PAGES)
IN_HTML = re.findall(r'<img src="([^"]+)" alt="([^"]+)">', PAGES)
SOURCES = re.findall(r'srcset="([^"]+)"', PAGES)


def test_pages_show_every_picture() -> None:
    """Each picture is shown on a page, and each has words for those who cannot see it."""
    named = {path for _, path in SHOWN} | {path for path, _ in IN_HTML} | set(SOURCES)
    assert {path.rpartition("/")[2] for path in named} == {path.name for path in PICTURES.iterdir()}
    assert all(len(words) > 40 for words in (*(alt for alt, _ in SHOWN), *(alt for _, alt in IN_HTML)))


def test_the_pictures_are_small() -> None:
    """Together they take no longer to load than a page may."""
    assert sum(path.stat().st_size for path in PICTURES.iterdir()) <= 350_000


def test_the_picture_of_the_plan_is_the_plan(updating: bool) -> None:
    """Its text is `plan.txt` of the quickstart to the letter, and it is what the script draws now."""
    plan = (EXAMPLES / "quickstart" / "plan.txt").read_text(encoding="utf-8")
    picture = PICTURES / "plan.svg"
    if updating:
        picture.write_text(drawn(plan, "lmsconf plan"), encoding="utf-8")
    root = ElementTree.fromstring(picture.read_text(encoding="utf-8"))
    (text,) = root.iter("{http://www.w3.org/2000/svg}text")
    assert "".join(text.itertext()) == plan
    assert picture.read_text(encoding="utf-8") == drawn(plan, "lmsconf plan")


@pytest.mark.parametrize("hostile", ["<script>&", "a  b", 'quo"te'])
def test_a_drawn_text_stays_text(hostile: str) -> None:
    """Whatever a plan says comes back from its picture unchanged."""
    root = ElementTree.fromstring(drawn(f"{hostile}\n", "x"))
    (text,) = root.iter("{http://www.w3.org/2000/svg}text")
    assert "".join(text.itertext()) == f"{hostile}\n"
