"""Load entries of a seed or a snapshot: YAML with every scalar as text, typed values of a key, entry after entry."""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Hashable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from types import MappingProxyType
from typing import Final, NamedTuple, TypeAlias, TypeVar, cast

import yaml

from lmsconf.errors import LmsconfError, Problem, ProblemsFound, SourceLocation
from lmsconf.sandbox.request_context import Refusal, RequestContext, parse_time
from lmsconf.sandbox.store import Json

try:
    from yaml import CBaseLoader as _Base
except ImportError:  # built without libyaml: the same values, ten times slower
    from yaml import BaseLoader as _Base  # type: ignore[assignment]  # where libyaml is missing

_TOO_DEEP: Final = "exceeded maximum nesting depth"
"""What libyaml from 0.2.6 on says; before, Python's recursion ends."""


def read_yaml(path: Path, file_kind: str) -> object:
    """Parse the one document of a file, a JSON object with its types; None for an empty file.

    file_kind: seed, faults. Raises ProblemsFound if it is not YAML, LmsconfError if it cannot be read.
    """
    try:
        text = path.read_text(encoding="utf-8")
    except OSError as error:
        hint = f"Check the path of the {file_kind}"
        raise LmsconfError(f"{path}: cannot be read: {error.strerror}", hint=hint) from error
    except UnicodeDecodeError as error:
        raise ProblemsFound([file_problem(file_kind, str(path), "it is not UTF-8")]) from error
    if text.startswith("{"):
        with suppress(ValueError, RecursionError):
            return cast(object, json.loads(text))
    return _parse_yaml(text, path, file_kind)


def _parse_yaml(text: str, path: Path, file_kind: str) -> object:
    try:
        documents = list(yaml.load_all(text, Loader=_Loader))  # texts only
    except (yaml.YAMLError, RecursionError) as error:
        raise ProblemsFound([_yaml_problem(error, path, file_kind)]) from error
    if len(documents) > 1:
        raise ProblemsFound([file_problem(file_kind, str(path), "it contains more than one document")])
    return documents[0] if documents else None


def _yaml_problem(error: Exception, path: Path, file_kind: str) -> Problem:
    if isinstance(error, RecursionError) or getattr(error, "problem", None) == _TOO_DEEP:
        return file_problem(file_kind, str(path), "its lists and mappings are nested too deep")
    if not isinstance(error, yaml.MarkedYAMLError):
        return file_problem(file_kind, str(path), str(error))
    mark = error.problem_mark
    place = SourceLocation(str(path), mark.line + 1, mark.column + 1) if mark else SourceLocation(str(path))
    return Problem(code=f"{file_kind}/yaml", message=str(error.problem), source=place)


def file_problem(file_kind: str, file: str, message: str) -> Problem:
    """A problem in a file of that sort."""
    hint = f"Correct the {file_kind} and run again."
    return Problem(code=f"{file_kind}/invalid", message=message, source=SourceLocation(file), hint=hint)


class _Loader(_Base):
    """PyYAML's loader of plain texts, which takes the last of two equal keys, made to refuse them."""

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Hashable, object]:
        keys = [key.value for key, _ in node.value]
        if not all(isinstance(key, str) for key in keys):
            raise yaml.MarkedYAMLError(problem="a key is not text", problem_mark=node.start_mark)
        if len(set(keys)) < len(keys):
            raise yaml.MarkedYAMLError(problem="a key is a duplicate", problem_mark=node.start_mark)
        return super().construct_mapping(node, deep=deep)


Entry: TypeAlias = "Mapping[str, object]"
T = TypeVar("T")
_TRUTH: Final = {"true": True, "false": False, "True": True, "False": False}


class InvalidSeedValue(Exception):
    """An invalid value in one entry of a seed."""


def read_text(entry: Entry, key: str, default: str | None = None) -> str:
    """A text; required without a default."""
    value = entry.get(key, default)
    if isinstance(value, str):
        return value
    raise InvalidSeedValue(f"{key} is missing" if value is None else f"{key} is not text")


def read_flag(entry: Entry, key: str) -> bool:
    """A boolean; False if missing."""
    value = str(entry.get(key, False))
    if value not in _TRUTH:
        raise InvalidSeedValue(f"{key} is neither true nor false")
    return _TRUTH[value]


def read_whole_number(entry: Entry, key: str) -> int:
    """A whole number."""
    value = str(entry[key])
    if not (value.isascii() and value.isdigit()):
        raise InvalidSeedValue(f"{key} is not a whole number")
    return int(value)


def read_instant(entry: Entry, key: str) -> int:
    """An instant in epoch milliseconds."""
    try:
        return parse_time(read_text(entry, key), "iso")
    except ValueError as error:
        raise InvalidSeedValue(f"{key}: {error}") from error


def read_list(entry: Entry, key: str) -> list[object]:
    """A list of anything; empty if missing."""
    value = entry.get(key) or []
    if not isinstance(value, list):
        raise InvalidSeedValue(f"{key} is not a list")
    return value


def read_texts(entry: Entry, key: str) -> list[str]:
    """A list of texts; empty if missing."""
    return _read_all(entry, key, str, "text")


