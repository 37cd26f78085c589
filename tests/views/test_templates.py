"""The templates of pages and comments: they compile, know all their names, and leave escaping to one function."""

from __future__ import annotations

import re
from pathlib import Path

import jinja2
import pytest

import lmsconf
from lmsconf.render import jinja

TEMPLATES = sorted(Path(lmsconf.__file__).parent.rglob("*.j2"))


@pytest.mark.parametrize("path", TEMPLATES, ids=lambda path: path.name)
def test_templates_compile(path: Path) -> None:
    """Tags fit into each other, and filters and tests have names that are known."""
    environment = jinja.markdown_environment() if path.name.endswith(".md.j2") else jinja.html_environment()
    assert environment.undefined is jinja2.StrictUndefined
    assert environment.from_string(path.read_text(encoding="utf-8"))


@pytest.mark.parametrize("path", TEMPLATES, ids=lambda path: path.name)
def test_templates_mark_nothing_as_safe(path: Path) -> None:
    """What is put in is escaped, without exception: only filters of ours, which escape, return Markup."""
    assert not re.search(r"\|\s*(safe|e|escape)\b|autoescape|Markup", path.read_text(encoding="utf-8"))


def test_an_unknown_name_is_an_error() -> None:
    """A page is not printed with a gap in the place of a value that nobody gave it."""
    with pytest.raises(jinja2.UndefinedError, match="'snapshot' is undefined"):
        jinja.html_page("snapshot.html.j2")
