"""Detect creations that may be renames, by comparing each with deleted and undeclared resources of its kind.

Equal content blocks an apply (guard `recreates`); a close name or mostly equal content is a note. Choices have no
content but the live conditions that reference them. Resources under `leave_alone` are not compared: the project file
declares that they are managed elsewhere.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from itertools import chain
from typing import Any, Final

from msgspec import Struct
from msgspec.structs import replace

from lmsconf.errors import Problem, Severity
from lmsconf.kinds.kind_functions import live_form, similarity
from lmsconf.kinds.kind_table import KINDS
from lmsconf.kinds.shared.kind_names import Kind
from lmsconf.kinds.shared.plan_context import (
    BeforeAfter,
    MatchResult,
    NewParts,
    PlanContext,
    Similarity,
    UndeclaredResource,
)
from lmsconf.model.canonical_json import Json
from lmsconf.model.guards import Policy
from lmsconf.model.names import grouped, join_words, nearest_name, normalize_name, quote_name
from lmsconf.model.plan import Action, Change, PossibleRename, RenameCandidate

POSSIBLE: Final = "guard/possible-rename"
CLOSE: Final = "rename/close-name"


def rename_candidates(unmanaged: Iterable[UndeclaredResource], policy: Policy) -> list[UndeclaredResource]:
    """Return the undeclared resources to compare with creations, the first `policy.compares` by id.

    The reader calls it too, so that exactly these are read with their content.
    """
    return sorted(unmanaged, key=lambda resource: resource.row.id)[: policy.compares]


def possible_renames(
    planning: PlanContext,
    changes: Sequence[tuple[Change, BeforeAfter]],
    results: Mapping[str, MatchResult[Any, Any]],
) -> tuple[list[PossibleRename], list[Problem]]:
    """Return the creations that may be renames, with the live resources that they may be, and what reports them."""
    possible: list[PossibleRename] = []
    problems: list[Problem] = []
    for name, kind_changes in grouped(changes, lambda one: one[0].address.kind).items():
        new = [
            (change, content)
            for change, sides in kind_changes
            if change.action is Action.CREATE and sides.after is not None
            if (content := similarity(planning, name, sides.after)) is not None
        ]
        if new:
            deleted = frozenset(change.id for change, _ in kind_changes if change.action is Action.DELETE)
            olds = list(_live_resources(planning, KINDS[name], results[name], deleted))
            for rename, found in _compared(planning, new, olds):
                possible.append(rename)
                problems.extend(found)
            problems.extend(_not_compared(KINDS[name], planning.policy.compares, len(results[name].unmanaged)))
    parts = (_parts(one, KINDS[one.address.kind].parts_key, planning.parts.get(one.address)) for one, _ in changes)
    return [one for one in possible if one.alike or one.close], [*problems, *chain.from_iterable(parts)]


class _Old(Struct, frozen=True):
    """A live resource that creations are compared with; `found` has no `why` yet.

    is_deleted: by the plan. is_absent: it is under `absent`.
    """

    found: RenameCandidate
    content: Similarity
    is_deleted: bool
    is_absent: bool


def _live_resources(
    planning: PlanContext, kind: Kind, result: MatchResult[Any, Any], deleted: AbstractSet[str | None]
) -> Iterator[_Old]:
    """Yield the deletions, also those that options like `--except` skip, and the first undeclared resources."""
    policy = planning.policy
    names = Counter(normalize_name(row.name) for row in planning.snapshot.of(kind.name).rows)
    deletions = [UndeclaredResource(one.address, one.row) for one in result.deletions if one.with_ is None]
    absent = {deletion.row.id for deletion in result.deletions if deletion.absent is not None}
    for resource in (*deletions, *rename_candidates(result.unmanaged, policy)):
        content = similarity(planning, kind.name, live_form(planning, kind.name, resource.row))
        id, name = resource.row.id, normalize_name(resource.row.name)
        if content is not None and (policy.compares != 0 or id in deleted):
            is_unique = names[name] == 1
            yield _Old(
                RenameCandidate(
                    address=resource.address,
                    id=id,
                    why="",
                    line=f"previously: [{quote_name(name)}]"
                    if is_unique
                    else f"id: {{{quote_name(policy.workspace)}: {quote_name(id)}}}",
                    is_earlier_name=is_unique,
                ),
                content,
                id in deleted,
                id in absent,
            )


def _compared(
    planning: PlanContext, new: Sequence[tuple[Change, Similarity]], olds: Sequence[_Old]
) -> Iterator[tuple[PossibleRename, list[Problem]]]:
    """Yield what each creation of a kind may be, and the problems that report it."""
    by_key = grouped(
        (old for old in olds if old.content.key is not None), lambda old: (old.content.type, hash(old.content.key))
    )
    paired: set[str] = set()
    for change, content in new:
        replaced = planning.replaced.get(change.address, set())
        alike = _alike(content, by_key, paired | replaced)
        paired.update(old.found.id for old in alike if old.is_deleted)
        close = [] if alike else _close(change, content, [old for old in olds if old.found.id not in replaced])
        rename = PossibleRename(
            address=change.address,
            alike=tuple(replace(old.found, why=f"the same {content.of}") for old in alike if not old.is_absent),
            close=tuple(replace(old.found, why=why) for old, why in close if not old.is_absent),
        )
        notes = [
            _close_name(
                change,
                f"it would be created, and {old.found.address}, "
                f"which {'goes' if old.is_deleted else 'stays'}, has {why}",
                old.found.line,
            )
            for old, why in close
        ]
        yield rename, [_same_content(change, content, alike)] if alike else notes


def _alike(
    content: Similarity, by_key: Mapping[tuple[str, int], Sequence[_Old]], taken: AbstractSet[str]
) -> list[_Old]:
    """Return those with equal content; of those deleted, only the first that is not taken. taken: their ids.

    Taken are those paired with another creation, and those that this creation replaces on purpose.
    """
    # Looked up by hash, then compared one by one: keys that leave a part undeclared have no transitive equality.
    same = () if content.key is None else by_key.get((content.type, hash(content.key)), ())
    free = [old for old in same if old.content.key == content.key and old.found.id not in taken]
    return [*[old for old in free if old.is_deleted][:1], *(old for old in free if not old.is_deleted)]


def _same_content(change: Change, content: Similarity, alike: Sequence[_Old]) -> Problem:
    """Return the warning for a creation with the content of live resources."""
    first, stay = alike[0], _first([str(old.found.address) for old in alike])
    beside = f"it would be created beside {join_words(stay, 'and')}, with the same {content.of}"
    instead = f'"{first.found.address.name}" is deleted and "{change.address.name}" is created with the same content'
    lines = [old.found.line for old in alike]
    return _possible_rename(change, instead if first.is_deleted else beside, lines, is_deleted=first.is_deleted)


def _not_compared(kind: Kind, compares: int | None, unmanaged: int) -> Iterator[Problem]:
    if compares and unmanaged > compares:
        yield Problem(
            code="rename/not-compared",
            severity=Severity.NOTE,
            message=f"{compares} of the {unmanaged} {kind.plural} that no manifest declares were "
            f"compared with what would be created, and {unmanaged - compares} were not",
            hint="Before you apply, check whether one of the others was renamed by hand: "
            "`lmsconf drift --coverage` compares all of them.",
        )


def _close(change: Change, content: Similarity, olds: Sequence[_Old]) -> list[tuple[_Old, str]]:
    """Return the one with mostly equal content, else one with a close name where content cannot be compared."""
    same_type = [old for old in olds if old.content.type == content.type]
    if content.key is not None:
        others = [old for old in same_type if old.content.key is not None]
        most = max(others, key=lambda old: len(old.content.items & content.items), default=None)
        if most is not None and 2 * len(most.content.items & content.items) > max(
            len(content.items), len(most.content.items)
        ):
            return [(most, f"most of the same {content.of}")]
    blank = {old.found.address.name: old for old in same_type if content.key is None or old.content.key is None}
    name = nearest_name(change.address.name, blank)
    return [] if name is None else [(blank[name], "a close name")]


def _first(texts: Sequence[str]) -> list[str]:
    """Return the first texts, and how many more there are: `a`, `b`, `c`, `53 more`."""
    return [*texts[:3], *([f"{len(texts) - 3:,} more"] if len(texts) > 3 else [])]


def _parts(change: Change, key: str | None, parts: NewParts | None) -> Iterator[Problem]:
    """Yield problems for choices that are created while others are deleted, or beside undeclared ones."""
    fields = [field for field in change.fields if field.path == key]
    new = [name for field in fields for name in field.added]
    for old in (name for field in fields for name in field.removed):
        if new:
            from difflib import SequenceMatcher  # few plans have such names

            # Deleting a choice deletes its answers, so any new choice may be its rename; similar names are paired.
            best = max(new, key=lambda name: SequenceMatcher(None, str(old), str(name)).ratio())
            new.remove(best)
            summary = f'choice "{old}" is deleted and choice "{best}" is created'
            yield _possible_rename(change, summary, [_choice_line(best, old)], is_deleted=True)
    if parts is None:
        return
    for name in new:
        likely = sorted(parts.likely.get(str(name), ()))
        near = nearest_name(str(name), sorted(parts.undeclared))
        beside = " and ".join(_first([*map(quote_name, likely or ([near] if near else []))]))
        summary = f"choice {quote_name(str(name))} would be created beside {beside}, which no manifest declares"
        if likely:
            why = f"{summary}, and which live conditions name in its place"
            yield _possible_rename(change, why, [_choice_line(name, old) for old in likely], is_deleted=False)
        elif near:
            yield _close_name(change, f"{summary}: their names are close", _choice_line(name, near))


def _choice_line(new: Json, old: Json) -> str:
    return f"- {{name: {quote_name(str(new))}, previously: [{quote_name(str(old))}]}}"


def _possible_rename(change: Change, summary: str, lines: Sequence[str], *, is_deleted: bool) -> Problem:
    """Return the warning that a creation may be a rename. lines: each makes it one."""
    harm = "the old one's people and answers would be lost" if is_deleted else "there would be a duplicate"
    instead = "delete and create" if is_deleted else "create it anyway"
    return Problem(
        code=POSSIBLE,
        severity=Severity.WARNING,
        message=f"{change.address}: {summary}; if that is a rename, {harm}",
        hint=f"To rename it, write {' or '.join(_first(lines))}. To {instead}, allow `recreates`.",
        source=change.source,
        address=str(change.address),
    )


def _close_name(change: Change, summary: str, line: str) -> Problem:
    return Problem(
        code=CLOSE,
        severity=Severity.NOTE,
        message=f"{change.address}: {summary}",
        hint=f"If they are the same, write {line} to rename it.",
        source=change.source,
        address=str(change.address),
    )
