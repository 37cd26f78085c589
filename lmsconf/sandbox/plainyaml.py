"""YAML with every scalar as text: a file becomes strings, lists and dicts, whatever a scalar looks like.

Built from the parser's events, which takes a fifth of the time of yaml's own loaders: a seed may declare many people.
"""

from __future__ import annotations

from pathlib import Path
from typing import cast

import yaml

from lmsconf.errors import LmsconfError, Problem, ProblemsFound, SourceLocation

try:
    from yaml import CBaseLoader as _Parser
except ImportError:  # built without libyaml: the same events, ten times slower
    from yaml import BaseLoader as _Parser  # type: ignore[assignment]  # where libyaml is missing


def read(path: Path, what: str) -> object:
    """Parse the one document of a file; None for an empty file. `what` the file is: seed, faults.

    Raises ProblemsFound if it is not YAML, LmsconfError if it cannot be read.
    """
    try:
        found = _documents(path.read_text(encoding="utf-8"))
    except OSError as error:
        hint = f"Check the path of the {what}"
        raise LmsconfError(f"{path}: cannot be read: {error.strerror}", hint=hint) from error
    except UnicodeDecodeError as error:
        raise ProblemsFound([problem(what, str(path), "it is not UTF-8")]) from error
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark
        place = SourceLocation(str(path), mark.line + 1, mark.column + 1) if mark else SourceLocation(str(path))
        raise ProblemsFound([Problem(code=f"{what}/yaml", message=str(error.problem), source=place)]) from error
    except yaml.YAMLError as error:
        raise ProblemsFound([problem(what, str(path), str(error))]) from error
    if len(found) > 1:
        raise ProblemsFound([problem(what, str(path), "it holds more than one document")])
    return found[0] if found else None


def problem(what: str, file: str, message: str) -> Problem:
    """A problem in a file of that sort."""
    hint = f"Correct the {what} and run again."
    return Problem(code=f"{what}/invalid", message=message, source=SourceLocation(file), hint=hint)


def _documents(text: str) -> list[object]:
    """Parse the documents of a text. Raises yaml.MarkedYAMLError, also for a duplicate key."""
    parser, builder = _Parser(text), _Builder()
    while not isinstance(event := parser.get_event(), yaml.StreamEndEvent):
        builder.take(event)
    return builder.levels[0]


class _Builder:
    """Builds values from events. `levels` has the items of each open collection."""

    def __init__(self) -> None:
        self.levels: list[list[object]] = [[]]
        self._starts: list[yaml.CollectionStartEvent] = []
        self._anchors: dict[str, object] = {}

    def take(self, event: yaml.Event | None) -> None:
        """Handle the next event of the text."""
        if isinstance(event, yaml.ScalarEvent):
            self._put(event.value, event.anchor)
        elif isinstance(event, yaml.CollectionStartEvent):
            self.levels.append([])
            self._starts.append(event)
        elif isinstance(event, yaml.CollectionEndEvent):
            items, start = self.levels.pop(), self._starts.pop()
            self._put(_mapping(items, start) if isinstance(event, yaml.MappingEndEvent) else items, start.anchor)
        elif isinstance(event, yaml.AliasEvent):
            self._put(self._named(event), None)

    def _put(self, value: object, anchor: str | None) -> None:
        if anchor is not None:
            self._anchors[anchor] = value
        self.levels[-1].append(value)

    def _named(self, event: yaml.AliasEvent) -> object:
        """The value of an anchor. An incomplete one is unknown, so no value can contain itself."""
        if event.anchor not in self._anchors:
            raise _error(f"there is no anchor {event.anchor!r} before this", event)
        return self._anchors[event.anchor]


def _mapping(items: list[object], start: yaml.Event) -> dict[str, object]:
    """Alternating keys and values as a mapping."""
    keys = [key for key in items[::2] if isinstance(key, str)]
    found = dict(zip(keys, items[1::2], strict=False))
    if len(found) < len(items) // 2:
        raise _error("a key is no text" if len(keys) < len(items) // 2 else "a key stands twice", start)
    return found


def _error(message: str, event: yaml.Event) -> yaml.MarkedYAMLError:
    return yaml.MarkedYAMLError(problem=message, problem_mark=cast("yaml.Mark | None", event.start_mark))
