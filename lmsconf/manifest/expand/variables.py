"""Substitution of variables, `$(name)`, with all source positions kept.

An unquoted text that is exactly `$(name)` becomes the variable's value: a text, a boolean, or a list, whose items are
spliced into the list around them. Inside a longer text the value is inserted as text. `$$(` is a literal `$(`.
Numbers are texts, since no key takes a number.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from typing import Final, cast

from msgspec import Struct, field
from msgspec.structs import replace

from lmsconf.errors import Problem, SourceLocation
from lmsconf.manifest.yaml.nodes import EscapedText, Map, Mark, Seq, Source, store_marks
from lmsconf.manifest.yaml.read_result import too_long_problem
from lmsconf.manifest.yaml.scalars import VARIABLE_START
from lmsconf.model.canonical_json import Json
from lmsconf.model.names import LONGEST, did_you_mean

WRITTEN_OUT: Final = 50 * 1024 * 1024
"""Maximum total length of texts with variables after substitution, in characters, in all files together."""
VALUES: Final = 1_000_000
"""Maximum number of values that variables and `for_each` may expand to, in all files together."""
_VARIABLE: Final = re.compile(r"\$(\$?)\(([^()]*)(\)?)")
_WHOLE: Final = re.compile(r"\$\(([^()]*)\)")
_LEAD: Final = re.compile(r"(?:[&!]\S+ +)*")
_IN_QUOTES: Final = ('"', "'", "|", ">")


class ExpansionLimitExceeded(Exception):
    """Raised when expansion exceeds a limit; `problem` has the location where it was exceeded."""

    def __init__(self, problem: Problem) -> None:
        super().__init__(problem.message)
        self.problem = problem


class ExpansionLimit(Struct):
    """The remaining limits of expansion, for all files together."""

    characters: int = WRITTEN_OUT
    values: int = VALUES

    def take(self, values: int, where: SourceLocation) -> None:
        """Subtract from the remaining number of values. Raises ExpansionLimitExceeded if there are too many."""
        self.values -= values
        if self.values < 0:
            message = f"variables and for_each expand to more than {VALUES:,} values"
            hint = "Write shorter lists, or split the project."
            raise ExpansionLimitExceeded(Problem(code="variable/too-many", message=message, hint=hint, source=where))


class Variables(Struct):
    """The values of variables, by name.

    each: the values of `for_each` for the current copy, shown in source locations. problem_count: how many problems
    were reported so far.
    """

    values: Mapping[str, Json]
    report: Callable[[Problem], None]
    each: str = ""
    limit: ExpansionLimit = field(default_factory=ExpansionLimit)
    problem_count: int = 0

    def with_more(self, other_values: Mapping[str, Json], each: str) -> Variables:
        """Return these variables and some more, as used for one copy of a `for_each` entry."""
        return Variables({**self.values, **other_values}, self.report, each, self.limit)

    def substitute(self, node: Json, source: Source, at: Mark) -> Json:
        """Return the value with variables substituted; the same object if it contains none.

        Undefined variables are reported and left as they are. Raises ExpansionLimitExceeded.
        """
        if isinstance(node, str):
            return self._text(node, source, at) if VARIABLE_START in node else node
        return self._parts(node) if isinstance(node, Map | Seq) else node

    def _parts(self, node: Map | Seq) -> Json:
        """Substitute in a list or mapping; return the same node if nothing changes."""
        if not node.source.opens:
            return node
        changed: dict[str | int, Json] = {}
        for step, child, at in child_nodes(node):
            new = self.substitute(child, node.source, at)
            if new is not child:
                changed[step] = new
        if not changed:
            return node
        return _with_values(node, changed) if isinstance(node, Map) else _with_items(node, changed)

    def _text(self, text: str, source: Source, at: Mark) -> Json:
        whole = _WHOLE.fullmatch(text)
        name = whole[1].strip() if whole else ""
        value = self.values.get(name)
        if isinstance(value, str) or value is None or not whole or not _is_plain(source, at):
            return self._inside(text, source, at)
        if not isinstance(value, list):
            return value
        self.limit.take(len(value), source.where(at))
        return _listed(value, source, at)

    def _inside(self, text: str, source: Source, at: Mark) -> str:
        """Insert variables into a text, within limits: a few bytes could expand to gigabytes.

        Raises ExpansionLimitExceeded.
        """
        names = [name.strip() for _, name, _ in _VARIABLE.findall(text)]
        size = len(text) + sum(len(str(self.values.get(name, ""))) for name in names)
        self.limit.characters -= size
        if size > LONGEST or self.limit.characters < 0:
            raise ExpansionLimitExceeded(too_long_problem(replace(source.where(at), each=self.each)))
        new = _VARIABLE.sub(lambda match: self._put_in(match, source, at), text)
        parts = (text, *(self.values.get(name) for name in names))
        if not any(isinstance(one, EscapedText) for one in parts):
            return new
        source.escapes = True
        return EscapedText(new)

    def _put_in(self, match: re.Match[str], source: Source, at: Mark) -> str:
        escaped, name, closed = match.groups()
        if escaped:
            return match[0][1:]
        value = self.values.get(name.strip()) if closed else None
        if isinstance(value, bool):
            return str(value).lower()
        if isinstance(value, str):
            return value
        # Located without the values of `for_each`: the problem is the same for all of them.
        problem = self._undefined(match) if value is None else _a_list(match[0])
        self.problem_count += 1
        self.report(replace(problem, source=source.where(at)))
        return match[0]

    def _undefined(self, match: re.Match[str]) -> Problem:
        if not match[3]:
            message, hint = f"{match[0]} is not closed", 'For a literal "$(" write "$$(".'
            return Problem(code="variable/syntax", message=message, hint=hint)
        name = match[2]
        hint = did_you_mean(name, self.values) or (
            f'Define it under vars: in the project file, or write "$$({name})" for a literal "$({name})".'
        )
        return Problem(code="variable/undefined", message=f"the variable $({name}) is not defined", hint=hint)


def referenced_variables(node: Json) -> Iterator[str]:
    """Yield every name that a value refers to as `$(name)`."""
    if isinstance(node, str):
        yield from (name.strip() for escaped, name, _ in _VARIABLE.findall(node) if not escaped)
    elif isinstance(node, Map | Seq):
        for _, child, _ in child_nodes(node):
            yield from referenced_variables(child)


def child_nodes(node: Map | Seq) -> Iterator[tuple[str | int, Json, Mark]]:
    """Yield each part of a list or mapping: its index or key, its value, and the mark of the value."""
    marks, first = node.source.marks, node.first
    if isinstance(node, Map):
        for number, (key, value) in enumerate(list(node.items())):
            yield key, value, marks[first + 2 * number + 1]
    else:
        for number, value in enumerate(list(node)):
            yield number, value, marks[first + number]


def _a_list(shown: str) -> Problem:
    message = f"{shown} is a list, so it cannot be part of a text"
    return Problem(code="variable/list", message=message, hint=f"Write {shown} as the whole value, without quotes.")


def _is_plain(source: Source, at: Mark) -> bool:
    """Whether the text at that position is written without quotes."""
    return not _LEAD.sub("", source.rest(at), count=1).startswith(_IN_QUOTES)


def _listed(items: list[Json], source: Source, at: Mark) -> Seq:
    """Build a list whose items all have the position of its variable."""
    source.escapes = True
    copy = Seq(source)
    copy.extend(items)
    store_marks(copy, [at] * len(items))
    return copy


def _with_values(node: Map, changed: Mapping[str | int, Json]) -> Map:
    """Return the mapping with some values replaced, at the same positions."""
    copy = Map(node.source)
    copy.update(node)
    copy.update(cast("Mapping[str, Json]", changed))
    copy.first = node.first
    return copy


def _with_items(node: Seq, changed: Mapping[str | int, Json]) -> Seq:
    """Return the list with some items replaced. Items spliced from a variable have the variable's position."""
    copy, marks = Seq(node.source), list[Mark]()
    for number, item, at in child_nodes(node):
        new = changed.get(number, item)
        items = new if isinstance(new, list) and isinstance(item, str) else [new]
        copy.extend(items)
        marks += [at] * len(items)
    store_marks(copy, marks)
    return copy
