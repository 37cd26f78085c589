"""The README's pictures: they are there, they are small, and the plan's is the plan of today."""

from __future__ import annotations

import re
from xml.etree import ElementTree

import pytest
from pictures.terminal import drawn

from .conftest import EXAMPLES, REPOSITORY

PICTURES = EXAMPLES / "pictures"
README = (REPOSITORY / "README.md").read_text(encoding="utf-8")
SHOWN = re.findall(r"!\[([^]]+)]\(([^)]+)\)", README)
IN_HTML = re.findall(r'<img src="([^"]+)" alt="([^"]+)">', README)
SOURCES = re.findall(r'srcset="([^"]+)"', README)


def test_the_readme_shows_every_picture() -> None:
    """Each picture that the README names is there, none lies there unnamed, and each has words for who cannot see."""
    named = {path for _, path in SHOWN} | {path for path, _ in IN_HTML} | set(SOURCES)
    assert named == {f"examples/pictures/{path.name}" for path in PICTURES.iterdir()}
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
