"""The README: its two contracts, its length, and what it leads to."""

from __future__ import annotations

import re
from pathlib import Path
from xml.etree import ElementTree

import pytest
from pictures.terminal import drawn

from lmsconf.support.folders import guide_topics

from .conftest import EXAMPLES, REPOSITORY
from .page import blocks
from .test_pages import GUIDE, PAGES
from .test_pages import PAGES as SHOWING

README = (REPOSITORY / "README.md").read_text(encoding="utf-8")
SETS_UP = "python3 -m venv .venv && .venv/bin/pip install -q -e "


def test_the_readme_is_short() -> None:
    """It has at most a thousand words, shown outputs and tables among them."""
    assert len(README.split()) <= 1000


def test_the_readme_leads_to_every_page_of_the_guide() -> None:
    """Each topic of `lmsconf help` has a link."""
    assert set(re.findall(r"\(lmsconf/guide/([\w-]+)\.md", README)) == set(guide_topics())


def test_a_workspace_is_imported_in_five_commands() -> None:
    """The first `console` block has five, and comes before the embedded workspace."""
    first = blocks(README, "console")[0]
    assert first.text.count("$ ") == 5
    assert first.start < blocks(README, "sh")[0].start


def test_the_first_block_runs_the_main_job() -> None:
    """The first `sh` block is one line that sets up, plans, applies and plans, in a subshell."""
    (line,) = blocks(README, "sh")[0].text.splitlines()
    assert line.startswith(f"{SETS_UP}. && ")
    assert re.search(r" && \(cd [^()]+ lmsconf plan && lmsconf apply --auto-approve && lmsconf plan\)$", line)


def test_the_first_block_below_tests_runs_the_tests() -> None:
    """The first `sh` block below `## Tests` is one line that sets up and runs the tests."""
    (line,) = blocks(README.partition("\n## Tests\n")[2], "sh")[0].text.splitlines()
    assert line == f"{SETS_UP}'.[dev]' && .venv/bin/pytest -n auto"


# The pictures of README and guide: they are there, they are small, and the plan's is the plan of today.


PICTURES = EXAMPLES / "pictures"
PICTURES_PAGES = "\n".join(page.read_text(encoding="utf-8") for page in SHOWING)
SHOWN = re.findall(r"!\[([^]]+)]\(([^)]+)\)", PICTURES_PAGES)
IN_HTML = re.findall(r'<img src="([^"]+)" alt="([^"]+)">', PICTURES_PAGES)
SOURCES = re.findall(r'srcset="([^"]+)"', PICTURES_PAGES)


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


# Links of all pages lead somewhere: to a file of the repository, to a heading, or to another site.


ALL = [
    *PAGES,
    *(REPOSITORY / name for name in ("CHANGELOG.md", "SECURITY.md", "tests/benchmarks/README.md")),
    REPOSITORY / "tests" / "planted" / "survivors.md",
]
_FENCE = re.compile(r"^```.*?^```$", re.MULTILINE | re.DOTALL)
_LINK = re.compile(r"\[[^]]*\]\(([^)\s]+)\)|(?:src|srcset|href)=\"([^\"]+)\"")
_HEADING = re.compile(r"^#{1,6} +(.+?) *$", re.MULTILINE)


def links(page: Path) -> list[str]:
    text = re.sub(r"`[^`\n]*`", "", _FENCE.sub("", page.read_text(encoding="utf-8")))
    return [first or second for first, second in _LINK.findall(text)]


def anchors(page: Path) -> set[str]:
    """The anchors of the headings, as GitHub makes them."""
    seen: dict[str, int] = {}
    for heading in _HEADING.findall(_FENCE.sub("", page.read_text(encoding="utf-8"))):
        plain = re.sub(r"\[([^]]*)]\([^)]*\)", r"\1", heading).replace("`", "").lower()
        anchor = re.sub(r"[^\w\- ]", "", plain).replace(" ", "-")
        seen[anchor] = seen.get(anchor, -1) + 1
        if seen[anchor]:
            seen[f"{anchor}-{seen[anchor]}"] = 0
    return set(seen)


@pytest.mark.parametrize("page", ALL, ids=lambda page: str(page.relative_to(REPOSITORY)))
def test_links_lead_somewhere(page: Path) -> None:
    """A relative link names a file or a folder of the repository, and its anchor a heading there."""
    for link in links(page):
        if "://" in link:
            assert link.startswith("https://")
            continue
        path, _, anchor = link.partition("#")
        target = (page.parent / path).resolve() if path else page
        assert target.is_relative_to(REPOSITORY), link
        assert target.exists(), link
        assert not anchor or anchor in anchors(target), link


@pytest.mark.parametrize("page", sorted(GUIDE.glob("*.md")), ids=lambda page: page.stem)
def test_links_between_topics_are_readable_in_a_terminal(page: Path) -> None:
    """A link to another page of the guide names its file alone, so that its text or address names the topic."""
    topics = {path.name for path in GUIDE.glob("*.md")}
    for link in links(page):
        path = link.partition("#")[0]
        assert "guide/" not in path, link
        assert path in topics or not path or path.startswith(("../../", "https://")), link
