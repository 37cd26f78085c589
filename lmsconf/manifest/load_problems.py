"""Problems of a load as a whole: their order and limit, nothing to load, workspaces that do not exist."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import Final, cast

from lmsconf.errors import Problem, Severity, SourceLocation, shorten
from lmsconf.manifest.schemas import (
    ABSENT,
)
from lmsconf.manifest.yaml.nodes import EntrySourceMap, Map
from lmsconf.manifest.yaml.read_result import Document
from lmsconf.model.names import did_you_mean, known_names
from lmsconf.planner.kind import Kind

_SHOWN: Final = 5
ENOUGH: Final = 1_000
"""Loading stops after this many errors; the others are not reported."""


def sort_and_limit(problems: Iterable[Problem]) -> list[Problem]:
    """Sort the problems by source location; beyond ENOUGH errors, cut the list and append a problem that reports so."""
    ordered = sorted(problems, key=lambda problem: (problem.source or SourceLocation(""), problem.message))
    if sum(problem.is_error for problem in ordered) <= ENOUGH:
        return ordered
    return [*ordered[:ENOUGH], _too_many(ordered[ENOUGH - 1].source)]


def unknown_workspace_problems(body: Map, places: EntrySourceMap, known: Collection[str] | None) -> Iterator[Problem]:
    """Warn about workspaces that an entry names and the project does not have.

    The entry would apply to no workspace, or its `id` would be unused.
    """
    if known is None:
        return
    for key in ("only_in", "id"):
        value = body.get(key)
        for name in cast("Iterable[str]", value) if isinstance(value, list | dict) else ():
            if name not in known:
                yield Problem(
                    code="reference/unknown-workspace",
                    severity=Severity.WARNING,
                    message=f'{key}: there is no workspace "{shorten(name)}"',
                    hint=did_you_mean(name, known) or known_names(known),
                    source=places.key(key, name) if isinstance(value, dict) else places.find(name, key),
                )


def _too_many(source: SourceLocation | None) -> Problem:
    message = f"the manifests have more than {ENOUGH:,} errors; the others are not listed"
    return Problem(code="manifest/too-many-problems", message=message, source=source)


def no_manifest_problem(folder: str) -> Problem:
    return Problem(
        code="manifest/nothing",
        message="there is no manifest here",
        hint="Manifests are files that end in .yaml or .yml; names that begin with . or _ are skipped.",
        source=SourceLocation(folder),
    )


def nothing_declared_problem(files: Sequence[str], documents: Sequence[Document], kinds: Mapping[str, Kind]) -> Problem:
    """Return the problem of manifests that declare nothing."""
    nonempty = {document.source.path for document in documents}
    shown = ", ".join(files[:_SHOWN]) + (f" and {len(files) - _SHOWN} more" if len(files) > _SHOWN else "")
    verb, is_single = "is" if len(files) == 1 else "are", len(files) == 1
    why = f"{verb} empty, or only comments"
    if nonempty:
        why = f"{'holds' if is_single else 'hold'} only sets or windows, or keys that are ignored"
    sections = ", ".join(kind.section for kind in kinds.values())
    return Problem(
        code="manifest/nothing",
        message=f"nothing is declared: {shown} {why}",
        hint=f"Declare the desired state under one of {sections}, {ABSENT}.",
        source=SourceLocation(files[0], 1, 1) if is_single else SourceLocation(files[0]),
    )
