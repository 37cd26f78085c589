"""PyYAML's parser: libyaml's where it is installed, the attributes of its events, and its errors as problems."""

from __future__ import annotations

from typing import Final, Protocol

import yaml

from lmsconf.errors import Problem
from lmsconf.manifest.yaml.nodes import Source, pack_mark
from lmsconf.manifest.yaml.read_result import too_deep_problem

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


_TOO_DEEP: Final = "exceeded maximum nesting depth"
"""What libyaml from 0.2.6 on says of a thousand levels: before their events, where it looks for the end of a key."""


class ParserEvent(Protocol):
    """The attributes of parser events that are used here; not every event has all of them."""

    start_mark: yaml.Mark
    end_mark: yaml.Mark
    anchor: str | None
    tag: str | None
    value: str
    style: str | None
    implicit: tuple[bool, bool]


def syntax_problem(source: Source, error: yaml.MarkedYAMLError) -> Problem:
    from lmsconf.manifest.yaml.syntax_hints import ParserError, advise_on_syntax_error  # only for a problem

    at, opened = error.problem_mark, error.context_mark
    if error.problem == _TOO_DEEP and at is not None:
        return too_deep_problem(source.where(pack_mark(at.line + 1, at.column + 1)))
    complaint = ParserError(
        context=error.context or "",
        opened=None if opened is None else (opened.line, opened.column),
        problem=error.problem or "unreadable",
        at=(0, 0) if at is None else (at.line, at.column),
    )
    advice = advise_on_syntax_error(complaint, source.text)
    where = source.where(pack_mark(advice.at[0] + 1, advice.at[1] + 1))
    return Problem(code="yaml/syntax", message=advice.message, hint=advice.hint, source=where)
