"""The first hour, timed: what README and getting started say is typed into a terminal, at a workspace that is served.

`.venv/bin/python -m tests.examples.first_hour` prints the seconds of each command at 80 and 120 columns, with the time
that a person takes to read the README and to type. `--install pipx` and `--install uv` also install this checkout.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from .clone import cloned
from .conftest import REPOSITORY
from .terminal import Terminal
from .test_pages import GUIDE, parts_of, pastes

README = REPOSITORY / "README.md"
PAGES = (README, GUIDE / "getting-started.md")
WORDS_A_MINUTE = 200
LETTERS_A_MINUTE = 200
MINUTES = 8


class Typed(NamedTuple):
    """Command lines that were typed at once, the seconds until the prompt was back, and whether a reader sees them."""

    lines: list[str]
    seconds: float
    is_shown: bool


def follow_on_terminal(page: Path, columns: int, folder: Path) -> Iterator[Typed]:
    """Types the commands of a page that reach a served workspace, in order; raises Hung where one waits."""
    for number, part in enumerate(parts_of(page)):
        if part.serves is None:
            continue
        with cloned(part, folder / str(number)) as clone, Terminal(clone, columns) as terminal:
            for code, steps in pastes(part):
                lines = [clone.really(step.line) for step in steps]
                began = time.perf_counter()
                found = terminal.paste(lines)
                assert found == (code, len(lines)), (lines, found)
                yield Typed([step.line for step in steps], time.perf_counter() - began, steps[0].block is not None)


def reading_seconds(page: Path) -> float:
    """The time to read a whole page, shown outputs and tables among it."""
    return 60 * len(page.read_text(encoding="utf-8").split()) / WORDS_A_MINUTE


def typing_seconds(typed: list[Typed]) -> float:
    """The time to type what the page shows, without pasting."""
    return 60 * sum(len(line) for one in typed if one.is_shown for line in one.lines) / LETTERS_A_MINUTE


def install_seconds(tool: str, folder: Path) -> float:
    """The time in which pipx or uv installs a copy of this checkout into empty folders of its own."""
    program = shutil.which(tool)
    if program is None:
        raise SystemExit(f"{tool} is not on the PATH")
    tree = folder / "clone"
    subprocess.run(["git", "clone", "--quiet", str(REPOSITORY), str(tree)], check=True)
    home = {"PIPX_HOME": "pipx", "PIPX_BIN_DIR": "bin", "UV_TOOL_DIR": "uv", "UV_TOOL_BIN_DIR": "bin"}
    environment = {**os.environ, **{name: str(folder / below) for name, below in home.items()}}
    command = [program, "tool", "install", "."] if tool == "uv" else [program, "install", "."]
    began = time.perf_counter()
    subprocess.run(command, cwd=tree, env=environment, check=True, capture_output=True)
    taken = time.perf_counter() - began
    subprocess.run([str(folder / "bin" / "lmsconf"), "--version"], check=True, capture_output=True, cwd=folder)
    return taken


def main() -> None:
    """Prints the seconds of each command and of the whole."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--install", choices=["pipx", "uv"], action="append", default=[])
    installing = 0.0
    for tool in parser.parse_args().install:
        with tempfile.TemporaryDirectory() as folder:
            installing = max(installing, taken := install_seconds(tool, Path(folder)))
        print(f"{taken:7.1f} s  {tool}: install this checkout")
    for page in PAGES:
        for columns in (80, 120):
            with tempfile.TemporaryDirectory() as folder:
                typed = list(follow_on_terminal(page, columns, Path(folder)))
            print(f"\n{page.name}, {columns} columns")
            for one in typed:
                print(f"{one.seconds:7.2f} s  {one.lines[0]}{'' if one.is_shown else '  (not on the page)'}")
            ran, wrote, read = sum(one.seconds for one in typed), typing_seconds(typed), reading_seconds(page)
            whole = installing + ran + wrote + read
            print(
                f"{ran:7.1f} s of commands, {wrote:.0f} s of typing, {read:.0f} s of reading, {whole / 60:.1f} minutes"
            )


if __name__ == "__main__":
    sys.exit(main())
