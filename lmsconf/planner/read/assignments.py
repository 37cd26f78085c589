"""Read live assignments: one request per content, and a second one where a declared assignment is missing.

The response has no row count, so a truncated one cannot be detected (API specification, Content Targeting). Before an
assignment is created because it is missing, a second response must list the same targets.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime, tzinfo
from itertools import chain
from typing import Any, Final, TypeAlias

from lmsconf.api.spec.dialect_candidates import EVERYONE_ID, ON_EXISTING
from lmsconf.kinds.assignment.parse import named_contents
from lmsconf.kinds.assignment.target_ids import ContentResolver
from lmsconf.kinds.assignment.types import (
    AssignmentSpec,
    Audiences,
    ContentRow,
    TargetRow,
    may_be_for,
    parse_target_row,
    readable_time,
)
from lmsconf.kinds.kind_functions import diff
from lmsconf.kinds.shared.kind_names import (
    CONTENT,
    CONTENT_TARGET,
    CUSTOM_FIELD,
    EDITS,
    GROUP,
    IN_PROGRESS,
    SMART_GROUP,
    UNNAMED_TARGETS,
    USER,
)
from lmsconf.kinds.shared.manifest_entry import format_time
from lmsconf.kinds.shared.plan_context import MatchResult, PlanContext
from lmsconf.kinds.shared.responses import object_list, require_object, text_or_none
from lmsconf.model.address import RemoteId
from lmsconf.model.canonical_json import Json
from lmsconf.model.drift import LastEdit
from lmsconf.model.guards import SMALL
from lmsconf.model.names import normalize_name
from lmsconf.model.snapshot import Listing, Snapshot
from lmsconf.planner.check_guards import least_live_within_share
from lmsconf.planner.read.learner_progress import read_in_progress
from lmsconf.planner.read.needed_listings import (
    EditRow,
    Matched,
    ReadContext,
    has_difference,
    read_listing,
    sorted_listing,
)

TargetsByContent: TypeAlias = "dict[RemoteId, tuple[TargetRow, ...]]"
_AT_ONCE: Final = 32
_NAMED: Final = (CUSTOM_FIELD, USER, GROUP, SMART_GROUP)
"""The kinds that are matched before assignments, which name them."""


def read_targets(reading: ReadContext, contents: Sequence[ContentRow]) -> TargetsByContent:
    """The targets of each content, and their last edits, where these are wanted, into `last_edits`.

    Raises InvalidResponse for a response without its list, which would read as no targets.
    """
    answers = reading.api.each("content-targets.list", [({}, {"contentId": content.id}) for content in contents])
    targets: TargetsByContent = {}
    for content, answer in zip(contents, answers, strict=True):
        targets[content.id] = tuple(
            parse_target_row(content.id, one) for one in object_list(require_object(answer, "the targets"), "targets")
        )
        if reading.edits:
            reading.last_edits.update((edit.id, edit) for edit in parse_edit_rows(content.id, answer))
    return targets


def parse_edit_rows(content: RemoteId, answer: Json) -> Iterable[EditRow]:
    """Yield the last edits of the targets in one response; targets without editor and time are skipped."""
    for target in object_list(require_object(answer, "the targets"), "targets"):
        editor, at = target.get("updatedBy"), text_or_none(target.get("updatedAt"))
        # Only a text or a number can be an id or an e-mail.
        by = None if isinstance(editor, dict | list) else text_or_none(editor)
        if by or at:
            yield EditRow(parse_target_row(content, target).id, by, at)


def last_edits(snapshot: Snapshot, zone: tzinfo | None) -> dict[RemoteId, LastEdit]:
    """Return the last edits by target id: editors by e-mail where known, times in `zone`, as they are if unreadable."""
    emails = {row.id: row.name for row in snapshot.of(USER).rows}
    times = ((row, readable_time(row.at)) for row in snapshot.rows(EditRow))
    return {
        row.id: LastEdit(
            emails.get(RemoteId(row.by or ""), row.by), format_time(at, zone) if isinstance(at, datetime) else at
        )
        for row, at in times
    }


def read_assignments(reading: ReadContext) -> Iterator[None]:
    """Read the catalog, in the second phase the targets of the named contents, in the last some again.

    Who is in progress on what is replaced is read before people are, where these may be looked up.
    """
    contents = reading.found[CONTENT] = read_listing(reading.api, CONTENT)
    yield
    wanted = _wanted(reading, contents.rows)
    targets = read_targets(reading, wanted)
    people = _people_of(reading, targets)
    if people is None:
        reading.needs_all_people = True
    else:
        kept = _read_in_progress(reading, contents, targets, lists_people=False)
        reading.people_in_lists.update(people, kept)
    yield
    yield
    if people is None:
        _read_in_progress(reading, contents, targets, lists_people=True)
    listing = sorted_listing(chain.from_iterable(targets.values()), None)
    doubtful = _lacking(reading, _match(reading, contents, listing))
    again = read_targets(reading, [content for content in wanted if content.id in doubtful])
    differs = [
        one.name
        for one in wanted
        if one.id in again and {row.id for row in again[one.id]} != {row.id for row in targets[one.id]}
    ]
    incomplete = contents.incomplete or (
        f"those of {differs[0]} were read twice, with different results" if differs else None
    )
    reading.targets = targets | again
    listing = reading.found[CONTENT_TARGET] = sorted_listing(chain.from_iterable(reading.targets.values()), incomplete)
    if reading.edits:
        edits = (reading.last_edits[row.id] for row in listing.rows if row.id in reading.last_edits)
        reading.found[EDITS] = sorted_listing(edits, incomplete)
    others = [row for row in contents.rows if row.id not in targets]
    _count_others(reading, others, _match(reading, contents, listing), len(listing.rows))


def _read_in_progress(
    reading: ReadContext, contents: Listing[ContentRow], targets: TargetsByContent, *, lists_people: bool
) -> frozenset[RemoteId]:
    """Read who is in progress on what the manifests replace now, if anything; return their ids.

    lists_people: whether all people are listed, so that their ids are known.
    """
    replaces = any(
        resource.spec.replaces for resource in reading.declared_of(CONTENT_TARGET) if reading.chosen(resource.address)
    )
    if not replaces or (reading.everything and not reading.edits) or reading.policy.additive:
        return frozenset()
    # Few people are looked up after the ids in this listing are known: of a target that may be for a person, progress
    # is read whether or not it is replaced.
    rows = sorted_listing(chain.from_iterable(targets.values()), None)
    matches = [*_match(reading, contents, rows, [kind for kind in _NAMED if lists_people or kind != USER])]
    audiences = matches[0][0].audiences
    # A drift report needs to know only who keeps the content by the assignment that is replaced: it stays.
    closing = {} if reading.edits else {row.id: row for planning, _ in matches for row in planning.closing}
    closing |= {row.id: row for row in _targets_of_people(reading, contents.rows, rows.rows, audiences)}
    if not closing:
        return frozenset()
    found = [read_in_progress(reading.api, row, audiences.of(row)) for row in closing.values()]
    reading.found[IN_PROGRESS] = sorted_listing(found, None)
    return frozenset[RemoteId]().union(*(row.people for row in found))


def _targets_of_people(
    reading: ReadContext, contents: Iterable[ContentRow], targets: Iterable[TargetRow], audiences: Audiences
) -> Iterator[TargetRow]:
    """Yield the targets that are for people, or may be, of the contents that are replaced for people."""
    replaced = {
        content
        for resource in reading.declared_of(CONTENT_TARGET)
        if resource.spec.audience.kind == USER and reading.chosen(resource.address)
        if not reading.edits or any(one.keep_until for one in resource.spec.replaces)
        for content in named_contents(resource.spec)
    }
    ids = {row.id for row in contents if normalize_name(row.name) in replaced}
    return (row for row in targets if row.content in ids and ((key := audiences.of(row)) is None or key[0] == USER))


def _people_of(reading: ReadContext, targets: TargetsByContent) -> frozenset[RemoteId] | None:
    """Return the ids of targets that may be people, None if a type does not tell whose an id is."""
    groups = {row.id for name in (GROUP, SMART_GROUP) for row in reading.listings[name].rows}
    everyone = reading.api_spec.behaviour(EVERYONE_ID)
    rows = [
        row for row in chain.from_iterable(targets.values()) if row.target != everyone and may_be_for(USER, row.type)
    ]
    if any(row.target in groups and may_be_for(GROUP, row.type) for row in rows):
        return None
    return frozenset(row.target for row in rows)


def _wanted(reading: ReadContext, rows: tuple[ContentRow, ...]) -> list[ContentRow]:
    """Return the contents that the manifests name; the whole catalog if all is owned or a group is deleted."""
    owned = () if reading.policy.only else reading.policy.ownership.get(CONTENT_TARGET, ())
    if (
        reading.everything
        or CONTENT_TARGET in reading.chosen.sought_kinds()
        or "all" in owned
        # A live group will be deleted, and with it its assignments of any content.
        or any(
            reading.chosen(deletion.address)
            for kind in (GROUP, SMART_GROUP)
            if reading.may_delete(kind)
            for _, matched in reading.matches(kind)
            for deletion in matched.deletions
        )
    ):
        return list(rows)
    entries = chain(*reading.manifests.of_kind(CONTENT_TARGET))
    specs: list[AssignmentSpec] = [one.spec for one in entries if reading.chosen(one.address)]
    names = {name for spec in specs for name in (spec.content, *named_contents(spec))}
    ids = {
        id
        for spec in specs
        for pins in (spec.content_pins, *(old.content_pins for old in spec.replaces))
        for id in pins.values()
    }
    return [row for row in rows if row.id in ids or normalize_name(row.name) in names]


def _match(
    reading: ReadContext,
    contents: Listing[ContentRow],
    listing: Listing[TargetRow],
    before: Sequence[str] = _NAMED,
) -> Iterator[Matched]:
    """Match each version of the assignments with what was read, after the kinds that these name."""
    listings: dict[str, Listing[Any]] = {kind: reading.listings[kind] for kind in before if kind in reading.needed}
    listings |= {CONTENT: contents, CONTENT_TARGET: listing}
    return (reading.match(CONTENT_TARGET, listings, version, after=before) for version in reading.versions)


def _lacking(reading: ReadContext, matches: Iterable[Matched]) -> set[RemoteId | None]:
    """Return the contents for which an assignment would be created."""
    doubtful: set[RemoteId | None] = set()
    for planning, matched in matches:
        missing = [one.declared for one in matched.matches if one.row is None and reading.chosen(one.address)]
        doubtful.update(map(ContentResolver(planning).find_id, missing))
    return doubtful


def _count_others(reading: ReadContext, others: Sequence[ContentRow], matches: Iterable[Matched], live: int) -> None:
    """Read assignments of further contents while the share that changes exceeds a guard.

    The share is of all live assignments, so each further one can only lower it. live: how many were read.
    """
    if not others or reading.policy.additive:
        return
    guards = reading.policy.guards.limits
    recreates = reading.api_spec.behaviour(ON_EXISTING) == "recreate"
    both = [_changing(reading, *matched, recreates) for matched in matches]
    removed, changed = (max(numbers) for numbers in zip(*both, strict=True))
    enough = max(
        least_live_within_share(removed, guards["removals"]),
        least_live_within_share(changed, guards["updates"], least=SMALL),
    )
    if enough > live:
        rows: list[TargetRow] = []
        for start in range(0, len(others), _AT_ONCE):
            if live + len(rows) < enough:
                rows.extend(chain(*read_targets(reading, others[start : start + _AT_ONCE]).values()))
        reading.found[UNNAMED_TARGETS] = Listing(rows=tuple(rows))


def _changing(
    reading: ReadContext, planning: PlanContext, matched: MatchResult[Any, Any], recreates: bool
) -> tuple[int, int]:
    """Return how many live assignments would be deleted and how many updated in place."""
    removed = sum(reading.chosen(deletion.address) for deletion in matched.deletions)
    changed = sum(
        has_difference(diff(planning, match))
        for match in matched.matches
        if match.row and reading.chosen(match.address)
    )
    return (removed + changed, 0) if recreates else (removed, changed)
