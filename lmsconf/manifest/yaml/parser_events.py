"""PyYAML's parser: libyaml's where it is installed, the attributes of its events, and its errors as problems."""

from __future__ import annotations

from typing import Protocol

import yaml

from lmsconf.errors import Problem
from lmsconf.manifest.yaml.nodes import Source, pack_mark

__all__ = ["ParserEvent", "YamlParser", "syntax_problem"]

try:
    from yaml.cyaml import CParser as YamlParser  # type: ignore[attr-defined]  # the stubs leave it out
except ImportError:  # without libyaml: the same events, twenty times slower
    from yaml.parser import Parser
    from yaml.reader import Reader
    from yaml.scanner import Scanner

    class YamlParser(Reader, Scanner, Parser):  # type: ignore[no-redef]  # one of two parsers
        def __init__(self, stream: str) -> None:
            Reader.__init__(self, stream)
            Scanner.__init__(self)
            Parser.__init__(self)


class ParserEvent(Protocol):
    """The attributes of parser events that are used here; not every event has all of them."""

    start_mark: yaml.Mark
    anchor: str | None
    tag: str | None
    value: str
    style: str | None
    implicit: tuple[bool, bool]


def syntax_problem(source: Source, error: yaml.MarkedYAMLError) -> Problem:
    from lmsconf.manifest.yaml.syntax_hints import ParserError, advise_on_syntax_error  # only for a problem

    at, opened = error.problem_mark, error.context_mark
    complaint = ParserError(
        context=error.context or "",
        opened=None if opened is None else (opened.line, opened.column),
        problem=error.problem or "unreadable",
        at=(0, 0) if at is None else (at.line, at.column),
    )
    advice = advise_on_syntax_error(complaint, source.text)
    where = source.where(pack_mark(advice.at[0] + 1, advice.at[1] + 1))
    return Problem(code="yaml/syntax", message=advice.message, hint=advice.hint, source=where)
