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
_SHOWN: Final = 3


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
        _Comparing(KINDS[name], planning, kind_changes, results[name]).run(possible, problems)
    parts = (_parts(one, KINDS[one.address.kind].parts_key, planning.parts.get(one.address)) for one, _ in changes)
    return possible, [*problems, *chain.from_iterable(parts)]


class _Old(Struct, frozen=True):
    """A live resource that creations are compared with. is_deleted: by the plan. is_absent: it is under `absent`."""

    resource: UndeclaredResource
    content: Similarity
    is_deleted: bool
    is_absent: bool


class _Comparing:
    """Compare the creations of one kind with its old resources."""

    def __init__(
        self,
        kind: Kind,
        planning: PlanContext,
        changes: Sequence[tuple[Change, BeforeAfter]],
        result: MatchResult[Any, Any],
    ) -> None:
        self.kind, self.planning, self.changes, self.result = kind, planning, changes, result
        self.names = Counter(normalize_name(row.name) for row in planning.snapshot.of(kind.name).rows)

    def run(self, possible: list[PossibleRename], problems: list[Problem]) -> None:
        new = [
            (change, content)
            for change, sides in self.changes
            if change.action is Action.CREATE and sides.after is not None
            if (content := similarity(self.planning, self.kind.name, sides.after)) is not None
        ]
        if not new:
            return
        olds = list(self._olds())
        comparable = (old for old in olds if old.content.key is not None)
        by_key = grouped(comparable, lambda old: (old.content.type, hash(old.content.key)))
        paired: set[str] = set()
        for change, content in new:
            replaced = self.planning.replaced.get(change.address, set())
            alike = self._alike(content, by_key, paired | replaced)
            paired.update(old.resource.row.id for old in alike if old.is_deleted)
            others = [old for old in olds if old.resource.row.id not in replaced]
            close = () if alike else tuple(_close(change, content, others))
            rename = PossibleRename(
                address=change.address,
                alike=tuple(self._candidate(old, f"the same {content.of}") for old in alike if not old.is_absent),
                close=tuple(self._candidate(*one) for one in close if not one[0].is_absent),
            )
            if rename.alike or rename.close:
                possible.append(rename)
            if alike:
                problems.append(self._possible(change, content, alike))
            problems.extend(self._note(change, *one) for one in close)
        problems.extend(self._not_compared())

    def _olds(self) -> Iterator[_Old]:
        """Yield the deletions, also those that options like `--except` skip, and the first undeclared resources."""
        planning, policy = self.planning, self.planning.policy
        deleted_ids = {change.id for change, _ in self.changes if change.action is Action.DELETE}
        deletions = [UndeclaredResource(one.address, one.row) for one in self.result.deletions if one.with_ is None]
        absent_ids = {deletion.row.id for deletion in self.result.deletions if deletion.absent is not None}
        for resource in (*deletions, *rename_candidates(self.result.unmanaged, policy)):
            content = similarity(planning, self.kind.name, live_form(planning, self.kind.name, resource.row))
            if content is not None and (policy.compares != 0 or resource.row.id in deleted_ids):
                yield _Old(resource, content, resource.row.id in deleted_ids, resource.row.id in absent_ids)

    def _alike(
        self, content: Similarity, by_key: Mapping[tuple[str, int], Sequence[_Old]], taken: AbstractSet[str]
    ) -> list[_Old]:
        """Return those with equal content; of those deleted, only the first that is not taken. taken: their ids.

        Taken are those paired with another creation, and those that this creation replaces on purpose.
        """
        # Looked up by hash, then compared one by one: keys that leave a part undeclared have no transitive equality.
        if content.key is None:
            return []
        same = [old for old in by_key.get((content.type, hash(content.key)), ()) if old.content.key == content.key]
        free = [old for old in same if old.resource.row.id not in taken]
        deleted = next((old for old in free if old.is_deleted), None)
        return [*([deleted] if deleted else []), *(old for old in free if not old.is_deleted)]

    def _candidate(self, old: _Old, why: str) -> RenameCandidate:
        row = old.resource.row
        alone = self.names[normalize_name(row.name)] == 1
        return RenameCandidate(
            address=old.resource.address, id=row.id, why=why, line=self._line(old), is_earlier_name=alone
        )

    def _line(self, old: _Old) -> str:
        """Return the manifest line that makes it a rename: by earlier name, or by id if that name is not unique."""
        name = normalize_name(old.resource.row.name)
        if self.names[name] == 1:
            return f"previously: [{quote_name(name)}]"
        return f"id: {{{quote_name(self.planning.policy.workspace)}: {quote_name(old.resource.row.id)}}}"

    def _possible(self, change: Change, content: Similarity, alike: Sequence[_Old]) -> Problem:
        is_deleted = alike[0].is_deleted
        stay = _first([str(old.resource.address) for old in alike if not old.is_deleted])
        summary = f"it would be created beside {join_words(stay, 'and')}, with the same {content.of}"
        if is_deleted:
            name = alike[0].resource.address.name
            summary = f'"{name}" is deleted and "{change.address.name}" is created with the same content'
        return _possible_rename(change, summary, [*map(self._line, alike)], is_deleted=is_deleted)

    def _note(self, change: Change, old: _Old, why: str) -> Problem:
        verb = "goes" if old.is_deleted else "stays"
        summary = f"it would be created, and {old.resource.address}, which {verb}, has {why}"
        return _close_name(change, summary, self._line(old))

    def _not_compared(self) -> Iterator[Problem]:
        policy, unmanaged = self.planning.policy, len(self.result.unmanaged)
        if policy.compares and unmanaged > policy.compares:
            yield Problem(
                code="rename/not-compared",
                severity=Severity.NOTE,
                message=f"{policy.compares} of the {unmanaged} {self.kind.plural} that no manifest declares were "
                f"compared with what would be created, and {unmanaged - policy.compares} were not",
                hint="Before you apply, check whether one of the others was renamed by hand: "
                "`lmsconf drift --coverage` compares all of them.",
            )


