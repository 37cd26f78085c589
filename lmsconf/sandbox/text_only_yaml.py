"""YAML with every scalar as text: a file becomes strings, lists and dicts, whatever a scalar looks like."""

from __future__ import annotations

import json
from collections.abc import Hashable
from contextlib import suppress
from pathlib import Path
from typing import Final, cast

import yaml

from lmsconf.errors import LmsconfError, Problem, ProblemsFound, SourceLocation

try:
    from yaml import CBaseLoader as _Base
except ImportError:  # built without libyaml: the same values, ten times slower
    from yaml import BaseLoader as _Base  # type: ignore[assignment]  # where libyaml is missing

_TOO_DEEP: Final = "exceeded maximum nesting depth"
"""What libyaml from 0.2.6 on says; before, Python's recursion ends."""


def read_yaml(path: Path, file_kind: str) -> object:
    """Parse the one document of a file; None for an empty file. `file_kind`: seed, faults.

    Raises ProblemsFound if it is not YAML, LmsconfError if it cannot be read.
    """
    return _parse_yaml(_read_text(path, file_kind), path, file_kind)


def read_json_or_yaml(path: Path, file_kind: str) -> object:
    """Parse a JSON object, with its types, or YAML as `read_yaml` does; raises like it."""
    text = _read_text(path, file_kind)
    if text.startswith("{"):
        with suppress(ValueError, RecursionError):
            return cast(object, json.loads(text))
    return _parse_yaml(text, path, file_kind)


def _read_text(path: Path, file_kind: str) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except OSError as error:
        hint = f"Check the path of the {file_kind}"
        raise LmsconfError(f"{path}: cannot be read: {error.strerror}", hint=hint) from error
    except UnicodeDecodeError as error:
        raise ProblemsFound([file_problem(file_kind, str(path), "it is not UTF-8")]) from error


def _parse_yaml(text: str, path: Path, file_kind: str) -> object:
    try:
        documents = list(yaml.load_all(text, Loader=_Loader))  # texts only
    except yaml.MarkedYAMLError as error:
        if error.problem == _TOO_DEEP:
            raise ProblemsFound([_deep_problem(file_kind, path)]) from error
        mark = error.problem_mark
        place = SourceLocation(str(path), mark.line + 1, mark.column + 1) if mark else SourceLocation(str(path))
        raise ProblemsFound([Problem(code=f"{file_kind}/yaml", message=str(error.problem), source=place)]) from error
    except yaml.YAMLError as error:
        raise ProblemsFound([file_problem(file_kind, str(path), str(error))]) from error
    except RecursionError as error:
        raise ProblemsFound([_deep_problem(file_kind, path)]) from error
    if len(documents) > 1:
        raise ProblemsFound([file_problem(file_kind, str(path), "it contains more than one document")])
    return documents[0] if documents else None


def _deep_problem(file_kind: str, path: Path) -> Problem:
    return file_problem(file_kind, str(path), "its lists and mappings are nested too deep")


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
