"""The README: its two contracts, its length, and what it leads to."""

from __future__ import annotations

import re

from lmsconf.support.folders import guide_topics

from .conftest import REPOSITORY
from .page import blocks

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
