"""What the strict reader returns: the documents of one file and its problems, within limits."""

from __future__ import annotations

from typing import Final

from msgspec import Struct, field

from lmsconf.errors import Problem, SourceLocation
from lmsconf.manifest.yaml.nodes import Mark, Source, pack_mark
from lmsconf.model.canonical_json import Json
from lmsconf.model.names import FORBIDDEN, LONGEST

DEPTH: Final = 50
"""Maximum nesting depth of lists and mappings."""
EXPANDED: Final = 100_000
"""Maximum number of values that aliases may expand to, in all files together."""
ENOUGH: Final = 100
"""Reading of a file stops after this many problems."""


class ReadingStopped(Exception):
    """Raised to stop reading the file; `problem` gives the reason."""

    def __init__(self, problem: Problem) -> None:
        super().__init__(problem.message)
        self.problem = problem


class Document(Struct, frozen=True):
    """One document of a YAML stream."""

    source: Source
    value: Json
    at: Mark


class YamlReadResult(Struct):
    """The documents of one file, and the problems of its YAML."""

    documents: list[Document] = field(default_factory=list)
    problems: list[Problem] = field(default_factory=list)


def too_long_problem(location: SourceLocation) -> Problem:
    """Return the problem for a text longer than LONGEST."""
    message = f"this text is longer than {LONGEST:,} characters"
    return Problem(code="yaml/too-long", message=message, hint="Write a shorter one.", source=location)


def too_deep_problem(location: SourceLocation) -> Problem:
    """Return the problem for lists and mappings nested deeper than DEPTH."""
    message = f"lists and mappings are nested more than {DEPTH} levels deep"
    return Problem(code="yaml/too-deep", message=message, source=location)


def report_forbidden_characters(source: Source, reading: YamlReadResult) -> bool:
    """Report the first forbidden character of each line, and return whether there is any."""
    if not FORBIDDEN.search(source.text):
        return False
    for number, line in enumerate(source.text.split("\n"), start=1):
        if forbidden := FORBIDDEN.search(line):
            add_problem(reading, character_problem(forbidden[0], source, pack_mark(number, forbidden.start() + 1)))
    return True


def add_problem(reading: YamlReadResult, problem: Problem) -> None:
    """Add a problem. Raises ReadingStopped at ENOUGH problems: such a file is probably not a manifest."""
    reading.problems.append(problem)
    if len(reading.problems) == ENOUGH:
        message = f"this file has {ENOUGH} problems and more; the rest was not read"
        raise ReadingStopped(Problem(code="yaml/too-many-problems", message=message, source=problem.source))


def character_problem(char: str, source: Source, at: Mark) -> Problem:
    kind = "control character" if ord(char) < 0xA0 else "invisible character that changes how text is read"
    message = f"the {kind} U+{ord(char):04X} is not allowed here"
    return Problem(code="yaml/character", message=message, hint="Remove it.", source=source.where(at))
