"""Write dialect keys into a project file by source position, so that comments and layout are kept.

The new text is parsed again before it is written. If it does not have exactly the intended meaning, which is possible
with unusual layouts, it is rejected, and the lines to paste are shown instead.
"""

from __future__ import annotations

import copy
import json
import re
from collections.abc import Mapping
from typing import Final, cast

from lmsconf.doctor.findings import Value
from lmsconf.errors import LmsconfError
from lmsconf.manifest.yaml.files import read
from lmsconf.manifest.yaml.nodes import EntryPlaces, Map
from lmsconf.manifest.yaml.scalars import meaning
from lmsconf.model.values import Json

_PLAIN: Final = re.compile(r"[A-Za-z][A-Za-z0-9_.-]*")
_QUOTED: Final = re.compile(r'"(?:[^"\\]|\\.)*"|\'(?:[^\']|\'\')*\'')
_WORD: Final = re.compile(r"[^\s,\[\]{}#](?:[^,\[\]{}#\r\n]*[^\s,\[\]{}#])?")
_EMPTY: Final = re.compile(r"\{\s*\}")
_INDENT: Final = 2
_KEY: Final = "dialect"


class NotWritten(LmsconfError):
    """The file has a layout that cannot be edited safely."""

    code = "probe/not-written"


def with_dialect(text: str, found: Mapping[str, Value], workspace: str) -> str:
    """Return the project file with these keys: at the workspace if it declares the key, otherwise for all workspaces.

    Raises NotWritten.
    """
    edited, wanted = text, _wanted(text, found, workspace)
    for key, value in found.items():
        # Stop at an edit that went wrong; the mismatch with the intended meaning is reported below.
        edited = _with_key(edited, key, value, workspace) if _body(edited) is not None else edited
    if _body(edited) != wanted:
        raise NotWritten("the project file cannot be edited safely", hint=f"Put this into it:\n{_lines(found)}")
    return edited


def _with_key(text: str, key: str, value: Value, workspace: str) -> str:
    """The text with one key added or changed."""
    body, places = _read(text)
    trail = _trail(body, key, workspace)
    here = _at(body, trail)
    lines = text.splitlines(keepends=True)
    if not isinstance(here, Map):
        return _appended(text, lines, places.key(next(iter(body), "")).column if body else 1, key, value)
    if key in here:
        where = places.at(*trail, key)
        return _replaced(lines, where.line, where.column, value)
    where = places.at(*trail)
    if lines[where.line - 1][where.column - 1 :].startswith("{"):
        return _opened(lines, where.line, where.column, places.key(*trail).column, key, value, empty=not here)
    last = list(here)[-1]
    return _inserted(lines, places.at(*trail, last).line, places.key(*trail, last).column, key, value)


def _trail(body: Map, key: str, workspace: str) -> tuple[str, ...]:
    """The path of the key: below the workspace if declared there, because that takes precedence."""
    own = ("workspaces", workspace, _KEY)
    said = _at(body, own)
    return own if isinstance(said, Map) and key in said else (_KEY,)


def _replaced(lines: list[str], line: int, column: int, value: Value) -> str:
    """Replace one scalar."""
    row, at = lines[line - 1], column - 1
    old = _QUOTED.match(row, at) or _WORD.match(row, at)
    end = old.end() if old else at
    lines[line - 1] = row[:at] + _scalar(value) + row[end:]
    return "".join(lines)


def _opened(lines: list[str], line: int, column: int, indent: int, key: str, value: Value, *, empty: bool) -> str:
    """Insert into a flow mapping, as its first pair; an empty one becomes a block mapping if it is on its own line."""
    row, at = lines[line - 1], column - 1
    braces = _EMPTY.match(row, at)
    if empty and braces and row[:at].strip() == f"{_KEY}:":
        lines[line - 1] = row[:at].rstrip() + row[braces.end() :]
        return _inserted(lines, line, indent + _INDENT, key, value)
    pair, rest = f"{key}: {_scalar(value)}", row[at + 1 :]
    lines[line - 1] = row[: at + 1] + (pair + rest if empty else f"{pair}, {rest.lstrip(' ')}")
    return "".join(lines)


def _inserted(lines: list[str], after: int, column: int, key: str, value: Value) -> str:
    """Insert a line after the given one."""
    end = _line_end("".join(lines))
    if not lines[after - 1].endswith(("\n", "\r")):
        lines[after - 1] += end
    lines.insert(after, f"{' ' * (column - 1)}{key}: {_scalar(value)}{end}")
    return "".join(lines)


def _appended(text: str, lines: list[str], column: int, key: str, value: Value) -> str:
    """Append a new section."""
    end = _line_end(text)
    gap = "" if not lines or lines[-1].endswith(("\n", "\r")) else end
    indent = " " * (column - 1)
    return f"{text}{gap}{indent}{_KEY}:{end}{indent}{' ' * _INDENT}{key}: {_scalar(value)}{end}"


def _line_end(text: str) -> str:
    return "\r\n" if "\r\n" in text else "\n"


def _scalar(value: Value) -> str:
    """The value as a YAML scalar with the same meaning: `null` and the like are quoted."""
    if isinstance(value, int):
        return str(value)
    plain = _PLAIN.fullmatch(value) and meaning(value) == value and value.lower() not in ("yes", "no", "on", "off")
    return value if plain else json.dumps(value, ensure_ascii=False)


def _lines(found: Mapping[str, Value]) -> str:
    return "\n".join([f"{_KEY}:", *(f"  {key}: {_scalar(value)}" for key, value in found.items())])


def _read(text: str) -> tuple[Map, EntryPlaces]:
    """Parse the one document of a project file that was valid when it was loaded. Raises NotWritten."""
    documents = read("", text).documents
    if len(documents) != 1 or not isinstance(documents[0].value, Map):
        raise NotWritten("the project file is no single mapping", hint="Mend it first: lmsconf validate")
    return documents[0].value, EntryPlaces(documents[0].value, documents[0].source, documents[0].at)


def _body(text: str) -> Json:
    """The parsed value of the text; None if it has problems."""
    reading = read("", text)
    return None if reading.problems or len(reading.documents) != 1 else reading.documents[0].value


def _wanted(text: str, found: Mapping[str, Value], workspace: str) -> Json:
    """The value that the new text must have."""
    before, _ = _read(text)
    wanted = cast("dict[str, Json]", json.loads(json.dumps(before)))
    for key, value in found.items():
        here = wanted
        for step in _trail(before, key, workspace):
            here = cast("dict[str, Json]", here.setdefault(step, {}))
        here[key] = copy.copy(value)
    return wanted


def _at(body: Map, trail: tuple[str, ...]) -> Json:
    node: Json = body
    for step in trail:
        node = node.get(step) if isinstance(node, dict) else None
    return node