def read_mappings(entry: Entry, key: str) -> list[Entry]:
    """A list of mappings; empty if missing."""
    return [*_read_all(entry, key, dict, "a mapping")]


def _read_all(entry: Entry, key: str, type: type[T], noun: str) -> list[T]:
    values = [item for item in read_list(entry, key) if isinstance(item, type)]
    if len(values) < len(read_list(entry, key)):
        raise InvalidSeedValue(f"{key} contains an item that is not {noun}")
    return values


def read_mapping(entry: Entry, key: str) -> Entry:
    """A mapping; empty if missing."""
    value = entry.get(key) or {}
    if not isinstance(value, dict):
        raise InvalidSeedValue(f"{key} is not a mapping")
    return value


def refuse_unknown(part: str, entry: Entry, known: Collection[str]) -> None:
    """Raise InvalidSeedValue if a part of an entry has a key that is not known."""
    if unknown := sorted(entry.keys() - set(known)):
        raise InvalidSeedValue(f"{part}: unknown key {unknown[0]!r}; there are {', '.join(known)}")


def _reserve_id(id: str, taken: set[str]) -> str:
    """Return an id, and add it to those that are taken. Raises InvalidSeedValue if it is one of them, or empty."""
    if not id or id in taken:
        raise InvalidSeedValue(f"id {id!r} is a duplicate" if id else "id is empty")
    taken.add(id)
    return id


Reader: TypeAlias = "Callable[[Entry, str], Json]"
"""Reads the value of a key. Raises InvalidSeedValue."""


def read_parts(readers: Mapping[str, Reader], *required: str, is_strict: bool = True) -> Reader:
    """What reads a list of mappings with these keys. is_strict: it refuses others."""

    def read(entry: Entry, key: str) -> list[Json]:
        parts = read_mappings(entry, key)
        for part in parts:
            if is_strict:
                refuse_unknown(key, part, readers)
            if missing := [name for name in required if name not in part]:
                raise InvalidSeedValue(f"{key}: {missing[0]} is missing")
        return [_read_values(part, readers) for part in parts]

    return read


def _read_values(entry: Entry, readers: Mapping[str, Reader]) -> dict[str, Json]:
    return {key: readers[key](entry, key) for key in entry if key in readers}


class Step(NamedTuple):
    """The loading of one section, which follows those that it refers to.

    readers: by the key of an entry. required: its keys that are not optional. load: takes an entry as a request.
    prefix: of new ids; None: entries have ids of their own, or none.
    """

    section: str
    readers: Mapping[str, Reader]
    required: Sequence[str]
    load: Callable[[RequestContext], object]
    prefix: str | None = None


def load_entries(
    context: RequestContext,
    entries: Mapping[str, Sequence[Entry]],
    steps: Sequence[Step],
    more: Mapping[str, Json] = MappingProxyType({}),
    *,
    is_strict: bool = True,
) -> list[str]:
    """Load the entries of all sections. Return the problems; loading continues after each.

    more: values of all entries. is_strict: it refuses keys that no reader is for.
    """
    problems: list[str] = []
    ids: dict[str, list[str]] = {}
    for section, readers, required, load, prefix in steps:
        if prefix is not None and section not in ids:
            ids[section] = _ids(context, section, prefix, entries.get(section, ()), problems)
        for place, entry in enumerate(entries.get(section, ())):
            with _collect_problems(problems, section, place):
                if not isinstance(entry, dict):
                    raise InvalidSeedValue("it is not a mapping")
                if is_strict and (unknown := sorted(map(str, entry.keys() - readers.keys()))):
                    raise InvalidSeedValue(f"unknown key {unknown[0]!r}; there are {', '.join(sorted(readers))}")
                if missing := [key for key in required if key not in entry]:
                    raise InvalidSeedValue(f"{missing[0]} is missing")
                numbered = {"id": ids[section][place]} if section in ids else {}
                load(context.with_body({**_read_values(entry, readers), **numbered, **more}))
    return list(dict.fromkeys(problems))


def _ids(
    context: RequestContext, section: str, prefix: str, entries: Sequence[Entry], problems: list[str]
) -> list[str]:
    """The ids of the entries of a section, declared or new."""
    taken = set(context.repository.existing_ids(prefix))
    given: list[str | None] = []
    for place, entry in enumerate(entries):
        given.append(None)
        with _collect_problems(problems, section, place):
            if isinstance(entry, dict) and "id" in entry:
                given[-1] = _reserve_id(read_text(entry, "id"), taken)
    made = iter(context.repository.new_ids(prefix, given.count(None), frozenset(taken)))
    return [id or next(made) for id in given]


@contextmanager
def _collect_problems(problems: list[str], section: str, place: int) -> Iterator[None]:
    """Convert an error inside the context to a problem of that entry."""
    try:
        yield
    except (InvalidSeedValue, Refusal) as wrong:
        problems.append(f"{section}[{place}]: {wrong}")
    except (UnicodeEncodeError, OverflowError) as wrong:
        problems.append(f"{section}: a value cannot be stored: {wrong}")
