"""Seed files: initial content of a workspace, as YAML with the manifests' terms; `seed_format` describes the sections.

Every scalar of YAML is read as text, so that `NO` and `2026-01-05` keep their spelling.
"""

from __future__ import annotations

import json
from collections.abc import Hashable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import cast

import yaml

from lmsconf.errors import Problem, ProblemsFound, SourceLocation
from lmsconf.sandbox.request_context import RequestContext
from lmsconf.sandbox.seed_format import SECTIONS
from lmsconf.sandbox.seed_loader import SeedLoader
from lmsconf.support.files import os_errors_as

try:
    from yaml import CBaseLoader as _Base
    from yaml import CSafeDumper as _Dumper
except ImportError:  # built without libyaml: the same values, ten times slower
    from yaml import BaseLoader as _Base  # type: ignore[assignment]  # where libyaml is missing
    from yaml import SafeDumper as _Dumper  # type: ignore[assignment]  # where libyaml is missing


def dump_seed(values: Mapping[str, object]) -> str:
    """Return the values of a seed as the text of its file, in which every parser reads the same."""
    return yaml.dump(values, Dumper=_Dumper, default_flow_style=None, sort_keys=False, allow_unicode=True)


def fill_from_seed(context: RequestContext, values: Mapping[str, object]) -> list[str]:
    """Create in an empty workspace what the sections of a seed list; return the problems."""
    known = ", ".join(SECTIONS)
    problems = [f"unknown section {name!r}; there are {known}" for name in values if name not in SECTIONS]
    problems += [f"{name}: it is not a list" for name in SECTIONS if not isinstance(values.get(name) or [], list)]
    return problems or SeedLoader(context, cast("Mapping[str, Sequence[object]]", values)).load_sections()


def read_yaml(path: Path, file_kind: str) -> object:
    """Parse the one document of a file, a JSON object with its types; None for an empty file.

    file_kind: seed, faults. Raises ProblemsFound if it is not YAML, LmsconfError if it cannot be read.
    """
    try:
        with os_errors_as(f"{path}: cannot be read", f"Check the path of the {file_kind}"):
            text = path.read_text(encoding="utf-8")
        if text.startswith("{"):
            with suppress(ValueError, RecursionError):
                return cast(object, json.loads(text))
        return cast(object, yaml.load(text, Loader=_Loader))  # noqa: S506  texts only
    except UnicodeDecodeError as error:
        raise ProblemsFound([file_problem(file_kind, str(path), "it is not UTF-8")]) from error
    except (yaml.YAMLError, RecursionError) as error:
        raise ProblemsFound([_yaml_problem(error, path, file_kind)]) from error


def _yaml_problem(error: Exception, path: Path, file_kind: str) -> Problem:
    if not isinstance(error, yaml.MarkedYAMLError):
        return file_problem(
            file_kind, str(path), "nested too deep" if isinstance(error, RecursionError) else str(error)
        )
    mark = error.problem_mark
    place = SourceLocation(str(path), mark.line + 1, mark.column + 1) if mark else SourceLocation(str(path))
    return Problem(
        code=f"{file_kind}/yaml", message=": ".join(filter(None, (error.context, error.problem))), source=place
    )


def file_problem(file_kind: str, file: str, message: str) -> Problem:
    """A problem in a file of that sort."""
    return Problem(
        code=f"{file_kind}/invalid",
        message=message,
        source=SourceLocation(file),
        hint=f"Correct the {file_kind} and run again.",
    )


class _Loader(_Base):
    """PyYAML's loader of plain texts, which takes the last of two equal keys, made to refuse them."""

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Hashable, object]:
        keys = [key.value for key, _ in node.value]
        if not all(isinstance(key, str) for key in keys):
            raise yaml.MarkedYAMLError(problem="a key is not text", problem_mark=node.start_mark)
        if len(set(keys)) < len(keys):
            raise yaml.MarkedYAMLError(problem="a key is a duplicate", problem_mark=node.start_mark)
        return super().construct_mapping(node, deep=deep)