def _close(change: Change, content: Similarity, olds: Sequence[_Old]) -> Iterator[tuple[_Old, str]]:
    """Yield the one with mostly equal content, else one with a close name where content cannot be compared."""
    same_type = [old for old in olds if old.content.type == content.type]
    if content.key is not None:
        shared = [(len(old.content.items & content.items), old) for old in same_type if old.content.key is not None]
        most = max(shared, key=lambda one: one[0], default=None)
        if most is not None and 2 * most[0] > max(len(content.items), len(most[1].content.items)):
            yield most[1], f"most of the same {content.of}"
            return
    blank = {old.resource.address.name: old for old in same_type if content.key is None or old.content.key is None}
    name = nearest_name(change.address.name, blank)
    if name is not None:
        yield blank[name], "a close name"


def _first(texts: Sequence[str]) -> list[str]:
    """Return the first texts, and how many more there are: `a`, `b`, `c`, `53 more`."""
    more = len(texts) - _SHOWN
    return [*texts[:_SHOWN], *([f"{more:,} more"] if more > 0 else [])]


def _parts(change: Change, key: str | None, parts: NewParts | None) -> Iterator[Problem]:
    """Yield problems for choices that are created while others are deleted, or beside undeclared ones."""
    new = [name for field_change in change.fields if field_change.path == key for name in field_change.added]
    for old in (name for field_change in change.fields if field_change.path == key for name in field_change.removed):
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
            summary += ", and which live conditions name in its place"
            yield _possible_rename(change, summary, [_choice_line(name, old) for old in likely], is_deleted=False)
        elif near:
            yield _close_name(change, f"{summary}: their names are close", _choice_line(name, near))


def _choice_line(new: Json, old: Json) -> str:
    return f"- {{name: {quote_name(str(new))}, previously: [{quote_name(str(old))}]}}"


def _possible_rename(change: Change, summary: str, lines: Sequence[str], *, is_deleted: bool) -> Problem:
    """Return the warning that a creation may be a rename. lines: each makes it one."""
    harm, instead = "there would be a duplicate", "create it anyway"
    if is_deleted:
        harm, instead = "the old one's people and answers would be lost", "delete and create"
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
