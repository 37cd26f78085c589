"""Links of all pages lead somewhere: to a file of the repository, to a heading, or to another site."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from .conftest import REPOSITORY
from .test_pages import GUIDE, PAGES

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
