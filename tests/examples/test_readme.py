"""The README: its two contracts, its tables."""

from __future__ import annotations

import re

from lmsconf.cli import COMMANDS
from lmsconf.errors import ExitCode

from .conftest import REPOSITORY
from .page import blocks

README = (REPOSITORY / "README.md").read_text(encoding="utf-8")
SETS_UP = "python3 -m venv .venv && .venv/bin/pip install -q -e "


def test_the_readme_knows_every_command() -> None:
    """The table of commands has those that there are, and no other."""
    assert re.findall(r"^\| `lmsconf ([\w-]+)", README, re.MULTILINE) == list(COMMANDS)


def test_the_readme_knows_every_exit_code() -> None:
    """The table of exit codes has those that there are, and no other."""
    section = README.partition("| exit | means |")[2].partition("\n\n")[0]
    cells = [cell.strip() for cell in section.split("|")]
    codes = [int(code) for cell in cells for code in cell.split(", ") if code.isdigit()]
    assert sorted(codes) == sorted(ExitCode)


def test_the_first_block_runs_the_main_job() -> None:
    """The first `sh` block is one line that sets up, plans, applies and plans, in a subshell."""
    (line,) = blocks(README, "sh")[0].text.splitlines()
    assert line.startswith(f"{SETS_UP}. && ")
    assert re.search(r" && \(cd [^()]+ lmsconf plan && lmsconf apply --auto-approve && lmsconf plan\)$", line)


def test_the_first_block_below_tests_runs_the_tests() -> None:
    """The first `sh` block below `## Tests` is one line that sets up and runs the tests."""
    (line,) = blocks(README.partition("\n## Tests\n")[2], "sh")[0].text.splitlines()
    assert line == f"{SETS_UP}'.[dev]' && .venv/bin/pytest -n auto"
