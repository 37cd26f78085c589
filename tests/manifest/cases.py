"""Reads tables of malformed files: `=== title`, the text, `>>>`, and the exact problems, each over its hint."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple

from lmsconf.errors import Problem


class Case(NamedTuple):
    """One malformed file and what is to be said of it."""

    title: str
    text: str
    told: str


def cases(path: Path) -> list[Case]:
    """All cases of a table."""
    found = []
    for part in path.read_text(encoding="utf-8").split("=== ")[1:]:
        title, rest = part.split("\n", 1)
        text, told = rest.split(">>>\n", 1)
        found.append(Case(title, text, told))
    return found


def shown(problems: Iterable[Problem]) -> str:
    """Problems in the form of the table."""
    return "".join(
        f"{problem.source}: {problem.message} [{problem.code}]\n" + (f"  {problem.hint}\n" if problem.hint else "")
        for problem in problems
    )
