"""One violation of a schema, and the problem that is made of it."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator

from msgspec import Struct

from lmsconf.errors import SourceLocation
from lmsconf.manifest.validation.schema_query import Schema
from lmsconf.manifest.yaml.nodes import KeyPath
from lmsconf.model.canonical_json import Json


class SchemaFinding(Struct, frozen=True, kw_only=True):
    """One schema violation: the keyword and its value, the rejected value, its schema, and its path.

    union_branches: those of the union that the schema is one of. is_required: whether the key of the value is.
    """

    path: KeyPath
    keyword: str
    keyword_value: Json
    value: Json
    schema: Schema
    union_branches: tuple[Schema, ...] = ()
    is_required: bool = False


class ProblemDraft(Struct, frozen=True):
    """A problem before its code gets the area, and its message the prefix."""

    code: str
    message: str
    hint: str | None
    where: SourceLocation


def path_label(path: KeyPath) -> str:
    """Name the value at `path` by its keys; the index of an item is left out, since the location shows it."""
    keys = ".".join(str(step) for step in path if isinstance(step, str))
    if path and isinstance(path[-1], int):
        return f"an item of {keys}" if keys else "an item"
    return keys or "this"


def new_findings(findings: Iterable[SchemaFinding], reported: set[Hashable]) -> Iterator[SchemaFinding]:
    """Yield the findings not reported yet for another copy of the same `for_each` entry."""
    for finding in findings:
        value = None if isinstance(finding.value, dict | list) else finding.value
        key = (finding.path, finding.keyword, value)
        if key not in reported:
            reported.add(key)
            yield finding
