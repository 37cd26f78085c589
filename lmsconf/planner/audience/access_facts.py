"""What is read to know who has what, as far as a plan affects it or a question uses it, and what is asked.

Everything that the plan itself has read is taken from there. Members of smart groups come only with
`GET /smart-groups/{smartGroupId}?includeMembers=true`, and assignments only by content (API specification, Smart
Groups, Content Targeting), so a change of members costs a request for each content.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from contextlib import suppress
from itertools import chain
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from lmsconf.api.spec.dialect_candidates import EVERYONE_ID
from lmsconf.errors import LmsconfError
from lmsconf.kinds.assignment.types import Audiences, ContentRow, TargetRow, audiences_among
from lmsconf.kinds.custom_field.types import FieldRow
from lmsconf.kinds.group import GroupRow
from lmsconf.kinds.shared.kind_names import CONTENT, CONTENT_TARGET, CUSTOM_FIELD, GROUP, SMART_GROUP, USER
from lmsconf.kinds.shared.managed_resources import claim_of
from lmsconf.kinds.shared.match_by_name import ClaimMatches
from lmsconf.kinds.shared.plan_context import PlanContext
from lmsconf.kinds.shared.responses import require_object
from lmsconf.kinds.smart_group import ConditionRow, SmartGroupRow, parse_detail_row
from lmsconf.kinds.user.types import PersonRow, answers_of
from lmsconf.model.address import Address, Ref, RemoteId
from lmsconf.model.names import grouped, normalize_name
from lmsconf.planner.audience.affected import AccessScope
from lmsconf.planner.audience.people_sets import AudienceKey
from lmsconf.planner.read.assignments import read_targets
from lmsconf.planner.read.fields_and_groups import read_group_members, read_with_members
from lmsconf.planner.read.needed_listings import ReadContext, read_listing
from lmsconf.planner.read.people_listings import AnswerIndex


class LiveSmartGroup(Struct, frozen=True):
    """A smart group with its conditions, and its members, None if the service does not return them.

    members: distinct ids; of thousands of groups, tuples take a fifth of the memory of sets.
    """

    conditions: tuple[ConditionRow, ...]
    members: tuple[RemoteId, ...] | None


class AccessFacts(Struct, frozen=True, kw_only=True):
    """What was read to know who has what. incomplete: why something that all numbers rest on may be missing.

    contents: the names in the catalog, as in addresses. rows: of live groups and smart groups, by kind and id.
    targets: the live targets of every content that was read. target_audiences: those that they may be for.
    beyond: (kind, id) of groups whose members were read only because they are asked for.
    """

    people: AnswerIndex
    fields: Mapping[RemoteId | Ref, FieldRow]
    contents: Mapping[RemoteId, str]
    rows: Mapping[str, Mapping[Any, Any]]
    members: Mapping[RemoteId | Ref, frozenset[RemoteId]]
    conditions: Mapping[RemoteId | Ref, LiveSmartGroup]
    targets: Mapping[RemoteId, tuple[TargetRow, ...]]
    target_audiences: Audiences
    incomplete: tuple[str, ...] = ()
    beyond: frozenset[AudienceKey | None] = frozenset()

    def of_plan(self) -> AccessFacts:
        """Return the same without the members of groups that the changes of the plan do not affect."""
        return replace(
            self,
            members={id: held for id, held in self.members.items() if (GROUP, id) not in self.beyond},
            conditions={id: held for id, held in self.conditions.items() if (SMART_GROUP, id) not in self.beyond},
            beyond=frozenset(),
        )

    def content_name(self, id: RemoteId) -> str:
        """Return the name of a content, as in addresses."""
        return self.contents.get(id) or f"content id {id}"

    def may_be_in(self, row: TargetRow, audiences: frozenset[AudienceKey]) -> bool:
        """Return whether a target is for one of these audiences, or may be."""
        key = self.target_audiences.of(row)
        kinds = self.target_audiences.candidates(row) if key is None else ()
        return key in audiences or any((kind, row.target) in audiences for kind in kinds)


def facts_from_snapshot(planning: PlanContext) -> AccessFacts:
    """Return what the snapshot of a plan holds, read from a file; it lacks the members of smart groups."""
    snapshot = planning.snapshot
    listings = {kind: snapshot.of(kind) for kind in (USER, CONTENT, GROUP, SMART_GROUP, CUSTOM_FIELD, CONTENT_TARGET)}
    return AccessFacts(
        people=AnswerIndex(tuple(map(answers_of, snapshot.rows(PersonRow))), has_answers=True),
        fields={row.id: row for row in snapshot.rows(FieldRow)},
        contents={row.id: normalize_name(row.name) for row in snapshot.rows(ContentRow)},
        rows={kind: {row.id: row for row in listings[kind].rows} for kind in (GROUP, SMART_GROUP)},
        members={row.id: row.members for row in snapshot.rows(GroupRow) if row.members is not None},
        conditions={row.id: LiveSmartGroup(row.conditions or (), None) for row in snapshot.rows(SmartGroupRow)},
        targets={
            **{row.id: () for row in snapshot.rows(ContentRow)},
            **{id: tuple(rows) for id, rows in grouped(snapshot.rows(TargetRow), lambda row: row.content).items()},
        },
        target_audiences=planning.audiences,
        incomplete=(
            *(() if snapshot.redaction is None else ("the snapshot is redacted",)),
            *(
                f"the snapshot has no complete listing of {kind.replace('_', ' ')}s: {listing.incomplete}"
                for kind, listing in listings.items()
                if listing.incomplete is not None
            ),
        ),
    )


def moved_audiences(scope: AccessScope, facts: AccessFacts) -> frozenset[AudienceKey]:
    """Return the groups and smart groups whose membership may change."""
    fields = scope.fields
    smart = (
        id
        for id, group in facts.conditions.items()
        if scope.changes_accounts or any(condition.field in fields for condition in group.conditions)
    )
    return frozenset(
        [*((GROUP, id) for id in scope.groups), *((SMART_GROUP, id) for id in (*scope.smart_groups, *smart))]
    )


def affected_contents(scope: AccessScope, facts: AccessFacts) -> frozenset[RemoteId]:
    """Return the contents whose assignments change, and those that are assigned to an audience that may change."""
    moved = moved_audiences(scope, facts)
    assigned = (
        id
        for id, rows in facts.targets.items()
        if scope.changes_accounts or any(facts.may_be_in(row, moved) for row in rows)
    )
    return frozenset([*(change.content for change in scope.assignments), *assigned])


def read_access_facts(
    reading: ReadContext, planning: PlanContext, scope: AccessScope, query: AccessQuery
) -> AccessFacts:
    """Read what the effects of a plan rest on, beyond what the snapshot of the plan, which the reading returned, holds.

    query: what is read for questions, beside the effects.
    """
    planned = planning.snapshot
    people = reading.answers.read(reading.api)
    listings = {
        name: planned.of(name) if name in planned.listings else read_listing(reading.api, name)
        for name in (CONTENT, GROUP, SMART_GROUP, CUSTOM_FIELD)
    }
    nouns = {f"{kind.replace('_', ' ')}s": listing.incomplete for kind, listing in listings.items()}
    contents = {row.id: row for row in listings[CONTENT].rows}
    asked = {id for id, row in contents.items() if query.wants_content(row.name)}
    targets = _targets(reading, scope, contents, asked)
    names = {kind: ((row.id, row.name) for row in listings[kind].rows) for kind in (GROUP, SMART_GROUP)}
    facts = AccessFacts(
        people=people,
        fields={row.id: row for row in listings[CUSTOM_FIELD].rows},
        contents={id: normalize_name(row.name) for id, row in contents.items()},
        rows={kind: {row.id: row for row in listings[kind].rows} for kind in (GROUP, SMART_GROUP)},
        members={},
        conditions={},
        targets=targets,
        target_audiences=audiences_among(
            {**names, USER: ((person.id, person.email) for person in people.people)},
            chain(planned.rows(TargetRow), *targets.values()),
            reading.api_spec.behaviour(EVERYONE_ID),
            planned=planned.rows(TargetRow),
            incomplete=listings[GROUP].incomplete or listings[SMART_GROUP].incomplete,
        ),
        incomplete=tuple(
            f"the listing of {noun} is not complete: {why}"
            for noun, why in {"people": people.incomplete, **nouns}.items()
            if why is not None
        ),
    )
    return _with_members(reading, planning, scope, facts, query, asked)


def _targets(
    reading: ReadContext, scope: AccessScope, contents: Mapping[RemoteId, ContentRow], asked: Collection[RemoteId]
) -> dict[RemoteId, tuple[TargetRow, ...]]:
    """Return the targets of the contents that can be affected: all, if an audience changes that has existed before.

    asked: contents whose targets are read in any case.
    """
    wanted = {change.content for change in scope.assignments} | set(asked)
    if (
        scope.changes_accounts
        or scope.fields
        or any(isinstance(key, str) for key in (*scope.groups, *scope.smart_groups))
    ):
        wanted |= contents.keys()
    rest = [contents[id] for id in sorted(wanted - reading.targets.keys()) if id in contents]
    return {id: reading.targets[id] for id in wanted & reading.targets.keys()} | read_targets(reading, rest)


def _with_members(
    reading: ReadContext,
    planning: PlanContext,
    scope: AccessScope,
    facts: AccessFacts,
    query: AccessQuery,
    asked: Collection[RemoteId],
) -> AccessFacts:
    """Return facts with the audiences of the contents that can be affected or are asked for, and those that change."""
    # Any smart group may have a condition on answers or accounts that change.
    smart = _smart_groups(reading, facts.rows[SMART_GROUP].values() if scope.fields or scope.changes_accounts else ())
    facts = replace(facts, conditions=smart)
    wanted = {
        *_audiences_of(facts, affected_contents(scope, facts)),
        *moved_audiences(scope, facts),
        *(change.audience for change in scope.assignments),
        *((GROUP, id) for id in _groups_of_leaving(reading, scope, facts)),
    }
    questioned = set(_audiences_of(facts, asked))
    for address in query.audiences:
        # What is wrong with an audience is said where it is asked about.
        with suppress(LmsconfError):
            questioned.add(find_key(planning, facts, address))
    needed = wanted | questioned
    groups, rest = (
        [row for id, row in facts.rows[kind].items() if (kind, id) in needed] for kind in (GROUP, SMART_GROUP)
    )
    return replace(
        facts,
        members=read_group_members(reading, groups, facts.people.positions.keys()),
        conditions=smart | _smart_groups(reading, (row for row in rest if row.id not in smart)),
        beyond=frozenset(questioned - wanted - {(SMART_GROUP, id) for id in smart}),
    )


def _audiences_of(facts: AccessFacts, contents: Iterable[RemoteId]) -> Iterator[AudienceKey | None]:
    """Yield the audiences of the live targets of contents; None for one that is not known."""
    return (facts.target_audiences.of(row) for id in contents for row in facts.targets.get(id, ()))


def _groups_of_leaving(reading: ReadContext, scope: AccessScope, facts: AccessFacts) -> Collection[RemoteId]:
    """Return the manual groups that people leave because they are archived: all, if the service does not tell.

    An id in `memberOfGroups` may be that of a smart group; a manual group of that id is then read in vain.
    """
    leaving = [person.id for person in scope.people if person.leaves and person.id is not None]
    groups = facts.rows[GROUP]
    if len(leaving) >= len(groups):
        return groups
    people = reading.api.each("users.get", [({"userId": id}, {}) for id in leaving])
    listed = [require_object(person, "a person").get("memberOfGroups") for person in people]
    found = [group for one in listed if isinstance(one, list) for group in one if isinstance(group, dict)]
    is_told = all(isinstance(one, list) for one in listed)
    return {RemoteId(str(group.get("groupId"))) for group in found} if is_told else groups


def _smart_groups(reading: ReadContext, rows: Iterable[SmartGroupRow]) -> dict[RemoteId | Ref, LiveSmartGroup]:
    listed = {row.id: row for row in rows}
    return {
        row.id: LiveSmartGroup(
            parse_detail_row(row, answer).conditions or (), None if members is None else tuple(members)
        )
        for row, (answer, members) in zip(listed.values(), read_with_members(reading.api, listed), strict=True)
    }


class AccessQuery(Struct, frozen=True, kw_only=True):
    """What is asked beyond the effects of a plan, so that it is read.

    contents: names; None: all. audiences: by the names after the plan, or else by the live ones. fields: whose answers
    are counted.
    """

    contents: frozenset[str] | None = frozenset()
    audiences: frozenset[Address] = frozenset()
    fields: frozenset[str] = frozenset()

    def wants_content(self, name: str) -> bool:
        return self.contents is None or normalize_name(name) in self.contents


def find_key(planning: PlanContext, facts: AccessFacts, address: Address) -> AudienceKey | None:
    """Return the kind and id of a group or smart group: by its name after the plan, or else by its live name.

    Raises LmsconfError for a name that is live twice, for a doubtful one, and for one that is declared, neither live
    nor planned.
    """
    kind, name = address.kind, address.name
    if kind not in facts.rows:
        return None
    if kind not in planning.snapshot.listings and name in (unread := _match_unread(planning, facts, kind)):
        return kind, _live(address, unread[name])
    if address in planning.doubtful:
        raise LmsconfError(f"it is not yet known what of {address} is live; plan it too to see its error")
    if planning.registry.has(kind, name):
        _refuse_several(address, planning.registry.duplicate_ids(kind, name))
        id = planning.registry.id_or_ref(Ref(address))
        return kind, id if planning.chosen(address) else _live(address, id)
    live = [row.id for row in facts.rows[kind].values() if normalize_name(row.name) == name]
    _refuse_several(address, live if len(live) > 1 else ())
    return (kind, live[0]) if live else None


def _refuse_several(address: Address, ids: Collection[str]) -> None:
    if ids:
        raise LmsconfError(
            f"{address} is live more than once, with the ids {', '.join(sorted(ids))}",
            hint="Declare the right one, with its `id:`.",
        )


def _match_unread(planning: PlanContext, facts: AccessFacts, kind: str) -> Mapping[str, RemoteId | None]:
    """Return the live ids of what is declared of a kind that the plan has not read; without those in error."""
    claims = [claim_of(planning, one) for one in planning.declared if one.address.kind == kind]
    matched = ClaimMatches(claims, list(facts.rows[kind].values()))
    return {
        claim.name: None if row is None else row.id
        for position, (claim, row) in enumerate(zip(claims, matched.live, strict=True))
        if position not in matched.broken
    }


def _live(address: Address, id: RemoteId | Ref | None) -> RemoteId:
    if id is None or isinstance(id, Ref):
        raise LmsconfError(f"{address} is not live, and this plan does not create it")
    return id
